"""What published networks compute: formulas alone, on tensors under the published names of `published_code`.

Nothing of this package is used.  Formulas go head by head, from what the papers and the released code describe.
"""

import math
from collections.abc import Callable
from functools import partial
from itertools import product

import torch
from torch import Tensor

from published_code import CAMEL, DEPTH, HEADS, LOCAL, REPEATED, SNAKE, WIDTH, State


def linear(p: State, name: str, x: Tensor) -> Tensor:
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def feed_forward(p: State, up: str, down: str, x: Tensor) -> Tensor:
    return linear(p, down, linear(p, up, x).relu())


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Tensor | float = 0.0) -> Tensor:
    parts = zip(*(x.chunk(HEADS, dim=-1) for x in (q, k, v)), strict=True)
    return torch.cat([torch.softmax(scale * a @ b.transpose(1, 2) + mask, dim=-1) @ c for a, b, c in parts], dim=-1)


SCALE = (WIDTH // HEADS) ** -0.5


def attend(p: State, name: str, x: Tensor, context: Tensor, suffix: str = "") -> Tensor:
    """The layer of LEHD and SIT: two residuals, no norms."""
    q, k, v = (linear(p, f"{name}.{part}{suffix}", of) for part, of in (("Wq", x), ("Wk", context), ("Wv", context)))
    x = x + linear(p, f"{name}.multi_head_combine{suffix}", attention(q, k, v, SCALE))
    feed = f"{name}.feedForward{suffix}"
    return x + feed_forward(p, f"{feed}.W1", f"{feed}.W2", x)


def embedded(p: State, coords: Tensor, demand: Tensor | None) -> Tensor:
    return linear(p, "encoder.embedding", coords if demand is None else torch.cat([coords, demand[..., None]], -1))


def parts(h: Tensor, visited: list[int], left: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The first visited node, the open ones, the last visited one; beside both ends what is left of the capacity."""
    first, last = h[:, visited[:1]], h[:, visited[-1:]]
    if left is not None:
        first, last = (torch.cat([x, left[:, None, None]], -1) for x in (first, last))
    return first, h[:, [i for i in range(h.shape[1]) if i not in visited]], last


def lehd_step(p: State, coords: Tensor, demand: Tensor | None, visited: list[int], left: Tensor | None) -> Tensor:
    """Probabilities of the unvisited nodes in their order, of the CVRP (direct, via depot) of each, flattened."""
    h = embedded(p, coords, demand)
    first, open_, last = parts(attend(p, "encoder.layers.0", h, h), visited, left)
    first, last = linear(p, "decoder.embedding_first_node", first), linear(p, "decoder.embedding_last_node", last)
    x = torch.cat([first, open_, last], 1)
    for i in range(DEPTH):
        x = attend(p, f"decoder.layers.{i}", x, x)
    return torch.softmax(linear(p, "decoder.Linear_final", x)[:, 1:-1].flatten(1), -1)


def sit_step(p: State, coords: Tensor, demand: Tensor | None, visited: list[int], left: Tensor | None) -> Tensor:
    first, open_, last = parts(embedded(p, coords, demand), visited, left)
    names = [f"decoder.embedding_last_node{suffix}" for suffix in ("", *(f"_{k}" for k in range(2, REPEATED + 1)))]
    z = torch.cat([linear(p, "decoder.embedding_first_node", first), *(linear(p, name, last) for name in names)], 1)
    x = torch.cat([z, open_], 1)
    for i in range(DEPTH):
        z = attend(p, f"decoder.layers.{i}", z, x)
        x = attend(p, f"decoder.layers.{i}", x, z, "_2")
    return torch.softmax(linear(p, "decoder.Linear_final", x)[:, 1 + REPEATED :].flatten(1), -1)


def bq_step(p: State, coords: Tensor, demand: Tensor | None, visited: list[int], left: Tensor | None) -> Tensor:
    """visited: the destination (of the CVRP the depot) first, the current node last."""
    rows = [visited[-1], *(i for i in range(coords.shape[1]) if i not in visited), visited[0]]
    features = coords[:, rows]
    if demand is not None and left is not None:
        features = torch.cat([features, demand[:, rows, None], left[:, None, None].expand(-1, len(rows), 1)], -1)
    x = linear(p, "input_emb", features)
    marks = torch.zeros_like(x)
    marks[:, 0], marks[:, -1] = p["begin_end_tokens.weight"]
    x = x + marks
    for i in range(DEPTH):
        of_layer = f"encoder.{i}.attn."
        a = {name.removeprefix(of_layer): tensor for name, tensor in p.items() if name.startswith(of_layer)}
        attended = torch.zeros_like(x)
        for head in range(HEADS):
            q, k = x @ a["lambda2"][head], x @ a["lambda1"][head] + a["bias_lambda"][head]
            v = x @ a["theta1"][head] + a["bias_theta"][head]
            attended = attended + torch.softmax(q @ k.transpose(1, 2), -1) @ v @ a["theta2"][head].T
        x = x + p[f"encoder.{i}.res_norm1.alpha"] * attended
        fed = feed_forward(p, f"encoder.{i}.linear1", f"encoder.{i}.linear2", x)
        x = x + p[f"encoder.{i}.res_norm2.alpha"] * fed
    scores = linear(p, "scores_projection", x)[:, 1:-1]
    if demand is not None and left is not None:
        too_much = demand[:, rows[1:-1]] > left[:, None]
        scores[..., 0] = scores[..., 0].masked_fill(too_much, -torch.inf)
    return torch.softmax(scores.flatten(1), -1)


def norm(p: State, name: str, x: Tensor) -> Tensor:
    """Instance norm over the nodes."""
    centred = x - x.mean(1, keepdim=True)
    return centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt() * p[f"{name}.weight"] + p[f"{name}.bias"]


def encode(p: State, h: Tensor, mix: Callable[[str, Tensor], Tensor], spelt: tuple[str, str]) -> Tensor:
    for i in range(DEPTH):
        name = f"encoder.layers.{i}"
        h = norm(p, f"{name}.{spelt[0].format(1)}.norm", h + mix(name, h))
        feed = f"{name}.{spelt[1]}"
        experts = f"{feed}.w_gate" in p
        fed = mixture(p, feed, h) if experts else feed_forward(p, f"{feed}.W1", f"{feed}.W2", h)
        h = norm(p, f"{name}.{spelt[0].format(2)}.norm", h + fed)
    return h


def mixture(p: State, name: str, x: Tensor, top: int = 2) -> Tensor:
    """Every expert runs; the best two of each token count, by a softmax over their two scores."""
    scores = x @ p[f"{name}.w_gate"]
    best, which = scores.topk(top, dim=-1)
    gates = torch.zeros_like(scores).scatter(-1, which, torch.softmax(best, -1))
    out = 0
    for j in range(scores.shape[-1]):
        expert = f"{name}.experts.{j}"
        one_layer = f"{expert}.weight" in p
        made = linear(p, expert, x) if one_layer else feed_forward(p, f"{expert}.fc1", f"{expert}.fc2", x)
        out = out + gates[..., j : j + 1] * made
    return out  # type: ignore[return-value]


def heads(p: State, name: str, h: Tensor) -> Tensor:
    """Attention of a layer of POMO."""
    q, k, v = (linear(p, f"{name}.{part}", h) for part in ("Wq", "Wk", "Wv"))
    return linear(p, f"{name}.multi_head_combine", attention(q, k, v, SCALE))


def embed(p: State, coords: Tensor, *features: Tensor) -> Tensor:
    if "encoder.embedding.weight" in p:
        return linear(p, "encoder.embedding", coords)
    customers = torch.cat([coords[:, 1:], *(f[:, 1:] for f in features)], -1)
    depot = linear(p, "encoder.embedding_depot", coords[:, :1])
    return torch.cat([depot, linear(p, "encoder.embedding_node", customers)], 1)


def query(p: State, h: Tensor, known: Tensor, current: Tensor) -> Tensor:
    """known: (batch, tours) where tours began, or (batch, tours, numbers) of routes."""
    each = torch.arange(len(h))[:, None]
    if "decoder.Wq_first.weight" in p:
        return linear(p, "decoder.Wq_first", h[each, known]) + linear(p, "decoder.Wq_last", h[each, current])
    return linear(p, "decoder.Wq_last", torch.cat([h[each, current], known], -1))


def pomo_step(
    p: State, features: tuple[Tensor, ...], known: Tensor, current: Tensor, mask: Tensor, branch: str = ""
) -> Tensor:
    """Probabilities (batch, tours, nodes); branch: of a light decoder, "dense" or "moe"."""
    spelt = SNAKE if "encoder.layers.0.add_n_normalization_1.norm.weight" in p else CAMEL
    h = encode(p, embed(p, *features), partial(heads, p), spelt)
    q = query(p, h, known, current)
    seen = attention(q, linear(p, "decoder.Wk", h), linear(p, "decoder.Wv", h), SCALE, mask)
    combine = "decoder.multi_head_combine"
    if branch:
        chances = torch.softmax(linear(p, "decoder.dense_or_moe", seen.mean((0, 1))), -1)
        name = f"{combine}_{branch}"
        seen = chances[int(branch == "moe")] * (linear(p, name, seen) if branch == "dense" else mixture(p, name, seen))
    else:
        seen = mixture(p, combine, seen) if f"{combine}.w_gate" in p else linear(p, combine, seen)
    return torch.softmax(10 * torch.tanh(seen @ h.transpose(1, 2) / math.sqrt(WIDTH)) + mask, -1)


def elg_step(p: State, features: tuple[Tensor, ...], known: Tensor, current: Tensor, mask: Tensor) -> Tensor:
    """Each tour by itself: what is near, in which order, and every weight of the local policy written out."""
    local = LOCAL["tsp"]

    def code(rank: int) -> Tensor:
        angles = [rank * 10_000 ** (-i / 15) for i in range(16)]
        return torch.tensor([*map(math.sin, angles), *map(math.cos, angles)]).double()  # kept in single precision

    def scores(place: Tensor, here: int, closed: Tensor) -> Tensor:
        apart = [math.dist(place[here].tolist(), there.tolist()) for there in place]
        near = sorted((j for j in range(len(place)) if closed[j] == 0), key=lambda j: apart[j])[:30]
        farthest = max(apart[j] for j in near) + 1e-6
        added = torch.full((len(place),), -1.0).double()
        embedded = []
        for rank, j in enumerate(near):
            added[j] = -apart[j] / farthest
            dx, dy = (place[j] - place[here]).tolist()
            numbers = torch.tensor([apart[j] / farthest, math.atan2(dy, dx)], dtype=torch.float64)
            embedded.append(linear(p, f"{local}.init_emb", numbers) + code(rank))
        e = torch.stack(embedded)
        q, k, v = (
            linear(p, f"{local}.{x}", of) for x, of in (("Wq", p[f"{local}.cur_token_emb"]), ("Wk", e), ("Wv", e))
        )
        parts = [
            torch.softmax(q[at] @ k[:, at].T / 8**0.5, -1) @ v[:, at]
            for at in (slice(i, i + 8) for i in range(0, 32, 8))
        ]
        wanted = linear(p, f"{local}.multi_head_combine", torch.cat(parts))
        for each, j in zip(embedded, near, strict=True):
            added[j] += wanted @ each / 32**0.5
        return added

    h = encode(p, embed(p, *features), partial(heads, p), CAMEL)
    seen = attention(query(p, h, known, current), linear(p, "decoder.Wk", h), linear(p, "decoder.Wv", h), SCALE, mask)
    fits = linear(p, "decoder.multi_head_combine", seen) @ h.transpose(1, 2) / math.sqrt(WIDTH)
    for b, t in product(*map(range, current.shape)):
        fits[b, t] += scores(features[0][b], int(current[b, t]), mask[b, t])
    return torch.softmax(50 * torch.tanh(fits) + mask, -1)


def icam_step(p: State, features: tuple[Tensor, ...], known: Tensor, current: Tensor, mask: Tensor) -> Tensor:
    coords = features[0]
    apart = (coords[:, :, None] - coords[:, None]).square().sum(-1).sqrt()
    log_n = math.log2(coords.shape[1] - (len(features) > 1))  # customers alone

    def aafm(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
        above, below = torch.exp(bias) @ (torch.exp(k) * v), torch.exp(bias) @ torch.exp(k)
        return torch.sigmoid(q) * above / below

    def mix(name: str, h: Tensor) -> Tensor:
        q, k, v = (linear(p, f"{name}.{part}", h) for part in ("Wq", "Wk", "Wv"))
        return aafm(q, k, v, -p[f"{name}.alpha"] * log_n * apart)

    h = encode(p, embed(p, *features), mix, CAMEL if len(features) == 1 else SNAKE)
    there = apart[torch.arange(len(h))[:, None], current]
    q, k, v = query(p, h, known, current), linear(p, "decoder.Wk", h), linear(p, "decoder.Wv", h)
    seen = aafm(q, k, v, mask - p["decoder.alpha1"] * log_n * there)
    fits = seen @ h.transpose(1, 2) / math.sqrt(WIDTH) - p["decoder.alpha2"] * log_n * there
    return torch.softmax(50 * torch.tanh(fits) + mask, -1)
