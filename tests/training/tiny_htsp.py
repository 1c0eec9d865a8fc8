"""Runs of H-TSP that are small enough for a test."""

from typing import Any

from neuroute.plan.objects import Network
from neuroute.systems.htsp.system import HtspTraining, Proximal
from tiny import N, labels
from tiny_reinforced import ReinforcedRun, stage

ARGUMENTS: dict[str, Any] = {
    "depth": 1,
    "width": 16,
    "heads": 2,
    "feed_forward": 24,
    "fragment": 6,
    "added": 3,
    "neighbours": 3,
    "cells": 8,
    "channels": [4, 4],
    "upper_width": 16,
    "critic_width": 24,
    "train_nodes": N,
}


def make_run(*, upper: bool = True, network: dict[str, Any] | None = None, **more: Any) -> ReinforcedRun:
    """Three batches of both levels, or of the lower one; episodes of N nodes take three steps."""
    usual = {"batches_per_epoch": 3, "sizes": (6, 6), "batch_size": 5, "learning_rate": 1e-2}
    one = stage(**usual | more.pop("stage", {}))
    both = {"upper": Proximal(environments=4, rounds=2, minibatch=10, learning_rate=1e-2), "updates": 2, "buffer": 30}
    return ReinforcedRun(
        paper="rivals",
        name="tiny",
        network=Network(kind="neuroute.systems.htsp.network:Htsp", arguments=ARGUMENTS | (network or {})),
        training=HtspTraining(stages=(one,), **{"clip": 1.0} | (both if upper else {}) | more),
        n=N,
        data=(),
        validation=labels("val", 16),
    )
