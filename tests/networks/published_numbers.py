"""Numbers that published code produced, in `refdata/systems` of the public data, and weights among them."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor


def state(numbers: Mapping[str, np.ndarray], prefix: str, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    """The weights whose names begin so, under the names that follow; floating-point numbers in that type."""
    found = {name[len(prefix) :]: torch.from_numpy(numbers[name]) for name in numbers if name.startswith(prefix)}
    return {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in found.items()}


def differ(ours: Tensor, theirs: np.ndarray | Tensor) -> float:
    """The largest difference, over the largest of their numbers."""
    theirs = torch.as_tensor(theirs)
    assert ours.shape == theirs.shape
    return float((ours.detach() - theirs).abs().max() / theirs.abs().max())
