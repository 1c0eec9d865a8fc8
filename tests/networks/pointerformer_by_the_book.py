"""Pointerformer from its description, head by head: nothing of this package is used."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from published_code import HEADS, Size, State, linear_shapes
from published_formulas import SCALE, attention, linear


def shapes(size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    width, hidden = size.width, size.feed_forward
    yield from linear_shapes("encoder.init_projection_layer", width, 24)
    for i in range(size.depth):
        block = f"encoder.sequence.reversible_blocks.{i}"
        for norm in ("f_block.mixing_layer_norm", "g_block.output_layer_norm"):
            yield from ((f"{block}.{norm}.{name}", (width,)) for name in ("weight", "bias", "running_mean"))
            yield from ((f"{block}.{norm}.running_var", (width,)), (f"{block}.{norm}.num_batches_tracked", ()))
        yield f"{block}.f_block.mha.in_proj_weight", (3 * width, width)
        yield f"{block}.f_block.mha.out_proj.weight", (width, width)
        yield from linear_shapes(f"{block}.g_block.feed_forward", hidden, width)
        yield from linear_shapes(f"{block}.g_block.output_dense", width, hidden)
    for name in ("Wq_graph", "Wq_first", "Wq_last", "wq", "W_visited", "Wk"):
        yield f"decoder.{name}.weight", (width, width)


def features(x: float, y: float) -> list[float]:
    """Eight angles, then eight pairs of coordinates; no angle at the origin is 0."""
    images = [(x, y), (1 - x, y), (x, 1 - y), (1 - x, 1 - y), (y, x), (1 - y, x), (y, 1 - x), (1 - y, 1 - x)]
    angles = [math.atan(b / a) if a else math.pi / 2 * (b > 0) for a, b in images]
    return [*angles, *(each for image in images for each in image)]


def norm(p: State, name: str, x: Tensor) -> Tensor:
    """As remembered from training."""
    centred = (x - p[f"{name}.running_mean"]) / (p[f"{name}.running_var"] + 1e-5).sqrt()
    return centred * p[f"{name}.weight"] + p[f"{name}.bias"]


def encode(p: State, told: Tensor) -> Tensor:
    one = two = linear(p, "encoder.init_projection_layer", told)
    depth = sum(name.endswith("in_proj_weight") for name in p)
    for i in range(depth):
        f, g = (f"encoder.sequence.reversible_blocks.{i}.{block}" for block in ("f_block", "g_block"))
        q, k, v = (norm(p, f"{f}.mixing_layer_norm", two) @ p[f"{f}.mha.in_proj_weight"].T).chunk(3, dim=-1)
        one = one + linear(p, f"{f}.mha.out_proj", attention(q, k, v, SCALE))
        x = linear(p, f"{g}.feed_forward", norm(p, f"{g}.output_layer_norm", one))
        two = two + linear(p, f"{g}.output_dense", 0.5 * x * (1 + torch.erf(x / math.sqrt(2))))
    return two


def step(p: State, given: tuple[Tensor], first: Tensor, current: Tensor, mask: Tensor) -> Tensor:
    """Probabilities (batch, tours, nodes)."""
    (coords,) = given
    told = torch.tensor([[features(*point) for point in instance] for instance in coords.tolist()], dtype=torch.float64)
    h = encode(p, told)
    batch, tours, n = mask.shape
    width = h.shape[2]
    out = torch.zeros_like(mask)
    for b in range(batch):
        for t in range(tours):
            visited = [j for j in range(n) if mask[b, t, j] == -torch.inf]
            query = linear(p, "decoder.Wq_last", h[b, current[b, t]]) + linear(p, "decoder.Wq_first", h[b, first[b, t]])
            query = query + linear(p, "decoder.Wq_graph", h[b].mean(0))
            query = linear(p, "decoder.wq", query + linear(p, "decoder.W_visited", h[b, visited].sum(0) / n))
            scores = []
            for j in range(n):
                apart = math.dist(told[b, current[b, t]].tolist(), told[b, j].tolist())
                key = linear(p, "decoder.Wk", h[b, j])
                products = [q @ k / math.sqrt(width) for q, k in zip(query.chunk(HEADS), key.chunk(HEADS), strict=True)]
                fits = sum(float(product) - apart / math.sqrt(2) for product in products) / HEADS
                scores.append(-math.inf if j in visited else 50 * math.tanh(fits))
            out[b, t] = torch.softmax(torch.tensor(scores, dtype=torch.float64), 0)
    return out
