"""Tours sampled without replacement, in rounds that learn from each other, batched over instances.

A round is stochastic beam search (Kool et al., 2019): every partial tour carries its log-probability plus Gumbel noise,
drawn top-down so that the best of a prefix's continuations equals the prefix itself.  The `beam` best complete tours
are then an ordered sample without replacement from the policy, the first of them an ordinary sample.

Rounds follow each other as in Pirnay and Grimm (2024), "Self-improvement for neural combinatorial optimization": the
mass of all tours sampled so far is taken out of the policy (incremental sampling, Shi et al., 2020), so none comes
twice, and what was short is made more probable for the rounds to come.  The policy itself is never changed:
`sampled_tours.bonus` says what to add to its log-probabilities.
"""

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.greedy import Decide, closed_tour_rows
from neuroute.decoding.sampled_tours import SampledTours, bonus

ANY = 1 << 62  # tokens: no limit


def sample_tours(
    decide: Decide,
    nodes: Tensor,
    coords: Tensor,
    beam: int,
    rounds: int,
    sigma: float,
    generator: torch.Generator,
    tokens: int = ANY,
) -> Tensor:
    """The shortest of the distinct tours that `sample_distinct` finds for each instance: (batch, n) from node 0.

    Raises NeurouteError when the policy's probabilities are not finite.
    """
    sampled = sample_distinct(decide, nodes, coords, beam, rounds, sigma, generator, tokens)
    if not bool(sampled.valid.any(dim=1).all()):  # any instance has at least one tour
        raise NeurouteError("sampling tours: the network's scores are not finite; lower the learning rate and retrain")
    instance = torch.arange(len(coords), device=coords.device)
    return sampled.tours[instance, sampled.lengths.argmin(dim=1)]


@torch.inference_mode()
def sample_distinct(
    decide: Decide,
    nodes: Tensor,
    coords: Tensor,
    beam: int,
    rounds: int,
    sigma: float,
    generator: torch.Generator,
    tokens: int = ANY,
) -> SampledTours:
    """Up to `beam` tours in each of `rounds` rounds, no two alike (a tour and its reverse count as two).

    nodes (batch, n, E), coords (batch, n, 2).  `sigma` (per unit of length) is how strongly a round's tours shift the
    policy of the rounds after it; at 0 all rounds together are one sample without replacement from the policy itself.
    The noise comes from `generator` alone; `tokens` limits the rows that `decide` gets at once and changes nothing.
    """
    rows = closed_tour_rows(nodes)
    sampled = SampledTours.none(coords)
    for _ in range(rounds):
        tours, log_p, valid = _search(decide, rows, sampled, bonus(sampled, sigma), beam, generator, tokens)
        sampled = sampled.and_round(coords, tours, log_p, valid)
    return sampled


def _search(
    decide: Decide, rows: Tensor, past: SampledTours, added: Tensor, beam: int, generator: torch.Generator, tokens: int
) -> tuple[Tensor, Tensor, Tensor]:
    """One round: tours (batch, live, n), the policy's log-probability of each stop (same shape), valid (batch, live).

    `added` (batch, past, n) goes on top of the policy's log-probability of the stops of past tours.
    """
    batch, n, device = rows.shape[0], rows.shape[1] - 1, rows.device
    instance = torch.arange(batch, device=device)[:, None]
    order = torch.arange(n + 1, device=device).repeat(batch, 1, 1)  # (batch, live beams, n + 1)
    place = order.clone()  # where each node stands in `order`
    log_p = torch.zeros(batch, 1, n, dtype=torch.float64, device=device)
    phi = torch.zeros(batch, 1, dtype=torch.float64, device=device)  # log-probability of the partial tour
    # With noise.  Which tours come out does not depend on the root's value, so it needs no draw.
    noisy = torch.zeros_like(phi)
    follows = past.valid[:, None]  # (batch, live, past): does the past tour begin with this partial tour?
    for step in range(n - 2):  # the last decision has a single candidate
        logits = _decide_all(decide, rows, order[:, :, step:], tokens)
        policy = torch.log_softmax(logits.double(), dim=-1)
        live, candidates = policy.shape[1:]
        stop = past.tours[:, None, :, step + 1]
        slot = place.gather(2, stop.expand(-1, live, -1)) - (step + 1)
        slot = slot.where(follows, candidates)  # one column more takes what is of no concern
        change = policy.new_zeros(batch, live, candidates + 1)
        value = added[:, None, :, step + 1].expand(-1, live, -1)
        change.scatter_reduce_(2, slot, value, "amax", include_self=False)  # tours that share a stop agree on it
        child_phi = phi[..., None] + torch.log_softmax(policy + change[..., :-1], dim=-1)
        child_noisy = _perturbed(child_phi, noisy, generator)

        noisy, pairs = child_noisy.flatten(1).topk(min(beam, live * candidates), dim=1)
        parent, chosen = pairs // candidates, pairs % candidates + (step + 1)
        phi = child_phi.flatten(1).gather(1, pairs)
        log_p = log_p[instance, parent]
        log_p[:, :, step + 1] = policy.flatten(1).gather(1, pairs)
        order, place = order[instance, parent], place[instance, parent]
        left, picked = order[:, :, step + 1 : step + 2].clone(), order.gather(2, chosen[..., None])
        order.scatter_(2, chosen[..., None], left)
        place.scatter_(2, left, chosen[..., None])
        order[:, :, step + 1 : step + 2] = picked
        place.scatter_(2, picked, step + 1)
        follows = follows[instance, parent] & (stop == picked)
    return order[:, :, :-1], log_p, noisy.isfinite()


def _decide_all(decide: Decide, rows: Tensor, order: Tensor, tokens: int) -> Tensor:
    """Logits (batch, live, candidates) of rows (batch, n + 1, E) in each order (batch, live, m), in parts."""
    batch, live, m = order.shape
    instance = torch.arange(batch, device=rows.device).repeat_interleave(live)[:, None]
    limit = max(1, tokens // m)
    parts = zip(instance.split(limit), order.reshape(-1, m).split(limit), strict=True)
    return torch.cat([decide(rows[i, o]) for i, o in parts]).view(batch, live, -1)


def _perturbed(phi: Tensor, parent: Tensor, generator: torch.Generator) -> Tensor:
    """phi (batch, live, candidates) with Gumbel noise, given that the largest per beam is `parent` (batch, live).

    -inf where nothing is left to sample.  The stable form of Kool et al. (2019, Appendix B.3).
    """
    noise = torch.empty(phi.shape, dtype=torch.float64).exponential_(generator=generator)
    gumbel = phi - noise.clamp_min(torch.finfo(torch.float64).tiny).log().to(phi.device)
    target = parent[..., None]
    v = target - gumbel + _log_1_minus_exp(gumbel - gumbel.amax(dim=-1, keepdim=True))
    conditioned = target - v.clamp_min(0) - torch.log1p(torch.exp(-v.abs()))
    return conditioned.masked_fill(gumbel.isneginf() | ~target.isfinite(), -torch.inf)


def _log_1_minus_exp(x: Tensor) -> Tensor:
    """log(1 - exp(x)) for x <= 0 without cancellation."""
    return torch.where(x > -0.6931, torch.log(-torch.expm1(x)), torch.log1p(-torch.exp(x)))
