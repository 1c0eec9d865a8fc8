"""Runs of MDAM that are small enough for a test."""

from typing import Any

from neuroute.plan.objects import Network
from neuroute.systems.mdam.system import MdamTraining, WarmBaseline
from tiny import N, cvrp_labels, labels
from tiny_reinforced import ReinforcedRun, stage

KINDS = {"tsp": "Mdam", "cvrp": "MdamCvrp"}


def make_run(problem: str, **more: Any) -> ReinforcedRun:
    """Two epochs of two batches of eight instances."""
    arguments = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 24, "decoders": 3, "train_nodes": N}
    one = stage(**{"epochs": 2, "batch_size": 8, "starts": 1, "learning_rate": 1e-2} | more.pop("stage", {}))
    how = {"baseline": WarmBaseline(instances=8, alpha=0.05), "divergence": 0.5, "clip": 1.0} | more
    return ReinforcedRun(
        paper="rivals",
        name="tiny",
        network=Network(kind=f"neuroute.systems.mdam.network:{KINDS[problem]}", arguments=arguments),
        training=MdamTraining(stages=(one,), **how),
        n=N,
        data=(),
        validation=(labels if problem == "tsp" else cvrp_labels)("val", 16),
    )
