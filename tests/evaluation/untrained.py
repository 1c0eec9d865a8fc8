"""Models that were never trained, as the commands read them."""

from pathlib import Path

import torch

from neuroute.networks.weights import build, save_checkpoint
from neuroute.plan.digest import code_digest
from neuroute.plan.objects import Network


def untrained(path: Path, network: Network, run: str) -> Path:
    """A checkpoint of random weights, always the same."""
    torch.manual_seed(0)
    save_checkpoint(
        path, build(network), {"run": run, "network": network.model_dump(), "code": code_digest(network.kind)}
    )
    return path
