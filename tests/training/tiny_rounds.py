"""Runs of self-improved training that are small enough for a test, of the TSP and the CVRP."""

from pathlib import Path
from typing import Any

import numpy as np

from neuroute.problems.registry import Part
from neuroute.specs.objects import Dataset, Labels, Network, Reconstruction, Run
from neuroute.training.self_improvement import ReconstructedSet, Rounds
from tiny import run_of, scheme_of

N = 16
PROBLEMS = {
    "tsp": ("neuroute.networks.sit:Sit", "insertion"),
    "cvrp": ("neuroute.networks.sit:SitCvrp", "insertion-angle"),
}


def labels(problem: str, split: str, count: int) -> Labels:
    dataset = Dataset(problem=problem, split=split, n=N, count=count)  # type: ignore[arg-type]
    return Labels(dataset=dataset, solver=PROBLEMS[problem][1])


def label_sets() -> list[Labels]:
    """What the runs start from and are validated on."""
    return [labels(problem, split, count) for problem in PROBLEMS for split, count in (("train", 24), ("val", 8))]


def network(problem: str, **more: object) -> Network:
    arguments = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 24, "representatives": 2, "train_nodes": N}
    return Network(kind=PROBLEMS[problem][0], arguments=arguments | more)


def make_run(problem: str, **training: object) -> Run:
    settings: dict[str, Any] = {"samples": 24, "rounds": 3, "epochs_per_round": 2, "reconstructions": 4}
    settings |= {"batch_size": 10, "learning_rate": 2e-3, "validations": 6} | training
    net, how, data = network(problem), Reconstruction(**settings), (labels(problem, "train", 24),)
    kind, validation = net.kind.removeprefix("neuroute."), labels(problem, "val", 8)
    return run_of(f"sit/tiny_{problem}", kind, net.arguments, how, validation, data=data)


def rounds(run: Run, store: Path, folder: Path, **more: Any) -> Rounds:
    found: Rounds = Part[Any]("reconstruction").of(run.validation.dataset.problem)(
        scheme_of(run, folder=folder, label_dirs=[store], **more)
    )
    return found


def feasible(data: ReconstructedSet) -> bool:
    instances = data.instances(slice(None))
    return bool(data.spec.valid(instances, data.solutions.astype(np.int64)).all())


def lengths(data: ReconstructedSet) -> np.ndarray:
    return data.spec.lengths(data.instances(slice(None)), data.solutions)
