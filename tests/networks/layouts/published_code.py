"""What published training scripts write: names and shapes of tensors, and files.  Nothing of this package is used."""

import math
from collections.abc import Iterator
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


def linear_shapes(name: str, outputs: int, inputs: int, bias: bool = True) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (outputs, inputs)
    if bias:
        yield f"{name}.bias", (outputs,)


def _attention(name: str, width: int, suffix: str = "") -> Iterator[tuple[str, tuple[int, ...]]]:
    for part in ("Wq", "Wk", "Wv"):
        yield from linear_shapes(f"{name}.{part}{suffix}", width, width, bias=False)
    yield from linear_shapes(f"{name}.multi_head_combine{suffix}", width, width)


def _feed_forward(name: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield from linear_shapes(f"{name}.W1", size.feed_forward, size.width)
    yield from linear_shapes(f"{name}.W2", size.width, size.feed_forward)


def layers(size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Of LEHD's encoder and decoder."""
    for name in ("encoder.layers.0", *(f"decoder.layers.{i}" for i in range(size.depth))):
        yield from _attention(name, size.width)
        yield from _feed_forward(f"{name}.feedForward", size)


def lehd(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    inputs, more, columns = (2, 0, 1) if problem == "tsp" else (3, 1, 2)
    yield from linear_shapes("encoder.embedding", size.width, inputs)
    yield from layers(size)
    for name in ("embedding_first_node", "embedding_last_node"):
        yield from linear_shapes(f"decoder.{name}", size.width, size.width + more)
    if problem == "tsp":
        yield from linear_shapes("decoder.k_1", size.width, size.width)
    yield from linear_shapes("decoder.Linear_final", columns, size.width)


def sit(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    inputs, more, columns = (2, 0, 1) if problem == "tsp" else (3, 1, 2)
    yield from linear_shapes("encoder.embedding", size.width, inputs)
    for suffix in ("", *(f"_{k}" for k in range(2, REPEATED + 1))):
        yield from linear_shapes(f"decoder.embedding_last_node{suffix}", size.width, size.width + more)
    yield from linear_shapes("decoder.embedding_first_node", size.width, size.width + more)
    for i in range(size.depth):
        for suffix in ("", "_2"):
            yield from _attention(f"decoder.layers.{i}", size.width, suffix)
            yield from _feed_forward(f"decoder.layers.{i}.feedForward{suffix}", size)
    yield from linear_shapes("decoder.Linear_final", columns, size.width)


def bq(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    d_k = size.width // size.heads
    yield from linear_shapes("input_emb", size.width, 2 if problem == "tsp" else 4)
    yield "begin_end_tokens.weight", (2, size.width)
    for i in range(size.depth):
        for name in ("lambda1", "lambda2", "theta1", "theta2"):
            yield f"encoder.{i}.attn.{name}", (size.heads, size.width, d_k)
        for name in ("bias_lambda", "bias_theta"):
            yield f"encoder.{i}.attn.{name}", (size.heads, d_k)
        yield f"encoder.{i}.res_norm1.alpha", (1,)
        yield f"encoder.{i}.res_norm2.alpha", (1,)
        yield from linear_shapes(f"encoder.{i}.linear1", size.feed_forward, size.width)
        yield from linear_shapes(f"encoder.{i}.linear2", size.width, size.feed_forward)
    yield from linear_shapes("scores_projection", 1 if problem == "tsp" else 2, size.width)


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
    yield from linear_shapes("decoder.multi_head_combine", size.width, size.width)


def elg(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    """POMO's names, and those of the local policy, whose width is 32."""
    yield from pomo(problem, size)
    local = LOCAL[problem]
    yield f"{local}.cur_token_emb", (32,)
    yield from linear_shapes(f"{local}.init_emb", 32, 2 if problem == "tsp" else 3)
    yield from _attention(local, 32)


def icam(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    norm, feed = CAMEL if problem == "tsp" else SNAKE
    for i in range(size.depth):
        for part in ("Wq", "Wk", "Wv"):
            yield from linear_shapes(f"encoder.layers.{i}.{part}", size.width, size.width, bias=False)
        yield f"encoder.layers.{i}.alpha", (1,)
        yield from _norms(f"encoder.layers.{i}", norm, size.width)
        yield from _feed_forward(f"encoder.layers.{i}.{feed}", size)
    yield from _ends(problem, size)
    yield "decoder.alpha1", (1,)
    yield "decoder.alpha2", (1,)


def _ends(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Embeddings, queries, keys and values of POMO and ICAM."""
    if problem == "tsp":
        yield from linear_shapes("encoder.embedding", size.width, 2)
        yield from linear_shapes("decoder.Wq_first", size.width, size.width, bias=False)
    else:
        yield from linear_shapes("encoder.embedding_depot", size.width, 2)
        yield from linear_shapes("encoder.embedding_node", size.width, 3)
    yield from linear_shapes("decoder.Wq_last", size.width, size.width + (problem != "tsp"), bias=False)
    for part in ("Wk", "Wv"):
        yield from linear_shapes(f"decoder.{part}", size.width, size.width, bias=False)


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
                yield from linear_shapes(f"{name}.feedForward.experts.{j}.fc1", size.feed_forward, width)
                yield from linear_shapes(f"{name}.feedForward.experts.{j}.fc2", width, size.feed_forward)
        else:
            yield from _feed_forward(f"{name}.feedForward", size)
    yield from linear_shapes("encoder.embedding_depot", width, 2)
    yield from linear_shapes("encoder.embedding_node", width, features)
    yield from linear_shapes("decoder.Wq_last", width, width + context, bias=False)
    for part in ("Wk", "Wv"):
        yield from linear_shapes(f"decoder.{part}", width, width, bias=False)
    combine = "decoder.multi_head_combine" + "_moe" * light
    if experts:
        yield from _gate(combine, width, experts)
        for j in range(experts):
            yield from linear_shapes(f"{combine}.experts.{j}", width, width)
    else:
        yield from linear_shapes(combine, width, width)
    if light:
        yield from linear_shapes("decoder.multi_head_combine_dense", width, width)
        yield from linear_shapes("decoder.dense_or_moe", 2, width, bias=False)


def _gate(name: str, width: int, experts: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.w_gate", (width, experts)
    yield f"{name}.w_noise", (width, experts)
    yield f"{name}.mean", (1,)
    yield f"{name}.std", (1,)


def invit(problem: str, size: Size, views: int = 2) -> Iterator[tuple[str, tuple[int, ...]]]:
    """INViT's, with as many views."""
    w, cvrp = size.width, problem == "cvrp"
    for name in ("action_encoder", *(f"state_encoders.{v}" for v in range(views))):
        yield from linear_shapes(f"{name}.input_emb", w, 2 + cvrp)
        yield from linear_shapes(f"{name}.input_emb_for_last", w, 2 + cvrp)
        if cvrp or name != "action_encoder":
            yield from linear_shapes(f"{name}.input_emb_for_first", w, 2)
        for i in range(size.depth):
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


def mdam(problem: str, size: Size) -> Iterator[tuple[str, tuple[int, ...]]]:
    """MDAM's, of three decoders, without what batch norms remember."""
    width, heads, hidden = size.width, size.heads, size.feed_forward
    if problem == "tsp":
        yield from linear_shapes("init_embed", width, 2)
        yield "W_placeholder", (2 * width,)
    else:
        yield from linear_shapes("init_embed", width, 3)
        yield from linear_shapes("init_embed_depot", width, 2)
    for i in range(size.depth):
        attention, feed, *norms = mdam_layer(i, size.depth)
        for part in ("query", "key", "val"):
            yield f"{attention}.W_{part}", (heads, width, width // heads)
        yield f"{attention}.W_out", (heads, width // heads, width)
        yield from linear_shapes(f"{feed}.0", hidden, width)
        yield from linear_shapes(f"{feed}.2", width, hidden)
        for norm in norms:
            yield from ((f"{norm}.{part}", (width,)) for part in ("weight", "bias"))
    known = 2 * width if problem == "tsp" else width + 1
    for d in range(3):
        yield f"project_node_embeddings.{d}.weight", (3 * width, width)
        yield f"project_fixed_context.{d}.weight", (width, width)
        yield f"project_step_context.{d}.weight", (width, known)
        yield f"project_out.{d}.weight", (width, width)


def mdam_layer(i: int, depth: int) -> tuple[str, str, str, str]:
    """Attention, FFN and both norms; the last layer's are called by what they do."""
    if i == depth - 1:
        names = ("attention_layer", "projection.module", "BN1.normalizer", "BN2.normalizer")
    else:
        ends = ("module", "module", "normalizer", "normalizer")
        names = tuple(f"layers.{4 * i + place}.{end}" for place, end in zip((0, 2, 1, 3), ends, strict=True))
    return tuple(f"embedder.{name}" for name in names)  # type: ignore[return-value]


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
        elif "norm" in name.lower() or "alpha" in name or name.endswith("running_var"):
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
