"""MDAM from its description, head by head and node by node: nothing of this package is used."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from published_code import linear_shapes

DEPTH, WIDTH, HEADS, FFN, DECODERS = 3, 16, 4, 24, 3
State = dict[str, Tensor]


def shapes(problem: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes of a published file, without what batch norms remember."""
    width, heads, hidden = WIDTH, HEADS, FFN
    if problem == "tsp":
        yield from linear_shapes("init_embed", width, 2)
        yield "W_placeholder", (2 * width,)
    else:
        yield from linear_shapes("init_embed", width, 3)
        yield from linear_shapes("init_embed_depot", width, 2)
    for i in range(DEPTH):
        for part in ("query", "key", "val"):
            yield f"{attention_of(i)}.W_{part}", (heads, width, width // heads)
        yield f"{attention_of(i)}.W_out", (heads, width // heads, width)
        feed = feed_of(i)
        yield from linear_shapes(f"{feed}.0", hidden, width)
        yield from linear_shapes(f"{feed}.2", width, hidden)
        for norm in norms_of(i):
            yield from ((f"{norm}.{part}", (width,)) for part in ("weight", "bias"))
    known = 2 * width if problem == "tsp" else width + 1
    for d in range(DECODERS):
        yield f"project_node_embeddings.{d}.weight", (3 * width, width)
        yield f"project_fixed_context.{d}.weight", (width, width)
        yield f"project_step_context.{d}.weight", (width, known)
        yield f"project_out.{d}.weight", (width, width)


def attention_of(i: int) -> str:
    return f"embedder.layers.{4 * i}.module" if i < DEPTH - 1 else "embedder.attention_layer"


def feed_of(i: int) -> str:
    return f"embedder.layers.{4 * i + 2}.module" if i < DEPTH - 1 else "embedder.projection.module"


def norms_of(i: int) -> tuple[str, str]:
    if i == DEPTH - 1:
        return "embedder.BN1.normalizer", "embedder.BN2.normalizer"
    return f"embedder.layers.{4 * i + 1}.normalizer", f"embedder.layers.{4 * i + 3}.normalizer"


def norm(p: State, name: str, rows: list[Tensor]) -> list[Tensor]:
    """rows: (n, width) of each solution of the batch, whose statistics are taken together."""
    every = torch.cat(rows)
    mean, variance = every.mean(0), every.var(0, correction=0)
    return [(x - mean) / (variance + 1e-5).sqrt() * p[f"{name}.weight"] + p[f"{name}.bias"] for x in rows]


def finish(p: State, i: int, before: list[Tensor], mixed: list[Tensor]) -> list[Tensor]:
    first, second = norms_of(i)
    h = norm(p, first, [x + m for x, m in zip(before, mixed, strict=True)])
    feed = feed_of(i)
    fed = [
        torch.relu(x @ p[f"{feed}.0.weight"].T + p[f"{feed}.0.bias"]) @ p[f"{feed}.2.weight"].T + p[f"{feed}.2.bias"]
        for x in h
    ]
    return norm(p, second, [x + f for x, f in zip(h, fed, strict=True)])


def weights(p: State, i: int, x: Tensor) -> list[Tensor]:
    """Attention (n, n) of each head."""
    at = attention_of(i)
    q, k = ([x @ p[f"{at}.W_{part}"][h] for h in range(HEADS)] for part in ("query", "key"))
    return [torch.softmax(a @ b.T / math.sqrt(WIDTH // HEADS), -1) for a, b in zip(q, k, strict=True)]


def mix(p: State, i: int, x: Tensor, shares: Sequence[Tensor]) -> Tensor:
    at = attention_of(i)
    return sum(shares[h] @ (x @ p[f"{at}.W_val"][h]) @ p[f"{at}.W_out"][h] for h in range(HEADS))  # type: ignore[return-value]


def encode(p: State, instances: Sequence[tuple[Tensor, ...]]) -> tuple[list[Tensor], list[Tensor], list[list[Tensor]]]:
    """Nodes, what the last layer reads, and its attention, of each instance: coords (n, 2), demand (n,) of the CVRP."""
    h = []
    for coords, *demand in instances:
        if demand:
            customers = (
                torch.cat([coords[1:], demand[0][1:, None]], 1) @ p["init_embed.weight"].T + p["init_embed.bias"]
            )
            depot = coords[:1] @ p["init_embed_depot.weight"].T + p["init_embed_depot.bias"]
            h.append(torch.cat([depot, customers]))
        else:
            h.append(coords @ p["init_embed.weight"].T + p["init_embed.bias"])
    for i in range(DEPTH):
        below, shares = h, [weights(p, i, x) for x in h]
        h = finish(p, i, h, [mix(p, i, x, s) for x, s in zip(h, shares, strict=True)])
    return h, below, shares


def glimpse(p: State, below: list[Tensor], shares: list[list[Tensor]], closed: list[list[int]]) -> list[Tensor]:
    """The last layer of each solution, whose closed nodes get no attention: the others share it."""
    i, mixed = DEPTH - 1, []
    for x, of_heads, nodes in zip(below, shares, closed, strict=True):
        left = []
        for share in of_heads:
            share = share.clone()
            share[:, nodes] = 0
            left.append(share / (share.sum(-1, keepdim=True) + 1e-9))
        mixed.append(mix(p, i, x, left))
    return finish(p, i, below, mixed)


def step(p: State, d: int, h: Tensor, known: Tensor, closed: list[int]) -> Tensor:
    """Log-probabilities (n,) of decoder d."""
    keys, values, targets = (h @ p[f"project_node_embeddings.{d}.weight"].T).chunk(3, dim=1)
    query = h.mean(0) @ p[f"project_fixed_context.{d}.weight"].T + known @ p[f"project_step_context.{d}.weight"].T
    is_closed = torch.zeros(len(h), dtype=torch.bool)
    is_closed[closed] = True
    seen = []
    for q, k, v in zip(query.chunk(HEADS), keys.chunk(HEADS, 1), values.chunk(HEADS, 1), strict=True):
        scores = (k @ q / math.sqrt(WIDTH // HEADS)).masked_fill(is_closed, -math.inf)
        seen.append(torch.softmax(scores, 0) @ v)
    found = targets @ (torch.cat(seen) @ p[f"project_out.{d}.weight"].T) / math.sqrt(WIDTH)
    return torch.log_softmax((10 * torch.tanh(found)).masked_fill(is_closed, -math.inf), 0)


def walk_tours(p: State, d: int, coords: Tensor, tours: Sequence[Sequence[int]], every: int) -> list[Tensor]:
    """Log-probabilities (n,) of every decision of one tour of each instance (batch, n, 2), decision after decision."""
    h, below, shares = encode(p, [(one,) for one in coords])
    found = []
    for j in range(len(tours[0])):
        if j > 1 and j % every == 0:
            h = glimpse(p, below, shares, [list(tour[: j - 1]) for tour in tours])
        for nodes, tour in zip(h, tours, strict=True):
            known = torch.cat([nodes[tour[0]], nodes[tour[j - 1]]]) if j else p["W_placeholder"]
            found.append(step(p, d, nodes, known, list(tour[:j])))
    return found
