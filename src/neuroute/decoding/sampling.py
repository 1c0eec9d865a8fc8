"""Solutions sampled without replacement, in rounds that learn from each other, batched over instances.

A round is stochastic beam search (Kool et al., 2019): every partial solution carries its log-probability plus Gumbel
noise, drawn top-down so that the best of a prefix's continuations equals the prefix itself.  The `beam` best complete
solutions are then an ordered sample without replacement from the policy, the first of them an ordinary sample.

Rounds follow each other as in Pirnay and Grimm (2024), "Self-improvement for neural combinatorial optimization": the
mass of all solutions sampled so far is taken out of the policy (incremental sampling, Shi et al., 2020), so none comes
twice, and what was short is made more probable for the rounds to come.  The policy itself is never changed:
`sampled.bonus` says what to add to its log-probabilities.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.greedy import Arrive, check_numbers, closed_tour_rows

ANY = 1 << 62  # tokens: no limit


class Prefixes(ABC):
    """`live` partial solutions of each instance, all of as many stops; one of none, to begin with.

    A move goes to an open stop in one of `ways`, and is written as stop * ways + way.  Options are moves by the place
    of their stop: the i-th open stop of `order` has options i * ways + way.
    """

    ways: ClassVar[int] = 1

    def __init__(self, decide: Callable[..., Tensor], nodes: Tensor, tokens: int = ANY) -> None:
        """nodes (batch, n, E); `tokens` limits the rows that `decide` gets at once, and changes nothing."""
        self._decide, self._tokens, self._rows = decide, tokens, closed_tour_rows(nodes)
        batch, m, _ = self._rows.shape
        self._instance = torch.arange(batch, device=nodes.device)[:, None]
        # Rows by visit: those already visited, those that are open, and the last one, where a solution ends.
        self.order = torch.arange(m, device=nodes.device).repeat(batch, 1, 1)  # (batch, live, m)
        self._place = self.order.clone()  # of each row in `order`
        self.step = 0  # moves made

    @property
    @abstractmethod
    def decisions(self) -> int:
        """Moves that are a choice: what follows them is certain."""

    @property
    def moves(self) -> Tensor:
        """(batch, live, n), the first of them the start."""
        return self.order[:, :, :-1]

    @staticmethod
    def solutions_of(moves: Tensor) -> Tensor:
        """Solutions (..., *shape) of complete moves (..., n)."""
        return moves

    def log_p(self) -> Tensor:
        """Log-probabilities of the next move: float64 (batch, live, options), -inf where one is closed."""
        return torch.log_softmax(self._logits().double(), dim=-1)

    def option_of(self, moves: Tensor) -> Tensor:
        """Under which option each partial solution has these moves: (batch, k) -> (batch, live, k)."""
        stops = (moves // self.ways)[:, None].expand(-1, self.order.shape[1], -1)
        option: Tensor = (self._place.gather(2, stops) - (self.step + 1)) * self.ways + moves[:, None] % self.ways
        return option

    def extend(self, parent: Tensor, option: Tensor) -> None:
        """Replace the partial solutions by continuations: of which, and by which option, both (batch, live)."""
        self.order, self._place = self.order[self._instance, parent], self._place[self._instance, parent]
        here = self.step + 1
        places = (option // self.ways + here)[..., None]
        picked, front = self.order.gather(2, places), self.order[:, :, here : here + 1].clone()
        self.order.scatter_(2, places, front)
        self._place.scatter_(2, front, places)
        self.order[:, :, here : here + 1] = picked
        self._place.scatter_(2, picked, here)
        self.step = here

    def _logits(self, *state: Tensor) -> Tensor:
        """What the network says, (batch, live, ...), from the open rows and from its state, (batch, live) each."""
        order = self.order[:, :, self.step :]
        batch, live, m = order.shape
        limit = max(1, self._tokens // m)
        of_rows = torch.arange(len(self._rows), device=order.device)[:, None]  # of an instance, or of each of its own
        of_rows = of_rows.repeat_interleave(batch * live // len(self._rows), dim=0)
        arguments: list[Any] = [of_rows, order.flatten(0, 1)]
        arguments += [each.flatten() for each in state]
        parts = zip(*(each.split(limit) for each in arguments), strict=True)
        logits: Tensor = torch.cat([self._decide(self._rows[i, o], *more) for i, o, *more in parts])
        return logits.view(batch, live, *logits.shape[1:])


class TourPrefixes(Prefixes):
    """Of tours of the TSP, from node 0; the last of a tour's stops goes without saying.

    With `arrive`, for a network that remembers, each partial tour has rows of its own.
    """

    def __init__(
        self, decide: Callable[..., Tensor], nodes: Tensor, tokens: int = ANY, arrive: Arrive | None = None
    ) -> None:
        super().__init__(decide, nodes, tokens)
        self._arrive = arrive
        self._arrived()

    def extend(self, parent: Tensor, option: Tensor) -> None:
        if self._arrive is not None:
            rows = self._rows.unflatten(0, (len(self._instance), -1))
            self._rows = rows[self._instance, parent].flatten(0, 1)
        super().extend(parent, option)
        self._arrived()

    def _arrived(self) -> None:
        if self._arrive is not None:
            order = self.order[:, :, self.step :].flatten(0, 1)
            each = torch.arange(len(order), device=order.device)[:, None]
            rows = self._rows[each, order]
            self._arrive(rows)
            self._rows[each, order] = rows

    @property
    def decisions(self) -> int:
        return self.order.shape[2] - 3


class RoutePrefixes(Prefixes):
    """Of routes of the CVRP; every one is feasible, whatever the network says.

    A stop is reached straight or through the depot.  A customer that does not fit, or the first one of all, is reached
    through the depot either way: of these two equal moves the likelier one is open, as the other.
    """

    ways = 2

    def __init__(
        self, decide: Callable[..., Tensor], nodes: Tensor, demand: Tensor, capacity: Tensor, tokens: int = ANY
    ) -> None:
        """nodes (batch, V + 1, E), demand (batch, V + 1), capacity (batch,); decide: as `cvrp.Decide`."""
        super().__init__(decide, nodes, tokens)
        self._demand, self._capacity = torch.cat([demand, demand[:, :1]], dim=1), capacity[:, None]
        self._left = self._capacity  # (batch, live): what is in the vehicle
        self._via = torch.zeros_like(self.order)  # (batch, live, V + 2)

    @property
    def decisions(self) -> int:
        return self.order.shape[2] - 2  # the last customer is certain, the way to it is not

    @property
    def moves(self) -> Tensor:
        return self.order[:, :, :-1] * self.ways + self._via[:, :, :-1]

    @staticmethod
    def solutions_of(moves: Tensor) -> Tensor:
        """(..., 2, V): order and flags, as in `problems.cvrp`."""
        return torch.stack([moves[..., 1:] // 2, moves[..., 1:] % 2], dim=-2)

    def log_p(self) -> Tensor:
        share = (self._left / self._capacity).to(self._rows.dtype)
        straight, through = self._logits(share).double().unbind(3)
        equal = self._demand_at(self.order[:, :, self.step + 1 : -1]) > self._left[..., None]
        if self.step == 0:
            equal = torch.ones_like(equal)
        through = torch.where(equal, torch.maximum(straight, through), through)
        straight = straight.masked_fill(equal, -torch.inf)
        return torch.log_softmax(torch.stack([straight, through], dim=-1).flatten(2), dim=-1)

    def extend(self, parent: Tensor, option: Tensor) -> None:
        super().extend(parent, option)
        load, self._via = self._left[self._instance, parent], self._via[self._instance, parent]
        need = self._demand_at(self.order[:, :, self.step])
        through = (option % 2 == 1) | (need > load) | (self.step == 1)
        self._left = torch.where(through, self._capacity, load) - need
        self._via[:, :, self.step] = through.long()

    def _demand_at(self, stops: Tensor) -> Tensor:
        """Demands of stops (batch, live, ...)."""
        demand: Tensor = self._demand.gather(1, stops.flatten(1)).view_as(stops)
        return demand


# -- beam search over partial solutions of any problem, batched over instances ---------------------------------------


@torch.inference_mode()
def search_beams(prefixes: Prefixes, lengths: Callable[[Tensor], Tensor], beam: int) -> tuple[Tensor, Tensor]:
    """The shortest of the `beam` most probable solutions of each instance (batch, ...), and its length (batch,).

    lengths(solutions (batch, beam, ...)) -> (batch, beam)

    As in BQ-NCO: sums of log-probabilities, the best `beam` over all (beam, option) pairs at every step, a single
    beam at the start, no merging of equal partial solutions; the answer is the shortest one, not the most probable.
    Raises NeurouteError for scores that are no numbers.
    """
    log_p: Tensor | None = None
    for _ in range(prefixes.decisions):
        scores = prefixes.log_p()
        if log_p is not None:
            scores = scores + log_p[..., None]
        options = scores.shape[2]
        log_p, pairs = scores.flatten(1).topk(min(beam, scores[0].numel()), dim=1)
        prefixes.extend(pairs // options, pairs % options)
    if log_p is not None:
        check_numbers(log_p)
    solutions = prefixes.solutions_of(prefixes.moves)
    least, shortest = lengths(solutions).min(dim=1)
    return solutions[torch.arange(len(solutions), device=solutions.device), shortest], least


# -- what rounds of sampling have found so far, and what it changes for the next round -------------------------------

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
        each = nothing[..., 0]
        return Sampled(nothing, each.double(), nothing.double(), nothing, each.bool(), moves.new_zeros(0))

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
    agree = torch.ones(
        past.moves.shape[0], past.moves.shape[1], past.moves.shape[1], dtype=torch.bool, device=past.moves.device
    )
    shared = torch.zeros(agree.shape, dtype=torch.int16, device=past.moves.device)
    for move in past.moves[:, :, 1:].unbind(2):
        agree = agree & (move[:, :, None] == move[:, None])
        shared += agree
    earlier = torch.ones(m, m, dtype=torch.bool, device=shared.device).tril(-1)
    earlier_prefix = shared.masked_fill(~(earlier & past.valid[:, None]), -1).amax(dim=2)  # that earlier ones have
    # (batch, m, rounds): 1 at the round of each valid solution, and its advantage there; 0 elsewhere
    number = torch.arange(int(past.rounds[-1]) + 1, device=past.rounds.device)
    members = (past.valid[..., None] & (past.rounds[:, None] == number)).double()
    lengths = past.lengths.masked_fill(~past.valid, 0)[..., None]
    mean = (lengths * members).sum(1, keepdim=True) / members.sum(1, keepdim=True).clamp_min(1)
    counted = torch.cat([members, (mean - lengths) * members], dim=2)
    unsampled = torch.zeros_like(past.lengths)  # share of the mass behind move t: none behind the last
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


Begin = Callable[[], Prefixes]  # partial solutions of no stops yet, of the instances that are sampled for
Lengths = Callable[[Tensor], Tensor]  # solutions (batch, m, ...) -> (batch, m) float64


def sample_shortest(
    begin: Begin, lengths: Lengths, beam: int, rounds: int, sigma: float, generator: torch.Generator
) -> Tensor:
    """The shortest of the distinct solutions that `sample_distinct` finds for each instance: (batch, ...).

    Raises NeurouteError when the policy's probabilities are not finite.
    """
    sampled = sample_distinct(begin, lengths, beam, rounds, sigma, generator)
    if not bool(sampled.valid.any(dim=1).all()):  # any instance has at least one solution
        raise NeurouteError("sampling: the network's scores are not finite; lower the learning rate and retrain")
    instance = torch.arange(len(sampled.moves), device=sampled.moves.device)
    return begin().solutions_of(sampled.moves[instance, sampled.lengths.argmin(dim=1)])


@torch.inference_mode()
def sample_distinct(
    begin: Begin, lengths: Lengths, beam: int, rounds: int, sigma: float, generator: torch.Generator
) -> Sampled:
    """Up to `beam` solutions in each of `rounds` rounds, no two by the same moves.

    (A tour and its reverse count as two, and so do the same routes in another order.)

    `sigma` (per unit of length) is how strongly a round's solutions shift the policy of the rounds after it; at 0 all
    rounds together are one sample without replacement from the policy itself.  The noise comes from `generator` alone,
    which is of the network's device.
    """
    sampled = Sampled.none(begin().moves)
    for _ in range(rounds):
        sampled = sampled.and_round(_search(begin(), lengths, sampled, sigma, beam, generator))
    return sampled


def _search(
    prefixes: Prefixes, lengths: Lengths, past: Sampled, sigma: float, beam: int, generator: torch.Generator
) -> Sampled:
    """One round."""
    added = bonus(past, prefixes.decisions, sigma)  # goes on top of the policy's log-probability of past moves
    log_p = torch.zeros_like(prefixes.moves, dtype=torch.float64)
    options = torch.zeros_like(prefixes.moves)
    instance = torch.arange(len(log_p), device=log_p.device)[:, None]
    phi = torch.zeros_like(log_p[..., 0])  # log-probability of the partial solution
    # With noise.  Which solutions come out does not depend on the root's value, so it needs no draw.
    noisy = torch.zeros_like(phi)
    follows = past.valid[:, None]  # (batch, live, past): does the past solution begin with this partial one?
    for step in range(1, prefixes.decisions + 1):
        policy = prefixes.log_p()
        live, width = policy.shape[1:]
        slot = prefixes.option_of(past.moves[:, :, step]).where(follows, width)  # one column more: of no concern
        change = policy.new_zeros(len(policy), live, width + 1)
        value = added[:, None, :, step].expand(-1, live, -1)
        change.scatter_reduce_(2, slot, value, "amax", include_self=False)  # solutions that share a move agree on it
        child_phi = phi[..., None] + torch.log_softmax(policy + change[..., :-1], dim=-1)
        child_noisy = _perturbed(child_phi, noisy, generator)

        noisy, pairs = child_noisy.flatten(1).topk(min(beam, live * width), dim=1)
        parent, option = pairs // width, pairs % width
        phi = child_phi.flatten(1).gather(1, pairs)
        log_p, options = log_p[instance, parent], options[instance, parent]
        log_p[:, :, step] = policy.flatten(1).gather(1, pairs)
        options[:, :, step] = policy.isfinite().sum(-1).gather(1, parent)
        follows = slot[instance, parent] == option[..., None]
        prefixes.extend(parent, option)
    moves, valid = prefixes.moves, noisy.isfinite()
    solution_lengths = lengths(prefixes.solutions_of(moves))
    return Sampled(moves, solution_lengths, log_p, options, valid, moves.new_zeros(moves.shape[1]))


def _perturbed(phi: Tensor, parent: Tensor, generator: torch.Generator) -> Tensor:
    """phi (batch, live, candidates) with Gumbel noise, given that the largest per beam is `parent` (batch, live).

    -inf where nothing is left to sample.  The stable form of Kool et al. (2019, Appendix B.3).
    """
    noise = torch.empty(phi.shape, dtype=torch.float64, device=phi.device).exponential_(generator=generator)
    gumbel = phi - noise.clamp_min(torch.finfo(torch.float64).tiny).log()
    target = parent[..., None]
    below = gumbel - gumbel.amax(dim=-1, keepdim=True)
    # log(1 - exp(below)) without cancellation
    v = target - gumbel + torch.where(below > -0.6931, torch.log(-torch.expm1(below)), torch.log1p(-torch.exp(below)))
    conditioned = target - v.clamp_min(0) - torch.log1p(torch.exp(-v.abs()))
    return conditioned.masked_fill(gumbel.isneginf() | ~target.isfinite(), -torch.inf)
