"""MDAM: several decoders, and an encoder whose last layer is computed anew as solutions grow (Xin et al., 2021).

`Mdam` is for the TSP, `MdamCvrp` for the CVRP.
"""

import math
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from neuroute.networks.base import Count, RoutingNetwork
from neuroute.networks.blocks.attention import attend, clipped, split_heads
from neuroute.networks.blocks.layers import CvrpEmbedding, TspEmbedding, UntrackedBatchNorm, rows_of
from neuroute.networks.blocks.precision import FullLinear, in_all_digits
from neuroute_systems.blocks.path_attention import KoolLayer


class Encoded(NamedTuple):
    """An instance: its nodes, and of the last layer what does not change when nodes are closed."""

    nodes: Tensor  # (batch, n, width)
    below: Tensor  # (batch, n, width): what the last layer reads
    attention: Tensor  # (batch, heads, n, n): its weights
    values: Tensor  # (batch, heads, n, d_k)


class Prepared(NamedTuple):
    """What one decoder's decisions share; rows are instances, or solutions whose nodes were computed anew."""

    nodes: Tensor  # (rows, n, width)
    keys: Tensor  # (rows, n, width): of the glimpse
    values: Tensor
    targets: Tensor  # what glimpses are multiplied with
    mean: Tensor  # (rows, 1, width): what queries get of all nodes


class Decoder(nn.Module):
    """Kool's decoder: a glimpse at the open nodes, and clipped products with them; 5 W^2 + C W parameters.

    C: numbers that are known of a solution at a step.
    """

    def __init__(self, width: int, heads: int, context_width: int, clipping: float) -> None:
        super().__init__()
        self.heads, self.clipping = heads, clipping
        self.project_nodes = nn.Linear(width, 3 * width, bias=False)  # the glimpse's keys and values, the targets
        self.project_mean = nn.Linear(width, width, bias=False)
        self.project_step = FullLinear(context_width, width, bias=False)
        self.project_glimpse = nn.Linear(width, width, bias=False)

    def prepare(self, nodes: Tensor) -> Prepared:
        """nodes (rows, n, width)."""
        keys, values, targets = self.project_nodes(nodes).chunk(3, dim=-1)
        return Prepared(nodes, keys, values, targets, self.project_mean(nodes.mean(dim=1, keepdim=True)))

    def decide(self, p: Prepared, context: Tensor, mask: Tensor) -> Tensor:
        """context (rows, tours, C), mask (rows, tours, n) -> logits (rows, tours, n), -inf where the mask is."""
        query, width = p.mean + self.project_step(context), p.nodes.shape[2]
        query, keys, values = (x.unflatten(2, (self.heads, -1)).transpose(1, 2) for x in (query, p.keys, p.values))
        attended = attend(query, keys, values, 1 / math.sqrt(width // self.heads), mask[:, None])
        glimpse = self.project_glimpse(attended.transpose(1, 2).flatten(2))
        fits = in_all_digits(torch.matmul, glimpse, p.targets.transpose(1, 2)) / math.sqrt(width)
        return clipped(fits, mask, self.clipping)


class Mdam(RoutingNetwork):
    """Scores the nodes that may come next, in solutions of several decoders that are apart from each other.

    E + D (4 W^2 + 2 W F + 5 W + F) + K (5 W^2 + C W) parameters, K decoders.  Of the TSP the embedding has E = 3 W, the
    first and the current stop are known, C = 2 W, and 2 W numbers stand for them before there are any: 1,167,360 as
    published.  Of the CVRP E = 7 W and C = W + 1, the current stop and the share that is left: 1,086,336 as published.

    From the third decision on every `glimpse_every`-th begins with the last layer: nodes that were closed when the
    decision before was made get no attention, the others share it, and what follows is computed anew for all nodes.
    Batch norms have the statistics of their batch always, as the published code has them in decoding too, of one
    solution of each instance together: a solution depends on what else is in the batch.
    """

    problem: ClassVar[str] = "tsp"
    own_method: ClassVar[str] = "mdam:decoders"  # by which alone it is decoded
    own_beams = True
    is_batch_dependent = True
    embedding: ClassVar[type[nn.Module]] = TspEmbedding
    slack: ClassVar[float] = 0.0  # added to the attention that is left of a row

    def __init__(
        self,
        depth: int = 3,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        clipping: float = 10.0,
        decoders: int = 5,
        glimpse_every: int = 2,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        if min(depth, decoders, glimpse_every) < 1:
            raise ValueError(f"depth {depth}, decoders {decoders} and glimpse_every {glimpse_every} are at least 1")
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.heads, self.glimpse_every, self.pair_channels = heads, glimpse_every, heads
        self.embed = self.embedding(width)
        layers = [KoolLayer(width, heads, feed_forward, UntrackedBatchNorm) for _ in range(depth)]
        self.layers, self.last = nn.ModuleList(layers[:-1]), layers[-1]
        context_width = self._context_width(width)
        self.decoders = nn.ModuleList(Decoder(width, heads, context_width, clipping) for _ in range(decoders))

    def _context_width(self, width: int) -> int:
        """Have what stands for the stops of a tour that has none; returns how much is known of a step."""
        self.placeholder = nn.Parameter(torch.empty(2 * width).uniform_(-1, 1))
        return 2 * width

    def encode(self, coords: Tensor, *demand: Tensor) -> Encoded:
        """coords (batch, n, 2), of the CVRP demand (batch, n) in shares of the capacity too, the depot first."""
        h: Tensor = self.embed(coords, *demand)
        for layer in self.layers:
            h = layer(h)
        query, key, values = split_heads(self.last.qkv(h), self.heads)
        attention = torch.softmax(query @ key.transpose(2, 3) * self.last.scale, dim=-1)
        mixed = (attention.to(values) @ values).transpose(1, 2).flatten(2)
        return Encoded(self.last.finish(h, self.last.out(mixed)), h, attention, values)

    def glimpses(self, step: int) -> bool:
        """Whether decision `step`, from 0 on, begins with the last layer."""
        return step > 1 and step % self.glimpse_every == 0

    def glimpse(self, encoded: Encoded, mask: Tensor) -> Tensor:
        """The nodes (batch tours, n, width) as each solution sees them; mask (batch, tours, n): -inf at closed ones.

        Attention is the same for all solutions of an instance, so what is closed is left out of the values and of the
        sum of the weights: one product for all, and no weights for each.  Norms are of one tour of each instance.
        """
        attention, values = encoded.attention.to(encoded.values), encoded.values
        is_open = (mask == 0).to(values).transpose(1, 2)[:, None]  # (batch, 1, n, tours)
        mixed = (attention @ (values[:, :, :, None] * is_open[..., None]).flatten(3)).unflatten(3, (mask.shape[1], -1))
        weights = attention @ is_open + self.slack  # 0 where attention to what is open is too little for its precision
        mixed = mixed / weights.masked_fill(weights == 0, 1)[..., None]  # (batch, heads, n, tours, d_k)
        tours = self.last.out(mixed.permute(3, 0, 2, 1, 4).flatten(3))
        return torch.stack([self.last.finish(encoded.below, tour) for tour in tours], dim=1).flatten(0, 1)

    def prepare(self, decoder: int, nodes: Tensor) -> Prepared:
        """What is computed once for the decisions of one decoder, of nodes (rows, n, width)."""
        return self._decoder(decoder).prepare(nodes)

    def decide(self, decoder: int, prepared: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """Logits (batch, tours, n) of the next stop of each solution of one decoder; see `Pomo.decide`.

        prepared: of instances or of all solutions; current: -1 where a tour has not begun (TSP).
        """
        context, current, closed = (x.reshape(len(prepared.nodes), -1, *x.shape[2:]) for x in (context, current, mask))
        step = self._step(prepared.nodes, context, current)
        return self._decoder(decoder).decide(prepared, step, closed).view_as(mask)

    def count_flops(self, count: Count, coords: Tensor, *demand: Tensor) -> tuple[int, int]:
        """See `base.Count`.  A decision is of each decoder one, and its part of the last layer and what follows it."""
        encoded, encoder = count(lambda: self.encode(coords, *demand))
        nodes = Encoded(*(part[..., :-1, :] for part in encoded))._replace(attention=encoded.attention[..., :-1, :-1])
        _, prepare = count(lambda: self.prepare(0, encoded.nodes))
        prepared, again = count(lambda: self.prepare(0, nodes.nodes))
        mask, here = nodes.nodes.new_zeros(1, 1, nodes.nodes.shape[1]), coords.new_ones(1, 1, dtype=torch.int64)
        context = coords.new_ones(1, 1) if demand else here
        _, step = count(lambda: self.decide(0, prepared, context, here, mask))
        _, glimpse = count(lambda: self.glimpse(nodes, mask))
        decoders = len(self.decoders)
        return encoder + decoders * prepare, decoders * (step + (glimpse + again) // self.glimpse_every)

    def _decoder(self, number: int) -> Decoder:
        decoder: Decoder = self.decoders[number]  # type: ignore[assignment]
        return decoder

    def _step(self, nodes: Tensor, context: Tensor, current: Tensor) -> Tensor:
        """What is known of each solution: (rows, tours, C)."""
        ends = torch.cat([rows_of(nodes, stops.clamp(min=0)) for stops in (context, current)], dim=-1)
        return torch.where(current[..., None] < 0, self.placeholder.to(ends), ends)


class MdamCvrp(Mdam):
    """MDAM for the CVRP, whose solutions all begin at the depot."""

    problem = "cvrp"
    embedding = CvrpEmbedding
    slack = 1e-9

    def _context_width(self, width: int) -> int:
        return width + 1

    def _step(self, nodes: Tensor, context: Tensor, current: Tensor) -> Tensor:
        here = rows_of(nodes, current)
        return torch.cat([here, context[..., None].to(here)], dim=-1)
