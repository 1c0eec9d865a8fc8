"""Rival systems of the papers' tables, trained and measured here: their common home.  No paper prints numbers of it.

`pipeline/plan/systems.py` says how one is added.  Besides, a study of our own: networks trained on as many instances,
or for as long, and tested on larger ones.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, create_model

from neuroute.core.systems import parts
from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.shapes import BaselineShape, Nodes, Positive
from neuroute.pipeline.plan.systems import PAPER as KEY
from neuroute.pipeline.plan.systems import Rival, Studied, block_fields
from neuroute.specs.data import Spec
from neuroute.specs.objects import Dataset, Decoding, Labels, Network, Problem, Reinforced, Run, Split


class Pomo(Studied):
    """POMO, which takes the study's shape as it is."""

    label = "POMO"
    kinds = {"tsp": "neuroute.networks.pomo:Pomo", "cvrp": "neuroute.networks.pomo:PomoCvrp"}


class Icam(Studied):
    """ICAM, which has no heads."""

    label = "ICAM"
    kinds = {"tsp": "neuroute.networks.icam:Icam", "cvrp": "neuroute.networks.icam:IcamCvrp"}

    @property
    def note(self) -> str:
        return "ICAM is without its stages of varying sizes and without elites."

    def network_of(self, problem: Problem, shape: dict[str, Any]) -> Network:
        return super().network_of(problem, {name: value for name, value in shape.items() if name != "heads"})


MORE = ConfigDict(extra="allow")  # blocks of systems that no installed package has

if TYPE_CHECKING:

    class _StudiedSystems(Spec): ...
else:
    _StudiedSystems = create_model("StudiedSystems", __base__=Spec, **block_fields(lambda system: system.studied))


class StudyBlock(_StudiedSystems):
    """Networks that are trained alike, on as many instances of one size or for as long, and tested on larger ones."""

    model_config = MORE

    nodes: Annotated[Nodes, Field(description="nodes, or customers, of the training instances")]
    network: Annotated[BaselineShape, Field(description="of networks of many starts; ICAM has no heads")]
    training: Annotated[dict[Problem, Reinforced], Field(description="of all networks, but for what is their own")]
    same_time: Annotated[
        dict[Problem, dict[str, Positive]],
        Field(description="batches of an epoch with which each takes the processor time of the slowest"),
    ]
    test_counts: Annotated[dict[int, Positive], Field(description="nodes, or customers -> test instances")]
    validation_count: Positive
    references: Annotated[dict[str, str], Field(description="tsp, cvrp -> solver of the reference solutions")]

    @property
    def networks(self) -> dict[str, Studied]:
        """The networks by what they are called."""
        studied = (Pomo(), Icam(), *(each for _, each in self if isinstance(each, Studied)))
        return {each.label: each for each in studied}


if TYPE_CHECKING:

    class _Systems(Spec): ...
else:
    _Systems = create_model("Systems", __base__=Spec, **block_fields(lambda system: system.block))


class RivalsScale(_Systems):
    """What rival systems of the papers' tables are trained and tested on; one that is left out is not trained."""

    model_config = MORE

    study: StudyBlock | None = None


def rivals(config: Config, scale: Scale) -> list[Rival]:
    """All networks that the scale trains."""
    systems = [(system, getattr(scale[RivalsScale], name)) for name, system in parts("system", "SYSTEM")]
    return [each for system, block in systems if block for each in system.rivals(config, scale, block)]


Budget = Literal["same instances", "same time"]
BUDGETS: tuple[Budget, ...] = ("same instances", "same time")


class Entry(NamedTuple):
    """A network with a budget."""

    budget: Budget
    problem: Problem
    name: str
    run: str  # the same with both budgets, where the network sets the time


def problems_of(s: StudyBlock) -> tuple[Problem, ...]:
    return tuple(s.training)


def studied(s: StudyBlock) -> list[Entry]:
    return [
        Entry(budget, problem, name, f"{KEY}/study_{_longer(budget, network)}{name.lower()}_{problem}")
        for budget in BUDGETS
        for problem in problems_of(s)
        for name, network in s.networks.items()
    ]


def _longer(budget: Budget, network: Studied) -> str:
    return "longer_" if budget == "same time" and not network.sets_the_time else ""


def decodings(s: StudyBlock, name: str) -> list[Decoding]:
    """Of one solution, and the best of the many that a network's authors take."""
    return [Decoding(), s.networks[name].best]


def tests(s: StudyBlock, problem: Problem) -> dict[int, Labels]:
    """Nodes, or customers -> the test set of that size."""
    return {n: _labels(s, problem, "test", n, count) for n, count in s.test_counts.items()}


def study_runs(config: Config, scale: Scale) -> list[Run]:
    s = scale[RivalsScale].study
    return [] if s is None else list({run.id: run for run in _runs(config, s)}.values())


def _runs(config: Config, s: StudyBlock) -> Iterator[Run]:
    shape = s.network.model_dump() | {"train_nodes": s.nodes}
    for each in studied(s):
        yield declare_run(
            config,
            KEY,
            each.run.partition("/")[2],
            _training(s, each),
            role={"method": each.name, "study": True},
            network=s.networks[each.name].network_of(each.problem, shape),
            n=s.nodes,
            validation=_labels(s, each.problem, "val", s.nodes, s.validation_count),
        )


def _training(s: StudyBlock, each: Entry) -> Reinforced:
    network = s.networks[each.name]
    training = network.train(s.training[each.problem])
    if not _longer(each.budget, network):
        return training
    more = {"batches_per_epoch": s.same_time[each.problem][each.name]}
    return training.model_copy(update={"stages": tuple(stage.model_copy(update=more) for stage in training.stages)})


def _labels(s: StudyBlock, problem: Problem, split: Split, n: int, count: int) -> Labels:
    return Labels(dataset=Dataset(problem=problem, split=split, n=n, count=count), solver=s.references[problem])


def runs(config: Config, scale: Scale) -> list[Run]:
    return [*(each.run for each in rivals(config, scale)), *study_runs(config, scale)]


def also_solved(scale: Scale) -> list[Labels]:
    """What nearest neighbour makes of the test sets."""
    return [each.test.model_copy(update={"solver": "nearest"}) for each in rivals(Config(), scale)]


PAPER = Paper(
    key=KEY,
    title="Rival systems of the papers' tables",
    scale=RivalsScale,
    runs=runs,
    also_solved=also_solved,
    optional=True,
)
