"""Runs of paper `icam` by reinforcement that are small enough for a test."""

from pathlib import Path
from typing import Any

from neuroute.specs.objects import Run
from neuroute.specs.trainings import Elite, Reinforced, Stage
from neuroute.training.reinforce import Reinforcement, reinforce
from neuroute_systems.rollouts import training as rollouts
from neuroute_systems.rollouts.spec import GreedyBaseline, Rollouts
from tiny import N, cvrp_labels, labels, run_of, scheme_of


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
    "pomo": ("networks.pomo:Pomo", {"heads": 2}),
    "icam": ("networks.icam:Icam", {}),
    "elg": ("neuroute_systems.elg.network:Elg", {"heads": 2, "neighbours": 4}),
    "elg_cvrp": ("neuroute_systems.elg.network:ElgCvrp", {"heads": 2, "neighbours": 4}),
    "pomo_cvrp": ("networks.pomo:PomoCvrp", {"heads": 2}),
    "icam_cvrp": ("networks.icam:IcamCvrp", {}),
}


ROLLOUTS = {  # networks of a single start, whose baseline is a greedy rollout
    name: (f"neuroute_systems.invit.network:{kind}", {"heads": 2, "views": [5, 7], "actions": 4})
    for name, kind in (("invit", "Invit"), ("invit_cvrp", "InvitCvrp"))
}


BATCH_NORMS = {"pointerformer": ("neuroute_systems.pointerformer.network:Pointerformer", {"heads": 2})}


def make_run(*stages: Stage, depth: int = 1, kind: str = "pomo", **training: Any) -> ReinforcedRun:
    name, more = (KINDS | ROLLOUTS | BATCH_NORMS)[kind]
    arguments = {"depth": depth, "width": 16, "feed_forward": 32, "train_nodes": N} | more
    how, validation = (
        (Rollouts if "baseline" in training else Reinforced)(stages=stages or (stage(),), **training),
        cvrp_labels if kind.endswith("cvrp") else labels,
    )
    return run_of("icam/tiny", name, arguments, how, validation("val", 16), like=ReinforcedRun)


def batches_of(run: Run, folder: Path, *, net: Any = None, **more: Any) -> Reinforcement:
    return reinforce(scheme_of(run, net, folder, **more))


def rollout_run(kind: str = "invit", *, images: int = 2, **training: Any) -> ReinforcedRun:
    """Three epochs of two batches."""
    one = stage(epochs=3, batch_size=4, starts=1, images=images, learning_rate=1e-2, decay=0.5)
    how = {"baseline": GreedyBaseline(instances=6), "decoupled": True, "weight_decay": 0.01} | training
    return make_run(one, kind=kind, **how)


def rollouts_of(run: Run, folder: Path, **more: Any) -> rollouts.RolloutBaseline:
    return rollouts.reinforce(scheme_of(run, None, folder, **more))
