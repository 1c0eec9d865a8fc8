"""Positional-encoding neural solvers for the TSP: PENS-A, -R, -AR, and CoordNS, their baseline (pens, Section 4)."""

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.core.device import stream_seed
from neuroute.networks.base import PathNetwork
from neuroute.networks.blocks.attention import (
    alibi_slopes,
    attend,
    attend_in_parts,
    axial_frequencies,
    axial_rotation,
    pairwise_distances,
    rotate,
    split_heads,
)
from neuroute.networks.blocks.layers import feed_forward, scaled_linear
from neuroute.networks.blocks.precision import FullLinear, in_all_digits, in_products

Attend = Callable[[Tensor, Tensor, Tensor, float], Tensor]  # q, k, v (batch, heads, tokens, d_k), scale -> like q


class PreNormLayer(nn.Module):
    """h = x + MHA(RMSNorm(x))        out = h + FFN(RMSNorm(h))

    No biases.  Without `output_projection` the heads' outputs are added as they are.
    """

    def __init__(self, width: int, heads: int, feed_forward: int, *, output_projection: bool) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not divisible by {heads} heads")
        self.heads = heads
        self.scale = 1 / math.sqrt(width // heads)
        self.attention_norm = nn.RMSNorm(width, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width, bias=False)  # one product for all three
        self.out = nn.Linear(width, width, bias=False) if output_projection else None
        self.feed_forward_norm = nn.RMSNorm(width, eps=1e-6)
        self.up = nn.Linear(width, feed_forward, bias=False)
        self.down = nn.Linear(feed_forward, width, bias=False)

    def queries_keys_values(self, x: Tensor, sharpness: Tensor | None, rotation: Tensor | None) -> tuple[Tensor, ...]:
        """Three (batch, heads, tokens, d_k) tensors of x (batch, tokens, width): turned where there is a rotation.

        sharpness (batch,) multiplies the scores of an instance.
        """
        q, k, v = split_heads(scaled_linear(self.attention_norm(x), self.qkv), self.heads)
        if sharpness is not None:
            q = q * sharpness.view(-1, 1, 1, 1).to(q)
        if rotation is not None:
            q, k = rotate(q, rotation), rotate(k, rotation)
        return q, k, v

    def forward(
        self, x: Tensor, attend: Attend, scale: float, sharpness: Tensor | None = None, rotation: Tensor | None = None
    ) -> Tensor:
        """x (batch, tokens, width) -> same shape.  Scores are multiplied by `scale` besides 1 / sqrt(d_k)."""
        q, k, v = self.queries_keys_values(x, sharpness, rotation)
        attended = attend(q, k, v, scale * self.scale).transpose(1, 2).reshape(x.shape)
        x = x + (attended if self.out is None else self.out(attended))
        return feed_forward(self.feed_forward_norm(x), self.up, self.down, stream=x)


POSITIONS = ("alibi", "rope", "both", "coordinates")


class Pens(PathNetwork):
    """Scores the cities that may follow the origin of a path-TSP; what is left is read anew at every decision.

    `positions` is how attention knows where the cities are: `alibi` (PENS-A), `rope` (PENS-R), `both` (PENS-AR), or
    `coordinates` (CoordNS: coordinates are projected, attention knows nothing).
    `initial` is what the cities' embeddings start from, if not from coordinates: Gaussian vectors or zeros.

    D (3 W^2 + 2 W F + 2 W) + 2 W^2 + 3 W parameters, W^2 more per layer with `output_projection`, 2 W more with
    coordinates.  The paper says 2.8M (Section 5.1) and 2.7M (Table 4) of its 9 layers of width 192: with a projection
    of the attention's output it would be 3.17M, without it 2.84M.  The paper's formula of attention has none either.

    Open in the paper, and settled so: no biases, ReLU and a last RMSNorm; SSMax's s multiplies the product of query
    and key, not ALiBi's bias; N is the number of rows of the decision, origin and destination included.
    """

    variable_lengths = True
    DENSE = 1 << 26  # floats of a bias that is held as a whole, for all heads
    PART = 1 << 22  # floats of the bias of one part of the queries, where it is not; on a GPU GPU_PARTS times as many
    GPU_PARTS = 16

    def __init__(
        self,
        depth: int = 9,
        width: int = 192,
        heads: int = 12,
        feed_forward: int = 512,
        positions: Literal["alibi", "rope", "both", "coordinates"] = "alibi",
        initial: Literal["gaussian", "zero"] = "gaussian",
        output_projection: bool = False,
        train_nodes: int = 100,
    ) -> None:
        super().__init__()
        if positions not in POSITIONS or initial not in ("gaussian", "zero"):
            raise ValueError(
                f"positions '{positions}', initial '{initial}': one of {', '.join(POSITIONS)}; gaussian, zero"
            )
        self.width, self.depth, self.heads, self.train_nodes = width, depth, heads, train_nodes
        self.alibi, self.rope = positions in ("alibi", "both"), positions in ("rope", "both")
        self.random_embeddings = initial == "gaussian" and positions != "coordinates"
        self.embed = FullLinear(2, width, bias=False) if positions == "coordinates" else None
        self.ends = nn.Parameter(torch.randn(2, width))  # added to the origin, and to the destination
        self.layers = nn.ModuleList(
            PreNormLayer(width, heads, feed_forward, output_projection=output_projection) for _ in range(depth)
        )
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.pair_channels = heads if self.alibi else 0  # of `pairs`, at most
        self.frequencies = axial_frequencies(width // heads) if self.rope else None
        self.slopes = alibi_slopes(heads) if self.alibi else None

    # -- once per instance ------------------------------------------------------------------------------------------

    def encode(self, coords: Tensor, noise: Tensor | None = None) -> Tensor:
        """coords (batch, nodes, 2) -> rows (batch, nodes, E): coordinates, rotation, embedding, side by side.

        The Gaussian embeddings are `noise` (batch, nodes, width), or those of `self.draw`: a function of that number,
        the instance's place in its test set and the node's, so that it is solved alike whatever the batch.
        """
        parts = [coords]
        if self.frequencies is not None:
            parts.append(axial_rotation(coords, self.frequencies))
        if self.random_embeddings:
            embeddings = self._gaussian(coords) if noise is None else noise
            parts.append(embeddings.to(coords))
        return torch.cat(parts, dim=-1)

    def _gaussian(self, coords: Tensor) -> Tensor:
        """One stream per instance: the same embeddings for all would make a draw good or bad for a whole test set."""
        batch, nodes = coords.shape[:2]
        seeds = (stream_seed(self.draw, self.first + i) for i in range(batch))
        streams = (torch.Generator().manual_seed(seed) for seed in seeds)
        embeddings = [torch.randn(nodes, self.width, generator=stream) for stream in streams]
        return torch.stack(embeddings).to(coords.device)

    def pairs(self, rows: Tensor, floats: int | None = None) -> Tensor | None:
        """What a decision needs of each pair of rows (batch, tokens, E), for `decide` to take slices of.

        With ALiBi, (batch, C, tokens, tokens): the bias of each head, C = heads, where that makes at most `floats`
        numbers (default: DENSE), else the distances, C = 1, or nothing where even these are more.
        """
        if self.slopes is None:
            return None
        batch, tokens = rows.shape[:2]
        limit = self.DENSE if floats is None else floats
        if batch * tokens * tokens > limit:
            return None
        apart = pairwise_distances(rows[..., :2], rows[..., :2])[:, None]
        return self._bias(apart) if apart.numel() * self.heads <= limit else apart

    def _bias(self, apart: Tensor) -> Tensor:
        """distances (batch, 1, p, q) -> ALiBi's bias (batch, heads, p, q)."""
        assert self.slopes is not None
        return apart * -self.slopes.view(-1, 1, 1).to(apart)

    # -- once per decision ------------------------------------------------------------------------------------------

    def decide(
        self,
        rows: Tensor,
        attention_scale: float = 1.0,
        pairs: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """rows (batch, 1 + available + 1, E) in the order [origin, available..., destination] -> (batch, available).

        `pairs`, of these rows, saves computing them again.  With `lengths` (batch,), the rows of each instance, those
        that an instance lacks lie before the destination: they are not seen, and their logits are -inf.
        """
        h = self.hidden(rows, attention_scale, pairs, lengths)
        logits = in_all_digits(torch.matmul, self.query(h[:, :1]), self.key(h[:, 1:-1]).transpose(1, 2)).squeeze(1)
        return logits if lengths is None else logits.masked_fill(~_present(rows, lengths)[:, 1:-1], -math.inf)

    def hidden(
        self,
        rows: Tensor,
        attention_scale: float = 1.0,
        pairs: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """Last-layer states (batch, 1 + available + 1, width) of the same rows, normalised."""
        h = self.embedded(rows)
        rotation = rows[..., 2 : 2 + self.width // self.heads] if self.rope else None
        attending = self._attending(rows, pairs, lengths)
        scale, sharpness = self.ssmax(rows, attention_scale, lengths)
        for layer in self.layers:
            h = layer(h, attending, scale, sharpness, rotation)
        states: Tensor = self.norm(h)
        return states

    def embedded(self, rows: Tensor) -> Tensor:
        """What enters the first layer: (batch, tokens, width)."""
        if self.embed is not None:
            h = self.embed(rows[..., :2])
        elif self.random_embeddings:
            h = rows[..., -self.width :]
        else:
            h = rows.new_zeros(*rows.shape[:2], self.width)
        origin, destination = self.ends
        return torch.cat([h[:, :1] + origin, h[:, 1:-1], h[:, -1:] + destination], dim=1)

    def ssmax(self, rows: Tensor, attention_scale: float, lengths: Tensor | None) -> tuple[float, Tensor | None]:
        """s = log(N + 1), one for all instances or, with lengths, one each: (batch,)."""
        if lengths is None:
            return attention_scale * math.log(rows.shape[1] + 1), None
        return attention_scale, (lengths + 1).to(rows.dtype).log()

    def _attending(self, rows: Tensor, pairs: Tensor | None, lengths: Tensor | None) -> Attend:
        """Attention on these rows, as a function of queries, keys, values and scale."""
        hidden = None
        if lengths is not None:
            hidden = rows.new_zeros(rows.shape[:2]).masked_fill(~_present(rows, lengths), -math.inf)[:, None, None]
        if self.slopes is None:
            return partial(attend, bias=hidden)
        batch, tokens = rows.shape[:2]
        if pairs is None:
            pairs = self.pairs(rows)
        if pairs is not None and pairs.shape[1] < self.heads and batch * self.heads * tokens**2 <= self.DENSE:
            pairs = self._bias(pairs)
        if pairs is not None and pairs.shape[1] == self.heads:
            whole = in_products(pairs if hidden is None else pairs + hidden)
            if whole.device.type == "cuda":  # the fused kernel loads aligned rows: of a corner it would copy each layer
                whole = F.pad(whole, (0, -tokens % 8))[..., :tokens]
            return partial(attend, bias=whole)

        def bias(first: int, stop: int) -> Tensor:
            if pairs is None:
                apart = pairwise_distances(rows[:, first:stop, :2], rows[..., :2])[:, None]
            else:
                apart = pairs[:, :, first:stop]
            attention_bias = self._bias(apart)
            return attention_bias if hidden is None else attention_bias + hidden

        floats = self.PART * (1 if rows.device.type == "cpu" else self.GPU_PARTS)
        return partial(attend_in_parts, bias=bias, queries=max(1, floats // (batch * self.heads * tokens)))


def _present(rows: Tensor, lengths: Tensor) -> Tensor:
    """Which rows are there: bool (batch, tokens).  The last one, the destination, always is."""
    places = torch.arange(rows.shape[1], device=rows.device)
    return (places < lengths[:, None] - 1) | (places == rows.shape[1] - 1)
