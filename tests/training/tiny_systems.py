"""Runs of published systems that are small enough for a test, and revisers to judge partitions by."""

from pathlib import Path
from typing import Any

import torch

from neuroute.networks.weights import build, save_checkpoint
from neuroute.specs.decodings import Revision
from neuroute.specs.objects import Network, Run
from neuroute_systems.att_gcn.system import EdgeTraining
from neuroute_systems.difusco.system import Denoising
from neuroute_systems.dimes.system import MetaTraining
from neuroute_systems.glop.system import Partitioning, Phase, Revising
from neuroute_systems.htsp.system import HtspTraining, Proximal
from neuroute_systems.mdam.system import MdamTraining, WarmBaseline
from tiny import N, cvrp_labels, labels, make_run, run_of
from tiny_reinforced import ReinforcedRun, stage

# -- GLOP -----------------------------------------------------------------------------------------------------------

REVISION = Revision(blocks=((7, 2), (4, 2)))
REVISERS = Network(
    kind="neuroute_systems.glop.network:Glop",
    arguments={"depth": 1, "width": 16, "heads": 2, "feed_forward": 24, "blocks": [7, 4], "train_nodes": 7},
)
PARTITION = Network(
    kind="neuroute_systems.glop.network:GlopPartition",
    arguments={"depth": 1, "width": 8, "neighbours": 4, "train_nodes": N},
)


def phase(**more: Any) -> Phase:
    return Phase(**({"block": 7, "epochs": 2, "samples": 16, "batch_size": 8, "learning_rate": 1e-2} | more))


PHASES = (
    phase(),
    phase(block=4, epochs=1),
    phase(source="revised", samples=20, nodes=9, decay=0.5),
    phase(source="revised", block=4, epochs=1, nodes=9),
)


def revising_run(*phases: Phase, **training: Any) -> Run:
    settings: dict[str, Any] = {"baseline_samples": 12, "validations": 2, "revision": REVISION} | training
    how = Revising(phases=phases or PHASES, **settings)
    return run_of("rivals/tiny", "neuroute_systems.glop.network:Glop", REVISERS.arguments, how, labels("val", 8))


def partitioning_run(**training: Any) -> Run:
    settings = {"epochs": 2, "samples": 5, "batch_size": 2, "solutions": 4, "learning_rate": 1e-2, "validations": 2}
    settings |= {"revision": Revision(blocks=((4, 2),), flips="none")} | training
    how, kind = Partitioning.model_validate(settings), "neuroute_systems.glop.network:GlopPartition"
    return run_of("rivals/tiny_g", kind, PARTITION.arguments, how, cvrp_labels("val", 4), start="rivals/tiny")


def revisers(folder: Path) -> Path:
    """A checkpoint that partitions start from."""
    torch.manual_seed(3)
    path = folder / "revisers.safetensors"
    save_checkpoint(path, build(REVISERS), {"run": "rivals/tiny", "network": REVISERS.model_dump(), "code": "n"})
    return path


# -- H-TSP and MDAM -------------------------------------------------------------------------------------------------

HTSP: dict[str, Any] = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 24, "fragment": 6, "added": 3}
HTSP |= {"neighbours": 3, "cells": 8, "channels": [4, 4], "upper_width": 16, "critic_width": 24, "train_nodes": N}


def htsp_run(*, upper: bool = True, network: dict[str, Any] | None = None, **more: Any) -> ReinforcedRun:
    """Three batches of both levels, or of the lower one; episodes of N nodes take three steps."""
    usual = {"batches_per_epoch": 3, "sizes": (6, 6), "batch_size": 5, "learning_rate": 1e-2}
    one = stage(**usual | more.pop("stage", {}))
    both = {"upper": Proximal(environments=4, rounds=2, minibatch=10, learning_rate=1e-2), "updates": 2, "buffer": 30}
    how, arguments = (
        HtspTraining(stages=(one,), **{"clip": 1.0} | (both if upper else {}) | more),
        HTSP | (network or {}),
    )
    return run_of(
        "rivals/tiny", "neuroute_systems.htsp.network:Htsp", arguments, how, labels("val", 16), like=ReinforcedRun
    )


def mdam_run(problem: str, **more: Any) -> ReinforcedRun:
    """Two epochs of two batches of eight instances."""
    arguments = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 24, "decoders": 3, "train_nodes": N}
    one = stage(**{"epochs": 2, "batch_size": 8, "starts": 1, "learning_rate": 1e-2} | more.pop("stage", {}))
    kind, validation = ("Mdam", labels) if problem == "tsp" else ("MdamCvrp", cvrp_labels)
    how = {"baseline": WarmBaseline(instances=8, alpha=0.05), "divergence": 0.5, "clip": 1.0} | more
    training, kind = MdamTraining(stages=(one,), **how), f"neuroute_systems.mdam.network:{kind}"
    return run_of("rivals/tiny", kind, arguments, training, validation("val", 16), like=ReinforcedRun)


# -- maps of edges --------------------------------------------------------------------------------------------------

MAPS: dict[str, dict[str, Any]] = {
    "att_gcn.network:AttGcn": {"depth": 2, "width": 8, "near": 3, "actions": 2, "train_nodes": N},
    "difusco.network:Difusco": {"depth": 2, "width": 8, "steps": 2, "actions": 2, "train_nodes": N},
}
MAP_KINDS = {"AttGcn": EdgeTraining, "Difusco": Denoising}
DIMES: dict[str, Any] = {"depth": 2, "width": 8, "neighbours": 5, "search_steps": 2, "search_tours": 9, "actions": 2}


def map_run(kind: str, **training: Any) -> Run:
    """Two epochs of 120 instances."""
    name = next(name for name in MAPS if name.endswith(f":{kind}"))
    settings = {"samples": 120, "epochs": 2, "batch_size": 32, "learning_rate": 2e-3, "validations": 2} | training
    network = Network(kind=f"neuroute_systems.{name}", arguments=MAPS[name])
    return make_run().model_copy(update={"network": network, "training": MAP_KINDS[kind](**settings)})


def dimes_run(**network: Any) -> Run:
    """Three batches of four instances, one of two."""
    how = MetaTraining(samples=14, batch_size=4, inner_steps=2, tours=8, learning_rate=2e-3, validations=2)
    arguments = DIMES | {"train_nodes": N} | network
    kind = Network(kind="neuroute_systems.dimes.network:Dimes", arguments=arguments)
    return make_run().model_copy(update={"network": kind, "training": how, "data": ()})
