"""LEHD: a light encoder, a heavy decoder (Luo et al., 2023), for the TSP, for the CVRP, and with experts."""

from typing import Any

import torch
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.blocks.layers import ResidualLayer, score_layers
from neuroute.networks.blocks.mixture import Hierarchical, Mixture, MlpExperts
from neuroute.networks.blocks.precision import FullLinear, in_products
from neuroute.networks.blocks.routing import Routing


def _layer(width: int, heads: int, feed_forward: int) -> ResidualLayer:
    return ResidualLayer(width, heads, feed_forward, rezero=False, bias="output", scaled=True)


class Lehd(PathNetwork):
    """Scores the nodes that may follow the current one, on embeddings that see the whole instance.

    1,431,681 parameters as published: (D + 1) (4 W^2 + 2 W F + 2 W + F) + 3 W^2 + 7 W + 1, where `unused` is counted.

    `encode` is one layer over all nodes; at a test it runs once per instance, in training at every decision (with
    gradient) on the nodes of the sub-path.

    Left out: the published code adds 1e-7 to probabilities up to 1e-5 before it takes their logarithm.  The choice is
    the same; the gradient differs where the label has less than 1e-5 (by p / (p + 1e-7)), and only there.
    """

    def __init__(
        self, depth: int = 6, width: int = 128, heads: int = 8, feed_forward: int = 512, train_nodes: int = 100
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.embed = FullLinear(2, width)
        self.encoder = _layer(width, heads, feed_forward)
        self.start = nn.Linear(width, width)  # the node where the path has to end
        self.current = nn.Linear(width, width)
        # In the published checkpoints and size, but in no computation: it never has a gradient.
        self.unused = nn.Linear(width, width).requires_grad_(False)
        self.layers = nn.ModuleList(_layer(width, heads, feed_forward) for _ in range(depth))
        self.head = FullLinear(width, 1)

    def encode(self, coords: Tensor) -> Tensor:
        """coords (rows, nodes, 2) -> embeddings (rows, nodes, width); each depends on all nodes that are given."""
        encoded: Tensor = self.encoder(in_products(self.embed(coords)))
        return encoded

    def hidden(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width) of [current, available..., destination]."""
        h = self._tokens(rows)
        for layer in self.layers:
            h = layer(h, attention_scale)
        return h

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, width) from `encode` -> logits (batch, available)."""
        scores = score_layers(self.layers, self._tokens(rows), self.head, slice(None), attention_scale)
        return scores.squeeze(-1)[:, 1:-1]

    def _tokens(self, rows: Tensor) -> Tensor:
        return torch.cat([self.current(rows[:, :1]), rows[:, 1:-1], self.start(rows[:, -1:])], dim=1)


class LehdCvrp(PathNetwork):
    """Scores the customers that may come next, each twice: straight from the current stop, and through the depot.

    (D + 1) (4 W^2 + 2 W F + 2 W + F) + 2 W^2 + 10 W + 2 parameters.  Loads are shares of the capacity.  Nothing
    is masked: a customer that does not fit is reached through the depot, which is for the decoding to see to.

    As published, customers enter the decoder without a gradient, so the encoder learns through the depot alone.
    The floor of 1e-7 under the smallest probabilities is left out, as in `Lehd`.
    """

    problem = "cvrp"

    def __init__(
        self, depth: int = 6, width: int = 128, heads: int = 8, feed_forward: int = 512, train_nodes: int = 100
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.embed = FullLinear(3, width)
        self.encoder = _layer(width, heads, feed_forward)
        self.start = FullLinear(width + 1, width)  # the depot, where every route has to end
        self.current = FullLinear(width + 1, width)
        self.layers = nn.ModuleList(_layer(width, heads, feed_forward) for _ in range(depth))
        self.head = FullLinear(width, 2)

    def encode(self, coords: Tensor, demand: Tensor) -> Tensor:
        """coords (rows, 1 + customers, 2), demand (rows, 1 + customers), depot first -> embeddings (..., width)."""
        encoded: Tensor = self.encoder(in_products(self.embed(torch.cat([coords, demand[..., None]], dim=-1))))
        return encoded

    def decide(self, rows: Tensor, remaining: Tensor, attention_scale: float = 1.0, *more: Any) -> Tensor:
        """rows (batch, 1 + available + 1, width), remaining (batch,) -> (batch, available, 2): straight, by the depot.

        more: to layers that ask for it.
        """
        load = remaining[:, None, None]
        current = in_products(self.current(torch.cat([rows[:, :1].detach(), load], dim=-1)))
        depot = in_products(self.start(torch.cat([rows[:, -1:], load], dim=-1)))
        h = torch.cat([current, rows[:, 1:-1].detach(), depot], dim=1)
        return score_layers(self.layers, h, self.head, slice(1, -1), attention_scale, *more)


class LightLayer(ResidualLayer):
    """A decoder layer of LEHD whose FFN is an FFN or a mixture of m, as a hierarchical gate draws it.

    2 W + 2 W m + m (2 W F + W + F) parameters more than the layer has.
    """

    def __init__(self, width: int, heads: int, feed_forward: int, experts: int, top: int) -> None:
        super().__init__(width, heads, 0, rezero=False, bias="output", scaled=True)
        self.light = Hierarchical(Mixture(MlpExperts(experts, width, feed_forward), width, top), width, width)
        self.light.dense = nn.Sequential(  # type: ignore[assignment]  # in place of a linear layer
            nn.Linear(width, feed_forward), nn.ReLU(), nn.Linear(feed_forward, width)
        )

    def add_feed(self, h: Tensor, *routing: Any) -> Tensor:
        """routing: one `Routing`."""
        fed: Tensor = self.light(h, *routing)
        return h + fed

    def score(self, x: Tensor, head: nn.Linear, nodes: slice, attention_scale: float = 1.0, *more: Any) -> Tensor:
        """head(self(x, ...)), as of `ResidualLayer`: a mixture's layers have nothing to share with the head."""
        scores: Tensor = head(self(x, attention_scale, *more)[:, nodes])
        return scores


class LehdCvrpLight(LehdCvrp):
    """D (2 W + 2 W m + m (2 W F + W + F)) parameters more than `LehdCvrp`, m experts of which a token sees `top`.

    The paper says no more than "hierarchical MoE in each decoder layer": here it is each layer's FFN, as in MVMoE's
    encoder, and gates look at every decision.  With nothing said of another loss, LEHD's alone is learnt from.

    What a gate draws holds for the whole batch.  In training a `Routing` says what it draws from.  Elsewhere draws
    follow from how many rows are left, so that solutions can be repeated: as in MVMoE, some decisions of a construction
    run the experts and some do not, and p is the mean over the batch.
    """

    is_batch_dependent = True

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        experts: int = 4,
        top: int = 2,
        train_nodes: int = 100,
    ) -> None:
        super().__init__(depth, width, heads, feed_forward, train_nodes)
        self.layers = nn.ModuleList(LightLayer(width, heads, feed_forward, experts, top) for _ in range(depth))

    def decide(self, rows: Tensor, remaining: Tensor, attention_scale: float = 1.0, *more: Any) -> Tensor:
        """As of `LehdCvrp`; more: the `Routing` of training."""
        if not more:
            generator = None if self.training else torch.Generator(rows.device).manual_seed(rows.shape[1])
            more = (Routing(generator),)
        return super().decide(rows, remaining, attention_scale, *more)
