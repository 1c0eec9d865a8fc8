"""POMO, ICAM, ELG and INViT on as many instances of one size, or for as long, tested on larger ones."""

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from neuroute.pipeline.plan.changes import declare_run
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.shapes import BaselineShape, Nodes, Positive
from neuroute.specs.data import Spec
from neuroute.specs.objects import Dataset, Decoding, Labels, Network, Problem, Reinforced, Run, Split
from neuroute_systems.elg.system import ELG
from neuroute_systems.invit.system import INVIT, Views
from neuroute_systems.rollouts.spec import GreedyBaseline, Rollouts

KEY = "equal_budgets"
KINDS: dict[str, dict[Problem, str]] = {
    "POMO": {"tsp": "neuroute.networks.pomo:Pomo", "cvrp": "neuroute.networks.pomo:PomoCvrp"},
    "ICAM": {"tsp": "neuroute.networks.icam:Icam", "cvrp": "neuroute.networks.icam:IcamCvrp"},
    "ELG": ELG,
    "INViT": INVIT,
}
SLOWEST = "INViT"  # for whose time the others learn
Budget = Literal["same instances", "same time"]
BUDGETS: tuple[Budget, ...] = ("same instances", "same time")


class InvitBlock(Views):
    """INViT's own: instances and batches are those of the others, in images from one start each."""

    network: Annotated[BaselineShape, Field(description="depth: of each view's encoder, that of the actions too")]
    images: Annotated[int, Field(ge=2, description="of an instance in training")]
    baseline: GreedyBaseline
    learning_rate: Annotated[float, Field(gt=0, description="a rate of its own: the others' is too large for it")]
    tested_images: Annotated[int, Field(ge=2, description="of an instance in tests; the best counts")]


class EqualBudgetsScale(Spec):
    """The block `equal_budgets:`."""

    nodes: Annotated[Nodes, Field(description="nodes, or customers, of the training instances")]
    network: Annotated[BaselineShape, Field(description="of networks of many starts; ICAM has no heads")]
    neighbours: Annotated[int, Field(ge=1, description="nearest nodes of ELG's penalty and local policy")]
    invit: InvitBlock
    training: Annotated[dict[Problem, Reinforced], Field(description="of all networks, but for what is their own")]
    same_time: Annotated[
        dict[Problem, dict[str, Positive]],
        Field(description="batches of an epoch with which each takes the processor time of the slowest"),
    ]
    test_counts: Annotated[dict[int, Positive], Field(description="nodes, or customers -> test instances")]
    validation_count: Positive
    references: Annotated[dict[str, str], Field(description="tsp, cvrp -> solver of the reference solutions")]

    def labels(self, problem: Problem, split: Split, n: int, count: int) -> Labels:
        dataset = Dataset(problem=problem, split=split, n=n, count=count)
        return Labels(dataset=dataset, solver=self.references[problem])

    def tests(self, problem: Problem) -> dict[int, Labels]:
        """Nodes, or customers -> the test set of that size."""
        return {n: self.labels(problem, "test", n, count) for n, count in self.test_counts.items()}

    def decodings(self, name: str) -> list[Decoding]:
        """Of one solution, and the best of the many that a network's authors take."""
        best = Decoding(images=self.invit.tested_images) if name == "INViT" else Decoding(starts="all")
        return [Decoding(), best]


class Entry(NamedTuple):
    """A network with a budget; the run is the same with both, where the network sets the time."""

    budget: Budget
    problem: Problem
    name: str

    @property
    def is_longer(self) -> bool:
        return self.budget == "same time" and self.name != SLOWEST

    @property
    def run(self) -> str:
        return f"{KEY}/{'longer_' if self.is_longer else ''}{self.name.lower()}_{self.problem}"


def entries(s: EqualBudgetsScale) -> list[Entry]:
    """In the order of the table's rows."""
    return [Entry(budget, problem, name) for budget in BUDGETS for problem in s.training for name in KINDS]


def network_of(s: EqualBudgetsScale, problem: Problem, name: str) -> Network:
    arguments: dict[str, Any] = s.network.model_dump() | {"train_nodes": s.nodes}
    if name == "ICAM":
        del arguments["heads"]
    if name == "ELG":
        arguments["neighbours"] = s.neighbours
    if name == "INViT":
        arguments = s.invit.shape(s.invit.network, 2, s.invit.network.depth, s.nodes)
    return Network(kind=KINDS[name][problem], arguments=arguments)


def training_of(s: EqualBudgetsScale, each: Entry) -> Reinforced:
    """As all are trained, but for what is a network's own, and more batches where it learns for the same time."""
    common = s.training[each.problem]
    change: dict[str, Any] = {}
    if each.name == "INViT":
        change = {"starts": 1, "images": s.invit.images, "learning_rate": s.invit.learning_rate}
    elif each.is_longer:
        change = {"batches_per_epoch": s.same_time[each.problem][each.name]}
    stages = tuple(stage.model_copy(update=change) for stage in common.stages)
    if each.name == "INViT":
        fields = {name: value for name, value in common if name != "kind"}
        own = {"stages": stages, "baseline": s.invit.baseline, "decoupled": True, "weight_decay": 0.01}
        return Rollouts.model_validate(fields | own)
    return common.model_copy(update={"stages": stages} | ({"scaled": "largest"} if each.name == "ELG" else {}))


def runs(config: Config, scale: Scale) -> list[Run]:
    s = scale[EqualBudgetsScale]
    declared = {each.run: each for each in entries(s)}
    return [
        declare_run(
            config, KEY, run.partition("/")[2], training_of(s, each), role={"method": each.name},
            network=network_of(s, each.problem, each.name), n=s.nodes,
            validation=s.labels(each.problem, "val", s.nodes, s.validation_count),
        )
        for run, each in declared.items()
    ]  # fmt: skip


PAPER = Paper(key=KEY, title="Our own: networks with equal budgets", scale=EqualBudgetsScale, runs=runs, optional=True)
