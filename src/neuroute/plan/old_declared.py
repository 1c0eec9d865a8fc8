"""How papers declare what they measure and show."""

from collections.abc import Iterable, Mapping

from neuroute.plan.objects import Artifact

Rooms = Mapping[str, tuple[str, ...]]  # module of a paper -> the tables and figures that it draws


def artifact(
    paper: str,
    rooms: Rooms,
    name: str,
    title: str,
    evaluations: Iterable[str] = (),
    runs: Iterable[str] = (),
    bundles: Iterable[str] = (),
) -> Artifact:
    """A table or figure, drawn by the function of its name in the room that has it; what it reads, each once."""
    (room,) = [room for room, names in rooms.items() if name in names]
    reads = {"evaluations": evaluations, "runs": runs, "bundles": bundles}
    return Artifact(
        paper=paper,
        name=name,
        title=title,
        function=f"neuroute.papers.{paper}.{room}:{name}",
        **{kind: tuple(dict.fromkeys(ids)) for kind, ids in reads.items()},
    )
