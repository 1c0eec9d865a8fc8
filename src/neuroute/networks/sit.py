"""SIT: linear cross-attention, no encoder (sit, Section 4.2), for the TSP and the CVRP (sit, Appendix B.2)."""

from typing import Literal

import torch
from torch import Tensor, nn

from neuroute.networks.base import PathNetwork
from neuroute.networks.blocks.layers import ResidualLayer
from neuroute.networks.blocks.linear_cross_attention import CrossModule, score_streams, through
from neuroute.networks.blocks.precision import FullLinear, in_products

Attention = Literal["cross", "self"]


class SitDecoder(nn.Module):
    """Last-layer states of the representatives and of what is available.

    Representatives are the destination and the current node, this one several times (sit, Appendix C), each with a
    linear of its own: (r + 1) (I W + W) parameters for I inputs and r repetitions.  The paper writes W_1 and W_2
    (Eq. 2), without a bias for the TSP; the published sizes need a bias, and as many linears as there are
    representatives.

    With `attention="self"` (sit, Table 3) all tokens attend to all, the representatives as tokens among them: `depth`
    layers of LEHD's form.  The paper does not say how many; one for each module fits its times and memory.
    """

    def __init__(
        self,
        inputs: int,
        depth: int,
        width: int,
        heads: int,
        feed_forward: int,
        repetitions: int,
        attention: Attention,
    ) -> None:
        super().__init__()
        if repetitions < 1:
            raise ValueError(f"{repetitions} repetitions of the current node: at least one is needed")
        if attention not in ("cross", "self"):
            raise ValueError(f"attention '{attention}' is neither 'cross' nor 'self'")
        self.width, self.repetitions = width, repetitions
        self.start = FullLinear(inputs, width)  # where the path has to end
        self.current = FullLinear(inputs, repetitions * width)  # one linear for each repetition, in one product
        if attention == "cross":
            layers: list[nn.Module] = [CrossModule(width, heads, feed_forward) for _ in range(depth)]
        else:
            layers = [
                ResidualLayer(width, heads, feed_forward, rezero=False, bias="output", scaled=True)
                for _ in range(depth)
            ]
        self.layers = nn.ModuleList(layers)

    def forward(self, current: Tensor, available: Tensor, destination: Tensor, attention_scale: float) -> Tensor:
        """current and destination (batch, 1, inputs), available (batch, a, width) -> (batch, r + a + 1, width).

        In this order: the repetitions of the current node, what is available, the destination.
        """
        return through(self.layers, *self._streams(current, available, destination), attention_scale)[1]

    def score(
        self, current: Tensor, available: Tensor, destination: Tensor, head: nn.Linear, attention_scale: float
    ) -> Tensor:
        """head(self(...)) of what is available: (batch, a, outputs)."""
        z, h = self._streams(current, available, destination)
        return score_streams(self.layers, z, h, head, slice(self.repetitions, -1), attention_scale)

    def _streams(self, current: Tensor, available: Tensor, destination: Tensor) -> tuple[Tensor, Tensor]:
        """Representatives (batch, r + 1, width), and what the decoder returns, before its layers."""
        start = in_products(self.start(destination))
        repeated = in_products(self.current(current)).view(-1, self.repetitions, self.width)
        return torch.cat([repeated, start], dim=1), torch.cat([repeated, available, start], dim=1)


class Sit(PathNetwork):
    """Scores the nodes that may follow the current one; time and memory are linear in what is left.

    2 D (4 W^2 + 2 W F + 2 W + F) + (r + 1) (W^2 + W) + 4 W + 1 parameters, r `representatives` (repetitions of the
    current node): 2,633,217 as published.  With `attention="self"` D layers instead of 2 D.

    What the paper calls the first node is the destination: in a sub-path its end, in a whole tour the node that it
    started from.

    Left out: the published code adds 1e-7 to probabilities up to 1e-5 before it takes their logarithm, as LEHD's
    does (see `Lehd`).
    """

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        representatives: int = 15,
        attention: Attention = "cross",
        train_nodes: int = 1000,
    ) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, depth, train_nodes
        self.embed = FullLinear(2, width)
        self.decoder = SitDecoder(width, depth, width, heads, feed_forward, representatives, attention)
        self.head = FullLinear(width, 1)

    def encode(self, coords: Tensor) -> Tensor:
        """coords (rows, nodes, 2) -> the coordinates: there is no encoder."""
        return coords

    def hidden(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width), of the current node's repetitions the last one's."""
        states: Tensor = self.decoder(*self._embed_all(rows), attention_scale)
        return states[:, self.decoder.repetitions - 1 :]

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, 2) -> logits (batch, available)."""
        return self.decoder.score(*self._embed_all(rows), self.head, attention_scale).squeeze(-1)

    def _embed_all(self, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The current node, what is available, and the destination, as the decoder takes them."""
        h = self.embed(rows)
        return h[:, :1], in_products(h[:, 1:-1]), h[:, -1:]


class SitCvrp(PathNetwork):
    """Scores the customers that may come next, each twice: straight from the current stop, and through the depot.

    2 D (4 W^2 + 2 W F + 2 W + F) + (r + 1) (W^2 + 2 W) + 6 W + 2 parameters, r `representatives` (repetitions of the
    current stop): 2,635,522 as published.  With `attention="self"` D layers instead of 2 D.

    Loads are shares of the capacity.  What is left in the vehicle is an input of the representatives (Eq. 8), the
    depot's among them.  Nothing is masked: a customer that does not fit is reached through the depot, which is for
    the decoding to see to.

    `detach_customers` is the published code, not the paper: customers enter without a gradient, so that the embedding
    learns through the depot alone and its demand column, which multiplies the depot's 0, never.
    The floor of 1e-7 under the smallest probabilities is left out, as in `Sit`.
    """

    problem = "cvrp"

    def __init__(
        self,
        depth: int = 6,
        width: int = 128,
        heads: int = 8,
        feed_forward: int = 512,
        representatives: int = 15,
        attention: Attention = "cross",
        detach_customers: bool = False,
        train_nodes: int = 1000,
    ) -> None:
        super().__init__()
        self.width, self.depth, self.detach_customers, self.train_nodes = width, depth, detach_customers, train_nodes
        self.embed = FullLinear(3, width)  # one for depot and customers
        self.decoder = SitDecoder(width + 1, depth, width, heads, feed_forward, representatives, attention)
        self.head = FullLinear(width, 2)

    def encode(self, coords: Tensor, demand: Tensor) -> Tensor:
        """coords (rows, 1 + customers, 2), demand (rows, 1 + customers), depot first -> both (..., 3), unchanged."""
        return torch.cat([coords, demand[..., None]], dim=-1)

    def hidden(self, rows: Tensor, remaining: Tensor, attention_scale: float = 1.0) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width) of [current, available..., depot]."""
        states: Tensor = self.decoder(*self._embed_all(rows, remaining), attention_scale)
        return states[:, self.decoder.repetitions - 1 :]

    def decide(self, rows: Tensor, remaining: Tensor, attention_scale: float = 1.0) -> Tensor:
        """rows (batch, 1 + available + 1, 3), remaining (batch,) -> (batch, available, 2): straight, by the depot."""
        return self.decoder.score(*self._embed_all(rows, remaining), self.head, attention_scale)

    def _embed_all(self, rows: Tensor, remaining: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The current stop, what is available, and the depot, as the decoder takes them."""
        h = self.embed(rows)
        current, available, depot = h[:, :1], h[:, 1:-1], h[:, -1:]
        if self.detach_customers:
            current, available = current.detach(), available.detach()
        load = remaining[:, None, None].to(h)
        return torch.cat([current, load], dim=-1), in_products(available), torch.cat([depot, load], dim=-1)
