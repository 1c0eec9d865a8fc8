"""What published training scripts write, and what their networks compute: names, shapes and formulas alone.

Nothing of this package is used.  Networks are dicts of tensors under the published names; formulas go head by head,
from the descriptions of the papers and of the released code.
"""

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

State = dict[str, Tensor]
Shapes = dict[str, tuple[int, ...]]
DEPTH, WIDTH, HEADS, FFN, REPEATED = 2, 16, 2, 24, 15


class Size:
    """Of a network; by default small."""

    def __init__(self, depth: int = DEPTH, width: int = WIDTH, heads: int = HEADS, feed_forward: int = FFN) -> None:
        self.depth, self.width, self.heads, self.feed_forward = depth, width, heads, feed_forward


# -- names and shapes -------------------------------------------------------------------------------------------------


def _linear(name: str, outputs: int, inputs: int, bias: bool = True) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (outputs, inputs)
    if bias:
        yield f"{name}.bias", (outputs,)


def _attention(name: str, width: int, suffix: str = "") -> Iterator[tuple[str, tuple[int, ...]]]:
    for part in ("Wq", "Wk", "Wv"):
        yield from _linear(f"{name}.{part}{suffix}", width, width, bias=False)
    yield from _linear(f"{name}.multi_head_combine{suffix}", width, width)


def _feed_forward(name: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield from _linear(f"{name}.W1", size.feed_forward, size.width)
    yield from _linear(f"{name}.W2", size.width, size.feed_forward)


def lehd(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    inputs, more, columns = (2, 0, 1) if problem == "tsp" else (3, 1, 2)
    yield from _linear("encoder.embedding", size.width, inputs)
    for name in ("encoder.layers.0", *(f"decoder.layers.{i}" for i in range(size.depth))):
        yield from _attention(name, size.width)
        yield from _feed_forward(f"{name}.feedForward", size)
    for name in ("embedding_first_node", "embedding_last_node"):
        yield from _linear(f"decoder.{name}", size.width, size.width + more)
    if problem == "tsp":
        yield from _linear("decoder.k_1", size.width, size.width)
    yield from _linear("decoder.Linear_final", columns, size.width)


def sit(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    inputs, more, columns = (2, 0, 1) if problem == "tsp" else (3, 1, 2)
    yield from _linear("encoder.embedding", size.width, inputs)
    for suffix in ("", *(f"_{k}" for k in range(2, REPEATED + 1))):
        yield from _linear(f"decoder.embedding_last_node{suffix}", size.width, size.width + more)
    yield from _linear("decoder.embedding_first_node", size.width, size.width + more)
    for i in range(size.depth):
        for suffix in ("", "_2"):
            yield from _attention(f"decoder.layers.{i}", size.width, suffix)
            yield from _feed_forward(f"decoder.layers.{i}.feedForward{suffix}", size)
    yield from _linear("decoder.Linear_final", columns, size.width)


def bq(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    d_k = size.width // size.heads
    yield from _linear("input_emb", size.width, 2 if problem == "tsp" else 4)
    yield "begin_end_tokens.weight", (2, size.width)
    for i in range(size.depth):
        for name in ("lambda1", "lambda2", "theta1", "theta2"):
            yield f"encoder.{i}.attn.{name}", (size.heads, size.width, d_k)
        for name in ("bias_lambda", "bias_theta"):
            yield f"encoder.{i}.attn.{name}", (size.heads, d_k)
        yield f"encoder.{i}.res_norm1.alpha", (1,)
        yield f"encoder.{i}.res_norm2.alpha", (1,)
        yield from _linear(f"encoder.{i}.linear1", size.feed_forward, size.width)
        yield from _linear(f"encoder.{i}.linear2", size.width, size.feed_forward)
    yield from _linear("scores_projection", 1 if problem == "tsp" else 2, size.width)


def _norms(name: str, spelt: str, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    for number in (1, 2):
        yield f"{name}.{spelt.format(number)}.norm.weight", (width,)
        yield f"{name}.{spelt.format(number)}.norm.bias", (width,)


LOCAL = {"tsp": "decoder.local_policy_0", "cvrp": "decoder.local_policies.0"}
CAMEL, SNAKE = ("addAndNormalization{}", "feedForward"), ("add_n_normalization_{}", "feed_forward")


def pomo(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    """POMO's NEW_py_ver."""
    norm, feed = CAMEL if problem == "tsp" else SNAKE
    for i in range(size.depth):
        yield from _attention(f"encoder.layers.{i}", size.width)
        yield from _norms(f"encoder.layers.{i}", norm, size.width)
        yield from _feed_forward(f"encoder.layers.{i}.{feed}", size)
    yield from _ends(problem, size)
    yield from _linear("decoder.multi_head_combine", size.width, size.width)


def elg(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    """POMO's names, and those of the local policy, whose width is 32."""
    yield from pomo(problem, size)
    local = LOCAL[problem]
    yield f"{local}.cur_token_emb", (32,)
    yield from _linear(f"{local}.init_emb", 32, 2 if problem == "tsp" else 3)
    for part in ("Wq", "Wk", "Wv"):
        yield from _linear(f"{local}.{part}", 32, 32, bias=False)
    yield from _linear(f"{local}.multi_head_combine", 32, 32)


def icam(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    norm, feed = CAMEL if problem == "tsp" else SNAKE
    for i in range(size.depth):
        for part in ("Wq", "Wk", "Wv"):
            yield from _linear(f"encoder.layers.{i}.{part}", size.width, size.width, bias=False)
        yield f"encoder.layers.{i}.alpha", (1,)
        yield from _norms(f"encoder.layers.{i}", norm, size.width)
        yield from _feed_forward(f"encoder.layers.{i}.{feed}", size)
    yield from _ends(problem, size)
    yield "decoder.alpha1", (1,)
    yield "decoder.alpha2", (1,)


def _ends(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Embeddings, queries, keys and values of POMO and ICAM."""
    if problem == "tsp":
        yield from _linear("encoder.embedding", size.width, 2)
        yield from _linear("decoder.Wq_first", size.width, size.width, bias=False)
    else:
        yield from _linear("encoder.embedding_depot", size.width, 2)
        yield from _linear("encoder.embedding_node", size.width, 3)
    yield from _linear("decoder.Wq_last", size.width, size.width + (problem != "tsp"), bias=False)
    for part in ("Wk", "Wv"):
        yield from _linear(f"decoder.{part}", size.width, size.width, bias=False)


def mvmoe(
    experts: int, size: Size, light: bool = False, features: int = 5, context: int = 4
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """With experts in all layers and the decoder; without any POMO-MTL, with fewer inputs POMO for one VRP."""
    width = size.width
    for i in range(size.depth):
        name = f"encoder.layers.{i}"
        yield from _attention(name, width)
        yield from _norms(name, CAMEL[0], width)
        if experts:
            yield from _gate(f"{name}.feedForward", width, experts)
            for j in range(experts):
                yield from _linear(f"{name}.feedForward.experts.{j}.fc1", size.feed_forward, width)
                yield from _linear(f"{name}.feedForward.experts.{j}.fc2", width, size.feed_forward)
        else:
            yield from _feed_forward(f"{name}.feedForward", size)
    yield from _linear("encoder.embedding_depot", width, 2)
    yield from _linear("encoder.embedding_node", width, features)
    yield from _linear("decoder.Wq_last", width, width + context, bias=False)
    for part in ("Wk", "Wv"):
        yield from _linear(f"decoder.{part}", width, width, bias=False)
    combine = "decoder.multi_head_combine" + "_moe" * light
    if experts:
        yield from _gate(combine, width, experts)
        for j in range(experts):
            yield from _linear(f"{combine}.experts.{j}", width, width)
    else:
        yield from _linear(combine, width, width)
    if light:
        yield from _linear("decoder.multi_head_combine_dense", width, width)
        yield from _linear("decoder.dense_or_moe", 2, width, bias=False)


def _gate(name: str, width: int, experts: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.w_gate", (width, experts)
    yield f"{name}.w_noise", (width, experts)
    yield f"{name}.mean", (1,)
    yield f"{name}.std", (1,)


def parameters(shapes: Shapes) -> int:
    """Without the constants beside gates, and what norms remember."""
    return sum(
        math.prod(shape)
        for name, shape in shapes.items()
        if not name.endswith((".mean", ".std", "running_mean", "running_var", "num_batches_tracked"))
    )


# -- files ------------------------------------------------------------------------------------------------------------


def weights(shapes: Shapes, seed: int = 3) -> State:
    """float32 tensors of these shapes; norms, factors and gates are away from where they start."""
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in shapes.items():
        if name.endswith((".mean", ".std")):
            state[name] = torch.full(shape, float(name.endswith(".std")))
        elif name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(7)
        elif "norm" in name.lower() or "alpha" in name:
            state[name] = 0.7 + 0.3 * torch.rand(shape, generator=generator)
        else:
            state[name] = torch.randn(shape, generator=generator) / math.sqrt(shape[-1])
    return state


def trained(state: State) -> dict[str, Any]:
    """What LEHD, SIT, POMO, ICAM and MVMoE save: weights, Adam with its moments, a schedule, a log of numpy scalars."""
    log = {
        "train_loss": [[1, 0.3]],
        "val_gap": [np.float64(1.5), np.float32(0.5), np.int64(3)],
        "raw": {"best": [np.float64(2.0)]},
    }
    return {
        "epoch": 150,
        "model_state_dict": state,
        "optimizer_state_dict": _adam(state),
        "scheduler_state_dict": {"milestones": {4501: 1}, "gamma": 0.1, "last_epoch": 150},
        "result_log": log,
    }


def trained_bq(state: State) -> dict[str, Any]:
    return {"net": state, "optimizer": _adam(state), "current_iter": 7, "other": {"opt_gap": [0.4]}}


def _adam(state: State) -> dict[str, Any]:
    tensors = [tensor.clone().requires_grad_() for tensor in state.values()]
    optimizer = torch.optim.Adam(tensors, 1e-4)
    sum((tensor.sum() for tensor in tensors), torch.zeros(())).backward()
    optimizer.step()
    return optimizer.state_dict()


# -- formulas ---------------------------------------------------------------------------------------------------------


def linear(p: State, name: str, x: Tensor) -> Tensor:
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Tensor | float = 0.0) -> Tensor:
    parts = zip(*(x.chunk(HEADS, dim=-1) for x in (q, k, v)), strict=True)
    return torch.cat([torch.softmax(scale * a @ b.transpose(1, 2) + mask, dim=-1) @ c for a, b, c in parts], dim=-1)


SCALE = (WIDTH // HEADS) ** -0.5


def attend(p: State, name: str, x: Tensor, context: Tensor, suffix: str = "") -> Tensor:
    """The layer of LEHD and SIT: two residuals, no norms."""
    q, k, v = (linear(p, f"{name}.{part}{suffix}", of) for part, of in (("Wq", x), ("Wk", context), ("Wv", context)))
    x = x + linear(p, f"{name}.multi_head_combine{suffix}", attention(q, k, v, SCALE))
    feed = f"{name}.feedForward{suffix}"
    return x + linear(p, f"{feed}.W2", linear(p, f"{feed}.W1", x).relu())


def lehd_step(p: State, coords: Tensor, demand: Tensor | None, visited: list[int], left: Tensor | None) -> Tensor:
    """Probabilities of the unvisited nodes in their order, of the CVRP (direct, via depot) of each, flattened."""
    features = coords if demand is None else torch.cat([coords, demand[..., None]], -1)
    h = linear(p, "encoder.embedding", features)
    h = attend(p, "encoder.layers.0", h, h)
    open_ = [i for i in range(coords.shape[1]) if i not in visited]
    first, last = h[:, visited[:1]], h[:, visited[-1:]]
    if left is not None:
        first, last = (torch.cat([x, left[:, None, None]], -1) for x in (first, last))
    first, last = linear(p, "decoder.embedding_first_node", first), linear(p, "decoder.embedding_last_node", last)
    x = torch.cat([first, h[:, open_], last], 1)
    for i in range(DEPTH):
        x = attend(p, f"decoder.layers.{i}", x, x)
    return torch.softmax(linear(p, "decoder.Linear_final", x)[:, 1:-1].flatten(1), -1)


def sit_step(p: State, coords: Tensor, demand: Tensor | None, visited: list[int], left: Tensor | None) -> Tensor:
    features = coords if demand is None else torch.cat([coords, demand[..., None]], -1)
    h = linear(p, "encoder.embedding", features)
    open_ = [i for i in range(coords.shape[1]) if i not in visited]
    first, last = h[:, visited[:1]], h[:, visited[-1:]]
    if left is not None:
        first, last = (torch.cat([x, left[:, None, None]], -1) for x in (first, last))
    names = ["", *(f"_{k}" for k in range(2, REPEATED + 1))]
    z = torch.cat(
        [
            linear(p, "decoder.embedding_first_node", first),
            *(linear(p, f"decoder.embedding_last_node{name}", last) for name in names),
        ],
        1,
    )
    x = torch.cat([z, h[:, open_]], 1)
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
        a = {
            name: p[f"encoder.{i}.attn.{name}"]
            for name in ("lambda1", "lambda2", "theta1", "theta2", "bias_lambda", "bias_theta")
        }
        attended = torch.zeros_like(x)
        for head in range(HEADS):
            q, k = x @ a["lambda2"][head], x @ a["lambda1"][head] + a["bias_lambda"][head]
            v = x @ a["theta1"][head] + a["bias_theta"][head]
            attended = attended + torch.softmax(q @ k.transpose(1, 2), -1) @ v @ a["theta2"][head].T
        x = x + p[f"encoder.{i}.res_norm1.alpha"] * attended
        fed = linear(p, f"encoder.{i}.linear2", linear(p, f"encoder.{i}.linear1", x).relu())
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
        fed = (
            mixture(p, feed, h) if f"{feed}.w_gate" in p else linear(p, f"{feed}.W2", linear(p, f"{feed}.W1", h).relu())
        )
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
        made = (
            linear(p, expert, x)
            if f"{expert}.weight" in p
            else linear(p, f"{expert}.fc2", linear(p, f"{expert}.fc1", x).relu())
        )
        out = out + gates[..., j : j + 1] * made
    return out  # type: ignore[return-value]


def embed(p: State, coords: Tensor, *features: Tensor) -> Tensor:
    if "encoder.embedding.weight" in p:
        return linear(p, "encoder.embedding", coords)
    customers = torch.cat([coords[:, 1:], *(f[:, 1:] for f in features)], -1)
    return torch.cat(
        [linear(p, "encoder.embedding_depot", coords[:, :1]), linear(p, "encoder.embedding_node", customers)], 1
    )


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

    def mix(name: str, h: Tensor) -> Tensor:
        q, k, v = (linear(p, f"{name}.{part}", h) for part in ("Wq", "Wk", "Wv"))
        return linear(p, f"{name}.multi_head_combine", attention(q, k, v, SCALE))

    h = encode(p, embed(p, *features), mix, spelt)
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
    cvrp = len(features) > 1
    local, spelt = (LOCAL["cvrp"], SNAKE) if cvrp else (LOCAL["tsp"], CAMEL)

    def mix(name: str, h: Tensor) -> Tensor:
        q, k, v = (linear(p, f"{name}.{part}", h) for part in ("Wq", "Wk", "Wv"))
        return linear(p, f"{name}.multi_head_combine", attention(q, k, v, SCALE))

    def code(rank: int) -> Tensor:
        angles = [rank * 10_000 ** (-i / 15) for i in range(16)]
        return torch.tensor([*map(math.sin, angles), *map(math.cos, angles)]).double()  # kept in single precision

    def scores(place: Tensor, demand: Tensor | None, left: Tensor, here: int, closed: Tensor) -> Tensor:
        apart = [math.dist(place[here].tolist(), there.tolist()) for there in place]
        open_ = [j for j in range(int(cvrp), len(place)) if closed[j] == 0]
        near = sorted(open_, key=lambda j: apart[j])[: 40 if cvrp else 30]
        farthest = max((apart[j] for j in near), default=apart[0]) if cvrp else max(apart[j] for j in near) + 1e-6
        near = ([0] if cvrp else []) + near
        added = torch.full((len(place),), -1.0).double()
        seen, embedded = [], []
        for rank, j in enumerate(near):
            added[j] = -apart[j] / farthest
            dx, dy = (place[j] - place[here]).tolist()
            numbers = [apart[j] / farthest, math.atan2(dy, dx)]
            if demand is not None:
                numbers.append(float(demand[j] / left))
            embedded.append(linear(p, f"{local}.init_emb", torch.tensor(numbers, dtype=torch.float64)) + code(rank))
            if closed[j] == 0:
                seen.append(embedded[-1])
        e = torch.stack(seen)[None, None]
        q, k, v = (
            p[f"{local}.cur_token_emb"] @ p[f"{local}.Wq.weight"].T,
            *(linear(p, f"{local}.{x}", e[0]) for x in ("Wk", "Wv")),
        )
        parts = [
            torch.softmax(q[at] @ k[0, :, at].T / 8**0.5, -1) @ v[0, :, at]
            for at in (slice(i, i + 8) for i in range(0, 32, 8))
        ]
        wanted = linear(p, f"{local}.multi_head_combine", torch.cat(parts))
        for each, j in zip(embedded, near, strict=True):
            added[j] += wanted @ each / 32**0.5
        return added

    h = encode(p, embed(p, *features), mix, spelt)
    seen = attention(query(p, h, known, current), linear(p, "decoder.Wk", h), linear(p, "decoder.Wv", h), SCALE, mask)
    fits = linear(p, "decoder.multi_head_combine", seen) @ h.transpose(1, 2) / math.sqrt(WIDTH)
    for b, t in product(*map(range, current.shape)):
        demand = features[1][b, :, 0] * (torch.arange(h.shape[1]) > 0) if cvrp else None
        fits[b, t] += scores(features[0][b], demand, known[b, t].squeeze(), int(current[b, t]), mask[b, t])
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
