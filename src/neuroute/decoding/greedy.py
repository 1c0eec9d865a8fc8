"""Greedy construction of paths, batched over instances, without a copy of what did not change."""

from collections.abc import Callable

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError

# rows (batch, 1 + available + 1, E) -> logits (batch, available); a network that reads pairs of rows takes them second
Decide = Callable[..., Tensor]
Arrive = Callable[[Tensor], None]  # rows (batch, 1 + available + 1, E), in place: their first is the current stop now
PACK = 8  # of what a network keeps of pairs, the part that may be left behind: one over this


@torch.no_grad()
def complete_paths(
    decide: Decide, rows: Tensor, pairs: Tensor | None = None, arrive: Arrive | None = None, *, checks: bool = False
) -> Tensor:
    """Visit the rows between a fixed first and a fixed last one, always the most probable next.

    rows (batch, m, E), in the order [current, available..., destination]; overwritten, as are pairs (batch, C, m, m),
    what a network keeps of each pair of rows.
    Returns the visiting order (batch, m): positions in `rows`, 0 first and m-1 last.

    The chosen row is swapped to the front and the view moves on by one, so every step computes on the open rows
    only and moves two rows per instance (of pairs: two rows and two columns).  Ties fall on the first of the candidates
    in their present order.  Pairs are packed anew whenever an eighth of their rows has been left: attention reads
    neighbouring memory then.  With `checks`, for which the host waits, raises NeurouteError for scores that are no
    numbers.
    """
    batch, m = rows.shape[:2]
    order = torch.arange(m, device=rows.device).repeat(batch, 1)
    instance = torch.arange(batch, device=rows.device)
    offset = 0  # rows that pairs no longer has
    total = rows.new_zeros(batch)
    for step in range(m - 3):  # the last decision has a single candidate
        if pairs is not None and PACK * (step - offset) > pairs.shape[-1]:
            pairs, offset = pairs[:, :, step - offset :, step - offset :].contiguous(), step
        if arrive is not None:
            arrive(rows[:, step:])
        state = (rows[:, step:],) if pairs is None else (rows[:, step:], pairs[:, :, step - offset :, step - offset :])
        best, places = decide(*state).max(dim=1)  # `argmax` takes longer on a CPU
        total, places = total + best, places + (step + 1)
        for array in (rows, order):
            _swap(array, step + 1, instance, places)
        if pairs is not None:
            for side in (pairs.transpose(1, 2), pairs.permute(0, 3, 1, 2)):  # rows first, then columns
                _swap(side[..., step + 1 - offset :], step + 1 - offset, instance, places - offset)
    if checks:
        check_numbers(total)
    return order


def check_numbers(scores: Tensor) -> None:
    """Raises NeurouteError if a network's scores, or sums of them, are no numbers: any may come out as the best."""
    if bool(scores.isnan().any()):
        raise NeurouteError(
            "the network's scores are no numbers; train it with a lower learning rate, or look at how it divides"
        )


def _swap(array: Tensor, place: int, instance: Tensor, places: Tensor) -> None:
    """Swap array[:, place] and array[i, chosen[i]] of each instance i."""
    moved = array[:, place].clone()
    array[:, place] = array[instance, places]
    array[instance, places] = moved


def closed_tour_rows(nodes: Tensor) -> Tensor:
    """nodes (batch, n, E) -> (batch, n + 1, E): node 0 is both where the path starts and where it has to end."""
    return torch.cat([nodes, nodes[:, :1]], dim=1)


def greedy_tours(
    decide: Decide,
    nodes: Tensor,
    pairs_of: Callable[[Tensor], Tensor | None] | None = None,
    arrive: Arrive | None = None,
) -> Tensor:
    """nodes (batch, n, E) -> tours (batch, n), each from node 0 (LEHD's convention, which scaling builds on).

    pairs_of(rows) is asked once for what does not change from step to step.  Raises NeurouteError for scores that are
    no numbers.
    """
    rows = closed_tour_rows(nodes)
    pairs = pairs_of(rows) if pairs_of else None
    return complete_paths(decide, rows, pairs, arrive, checks=True)[:, :-1]
