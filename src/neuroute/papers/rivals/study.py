"""POMO, ICAM and ELG trained alike on as many instances of one size, and tested on larger ones: no paper has it."""

from __future__ import annotations

from neuroute.papers.rivals.elg import ELG
from neuroute.papers.rivals.rival import PAPER
from neuroute.papers.rivals.scale import RivalsScale
from neuroute.papers.rivals.study_block import StudyBlock
from neuroute.plan.changes import apply_changes, seed_of
from neuroute.plan.config import Config, Scale
from neuroute.plan.objects import Dataset, Decoding, Labels, Network, Problem, Reinforced, Run

PROBLEMS: tuple[Problem, ...] = ("tsp", "cvrp")
KINDS: dict[str, dict[str, str]] = {  # name -> problem -> network
    "POMO": {"tsp": "neuroute.networks.pomo:Pomo", "cvrp": "neuroute.networks.pomo:PomoCvrp"},
    "ICAM": {"tsp": "neuroute.networks.icam:Icam", "cvrp": "neuroute.networks.icam:IcamCvrp"},
    "ELG": ELG,
}
DECODINGS = {"one start": Decoding(), "all starts": Decoding(starts="all")}


def run_id(name: str, problem: Problem) -> str:
    return f"{PAPER}/study_{name.lower()}_{problem}"


def tests(scale: Scale, problem: Problem) -> dict[int, Labels]:
    """Nodes, or customers -> the test set of that size; none where the scale has no study."""
    s = scale[RivalsScale].study
    return {} if s is None else {n: _labels(s, problem, "test", n, count) for n, count in s.test_counts.items()}


def study_runs(config: Config, scale: Scale) -> list[Run]:
    s = scale[RivalsScale].study
    return [] if s is None else [_run(config, s, name, problem) for problem in PROBLEMS for name in KINDS]


def _run(config: Config, s: StudyBlock, name: str, problem: Problem) -> Run:
    shape = s.network.model_dump() | {"train_nodes": s.nodes}
    training = s.training[problem]
    if name == "ICAM":
        shape.pop("heads")
    if name == "ELG":
        shape["neighbours"] = s.neighbours
        training = training.model_copy(update={"scaled": "largest"})
    own = run_id(name, problem)
    return Run(
        paper=PAPER,
        name=own.partition("/")[2],
        role={"method": name, "study": True},
        network=Network(kind=KINDS[name][problem], arguments=shape),
        training=apply_changes(config, own, Reinforced, training),
        n=s.nodes,
        data=(),
        validation=_labels(s, problem, "val", s.nodes, s.validation_count),
        seed=seed_of(config, own),
    )


def _labels(s: StudyBlock, problem: Problem, split: str, n: int, count: int) -> Labels:
    dataset = Dataset.model_validate({"problem": problem, "split": split, "n": n, "count": count})
    return Labels(dataset=dataset, solver=s.references[problem])
