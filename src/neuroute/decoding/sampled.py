"""What rounds of sampling have found so far, and what it changes for the next round."""

from dataclasses import dataclass

import torch
from torch import Tensor

SMALLEST = 1e-300  # share of a branch that is left but too small for float64 to tell


@dataclass(frozen=True)
class Sampled:
    """Distinct solutions of each instance.  They stand for the tree of their prefixes, on which `bonus` works.

    An instance that ran out of solutions is filled up with invalid ones, of infinite length.
    """

    moves: Tensor  # (batch, m, n) int64, as `Prefixes` has them
    lengths: Tensor  # (batch, m) float64
    log_p: Tensor  # (batch, m, n) float64: the policy's log-probability of each move, given those before it
    options: Tensor  # (batch, m, n) int64: among how many each was chosen
    valid: Tensor  # (batch, m) bool
    rounds: Tensor  # (m,) int64: the round that each comes from

    @staticmethod
    def none(moves: Tensor) -> "Sampled":
        """Nothing yet; moves (batch, any number, n)."""
        nothing = moves[:, :0]
        return Sampled(
            nothing,
            nothing[..., 0].double(),
            nothing.double(),
            nothing,
            nothing[..., 0].bool(),
            moves.new_zeros(0),
        )

    def and_round(self, new: "Sampled") -> "Sampled":
        """These and the solutions of one more round."""
        number = int(self.rounds[-1]) + 1 if len(self.rounds) else 0
        return Sampled(
            torch.cat([self.moves, new.moves], dim=1),
            torch.cat([self.lengths, new.lengths.masked_fill(~new.valid, torch.inf)], dim=1),
            torch.cat([self.log_p, new.log_p], dim=1),
            torch.cat([self.options, new.options], dim=1),
            torch.cat([self.valid, new.valid], dim=1),
            torch.cat([self.rounds, torch.full_like(new.rounds, number)]),
        )


def bonus(past: Sampled, decisions: int, sigma: float) -> Tensor:
    """What to add to the policy's log-probability of each move of past solutions, in the next round: (batch, m, n).

    Moves 1 to `decisions` are choices.  Two things, both equal for all solutions that share the prefix up to the move:

    * sigma times the mean advantage of the solutions of a round through this prefix, summed over the rounds; a
      solution's advantage is the mean length of its round minus its own;
    * the logarithm of the share of the mass behind the move that is not sampled yet, under the policy with the
      shifts above; -inf when all solutions behind it have come.

    The sums over the children of a prefix run over the solutions in which a child appears first.
    """
    m = past.moves.shape[1]
    result = torch.zeros_like(past.log_p)
    if m == 0:
        return result
    shared = _shared_prefix(past.moves)
    earlier = torch.ones(m, m, dtype=torch.bool, device=shared.device).tril(-1)
    earlier_prefix = shared.masked_fill(~(earlier & past.valid[:, None]), -1).amax(
        dim=2
    )  # prefix that earlier ones have
    members, advantages = _by_round(past)
    counted = torch.cat([members, advantages], dim=2)
    unsampled = torch.zeros_like(
        past.lengths
    )  # share of the mass behind move t that is not sampled: none behind the last
    spent = past.valid
    for t in range(decisions, 0, -1):
        here, before = (shared >= t).double(), (shared >= t - 1).double()
        count, total = (here @ counted).chunk(2, dim=2)
        shift = sigma * (total / count.clamp_min(1)).sum(-1)
        result[:, :, t] = shift + unsampled.log().masked_fill(spent, -torch.inf)

        p = past.log_p[:, :, t].exp()
        shifted = p * shift.exp()
        columns = torch.stack([p, shifted, shifted * unsampled, torch.ones_like(p), spent.double()], dim=2)
        columns = columns.masked_fill(~(past.valid & (earlier_prefix < t))[..., None], 0)
        there = past.options[:, :, t]  # children that the prefix before the move has
        sum_p, sum_shifted, sum_left, children, spent_children = (before @ columns).unbind(2)
        fresh = (1 - sum_p).clamp_min(SMALLEST).masked_fill(children == there, 0)  # mass of the untouched children
        unsampled = ((fresh + sum_left) / (fresh + sum_shifted)).clamp_min(SMALLEST)
        spent = spent_children == there
    return result


def _shared_prefix(moves: Tensor) -> Tensor:
    """How far any two solutions go together: the last move t up to which they agree, (batch, m, m); 0 is the start."""
    agree = torch.ones(moves.shape[0], moves.shape[1], moves.shape[1], dtype=torch.bool, device=moves.device)
    shared = torch.zeros(agree.shape, dtype=torch.int16, device=moves.device)
    for move in moves[:, :, 1:].unbind(2):
        agree = agree & (move[:, :, None] == move[:, None])
        shared += agree
    return shared


def _by_round(past: Sampled) -> tuple[Tensor, Tensor]:
    """(batch, m, rounds): 1 at the round of each valid solution, and its advantage there; 0 elsewhere."""
    number = torch.arange(int(past.rounds[-1]) + 1, device=past.rounds.device)
    members = (past.valid[..., None] & (past.rounds[:, None] == number)).double()
    lengths = past.lengths.masked_fill(~past.valid, 0)[..., None]
    mean = (lengths * members).sum(1, keepdim=True) / members.sum(1, keepdim=True).clamp_min(1)
    return members, (mean - lengths) * members
