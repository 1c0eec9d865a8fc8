"""Runs of GLOP that are small enough for a test, and revisers to judge partitions by."""

from pathlib import Path
from typing import Any

import torch

from neuroute.networks.weights import build, save_checkpoint
from neuroute.plan.decodings import Revision
from neuroute.plan.objects import Network, Run
from neuroute.systems.glop.system import Partitioning, Phase, Revising
from tiny import N, cvrp_labels, labels

REVISION = Revision(blocks=((7, 2), (4, 2)))
REVISERS = Network(
    kind="neuroute.systems.glop.network:Glop",
    arguments={"depth": 1, "width": 16, "heads": 2, "feed_forward": 24, "blocks": [7, 4], "train_nodes": 7},
)
PARTITION = Network(
    kind="neuroute.systems.glop.network:GlopPartition",
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
    return Run(
        paper="rivals",
        name="tiny",
        network=REVISERS,
        training=Revising(phases=phases or PHASES, **settings),
        n=N,
        data=(),
        validation=labels("val", 8),
    )


def partitioning_run(**training: Any) -> Run:
    settings = {"epochs": 2, "samples": 5, "batch_size": 2, "solutions": 4, "learning_rate": 1e-2, "validations": 2}
    revision = Revision(blocks=((4, 2),), flips="none")
    return Run(
        paper="rivals",
        name="tiny_g",
        network=PARTITION,
        training=Partitioning.model_validate(settings | {"revision": revision} | training),
        n=N,
        data=(),
        start="rivals/tiny",
        validation=cvrp_labels("val", 4),
    )


def revisers(folder: Path) -> Path:
    """A checkpoint that partitions start from."""
    torch.manual_seed(3)
    path = folder / "revisers.safetensors"
    save_checkpoint(path, build(REVISERS), {"run": "rivals/tiny", "network": REVISERS.model_dump(), "code": "n"})
    return path
