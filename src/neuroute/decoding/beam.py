"""Beam search over partial solutions of any problem, batched over instances."""

from collections.abc import Callable

import torch
from torch import Tensor

from neuroute.decoding.prefixes import Prefixes


@torch.inference_mode()
def search_beams(prefixes: Prefixes, lengths: Callable[[Tensor], Tensor], beam: int) -> tuple[Tensor, Tensor]:
    """The shortest of the `beam` most probable solutions of each instance (batch, ...), and its length (batch,).

    lengths(solutions (batch, beam, ...)) -> (batch, beam)

    As in BQ-NCO: sums of log-probabilities, the best `beam` over all (beam, option) pairs at every step, a single
    beam at the start, no merging of equal partial solutions; the answer is the shortest one, not the most probable.
    """
    log_p: Tensor | None = None
    for _ in range(prefixes.decisions):
        scores = prefixes.log_p()
        if log_p is not None:
            scores = scores + log_p[..., None]
        options = scores.shape[2]
        log_p, pairs = scores.flatten(1).topk(min(beam, scores[0].numel()), dim=1)
        prefixes.go(pairs // options, pairs % options)
    solutions = prefixes.solutions_of(prefixes.moves)
    least, shortest = lengths(solutions).min(dim=1)
    return solutions[torch.arange(len(solutions), device=solutions.device), shortest], least
