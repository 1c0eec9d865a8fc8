"""Numbers that published code produced, in `refdata/systems` of the public data, and weights among them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from neuroute.decoding.cvrp import CvrpBatch
from neuroute.networks.import_weights import import_weights
from neuroute.networks.weights import load_checkpoint


def state(numbers: Mapping[str, np.ndarray], prefix: str, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """The weights whose names begin so, under the names that follow; floating-point numbers in that type."""
    found = {name[len(prefix) :]: torch.from_numpy(numbers[name]) for name in numbers if name.startswith(prefix)}
    return {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in found.items()}


def differ(ours: Tensor, theirs: np.ndarray | Tensor) -> float:
    """The largest difference, over the largest of their numbers."""
    theirs = torch.as_tensor(theirs)
    assert ours.shape == theirs.shape
    return float((ours.detach() - theirs).abs().max() / theirs.abs().max())


def imported(folder: Path, content: Any, **arguments: Any) -> Any:
    """The network, in double precision, of a file that holds `content`."""
    torch.save(content, folder / "theirs.pt")
    import_weights(folder / "theirs.pt", folder / "ours.safetensors", None, arguments)
    return load_checkpoint(folder / "ours.safetensors")[0].eval().double()


def routes(numbers: Mapping[str, np.ndarray], set_: str = "", dtype: torch.dtype = torch.float64) -> CvrpBatch:
    """Instances `xy`, `q` and `cap` of a set."""
    coords, demand, capacity = (torch.from_numpy(numbers[f"{set_}{name}"]) for name in ("xy", "q", "cap"))
    return CvrpBatch(coords.to(dtype), F.pad(demand, (1, 0)), capacity.expand(len(coords)))
