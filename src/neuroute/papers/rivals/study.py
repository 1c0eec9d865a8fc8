"""POMO, ICAM, ELG and INViT trained on as many instances, or for as long, and tested on larger ones: our own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from neuroute.papers.rivals.elg import ELG
from neuroute.papers.rivals.invit import INVIT
from neuroute.papers.rivals.scale import RivalsScale
from neuroute.papers.rivals.study_block import StudyBlock
from neuroute.plan.changes import declare_run
from neuroute.plan.config import Config, Scale
from neuroute.plan.objects import Dataset, Decoding, Labels, Network, Problem, Reinforced, Run
from neuroute.plan.systems import PAPER

KINDS: dict[str, dict[Problem, str]] = {  # name -> problem -> network
    "POMO": {"tsp": "neuroute.networks.pomo:Pomo", "cvrp": "neuroute.networks.pomo:PomoCvrp"},
    "ICAM": {"tsp": "neuroute.networks.icam:Icam", "cvrp": "neuroute.networks.icam:IcamCvrp"},
    "ELG": ELG,  # type: ignore[dict-item]
    "INViT": INVIT,
}
Budget = Literal["same instances", "same time"]
BUDGETS: tuple[Budget, ...] = ("same instances", "same time")


class Studied(NamedTuple):
    """A network with a budget."""

    budget: Budget
    problem: Problem
    name: str

    @property
    def run(self) -> str:
        """INViT's time is what the others have, so that its run is the same with both budgets."""
        longer = "longer_" if self.budget == "same time" and self.name != "INViT" else ""
        return f"{PAPER}/study_{longer}{self.name.lower()}_{self.problem}"


def problems_of(s: StudyBlock) -> tuple[Problem, ...]:
    return tuple(s.training)


def studied(s: StudyBlock) -> list[Studied]:
    return [Studied(budget, problem, name) for budget in BUDGETS for problem in problems_of(s) for name in KINDS]


def decodings(s: StudyBlock, name: str) -> list[Decoding]:
    """Of one solution, and the best of the many that a network's authors take."""
    return [Decoding(), Decoding(images=s.invit.tested_images) if name == "INViT" else Decoding(starts="all")]


def tests(s: StudyBlock, problem: Problem) -> dict[int, Labels]:
    """Nodes, or customers -> the test set of that size."""
    return {n: _labels(s, problem, "test", n, count) for n, count in s.test_counts.items()}


def study_runs(config: Config, scale: Scale) -> list[Run]:
    s = scale[RivalsScale].study
    return [] if s is None else list({run.id: run for run in _runs(config, s)}.values())


def _runs(config: Config, s: StudyBlock) -> Iterator[Run]:
    for each in studied(s):
        yield declare_run(
            config,
            PAPER,
            each.run.partition("/")[2],
            _training(s, each),
            role={"method": each.name, "study": True},
            network=_network(s, each),
            n=s.nodes,
            validation=_labels(s, each.problem, "val", s.nodes, s.validation_count),
        )


def _network(s: StudyBlock, each: Studied) -> Network:
    shape = s.network.model_dump() | {"train_nodes": s.nodes}
    if each.name == "ICAM":
        shape.pop("heads")
    if each.name == "ELG":
        shape["neighbours"] = s.neighbours
    if each.name == "INViT":
        shape = s.invit.shape(s.invit.network, 2, s.invit.network.depth, s.nodes)
    return Network(kind=KINDS[each.name][each.problem], arguments=shape)


def _training(s: StudyBlock, each: Studied) -> Reinforced:
    training = s.training[each.problem]
    changed: dict[str, object] = {}
    if each.name == "INViT":
        changed = {"starts": 1, "images": s.invit.images, "learning_rate": s.invit.learning_rate}
        training = training.model_copy(update={"decoupled": True, "weight_decay": 0.01, "baseline": s.invit.baseline})
    elif each.budget == "same time":
        changed = {"batches_per_epoch": s.same_time[each.problem][each.name]}  # type: ignore[index]
    if each.name == "ELG":
        training = training.model_copy(update={"scaled": "largest"})
    stages = tuple(stage.model_copy(update=changed) for stage in training.stages)
    return training.model_copy(update={"stages": stages})


def _labels(s: StudyBlock, problem: Problem, split: str, n: int, count: int) -> Labels:
    dataset = Dataset.model_validate({"problem": problem, "split": split, "n": n, "count": count})
    return Labels(dataset=dataset, solver=s.references[problem])
