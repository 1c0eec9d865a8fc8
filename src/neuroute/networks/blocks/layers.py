"""Layers: attention (attention-free, too), feed-forward parts and norms; embeddings and contexts of decisions."""

import math
from collections.abc import Iterable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.attention import attend, split_heads
from neuroute.networks.blocks.precision import FullLinear, at_least_float32
from neuroute.networks.kernels import linear as kernels
from neuroute.networks.kernels.linear import linear

# -- Linear layers and FFNs, with ReZero: a learnt factor of a branch that starts at 0 (Bachlechner et al., 2021)


def alpha() -> nn.Parameter:
    """The factor of one branch."""
    return nn.Parameter(torch.zeros(()))


def scaled_linear(x: Tensor, layer: nn.Linear, factor: Tensor | None = None, stream: Tensor | None = None) -> Tensor:
    """stream + factor * layer(x); without a stream or factor, these are left out."""
    return kernels.linear(x, parameters(layer), factor, stream)


def feed_forward(
    x: Tensor, up: nn.Linear, down: nn.Linear, factor: Tensor | None = None, stream: Tensor | None = None
) -> Tensor:
    """stream + factor * down(relu(up(x))), as `scaled_linear`."""
    return kernels.feed_forward(x, parameters(up), parameters(down), factor, stream)


def scored_feed_forward(
    x: Tensor, up: nn.Linear, down: nn.Linear, factor: Tensor | None, head: nn.Linear, nodes: slice
) -> Tensor:
    """head((x + factor * down(relu(up(x))))[:, nodes]) of x (batch, tokens, width)."""
    return kernels.scored_feed_forward(x, parameters(up), parameters(down), factor, head, nodes)


def parameters(layer: nn.Linear) -> kernels.Layer:
    """Weight and bias."""
    return layer.weight, layer.bias


NormName = Literal["instance", "batch", "batch-untracked", "layer", "rezero", "none"]


class Norm(nn.Module):
    def join(self, x: Tensor, branch: Tensor) -> Tensor:
        """x and what a branch adds to it, (batch, nodes, width) both, normalised -> same shape."""
        joined: Tensor = self(x + branch)
        return joined


class InstanceNorm(Norm):
    """Every channel of an instance has mean 0 and variance 1 over its nodes, then a learnt scale and shift.

    2 W parameters.  The variance is the biased one; nothing is remembered from training.
    """

    def __init__(self, width: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """x (batch, nodes, width) -> same shape."""
        x = at_least_float32(x)
        centred = x - x.mean(dim=1, keepdim=True)
        variance = (centred * centred).mean(dim=1, keepdim=True)  # on a CPU var_mean takes ten times as long
        return torch.addcmul(self.bias, centred, self.weight * (variance + self.eps).rsqrt())


class BatchNorm(Norm):
    """Every channel over all nodes of all instances of the batch: 2 W parameters.

    What evaluation uses is remembered from training, unless it is not `tracked`.
    """

    def __init__(self, width: int, tracked: bool = True) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width, track_running_stats=tracked)

    def forward(self, x: Tensor) -> Tensor:
        x = at_least_float32(x)
        normalised: Tensor = self.norm(x.flatten(0, 1))
        return normalised.view_as(x)


class UntrackedBatchNorm(BatchNorm):
    def __init__(self, width: int) -> None:
        super().__init__(width, tracked=False)


class LayerNorm(Norm):
    """Every node over its channels: 2 W parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        x = at_least_float32(x)
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias)


class ReZero(Norm):
    """x + alpha branch, alpha 0 at first: 1 parameter."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.alpha = alpha()

    def join(self, x: Tensor, branch: Tensor) -> Tensor:
        return torch.addcmul(x, branch, self.alpha)


class NoNorm(Norm):
    """Nothing: no parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        return x


NORMS: dict[NormName, type[Norm]] = {
    "instance": InstanceNorm,
    "batch": BatchNorm,
    "batch-untracked": UntrackedBatchNorm,
    "layer": LayerNorm,
    "rezero": ReZero,
    "none": NoNorm,
}


class ResidualLayer(nn.Module):
    """h = x + a1 * MHA(x)        out = h + a2 * FFN(h)

    The two networks differ in what the options say:
    `rezero`  a1 and a2 are learnt and start at 0; without it they are 1.
    `bias`    of the attention's projections: on the `output` side, or on the `key-value` side.  (The softmax cancels
              the key's: it adds the same to all scores of a query.)
    `scaled`  scores are divided by sqrt(d_k).

    With feed_forward 0 there is no FFN: whoever builds on this brings another `add_feed`.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        feed_forward: int,
        *,
        rezero: bool,
        bias: Literal["output", "key-value"],
        scaled: bool,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads) if scaled else 1.0
        self.qkv = nn.Linear(width, 3 * width, bias=False)  # one product for all three
        self.key_value_bias = nn.Parameter(self.qkv.weight.new_zeros(2 * width)) if bias == "key-value" else None
        self.out = nn.Linear(width, width, bias=bias == "output")
        if feed_forward:
            self.up = nn.Linear(width, feed_forward)
            self.down = nn.Linear(feed_forward, width)
        self.alpha1 = alpha() if rezero else None
        self.alpha2 = alpha() if rezero else None

    def add_feed(self, h: Tensor, *more: Any) -> Tensor:
        """h (rows, tokens, width) -> same shape."""
        return feed_forward(h, self.up, self.down, self.alpha2, h)

    def forward(self, x: Tensor, attention_scale: float = 1.0, *more: Any) -> Tensor:
        """x (rows, tokens, width) -> same shape.  Scores are multiplied by attention_scale besides their own scale.

        more: to `add_feed`, which may ask for more than tokens.
        """
        return self.add_feed(self._add_attended(x, attention_scale), *more)

    def score(self, x: Tensor, head: nn.Linear, nodes: slice, attention_scale: float = 1.0, *more: Any) -> Tensor:
        """head(self(x, ...)[:, nodes]) of x (rows, tokens, width): (rows, some tokens, outputs), in fewer products."""
        h = self._add_attended(x, attention_scale)
        return scored_feed_forward(h, self.up, self.down, self.alpha2, head, nodes)

    def _add_attended(self, x: Tensor, attention_scale: float) -> Tensor:
        rows, tokens, width = x.shape
        bias = None if self.key_value_bias is None else F.pad(self.key_value_bias, (width, 0))  # none for the query
        q, k, v = split_heads(linear(x, (self.qkv.weight, bias)), self.heads)
        attended = attend(q, k, v, attention_scale * self.scale).transpose(1, 2).reshape(rows, tokens, width)
        return scaled_linear(attended, self.out, self.alpha1, x)


def score_layers(layers: Iterable[nn.Module], x: Tensor, head: nn.Linear, nodes: slice, *more: Any) -> Tensor:
    """head of the nodes of x (rows, tokens, width) after these layers, the last of which scores; more: to all."""
    *before, last = layers
    for layer in before:
        x = layer(x, *more)
    assert isinstance(last, ResidualLayer)
    return last.score(x, head, nodes, *more)


class PostNorm(nn.Module):
    """h = norm(x + mixed)        out = norm(h + FFN(h))

    2 W F + 5 W + F parameters; the FFN (ReLU) has biases.  How nodes are mixed is up to the layer.  With feed_forward 0
    there is none: whoever builds on this brings another `feed`.
    """

    def __init__(self, width: int, feed_forward: int, norm: type[Norm] = InstanceNorm) -> None:
        super().__init__()
        self.attention_norm = norm(width)
        if feed_forward:
            self.up = nn.Linear(width, feed_forward)
            self.down = nn.Linear(feed_forward, width)
        self.feed_forward_norm = norm(width)

    def feed(self, h: Tensor, *more: Any) -> Tensor:
        """h (batch, nodes, width) -> same shape."""
        return feed_forward(h, self.up, self.down)

    def finish(self, x: Tensor, mixed: Tensor, *more: Any) -> Tensor:
        """x and mixed (batch, nodes, width) -> same shape; more: to `feed`, which may ask for more than nodes."""
        h = self.attention_norm.join(x, mixed)
        return self.feed_forward_norm.join(h, self.feed(h, *more))


class PostNormLayer(PostNorm):
    """Multi-head attention mixes the nodes.

    4 W^2 + 2 W F + 6 W + F parameters: Q, K and V have no bias, the output projection does.
    """

    def __init__(self, width: int, heads: int, feed_forward: int, norm: type[Norm] = InstanceNorm) -> None:
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        super().__init__(width, feed_forward, norm)
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads)
        self.qkv = nn.Linear(width, 3 * width, bias=False)  # one product for all three
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, *more: Any) -> Tensor:
        """x (batch, nodes, width) -> same shape; more: see `finish`."""
        batch, nodes, width = x.shape
        q, k, v = split_heads(scaled_linear(x, self.qkv), self.heads)
        attended = attend(q, k, v, self.scale).transpose(1, 2).reshape(batch, nodes, width)
        return self.finish(x, scaled_linear(attended, self.out), *more)


class TspEmbedding(FullLinear):
    """3 W parameters: coords (batch, n, 2) -> (batch, n, width)."""

    def __init__(self, width: int) -> None:
        super().__init__(2, width)


class CvrpEmbedding(nn.Module):
    """7 W parameters: of the depot its coordinates, of customers their demands too."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.depot = FullLinear(2, width)
        self.customers = FullLinear(3, width)

    def forward(self, coords: Tensor, demand: Tensor) -> Tensor:
        """coords (batch, 1 + V, 2), demand (batch, 1 + V) in shares of the capacity -> (batch, 1 + V, width)."""
        customers = self.customers(torch.cat([coords[:, 1:], demand[:, 1:, None]], dim=-1))
        return torch.cat([self.depot(coords[:, :1]), customers], dim=1)


class TourContext(nn.Module):
    """W_first h_first + W_current h_current (icam, Eq. 15): 2 W^2 parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.ends = nn.Linear(width, 2 * width, bias=False)  # one product for both

    def forward(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """nodes (batch, n, width) -> what each adds to the query of tours that began there, and that are there."""
        of_first, of_current = self.ends(nodes).chunk(2, dim=-1)
        return of_first.contiguous(), of_current.contiguous()

    @staticmethod
    def query(of_first: Tensor, of_current: Tensor, first: Tensor, current: Tensor) -> Tensor:
        """first and current (batch, tours) int64 -> (batch, tours, width)."""
        return rows_of(of_first, first) + rows_of(of_current, current)


class LoadContext(nn.Module):
    """W [h_current, left], left the share of the capacity that is left: W^2 + W parameters.

    As in the published codes of POMO and ICAM: nothing of the depot, of a route's first customer or of the mean.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width + 1, width, bias=False)

    def forward(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """nodes (batch, n, width) -> what a full vehicle adds (width,), and each node where a tour is there."""
        weight = self.project.weight
        return weight[:, -1].contiguous(), F.linear(nodes, weight[:, :-1])

    @staticmethod
    def query(of_full: Tensor, of_current: Tensor, load: Tensor, current: Tensor) -> Tensor:
        """left (batch, tours) shares, current (batch, tours) int64 -> (batch, tours, width)."""
        return torch.addcmul(rows_of(of_current, current).to(load), load[..., None], of_full)


def rows_of(rows: Tensor, nodes: Tensor) -> Tensor:
    """rows (batch, n, width) of nodes (batch, tours) int64 -> (batch, tours, width).

    As one long list of rows: copying them whole takes a sixth to a sixteenth of the time of `gather`.
    """
    batch, n, _ = rows.shape
    every = nodes + n * torch.arange(batch, device=nodes.device)[:, None]
    return rows.flatten(0, 1).index_select(0, every.flatten()).view(*nodes.shape, -1)


MARGIN = 0.9  # of the exponents that a number's format holds


def slope(alpha: Tensor, log_n: float) -> Tensor:
    """The adaptation function is f(N, d) = slope * d = -alpha log2(N) d (icam, Eq. 12)."""
    return -log_n * alpha


def one_alpha() -> nn.Parameter:
    """alpha starts at 1 and may take either sign (icam, Table 5).

    The paper writes of one alpha; the published code has one for each encoder layer, for the decoder's module and for
    the compatibility, 14 in all.
    """
    return nn.Parameter(torch.ones(()))


def weigh(keys: Tensor, values: Tensor) -> Tensor:
    """keys and values (batch, nodes, W) -> (batch, nodes, 2 W): exp(K) V and exp(K), what all queries share.

    Each channel's largest key is subtracted: that cancels in `aafm`.  A key that is further below it than 78 (637 in
    float64) counts as that far below, so that no sum is ever 0.
    """
    keys, values = (at_least_float32(part) for part in (keys, values))
    lowest = MARGIN * math.log(torch.finfo(keys.dtype).tiny)
    weights = (keys - keys.amax(dim=1, keepdim=True).detach()).clamp(min=lowest).exp()
    return torch.cat([weights * values, weights], dim=-1)


def aafm(query: Tensor, pairs: Tensor, bias: Tensor | None = None) -> Tensor:
    """sigmoid(Q) * (exp(A) (exp(K) V)) / (exp(A) exp(K)) (icam, Eq. 3): query (batch, queries, W) -> same shape.

    pairs: of `weigh`.  bias: A (batch, queries, nodes), -inf at what is hidden, of which no query may hide all; None
    for no bias (AFM, icam, Table 9), where all queries see the same mean.

    exp(A) is divided by its sum over each row, which cancels: a softmax, that overflows at no distance and at no size.
    What underflows then is of no account, as long as no channel's keys differ by more than about 70 (600).
    """
    mixed = pairs.mean(dim=1, keepdim=True) if bias is None else torch.softmax(bias, dim=-1) @ pairs
    above, below = mixed.chunk(2, dim=-1)
    return torch.sigmoid(query) * (above / below)


class AafmLayer(PostNorm):
    """h = norm(x + AAFM(x))        out = norm(h + FFN(h))

    3 W^2 + 2 W F + 5 W + F + 1 parameters: as published Q, K and V have no bias, there are no heads, and nothing is
    projected afterwards.  Without `adaptation` (AFM) there is no alpha, so one fewer.
    """

    def __init__(self, width: int, feed_forward: int, adaptation: bool = True) -> None:
        super().__init__(width, feed_forward)
        self.qkv = nn.Linear(width, 3 * width, bias=False)  # one product for all three
        self.alpha = one_alpha() if adaptation else None

    def forward(self, x: Tensor, distances: Tensor | None, log_n: float) -> Tensor:
        """x (batch, nodes, width) -> same shape; distances (batch, nodes, nodes), not read by AFM."""
        query, keys, values = scaled_linear(x, self.qkv).chunk(3, dim=-1)
        bias = None if self.alpha is None or distances is None else slope(self.alpha, log_n) * distances
        return self.finish(x, aafm(query, weigh(keys, values), bias))
