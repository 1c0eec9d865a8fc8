"""The nearest-neighbour rule for the 16 vehicle routing problems: of what may come next the nearest customer."""

import numpy as np
import torch
from torch import Tensor

from neuroute.decoding.multi_start import complete
from neuroute.decoding.multi_start_vrp import RoutesUnderConstraints
from neuroute.decoding.vrp_batch import VrpBatch
from neuroute.problems.vrp import Vrp

AT_ONCE = 2**24  # ways that are held


class _Nearest:
    """A network that only looks at the way, and goes home when nobody else is open."""

    def decide(self, prepared: Tensor, known: Tensor, current: Tensor, closed: Tensor) -> Tensor:
        near = closed - prepared[torch.arange(len(prepared))[:, None], current]
        near[..., 0] = torch.where(closed[..., 0] == 0, torch.finfo(torch.float32).min, -torch.inf)
        return near


def nearest_neighbour(instances: Vrp) -> np.ndarray:
    """Solutions (count, 2, V) int64."""
    found = [np.empty((0, 2, instances.customers), dtype=np.int64)]
    size = max(1, AT_ONCE // (instances.customers + 1) ** 2)
    with torch.inference_mode():
        for first in range(0, len(instances), size):
            batch = VrpBatch.of(instances[first : first + size], torch.device("cpu"))
            ways = batch.distances()
            starts = torch.zeros(len(ways), 1, dtype=torch.int64)  # the first customer is the nearest, too
            routes = RoutesUnderConstraints(starts, batch, torch.float64, ways)
            found.append(complete(_Nearest(), ways, routes)[:, 0].numpy())
    return np.concatenate(found)
