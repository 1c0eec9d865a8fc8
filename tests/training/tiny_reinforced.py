"""Runs of paper `icam` by reinforcement that are small enough for a test."""

from pathlib import Path
from typing import Any

import torch

from neuroute.networks.weights import build
from neuroute.plan.objects import Network, Run
from neuroute.plan.reinforced import Elite, Reinforced, Stage
from neuroute.training.reinforce import Reinforcement, reinforce
from tiny import N, cvrp_labels, labels, scheme_of


class ReinforcedRun(Run):
    training: Reinforced  # type: ignore[assignment]


def stage(name: str = "only", **more: Any) -> Stage:
    return Stage(**({"name": name, "epochs": 1, "batches_per_epoch": 2, "sizes": (8, 8), "batch_size": 6} | more))


STAGES = (
    stage("warm", batches_per_epoch=3, learning_rate=1e-2),
    stage("varying", epochs=2, sizes=(6, 9), batch_size=9, batch_nodes=6, learning_rate=1e-2),
    stage("elite", batches_per_epoch=3, elite=Elite(k=3), learning_rate=1e-3),
)
KINDS = {
    "pomo": ("neuroute.networks.pomo:Pomo", {"heads": 2}),
    "icam": ("neuroute.networks.icam:Icam", {}),
    "elg": ("neuroute.networks.elg:Elg", {"heads": 2, "neighbours": 4}),
    "elg_cvrp": ("neuroute.networks.elg:ElgCvrp", {"heads": 2, "neighbours": 4}),
    "pomo_cvrp": ("neuroute.networks.pomo:PomoCvrp", {"heads": 2}),
    "icam_cvrp": ("neuroute.networks.icam:IcamCvrp", {}),
}


def make_run(*stages: Stage, depth: int = 1, kind: str = "pomo", **training: Any) -> ReinforcedRun:
    name, more = KINDS[kind]
    arguments = {"depth": depth, "width": 16, "feed_forward": 32, "train_nodes": N} | more
    return ReinforcedRun(
        paper="icam",
        name="tiny",
        network=Network(kind=name, arguments=arguments),
        training=Reinforced(stages=stages or (stage(),), **training),
        n=N,
        data=(),
        validation=(cvrp_labels if kind.endswith("cvrp") else labels)("val", 16),
    )


def batches_of(run: Run, folder: Path, *, double: bool = False, net: Any = None, **more: Any) -> Reinforcement:
    torch.manual_seed(run.seed)
    net = net or (build(run.network).double() if double else build(run.network))
    return reinforce(scheme_of(run, net, folder, **more))
