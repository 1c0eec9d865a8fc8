"""Greedy construction of paths, batched over instances, without a copy of what did not change."""

from collections.abc import Callable

import torch
from torch import Tensor

Decide = Callable[[Tensor], Tensor]  # rows (batch, 1 + available + 1, E) -> logits (batch, available)


@torch.inference_mode()
def complete_paths(decide: Decide, rows: Tensor) -> Tensor:
    """Visit the rows between a fixed first and a fixed last one, always the most probable next.

    rows (batch, m, E), in the order [current, available..., destination]; overwritten.
    Returns the visiting order (batch, m): positions in `rows`, 0 first and m-1 last.

    The chosen row is swapped to the front and the view moves on by one, so every step computes on the open rows
    only and moves two rows per instance.  Ties fall on the first of the candidates in their present order.
    """
    batch, m = rows.shape[:2]
    order = torch.arange(m, device=rows.device).repeat(batch, 1)
    instance = torch.arange(batch, device=rows.device)
    for step in range(m - 3):  # the last decision has a single candidate
        chosen = decide(rows[:, step:]).argmax(dim=1) + (step + 1)
        for array in (rows, order):
            moved = array[:, step + 1].clone()
            array[:, step + 1] = array[instance, chosen]
            array[instance, chosen] = moved
    return order


def closed_tour_rows(nodes: Tensor) -> Tensor:
    """nodes (batch, n, E) -> (batch, n + 1, E): node 0 is both where the path starts and where it has to end."""
    return torch.cat([nodes, nodes[:, :1]], dim=1)


def greedy_tours(decide: Decide, nodes: Tensor) -> Tensor:
    """nodes (batch, n, E) -> tours (batch, n), each from node 0 (LEHD's convention, which scaling builds on)."""
    return complete_paths(decide, closed_tour_rows(nodes))[:, :-1]
