"""Layers of attention and feed-forward parts, and their norms."""

import math
from collections.abc import Iterable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.networks.blocks.all_digits import at_least_float32
from neuroute.networks.blocks.attention import attend, split_heads
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
