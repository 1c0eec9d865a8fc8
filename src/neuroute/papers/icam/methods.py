"""The methods that the tables of paper `icam` compare, and what of them is measured here."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from neuroute.papers.icam.roles import (
    AUGMENTED,
    BASELINES,
    GLOP,
    MDAM,
    MULTI,
    PARTED,
    REVISED,
    SINGLE,
    SIZES,
    decoder_beams,
    run_id,
)
from neuroute.plan.config import Scale
from neuroute.plan.objects import Decoding, Problem
from neuroute.rendering.grid import Method

# What stands for the paper's solver wherever the table has no row for another one.
REFERENCE: dict[Problem, Method] = {
    "tsp": Method("Concorde", {"method": "Concorde"}, solvers=("concorde", "lkh", "lkh-long", "lkh3")),
    "cvrp": Method("LKH3", {"method": "LKH3"}, solvers=("lkh3", "hgs", "hgs-short")),
}
WAYS: dict[str, tuple[str, int, Decoding]] = {  # in the tables' words -> printed decoding and images, decoding here
    "single trajec.": ("single_greedy", 1, SINGLE),
    "no augment.": ("multistart_greedy", 1, MULTI),
    "aug×8": ("multistart_greedy", 8, AUGMENTED),
}


def greedy(name: str, problem: Problem, sizes: Sequence[int]) -> Method:
    """Greedy decoding of a baseline that is trained here."""
    run = BASELINES[problem][name]
    return Method(f"{name} greedy", {"method": name, "decoding": "greedy"}, runs=dict.fromkeys(sizes, run))


def ways(name: str, run: str, sizes: Sequence[int], *, label: str = "") -> list[Method]:
    """One network of many starts, decoded in the three ways; run: its name; label: what is shown for `name`."""
    return [
        Method(
            f"{label or name} {way}",
            {"method": name, "decoding": decoding, "aug": images},
            runs=dict.fromkeys(sizes, run_id(run)),
            decoding=here,
        )
        for way, (decoding, images, here) in WAYS.items()
    ]


def glop() -> Method:
    """GLOP's revision of random insertion."""
    name = "GLOP (more revisions)"
    return Method(name, {"method": name}, runs=dict.fromkeys(SIZES, GLOP), decoding=REVISED)


def glop_g(runs: Mapping[int, str]) -> Method:
    """GLOP-G with LKH on its routes; runs: the paper's size -> the partition."""
    name = "GLOP-G (LKH3)"
    return Method(name, {"method": name}, runs=runs, decoding=PARTED)


def mdam(scale: Scale, problem: Problem) -> Method:
    """MDAM, with beams of each decoder."""
    how = decoder_beams(scale)
    return Method("MDAM bs50", {"method": "MDAM"}, runs=dict.fromkeys(SIZES, MDAM[problem]), decoding=how)


def cited(*labels: str) -> list[Method]:
    return [Method(label, {"method": label.removesuffix("*")}) for label in labels]


def rival_x8(name: str, run: str, sizes: Sequence[int]) -> Method:
    """Another system that is trained here, by the id of its run."""
    return replace(cited_x8(name), runs=dict.fromkeys(sizes, run), decoding=AUGMENTED)


def cited_x8(name: str) -> Method:
    return Method(f"{name} aug×8", {"method": name, "aug": 8})
