"""MDAM's decoders at work: nodes are computed anew as solutions grow; and beams of each (Xin et al., 2021).

Of equal partial solutions of a beam only the shorter ones go on.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.environment import (
    Batch,
    Choose,
    Rollout,
    choose_best,
    empty_mask,
    precision_of,
    select_masks,
    select_tours,
)
from neuroute.specs.objects import Decoding
from neuroute_systems.mdam.network import Encoded, Mdam, Prepared

EXPAND = 3  # next stops that a partial solution proposes


class FromAnywhere:
    """Tours whose first stop is a decision too; until then they are at -1."""

    def __init__(self, batch: Batch, tours: int, dtype: torch.dtype) -> None:
        self._batch, self._dtype, self._begun = batch, dtype, list[Rollout]()
        self.context = self.current = torch.full((len(batch), tours), -1, device=batch.coords.device)
        self.action_mask = empty_mask(self.current, batch.coords.shape[1], dtype)

    def done(self) -> bool:
        return bool(self._begun) and self._begun[0].done()

    def step(self, stops: Tensor) -> None:
        if self._begun:
            self._begun[0].step(stops)
        else:
            self._begun.append(self._batch.rollout(stops, self._dtype))
        self._show()

    def select(self, parents: Tensor) -> None:
        if self._begun:
            self._begun[0].select(parents)
            self._show()
        else:
            self.context = self.current = select_tours(self.current, parents)
            self.action_mask = select_masks(self.action_mask, parents)

    def solutions(self) -> Tensor:
        return self._begun[0].solutions()

    def _show(self) -> None:
        (rollout,) = self._begun
        self.context, self.current, self.action_mask = rollout.context, rollout.current, rollout.action_mask


class Steps:
    """The decisions of one decoder about the solutions of a rollout, one after the other.

    There is one solution of each instance, to begin with.
    """

    def __init__(self, net: Mdam, decoder: int, encoded: Encoded, batch: Batch) -> None:
        """encoded: what the network makes of the batch."""
        self._net, self._decoder, self._encoded = net, decoder, encoded
        self._prepared, self._of_solutions = net.prepare(decoder, encoded.nodes), False
        self._before: Tensor | None = None  # the mask of the decision before, where the next one asks for it
        self._number = 0
        dtype, none = precision_of(encoded), torch.zeros(len(batch), 1, dtype=torch.int64, device=batch.coords.device)
        self.rollout: Rollout = FromAnywhere(batch, 1, dtype) if net.problem == "tsp" else batch.rollout(none, dtype)

    def logits(self) -> Tensor:
        """Of the next stop of each solution: (batch, solutions, nodes)."""
        rollout, net = self.rollout, self._net
        if net.glimpses(self._number):
            assert self._before is not None
            nodes = net.glimpse(self._encoded, self._before)
            self._prepared, self._of_solutions = net.prepare(self._decoder, nodes), True
        logits = net.decide(self._decoder, self._prepared, rollout.context, rollout.current, rollout.action_mask)
        self._number += 1
        self._before = rollout.action_mask.clone() if net.glimpses(self._number) else None
        return logits

    def select(self, parents: Tensor) -> None:
        """Go on with the solutions `parents` (batch, new) int64, and no others."""
        if self._before is not None:  # what is prepared is computed anew
            self._before = select_tours(self._before, parents)
        elif self._of_solutions:
            batch = len(parents)
            fields = (select_tours(each.unflatten(0, (batch, -1)), parents).flatten(0, 1) for each in self._prepared)
            self._prepared = Prepared(*fields)
        self.rollout.select(parents)


def build(net: Mdam, decoder: int, encoded: Encoded, batch: Batch, choose: Choose = choose_best) -> Tensor:
    """One solution of each instance (batch, 1, ...) by one decoder, each decision made by `choose`."""
    steps = Steps(net, decoder, encoded, batch)
    while not steps.rollout.done():
        steps.rollout.step(choose(steps.logits()))
    return steps.rollout.solutions()


def build_all(net: Mdam, encoded: Encoded, batch: Batch) -> Tensor:
    """The greedy solutions (batch, decoders, ...)."""
    return torch.cat([build(net, decoder, encoded, batch) for decoder in range(len(net.decoders))], dim=1)


class Partial(NamedTuple):
    """Partial solutions of each instance, (batch, count) each, or as many more numbers of each."""

    log_p: Tensor  # float64; -inf of one that does not go on
    visited: Tensor  # bool (batch, count, nodes), without the depot
    first: Tensor  # int64: where tours began, 0 of routes
    last: Tensor
    used: Tensor  # int64: of the vehicle, 0 of tours
    length: Tensor  # float64: from the first stop to the last


def decoders(net: Mdam, batch: Batch, decoding: Decoding, memory_gb: float, first: int) -> Tensor:
    """The shortest solution (batch, ...) of all decoders, each of which searches with beams, by default with one.

    Raises NeurouteError for other networks, and for stretched coordinates.
    """
    if not isinstance(net, Mdam):
        raise NeurouteError(f"method 'decoders' is for Mdam, not for {type(net).__name__}")
    if decoding.rescale != 1 or decoding.esf:
        raise NeurouteError("Mdam reads coordinates of the unit square as they are; leave `rescale` and `esf` out")
    encoded = net.encode(*batch.features)
    each = [search_beams(net, number, encoded, batch, decoding.beam) for number in range(len(net.decoders))]
    return shortest_of(batch, torch.stack(each, dim=1))


def shortest_of(batch: Batch, solutions: Tensor) -> Tensor:
    """solutions (batch, count, ...) -> the shortest of each instance, the first of equally short ones."""
    shortest = batch.lengths(solutions).argmin(dim=1, keepdim=True)
    return select_tours(solutions, shortest)[:, 0]


@torch.no_grad()
def search_beams(net: Mdam, decoder: int, encoded: Encoded, batch: Batch, beam: int, expand: int = EXPAND) -> Tensor:
    """The shortest of the `beam` solutions that one decoder ends with: (batch, ...).

    At every step each partial solution proposes its `expand` most probable next stops; of these the most probable
    `beam` go on, once `merge` has dropped what is no better than another.  An instance with fewer has copies of its
    most probable one in their places, which propose nothing.  As in the published search, and in it alone, the depot is
    open to the first decision too.
    """
    steps, points = Steps(net, decoder, encoded, batch), batch.coords.double()
    steps.rollout.action_mask.zero_()
    count, nodes = points.shape[:2]
    demand = getattr(batch, "demand", torch.zeros(count, nodes, dtype=torch.int64, device=points.device))
    instance = torch.arange(count, device=points.device)[:, None]
    none = torch.zeros(count, 1, dtype=torch.int64, device=points.device)
    visited = torch.zeros(count, 1, nodes, dtype=torch.bool, device=points.device)
    now = Partial(none.double(), visited, none, none, none, none.double())
    has_first = net.problem != "tsp"  # routes begin at the depot, which is never done with
    places = torch.arange(nodes, device=points.device)
    is_customer = places >= int(has_first)
    while not steps.rollout.done():
        log_p, stops = torch.log_softmax(steps.logits().double(), dim=-1).topk(min(expand, nodes), dim=-1)
        parents = torch.arange(stops.shape[1], device=stops.device).repeat_interleave(stops.shape[2]).expand(count, -1)
        stops = stops.flatten(1)
        old = Partial(*(select_tours(each, parents) for each in now))
        leg = (points[instance, stops] - points[instance, old.last]).norm(dim=-1)
        new = Partial(
            log_p=old.log_p + log_p.flatten(1),
            visited=old.visited | (stops[..., None] == places) & is_customer,
            first=old.first if has_first else stops,
            last=stops,
            used=torch.where(stops > 0, old.used + demand.gather(1, stops), 0),
            length=old.length + leg if has_first else old.length,
        )
        new = new._replace(log_p=merge(new))
        log_p, best = new.log_p.topk(min(beam, stops.shape[1]), dim=1)
        best = torch.where(log_p.isneginf(), best[:, :1], best)
        now, has_first = Partial(*(select_tours(each, best) for each in new))._replace(log_p=log_p), True
        steps.select(parents.gather(1, best))
        steps.rollout.step(stops.gather(1, best))
    return shortest_of(batch, steps.rollout.solutions())


def merge(p: Partial) -> Tensor:
    """The log-probabilities (batch, count) of partial solutions: -inf where another one is as good and no longer.

    That is one that has visited the same nodes, began and ended at the same one, and has used no more of its vehicle;
    of equally long ones the first.  It gets the larger of the two probabilities.
    """
    sets = p.visited.to(torch.float32)
    common, size = sets @ sets.transpose(1, 2), sets.sum(dim=-1)
    better = (common == size[:, :, None]) & (common == size[:, None, :])
    for each in (p.first, p.last):
        better &= each[:, :, None] == each[:, None, :]
    alive, order = ~p.log_p.isneginf(), torch.arange(p.log_p.shape[1], device=p.log_p.device)
    longer, equal = p.length[:, None, :] > p.length[:, :, None], p.length[:, None, :] == p.length[:, :, None]
    better &= longer | (equal & (order[:, None] < order))  # (batch, than which, which)
    better &= (p.used[:, :, None] <= p.used[:, None, :]) & alive[:, :, None] & alive[:, None, :]
    inherited = p.log_p[:, None, :].masked_fill(~better, -torch.inf).amax(dim=2)
    return torch.maximum(p.log_p, inherited).masked_fill(better.any(dim=1), -torch.inf)
