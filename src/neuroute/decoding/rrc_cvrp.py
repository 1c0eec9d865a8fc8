"""Random re-construct of CVRP solutions (LEHD's RRC): one piece of every solution at a time, batched over instances."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from neuroute.decoding.cvrp_paths import Batch, Decide
from neuroute.decoding.prc_cvrp import Encode, rebuilt
from neuroute.problems.cvrp_sub_paths import Blocks, arranged, draw


def reconstruct(
    decide_for: Callable[[int], Decide],
    encode: Encode,
    instances: Batch,
    solutions: Tensor,
    iterations: int,
    *,
    seed: int = 0,
    first: int = 0,
    done: int = 0,
) -> Iterator[Tensor]:
    """Yields the solutions (batch, 2, V) after each iteration, nowhere longer than before it.

    Each iteration draws a length (4..V) for the whole batch and a sub-path of it for each instance, keeps the first
    stop and how it is reached, rebuilds the rest greedily, and accepts what is strictly shorter.  The network sees the
    depot and the customers of the sub-path.  Draws depend on the seed and on an instance's number, of which the
    batch's first is `first`, so splitting a test set changes nothing.
    """
    batch, _, customers = solutions.shape
    every = torch.arange(batch, device=solutions.device)
    for index in range(done, iterations):
        drawn = draw(seed, index, customers, first, batch)
        length = torch.full_like(every, drawn.length)
        pieces = Blocks(every, customers - length, length)  # a piece ends where the solution does
        solutions = arranged(solutions, drawn)
        solutions = rebuilt(decide_for(drawn.length), encode, instances, solutions, pieces, batch)
        yield solutions
