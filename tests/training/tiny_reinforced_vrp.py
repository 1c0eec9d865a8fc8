"""Runs of paper `mvmoe` by reinforcement that are small enough for a test."""

from pathlib import Path
from typing import Any

import torch

from neuroute.networks.weights import build
from neuroute.specs.objects import Dataset, Labels, Run
from neuroute.specs.trainings import Reinforced, Stage
from neuroute.training.reinforce_vrp import VrpReinforcement, reinforce
from tiny import run_of, scheme_of

SIX = ("CVRP", "OVRP", "VRPB", "VRPL", "VRPTW", "OVRPTW")
SHAPE: dict[str, Any] = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 24, "train_nodes": 8}
DENSE = {"experts": 0}


def stage(name: str = "only", **more: Any) -> Stage:
    plain = {"name": name, "epochs": 1, "batches_per_epoch": 2, "sizes": (8, 8), "batch_size": 5, "variants": SIX}
    return Stage(**(plain | more))


def validation(variant: str) -> Labels:
    return Labels(dataset=Dataset(problem="vrp", variant=variant, split="val", n=8, count=4), solver="nearest")


def make_run(*stages: Stage, network: dict[str, Any] | None = None, **training: Any) -> Run:
    how = Reinforced(stages=stages or (stage(),), **training)
    return run_of("mvmoe/tiny", "networks.mvmoe:MvMoe", SHAPE | (network or {}), how, validation("CVRP"))


def batches_of(run: Run, folder: Path, *, double: bool = True, net: Any = None, **more: Any) -> VrpReinforcement:
    torch.manual_seed(run.seed)
    net = net or build(run.network)
    if double:
        net = net.double()
        for name, p in net.named_parameters():  # as they are after some training
            if "gate" in name:
                p.data.normal_(0.0, 0.5)
    return reinforce(scheme_of(run, net, folder, **more))
