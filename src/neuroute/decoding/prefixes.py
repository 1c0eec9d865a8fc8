"""Partial solutions that grow by one stop at a time, several of each instance: what beams and sampling choose among."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

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

    def go(self, parent: Tensor, option: Tensor) -> None:
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

    def go(self, parent: Tensor, option: Tensor) -> None:
        if self._arrive is not None:
            rows = self._rows.unflatten(0, (len(self._instance), -1))
            self._rows = rows[self._instance, parent].flatten(0, 1)
        super().go(parent, option)
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
        """nodes (batch, V + 1, E), demand (batch, V + 1), capacity (batch,); decide: as `cvrp_paths.Decide`."""
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

    def go(self, parent: Tensor, option: Tensor) -> None:
        super().go(parent, option)
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
        prefixes.go(pairs // options, pairs % options)
    if log_p is not None:
        check_numbers(log_p)
    solutions = prefixes.solutions_of(prefixes.moves)
    least, shortest = lengths(solutions).min(dim=1)
    return solutions[torch.arange(len(solutions), device=solutions.device), shortest], least
