"""INViT: nested views of what is near, each in coordinates of its own, encoded anew at every decision.

Fang et al., "INViT: A Generalizable Routing Problem Solver with Invariant Nested View Transformer" (ICML 2024).
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.base import MultiStartNetwork
from neuroute.networks.blocks.attention import attend
from neuroute.networks.blocks.layers import LayerNorm, PostNorm, rows_of
from neuroute.networks.blocks.precision import FullLinear, in_all_digits

# -- views of an instance: the nodes near a stop, in coordinates of their own (Fang et al., 2024, Section 4) ---------


def nearest(coords: Tensor, here: Tensor, allowed: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Of coords (batch, n, 2) the k nearest allowed ones of each place: (nodes, are there), (batch, tours, k) both.

    here (batch, tours, 2), allowed bool (batch, tours, n).  Nearest first; where fewer are allowed, those that are
    not come last and are not there.  Nothing is kept of pairs of nodes: n numbers of each place.
    """
    squared = (coords[:, None, :, 0] - here[..., 0, None]).square_()
    squared += (coords[:, None, :, 1] - here[..., 1, None]).square_()
    squared.masked_fill_(~allowed, torch.inf)
    distances, nodes = squared.topk(min(k, squared.shape[2]), dim=2, largest=False, sorted=True)
    return nodes, distances < torch.inf


def points(rows: Tensor, nodes: Tensor, there: Tensor, empty: Tensor) -> Tensor:
    """rows (batch, n, E) of nodes (batch, tours, k) int64 -> (batch, tours, k, E).

    Of places that are not there (batch, tours, k) bool the result is `empty` (batch, tours, E).
    """
    features = rows_of(rows, nodes.flatten(1)).unflatten(1, nodes.shape[1:])
    return torch.where(there[..., None], features, empty[:, :, None])


def to_unit_box(coords: Tensor, here: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
    """Move and scale what a view sees (..., k, 2), here and others (..., 2), so that its longer side is 1.

    The view is the nodes and the current stop; both axes are divided by the larger range, by 1 if that is 0.
    """
    all_of_it = torch.cat([coords, here[..., None, :]], dim=-2)
    low, high = all_of_it.aminmax(dim=-2)
    side = (high - low).amax(dim=-1, keepdim=True)
    side = torch.where(side > 0, side, 1.0)
    moved = ((all_of_it - low[..., None, :]) / side[..., None]).split([coords.shape[-2], 1], dim=-2)
    return moved[0], moved[1].squeeze(-2), *((other - low) / side for other in others)


ROUNDING = 1e-6  # of a load, as a share of the capacity


class Prepared(NamedTuple):
    """An instance: nothing is computed before a decision."""

    nodes: Tensor  # (batch, nodes, 2)
    demand: Tensor | None  # (batch, nodes) in shares of the capacity


class View(NamedTuple):
    """What one encoder sees of each tour's surroundings."""

    nodes: Tensor  # (batch, tours, k, features), nearest first
    here: Tensor  # (batch, tours, features): the current stop
    there: Tensor  # bool (batch, tours, k)
    other: Tensor | None  # (batch, tours, 2): where the tour began, or the depot


class InvitLayer(PostNorm):
    """Attention with a residual and a norm of its own, inside another residual: LN(h + LN'(h + MHA(h))), then an FFN.

    4 W^2 + 2 W F + 7 W + F parameters: no projection of the attention has a bias.  Its scores are divided by the root
    of the whole width, not of a head's, as in the published code.
    """

    def __init__(self, width: int, heads: int, feed_forward: int) -> None:
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        super().__init__(width, feed_forward, LayerNorm)
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.inner_norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x: Tensor, hidden: Tensor | None, first: int | None = None) -> Tensor:
        """x (rows, tokens, width), hidden (rows, 1, 1, tokens): -inf at tokens that are not there, if any -> as x.

        first: of so many tokens alone, those that are asked for of the last layer.
        """
        of_query, of_others = self.qkv.weight.tensor_split([x.shape[-1]])
        keys, values = F.linear(x, of_others).chunk(2, dim=-1)
        x = x[:, :first]
        q, k, v = (_heads(part, self.heads) for part in (F.linear(x, of_query), keys, values))
        attended = attend(q, k, v, 1 / math.sqrt(x.shape[-1]), hidden).transpose(1, 2).flatten(2)
        return self.finish(x, self.inner_norm(x + self.out(attended)))


class ViewEncoder(nn.Module):
    """Linears for the nodes, for the current stop and for one node besides, if there is one, and layers."""

    def __init__(self, features: int, other: bool, depth: int, width: int, heads: int, feed_forward: int) -> None:
        super().__init__()
        self.nodes, self.here = FullLinear(features, width), FullLinear(features, width)
        self.other = FullLinear(2, width) if other else None
        self.layers = nn.ModuleList(InvitLayer(width, heads, feed_forward) for _ in range(depth))

    def forward(self, view: View, actions: int) -> tuple[Tensor, Tensor]:
        """-> the first `actions` nodes, and the current stop and the node besides: (rows, actions, 1 or 2, width)."""
        tokens = [self.here(view.here)[..., None, :]]
        if self.other is not None:
            assert view.other is not None
            tokens.append(self.other(view.other)[..., None, :])
        stops = len(tokens)
        h = torch.cat([*tokens, self.nodes(view.nodes)], dim=2).flatten(0, 1)
        hidden = _hidden(F.pad(view.there, (stops, 0), value=True))
        *layers, last = self.layers
        for layer in layers:
            h = layer(h, hidden)
        h = last(h, hidden, stops + actions)
        return h[:, stops:], h[:, :stops]


class Glimpse(nn.Module):
    """The query attends to the actions: LN(h + MHA(h)), then LN(h + MLP(h)).  4 W^2 + 8 W parameters."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, width), nn.Linear(width, width)
        self.attention_norm, self.feed_forward_norm = LayerNorm(width), LayerNorm(width)

    def forward(self, h: Tensor, keys: Tensor, values: Tensor, hidden: Tensor | None) -> Tensor:
        """h (rows, 1, width); keys, values (rows, actions, width); hidden (rows, 1, 1, actions), if any -> as h."""
        q, k, v = (_heads(part, self.heads) for part in (self.query(h), keys, values))
        attended = attend(q, k, v, 1 / math.sqrt(q.shape[-1]), hidden).transpose(1, 2).flatten(2)
        h = self.attention_norm.join(h, self.out(attended))
        return self.feed_forward_norm.join(h, self.down(F.relu(self.up(h))))


class Invit(MultiStartNetwork):
    """Scores the nearest `actions` nodes of a tour's current stop; all others are closed.

    The views hold the current stop's nearest open nodes, as many as `views` says: each has an encoder, as has the view
    of the actions alone, and what the encoders say of an action, of the current stop and of the tour's first node
    is put side by side.  What a decision takes does not grow with the instance, but for the search of the nearest.

    As published 265,984 + 528,256 v + 198,016 A parameters of v views and `action_depth` A: 1,718,528 of two views and
    A = 2, 2,642,816 of three and A = 4.

    As in the published code: where a tour began is put on the edge of a view that it lies outside of (TSP);
    the logits are `clipping` * tanh of products over sqrt(W).  A view of k nodes has all that are left where those are
    fewer.  The networks' weights say nothing of `views` and `actions`.
    """

    problem: ClassVar[str] = "tsp"
    single_start = True
    features: ClassVar[int] = 2
    depots: ClassVar[int] = 0  # actions besides the nearest nodes

    def __init__(
        self,
        depth: int = 2,
        action_depth: int = 2,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        views: Sequence[int] = (35, 50, 65),
        actions: int = 15,
        clipping: float = 10.0,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        if actions < 1 or not views or min(views) < actions:
            raise ValueError(f"views of {list(views)} nodes; each must hold the {actions} nodes that are chosen from")
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.sizes, self.actions, self.clipping = list(views), actions, clipping
        self.decision_tokens = sum(views) * depth + actions * action_depth
        shape = (width, heads, feed_forward)
        self.action_view = ViewEncoder(self.features, self.depots > 0, action_depth, *shape)
        self.views = nn.ModuleList(ViewEncoder(self.features, True, depth, *shape) for _ in views)
        stops = 2 * len(views) + 1 + self.depots
        self.query = nn.Linear(stops * width, width)
        self.key = nn.Linear((len(views) + 1) * width, 3 * width)
        self.value = nn.Linear((len(views) + 1) * width, 3 * width)
        self.glimpses = nn.ModuleList(Glimpse(width, heads) for _ in range(2))
        self.pointer = nn.Linear(width, width)

    def encode(self, coords: Tensor, *demand: Tensor) -> Prepared:
        """coords (batch, nodes, 2), of the CVRP demand (batch, nodes) in shares of the capacity too, the depot first.

        They may lie anywhere.
        """
        return Prepared(coords, *demand) if demand else Prepared(coords, None)

    def prepare(self, encoded: Prepared) -> Prepared:
        return encoded

    def decide(self, prepared: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """Logits (batch, tours, nodes) of the next stop of each tour, -inf where it cannot go or which are not near.

        context (batch, tours) int64: where a tour began; current (batch, tours) int64: where it is;
        mask (batch, tours, nodes): -inf at what it has visited, 0 elsewhere.
        """
        coords, open_ = prepared.nodes, mask == 0
        here = rows_of(coords, current)
        nodes, there = nearest(coords, here, open_, self._most(open_, max(self.sizes)))
        first = rows_of(coords, context)
        views = [self._view(coords, nodes[..., :k], there[..., :k], here, first) for k in (self.actions, *self.sizes)]
        return self._choose(views, nodes[..., : self.actions], there[..., : self.actions], mask)

    def path_rows(self, coords: Tensor) -> Tensor:
        """coords (batch, nodes, 2) of the TSP are all that `decide_path` reads."""
        return coords if self.problem == "tsp" else super().path_rows(coords)

    def decide_path(self, rows: Tensor) -> Tensor:
        """rows (batch, 1 + available + 1, 2) of [current, available..., where the tour closes] -> (batch, available).

        -inf of those that are not among the nearest.
        """
        ends = rows.new_zeros(len(rows), 1, rows.shape[1])
        ends[..., 0] = ends[..., -1] = -math.inf
        current = torch.zeros_like(rows[:, :1, 0], dtype=torch.int64)
        return self.decide(Prepared(rows, None), current + rows.shape[1] - 1, current, ends)[:, 0, 1:-1]

    def _view(self, coords: Tensor, nodes: Tensor, there: Tensor, here: Tensor, first: Tensor) -> View:
        coords_seen, at, start = to_unit_box(points(coords, nodes, there, here), here, first)
        return View(coords_seen, at, there, start.clamp(0, 1))

    def _choose(self, views: list[View], actions: Tensor, there: Tensor, mask: Tensor) -> Tensor:
        """The first view is that of the actions (batch, tours, a); all others begin with the same nodes."""
        encoders, a = (self.action_view, *self.views), actions.shape[-1]
        encoded = [encoder(view, a) for encoder, view in zip(encoders, views, strict=True)]
        stops = torch.cat([stop.flatten(1) for _, stop in encoded], dim=-1)
        rows = torch.cat([nodes for nodes, _ in encoded], dim=-1)
        if self.depots:
            there = torch.cat([there, mask[..., :1] == 0], dim=-1)
            rows = torch.cat([rows, torch.cat([stop[:, 1:] for _, stop in encoded], dim=-1)], dim=1)
        logits = self._point(self.query(stops)[:, None], rows, _hidden(there))
        logits = logits.to(mask.dtype).view(there.shape).masked_fill(~there, -math.inf)
        near = torch.full_like(mask, -math.inf).scatter(2, actions, logits[..., :a])
        # After the nodes: of those that are not there one may be the depot.
        return near.scatter(2, torch.zeros_like(actions[..., :1]), logits[..., a:]) if self.depots else near

    def _point(self, h: Tensor, rows: Tensor, hidden: Tensor | None) -> Tensor:
        """h (rows, 1, width), actions (rows, a, (v + 1) width), hidden (rows, 1, 1, a) -> logits (rows, a)."""
        *keys, last = self.key(rows).chunk(3, dim=-1)
        values = self.value(rows)[..., : 2 * self.width].chunk(2, dim=-1)  # the logits need none
        for glimpse, k, v in zip(self.glimpses, keys, values, strict=True):
            h = glimpse(h, k, v, hidden)
        fits = in_all_digits(torch.matmul, self.pointer(h), last.transpose(1, 2)).squeeze(1) / math.sqrt(self.width)
        return self.clipping * fits.tanh()

    def _most(self, allowed: Tensor, k: int) -> int:
        """The most nodes that any view has, of up to k: asked of a CPU alone, as a GPU would be waited for."""
        if allowed.is_cuda:
            return k
        return max(1, min(k, int(allowed.sum(dim=-1).max())))


class InvitCvrp(Invit):
    """Scores the depot and the nearest customers that fit; loads are shares of the capacity.

    A view of k has as many places for these customers as may be chosen, of which some are empty where fewer fit, and
    the nearest others that have not been served in the places after them.  It is not clipped: the depot may lie
    outside.  1,736,064 parameters of two views and two action layers, 2,264,576 of three.

    strict: a customer whose demand is all that is left is not offered, as in the published code, whose weights have
    learnt so; at the depot it is, since else an instance with such a customer had no solution.

    copies: at the depot the instance's last customer counts for the ranges of views with empty places, as in the
    published code, where copies of it fill them.
    """

    problem = "cvrp"
    sees_served = True
    features, depots = 3, 1

    def __init__(self, strict: bool = False, copies: bool = False, **shape: Any) -> None:
        """shape: as of the TSP."""
        super().__init__(**shape)
        self.strict, self.copies = strict, copies

    def decide(self, prepared: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """Logits (batch, tours, nodes) as of the TSP.

        context (batch, tours, 1 + nodes): the share of the capacity that is left, and -inf at what has been served;
        mask (batch, tours, nodes): -inf at what has been served or does not fit, and at the depot where a tour may not
        stay there.
        """
        coords, demand = prepared.nodes, prepared.demand
        assert demand is not None
        load, open_, fits = context[..., :1], context[..., 1:] == 0, mask == 0
        if self.strict:
            fits &= (demand[:, None] < load - ROUNDING) | (load > 1 - ROUNDING)
        open_[..., 0] = fits[..., 0] = False
        here = rows_of(coords, current)
        first = nearest(coords, here, fits, self._most(fits, self.actions))
        others = open_ & ~torch.zeros_like(open_).scatter_(2, *first)
        more = nearest(coords, here, others, self._most(others, max(self.sizes) - self.actions))
        depot = coords[:, :1].expand_as(here)
        empty = torch.where(current[..., None] == 0, coords[:, -1:], here) if self.copies else here

        def view(nodes: Tensor, there: Tensor) -> View:
            coords_seen, at, home = to_unit_box(points(coords, nodes, there, empty), here, depot)
            demands = points(demand[..., None], nodes, there, load.to(demand))
            return View(torch.cat([coords_seen, demands], -1), torch.cat([at, load.to(at)], -1), there, home)

        def state(k: int) -> View:
            nodes, there = (torch.cat([a, b[..., : k - self.actions]], -1) for a, b in zip(first, more, strict=True))
            return view(nodes, there)

        return self._choose([view(*first), *map(state, self.sizes)], *first, mask)

    def _most(self, allowed: Tensor, k: int) -> int:
        return k if self.copies else super()._most(allowed, k)


def _hidden(there: Tensor) -> Tensor | None:
    """there bool (batch, tours, tokens) -> (rows, 1, 1, tokens), -inf at tokens that are not there.

    None where all are: asked of a CPU alone, as a GPU would be waited for.
    """
    if not there.is_cuda and bool(there.all()):
        return None
    hidden = torch.zeros(there.shape, device=there.device).masked_fill_(~there, -math.inf)
    return hidden.flatten(0, 1)[:, None, None]


def _heads(x: Tensor, heads: int) -> Tensor:
    out: Tensor = x.unflatten(2, (heads, -1)).transpose(1, 2)
    return out
