"""INViT as its authors publish it: names, shapes, and one decision after the other, a node at a time in float64.

Nothing of this package is used; see `published_code`.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from published_code import HEADS, WIDTH, Size, State, linear_shapes
from published_formulas import attention, linear

Shape = tuple[str, tuple[int, ...]]
VIEWS = (35, 50)
ACTIONS = 15


def invit(problem: str, size: Size, views: int = len(VIEWS), action_depth: int | None = None) -> Iterator[Shape]:
    w, cvrp = size.width, problem == "cvrp"
    for name in ("action_encoder", *(f"state_encoders.{v}" for v in range(views))):
        yield from linear_shapes(f"{name}.input_emb", w, 2 + cvrp)
        yield from linear_shapes(f"{name}.input_emb_for_last", w, 2 + cvrp)
        if cvrp or name != "action_encoder":
            yield from linear_shapes(f"{name}.input_emb_for_first", w, 2)
        for i in range(action_depth or size.depth if name == "action_encoder" else size.depth):
            for part in ("w_qs", "w_ks", "w_vs", "fc"):
                yield from linear_shapes(f"{name}.encoder.MHA_layers.{i}.{part}", w, w, bias=False)
            for norm in (f"MHA_layers.{i}.layer_norm", f"norm1_layers.{i}", f"norm2_layers.{i}"):
                yield f"{name}.encoder.{norm}.weight", (w,)
                yield f"{name}.encoder.{norm}.bias", (w,)
            yield from linear_shapes(f"{name}.encoder.linear1_layers.{i}", size.feed_forward, w)
            yield from linear_shapes(f"{name}.encoder.linear2_layers.{i}", w, size.feed_forward)
    for i in range(2):
        for part in ("W0_att", "Wq_att", "W1_MLP", "W2_MLP"):
            yield from linear_shapes(f"decoder.decoder_layers.{i}.{part}", w, w)
        for norm in ("BN_att", "BN_MLP"):
            yield f"decoder.decoder_layers.{i}.{norm}.weight", (w,)
            yield f"decoder.decoder_layers.{i}.{norm}.bias", (w,)
    yield from linear_shapes("decoder.Wq_final", w, w)
    for name in ("WK_att_decoder", "WV_att_decoder"):
        yield from linear_shapes(name, 3 * w, (views + 1) * w)
    yield from linear_shapes("query_mlp", w, (2 * views + 1 + cvrp) * w)


def norm(p: State, name: str, x: Tensor, eps: float = 1e-5) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * p[f"{name}.weight"] + p[f"{name}.bias"]


def encoder(p: State, name: str, h: Tensor) -> Tensor:
    """h (tokens, width), all of them there."""
    h, i = h[None], 0
    while f"{name}.encoder.norm1_layers.{i}.weight" in p:
        at = f"{name}.encoder.MHA_layers.{i}"
        q, k, v = (linear(p, f"{at}.{part}", h) for part in ("w_qs", "w_ks", "w_vs"))
        mixed = linear(p, f"{at}.fc", attention(q, k, v, (WIDTH // HEADS) ** -0.5))
        inner = norm(p, f"{at}.layer_norm", h + mixed, 1e-6)
        h = norm(p, f"{name}.encoder.norm1_layers.{i}", h + inner)
        fed = linear(p, f"{name}.encoder.linear2_layers.{i}", linear(p, f"{name}.encoder.linear1_layers.{i}", h).relu())
        h, i = norm(p, f"{name}.encoder.norm2_layers.{i}", h + fed), i + 1
    return h[0]


def nearest(points: Tensor, here: int, among: Sequence[int], k: int) -> list[int]:
    return sorted(among, key=lambda i: math.dist(points[i].tolist(), points[here].tolist()))[:k]


def box(points: Tensor, view: Sequence[int], here: int) -> tuple[Tensor, float]:
    """Where a view lies, and how long its longer side is."""
    corner, ranges = [], []
    for axis in (0, 1):
        values = [float(points[i, axis]) for i in [*view, here]]
        corner.append(min(values))
        ranges.append(max(values) - min(values))
    return torch.tensor(corner, dtype=torch.float64), max(ranges) or 1.0


def step(
    p: State,
    points: Tensor,
    here: int,
    other: int,
    fit: Sequence[int],
    unserved: Sequence[int],
    views: Sequence[int] = VIEWS,
    actions: int = ACTIONS,
    demand: Tensor | None = None,
    left: float = 0.0,
) -> dict[int, float]:
    """Node -> probability.  other: where the tour began, or the depot, which may be next where `here` is another one.

    fit: the nodes that may be next; unserved: these and others, which do not fit.
    """
    candidates = nearest(points, here, fit, actions)
    rest = nearest(points, here, [i for i in unserved if i not in candidates], len(points))
    stops, rows = [], []
    names = ["action_encoder", *(f"state_encoders.{v}" for v in range(len(views)))]
    for name, view in zip(names, [candidates, *((candidates + rest)[:k] for k in views)], strict=True):
        corner, side = box(points, view, here)
        seen = [(points[i] - corner) / side for i in view]
        at, begun = (points[here] - corner) / side, (points[other] - corner) / side
        if demand is None:
            begun = begun.clamp(0, 1)
        else:
            seen = [torch.cat([x, demand[i : i + 1]]) for x, i in zip(seen, view, strict=True)]
            at = torch.cat([at, torch.tensor([left], dtype=torch.float64)])
        tokens = [linear(p, f"{name}.input_emb", x) for x in seen] + [linear(p, f"{name}.input_emb_for_last", at)]
        if f"{name}.input_emb_for_first.weight" in p:
            tokens.append(linear(p, f"{name}.input_emb_for_first", begun))
        h = encoder(p, name, torch.stack(tokens))
        stops += list(h[len(view) :])
        ends = [h[-1]] if demand is not None and here != other else []
        rows.append(torch.stack([*h[: len(candidates)], *ends]) if candidates or ends else h[:0])
    able = [*candidates, *([other] if demand is not None and here != other else [])]
    both = torch.cat(rows, dim=-1)
    q = linear(p, "query_mlp", torch.cat(stops))[None, None]
    keys, values = (linear(p, f"W{part}_att_decoder", both)[None].chunk(3, dim=-1) for part in "KV")
    for i in range(2):
        name = f"decoder.decoder_layers.{i}"
        seen_ = attention(linear(p, f"{name}.Wq_att", q), keys[i], values[i], (WIDTH // HEADS) ** -0.5)
        q = norm(p, f"{name}.BN_att", q + linear(p, f"{name}.W0_att", seen_))
        q = norm(p, f"{name}.BN_MLP", q + linear(p, f"{name}.W2_MLP", linear(p, f"{name}.W1_MLP", q).relu()))
    fits = linear(p, "decoder.Wq_final", q) @ keys[2].transpose(1, 2) / math.sqrt(WIDTH)
    return dict(zip(able, torch.softmax(10 * fits.tanh(), -1)[0, 0].tolist(), strict=True))
