"""What rounds of sampling have found so far, and what it changes for the next round."""

from dataclasses import dataclass

import torch
from torch import Tensor

SMALLEST = 1e-300  # share of a branch that is left but too small for float64 to tell


@dataclass(frozen=True)
class SampledTours:
    """Distinct tours of each instance.  They stand for the tree of their prefixes, on which `bonus` works.

    An instance that ran out of tours is filled up with invalid ones, of infinite length.
    """

    tours: Tensor  # (batch, m, n) int64, from node 0
    lengths: Tensor  # (batch, m) float64
    log_p: Tensor  # (batch, m, n) float64: the policy's log-probability of each stop, given those before it
    valid: Tensor  # (batch, m) bool
    rounds: Tensor  # (m,) int64: the round that each comes from

    @staticmethod
    def none(coords: Tensor) -> "SampledTours":
        """Nothing yet, for instances (batch, n, 2)."""
        batch, n, _ = coords.shape
        return SampledTours(
            coords.new_zeros(batch, 0, n, dtype=torch.int64),
            coords.new_zeros(batch, 0, dtype=torch.float64),
            coords.new_zeros(batch, 0, n, dtype=torch.float64),
            coords.new_zeros(batch, 0, dtype=torch.bool),
            coords.new_zeros(0, dtype=torch.int64),
        )

    def and_round(self, coords: Tensor, tours: Tensor, log_p: Tensor, valid: Tensor) -> "SampledTours":
        """These and the tours (batch, live, n) of one more round."""
        instance = torch.arange(len(coords), device=coords.device)[:, None, None]
        points = coords.double()[instance, tours]
        lengths = (points - points.roll(-1, dims=2)).norm(dim=-1).sum(-1).masked_fill(~valid, torch.inf)
        number = int(self.rounds[-1]) + 1 if len(self.rounds) else 0
        return SampledTours(
            torch.cat([self.tours, tours], dim=1),
            torch.cat([self.lengths, lengths], dim=1),
            torch.cat([self.log_p, log_p], dim=1),
            torch.cat([self.valid, valid], dim=1),
            torch.cat([self.rounds, self.rounds.new_full((tours.shape[1],), number)]),
        )


def bonus(past: SampledTours, sigma: float) -> Tensor:
    """What to add to the policy's log-probability of each stop of past tours, in the next round: (batch, m, n).

    Two things, both equal for all tours that share the prefix up to the stop:

    * sigma times the mean advantage of the tours of a round through this prefix, summed over the rounds; a tour's
      advantage is the mean length of its round minus its own;
    * the logarithm of the share of the mass behind the stop that is not sampled yet, under the policy with the
      shifts above; -inf when all tours behind it have come.

    The sums over the children of a prefix run over the tours in which a child appears first.
    """
    batch, m, n = past.tours.shape
    result = past.lengths.new_zeros(batch, m, n)
    if m == 0:
        return result
    shared = _shared_prefix(past.tours)
    earlier = torch.ones(m, m, dtype=torch.bool, device=shared.device).tril(-1)
    known = shared.masked_fill(~(earlier & past.valid[:, None]), -1).amax(dim=2)  # prefix that earlier tours have
    members, advantages = _by_round(past)
    counted = torch.cat([members, advantages], dim=2)
    left = torch.zeros_like(past.lengths)  # share of the mass behind stop t that is not sampled: none behind a tour
    spent = past.valid
    for t in range(n - 2, 0, -1):  # stop n - 1 is no decision
        here, before = (shared >= t).double(), (shared >= t - 1).double()
        count, total = (here @ counted).chunk(2, dim=2)
        shift = sigma * (total / count.clamp_min(1)).sum(-1)
        result[:, :, t] = shift + left.log().masked_fill(spent, -torch.inf)

        p = past.log_p[:, :, t].exp()
        shifted = p * shift.exp()
        columns = torch.stack([p, shifted, shifted * left, torch.ones_like(p), spent.double()], dim=2)
        columns = columns.masked_fill(~(past.valid & (known < t))[..., None], 0)
        sum_p, sum_shifted, sum_left, children, spent_children = (before @ columns).unbind(2)
        fresh = (1 - sum_p).clamp_min(SMALLEST).masked_fill(children == n - t, 0)  # mass of the untouched children
        left = ((fresh + sum_left) / (fresh + sum_shifted)).clamp_min(SMALLEST)
        spent = spent_children == n - t
    return result


def _shared_prefix(tours: Tensor) -> Tensor:
    """How far any two tours go together: the last stop t up to which they agree, (batch, m, m); 0 is the start."""
    agree = torch.ones(tours.shape[0], tours.shape[1], tours.shape[1], dtype=torch.bool, device=tours.device)
    shared = torch.zeros(agree.shape, dtype=torch.int16, device=tours.device)
    for stop in tours[:, :, 1:].unbind(2):
        agree = agree & (stop[:, :, None] == stop[:, None])
        shared += agree
    return shared


def _by_round(past: SampledTours) -> tuple[Tensor, Tensor]:
    """(batch, m, rounds): 1 at the round of each valid tour, and its advantage there; 0 elsewhere."""
    number = torch.arange(int(past.rounds[-1]) + 1, device=past.rounds.device)
    members = (past.valid[..., None] & (past.rounds[:, None] == number)).double()
    lengths = past.lengths.masked_fill(~past.valid, 0)[..., None]
    mean = (lengths * members).sum(1, keepdim=True) / members.sum(1, keepdim=True).clamp_min(1)
    return members, (mean - lengths) * members
