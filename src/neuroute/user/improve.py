"""Improve a user's solution by parallel local re-construction (sit, Section 4.3)."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.datasets.progress import Progress
from neuroute.decoding.decode import instances_per_batch
from neuroute.decoding.search import SEARCH
from neuroute.plan.objects import Decoding
from neuroute.problems.vrp import Vrp


def improve(
    net: Any,
    instance: np.ndarray | Vrp,
    solution: np.ndarray,
    decoding: Decoding,
    memory_gb: float,
    length: Callable[[np.ndarray], float],
) -> np.ndarray:
    """Return the shortest, by `length`, of a solution and of what each iteration of re-construction makes of it.

    `instance` is a batch of one, coordinates (1, n, 2) or `Vrp`, in the unit square; the solution is a tour (n,) or
    customers and flags (2, V).  Re-construction shortens distances in the unit square; a library's own distances are
    rounded or of another kind, so by them its last solution may not be its shortest, and could be longer than the
    first.  Raises NeurouteError if no sub-path can be as long as the longest one asked for.
    """
    best, shortest = solution, length(solution)
    with torch.inference_mode(), Progress(decoding.iterations, "re-construction", show=True) as progress:
        for solutions in _iterations(net, instance, solution, decoding, memory_gb):
            new = solutions[0].cpu().numpy()
            if (now := length(new)) < shortest:
                best, shortest = new, now
            progress.add(1)
    return best


def _iterations(
    net: Any, instance: np.ndarray | Vrp, solution: np.ndarray, decoding: Decoding, memory_gb: float
) -> Iterator[Tensor]:
    device = next(net.parameters()).device
    start = torch.from_numpy(solution.astype(np.int64))[None].to(device)
    instances_per_batch(net, solution.shape[-1], decoding, memory_gb)  # raises for a sub-path that cannot be
    search = SEARCH.of(net.problem)
    return search.reconstruct(net, search.environment.batch(instance, device), start, decoding, memory_gb)
