"""How a path network completes routes of the CVRP: what every way of decoding them builds on.

Every path is feasible, whatever the network says: a customer that does not fit is reached through the depot.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.greedy import check_numbers

# rows (batch, 1 + available + 1, E), share of the capacity that is left (batch,) -> logits (batch, available, 2)
Decide = Callable[[Tensor, Tensor], Tensor]


def greedy_solutions(decide: Decide, nodes: Tensor, demand: Tensor, capacity: Tensor) -> Tensor:
    """nodes (batch, V + 1, E) and demand (batch, V + 1) of whole instances -> solutions (batch, 2, V)."""
    rows, demand = (torch.cat([a, a[:, :1]], dim=1) for a in (nodes, demand))
    order, via = complete_routes(decide, rows, demand, capacity, capacity, checks=True)
    via[:, 1] = 1  # whichever way the network called it, the first customer is reached from the depot
    return torch.stack([order[:, 1:], via[:, 1:]], dim=1)


@torch.inference_mode()
def complete_routes(
    decide: Decide,
    rows: Tensor,
    demand: Tensor,
    capacity: Tensor,
    remaining: Tensor,
    sizes: list[int] | None = None,
    *,
    checks: bool = False,
) -> tuple[Tensor, Tensor]:
    """Visit the rows between the current stop and the depot, always by the most probable of all ways on.

    rows (paths, m, E) and demand (paths, m), both in the order [current, available..., depot]; capacity (paths,);
    left (paths,): what is in the vehicle at the current stop.  With `sizes`, of path i only the last sizes[i] + 1
    columns are there, and the longest path, of m - 1, comes first: nothing is padded or masked, whatever the network.
    Paths of few stops wait until the longer ones have no more left, so that at each step all candidates count alike.
    Returns positions in `rows` and flags, both int64 (paths, m - 1); up to a path's first stop they are their own.

    Raises NeurouteError for logits that do not tell the two ways apart; with `checks`, for scores that are no numbers.
    As in TSP's `complete_paths` the chosen row is swapped to the front, so rows and demand are overwritten.
    """
    paths, m = demand.shape
    remaining, via = remaining.clone(), torch.zeros_like(demand)
    order = torch.arange(m, device=rows.device).repeat(paths, 1)
    index = torch.arange(paths, device=rows.device)
    started = paths if sizes is None else 0
    total = rows.new_zeros(paths)
    for step in range(m - 2):  # the last customer is certain, the way to it is not
        while sizes and started < paths and sizes[started] >= m - 1 - step:
            started += 1
        on, path = slice(started), index[:started]
        share = (remaining[on] / capacity[on]).to(rows.dtype)
        ways = decide(rows[on, step:], share)
        if ways.dim() != 3:
            raise NeurouteError(f"decide returns logits {tuple(ways.shape)}; (batch, available, 2) are needed here")
        score, best = ways.flatten(1).max(dim=1)
        total[on] += score
        place, flag = best // 2 + (step + 1), best % 2
        for array in (rows, demand, order):
            moved = array[on, step + 1].clone()
            array[on, step + 1] = array[path, place]
            array[path, place] = moved
        served = demand[on, step + 1]
        flag = torch.where(served > remaining[on], 1, flag)
        remaining[on] = torch.where(flag == 1, capacity[on], remaining[on]) - served
        via[on, step + 1] = flag
    if checks:
        check_numbers(total)
    return order[:, :-1], via[:, :-1]
