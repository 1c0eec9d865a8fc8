"""Beam search over paths, batched over instances."""

import torch
from torch import Tensor

from neuroute.decoding.greedy import Decide, closed_tour_rows


@torch.inference_mode()
def beam_tours(decide: Decide, nodes: Tensor, coords: Tensor, beam: int) -> Tensor:
    """The shortest of the `beam` most probable tours of each instance.

    nodes (batch, n, E), coords (batch, n, 2) -> tours (batch, n) from node 0.

    As in BQ-NCO: sums of log-probabilities, the best `beam` over all (beam, candidate) pairs at every step, a single
    beam at the start, no merging of equal partial tours; the answer is the shortest tour, not the most probable.
    """
    batch, n, _ = coords.shape
    rows = closed_tour_rows(nodes)
    instance = torch.arange(batch, device=nodes.device)[:, None]
    order = torch.arange(n + 1, device=nodes.device).repeat(batch, 1, 1)  # (batch, live beams, n + 1)
    log_p = torch.zeros(batch, 1, device=nodes.device)
    for step in range(n - 2):
        live = order.shape[1]
        open_rows = rows[instance[..., None], order[:, :, step:]].flatten(0, 1)
        scores = torch.log_softmax(decide(open_rows).float(), dim=-1).view(batch, live, -1)
        candidates = scores.shape[-1]
        log_p, pairs = (log_p[..., None] + scores).flatten(1).topk(min(beam, live * candidates), dim=1)
        parent, chosen = pairs // candidates, pairs % candidates + (step + 1)
        order = order[instance, parent]
        picked = order.gather(2, chosen[..., None])
        order.scatter_(2, chosen[..., None], order[:, :, step + 1 : step + 2].clone())
        order[:, :, step + 1 : step + 2] = picked
    tours = order[:, :, :-1]
    points = coords.double()[instance[..., None], tours]
    lengths = (points - points.roll(-1, dims=2)).norm(dim=-1).sum(-1)
    return tours[instance[:, 0], lengths.argmin(dim=1)]
