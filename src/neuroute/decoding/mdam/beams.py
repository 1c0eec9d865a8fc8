"""MDAM's search: beams of every decoder, in which of equal partial solutions only the shorter ones go on."""

from typing import NamedTuple

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.environment import Batch
from neuroute.decoding.mdam.steps import Steps, build_all
from neuroute.decoding.rollout import pick_tours
from neuroute.networks.mdam import Encoded, Mdam
from neuroute.plan.objects import Decoding

EXPAND = 3  # next stops that a partial solution proposes


class Partial(NamedTuple):
    """Partial solutions of each instance, (batch, count) each, or as many more numbers of each."""

    log_p: Tensor  # float64; -inf of one that does not go on
    visited: Tensor  # bool (batch, count, nodes), without the depot
    first: Tensor  # int64: where tours began, 0 of routes
    last: Tensor
    used: Tensor  # int64: of the vehicle, 0 of tours
    length: Tensor  # float64: from the first stop to the last


def decode_batch(net: Mdam, batch: Batch, decoding: Decoding, memory_gb: float, first: int) -> Tensor:
    """The shortest solution (batch, ...) of all decoders: each builds one greedily, or searches with beams.

    Raises NeurouteError for other networks, and for stretched coordinates.
    """
    if not isinstance(net, Mdam):
        raise NeurouteError(f"method 'decoders' is for Mdam, not for {type(net).__name__}")
    if decoding.rescale != 1 or decoding.esf:
        raise NeurouteError("Mdam reads coordinates of the unit square as they are; leave `rescale` and `esf` out")
    encoded = net.encode(*batch.features)
    if decoding.beam == 1:
        return shortest_of(batch, build_all(net, encoded, batch))
    each = [search_beams(net, number, encoded, batch, decoding.beam) for number in range(len(net.decoders))]
    return shortest_of(batch, torch.stack(each, dim=1))


def shortest_of(batch: Batch, solutions: Tensor) -> Tensor:
    """solutions (batch, count, ...) -> the shortest of each instance, the first of equally short ones."""
    shortest = batch.lengths(solutions).argmin(dim=1, keepdim=True)
    return pick_tours(solutions, shortest)[:, 0]


@torch.no_grad()
def search_beams(net: Mdam, decoder: int, encoded: Encoded, batch: Batch, beam: int, expand: int = EXPAND) -> Tensor:
    """The shortest of the `beam` solutions that one decoder ends with: (batch, ...).

    At every step each partial solution proposes its `expand` most probable next stops; of these the most probable
    `beam` go on, once `merge` has dropped what is no better than another.  An instance with fewer has copies of its
    most probable one in their places, which propose nothing.
    """
    steps, points = Steps(net, decoder, encoded, batch), batch.coords.double()
    count, nodes = points.shape[:2]
    demand = getattr(batch, "demand", torch.zeros(count, nodes, dtype=torch.int64, device=points.device))
    instance = torch.arange(count, device=points.device)[:, None]
    none = torch.zeros(count, 1, dtype=torch.int64, device=points.device)
    visited = torch.zeros(count, 1, nodes, dtype=torch.bool, device=points.device)
    now = Partial(none.double(), visited, none, none, none, none.double())
    has_first = net.problem != "tsp"  # routes begin at the depot, which is never done with
    places = torch.arange(nodes, device=points.device)
    is_customer = places >= int(has_first)
    while not steps.rollout.is_complete():
        log_p, stops = torch.log_softmax(steps.logits().double(), dim=-1).topk(min(expand, nodes), dim=-1)
        parents = torch.arange(stops.shape[1], device=stops.device).repeat_interleave(stops.shape[2]).expand(count, -1)
        stops = stops.flatten(1)
        old = Partial(*(pick_tours(each, parents) for each in now))
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
        now, has_first = Partial(*(pick_tours(each, best) for each in new))._replace(log_p=log_p), True
        steps.pick(parents.gather(1, best))
        steps.rollout.go(stops.gather(1, best))
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
