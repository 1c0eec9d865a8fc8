"""SIT from its equations (sit, Eq. 2-5), written without regard to cost: one instance and one head at a time."""

import numpy as np
import torch
from torch import Tensor, nn


def numbers(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def linear(layer: nn.Linear, x: np.ndarray) -> np.ndarray:
    y = np.einsum("pi,oi->po", x, numbers(layer.weight))
    return y if layer.bias is None else y + numbers(layer.bias)


def attention(
    x: np.ndarray, c: np.ndarray, w_q: np.ndarray, w_k: np.ndarray, w_v: np.ndarray, heads: int
) -> np.ndarray:
    """softmax(x W_Q (c W_K)^T / sqrt(d)) c W_V of each head, side by side."""
    found, d = [], len(w_q) // heads
    for head in range(heads):
        part = slice(head * d, (head + 1) * d)
        scores = np.einsum("pi,di,qj,dj->pq", x, w_q[part], c, w_k[part], optimize=True) / np.sqrt(d)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        weights /= weights.sum(1, keepdims=True)
        found.append(np.einsum("pq,qj,dj->pd", weights, c, w_v[part], optimize=True))
    return np.concatenate(found, axis=1)


def feed_forward(layer: nn.Module, x: np.ndarray) -> np.ndarray:
    return x + linear(layer.down, np.maximum(linear(layer.up, x), 0))


def half(layer: nn.Module, x: np.ndarray, c: np.ndarray) -> np.ndarray:
    w_q = numbers(layer.query.weight)
    w_k, w_v = np.split(numbers(layer.key_value.weight), 2)
    return feed_forward(layer, x + linear(layer.out, attention(x, c, w_q, w_k, w_v, layer.heads)))


def self_attention(layer: nn.Module, x: np.ndarray) -> np.ndarray:
    w_q, w_k, w_v = np.split(numbers(layer.qkv.weight), 3)
    return feed_forward(layer, x + linear(layer.out, attention(x, x, w_q, w_k, w_v, layer.heads)))


def decoder(net: nn.Module, current: np.ndarray, available: np.ndarray, destination: np.ndarray) -> np.ndarray:
    """Last-layer states (a, width) of what is available, of one instance; current and destination (inputs,).

    The order is the published one: the destination, the repetitions of the current node, what is available.
    """
    representatives = [linear(net.start, destination[None])]
    width = len(representatives[0][0])
    for i in range(net.repetitions):  # each repetition has a linear of its own
        weight = numbers(net.current.weight)[i * width : (i + 1) * width]
        bias = numbers(net.current.bias)[i * width : (i + 1) * width]
        representatives.append((weight @ current + bias)[None])
    z = np.concatenate(representatives)
    h = np.concatenate([z, available])
    for layer in net.layers:
        if hasattr(layer, "gather"):
            z = half(layer.gather, z, h)
            h = half(layer.spread, h, z)
        else:
            h = self_attention(layer, h)
    return h[net.repetitions + 1 :]


def tsp_logits(net: nn.Module, rows: Tensor) -> Tensor:
    """rows (batch, 1 + available + 1, 2) -> (batch, available) float64."""
    found = []
    for one in numbers(rows):
        h = linear(net.embed, one)
        found.append(linear(net.head, decoder(net.decoder, h[0], h[1:-1], h[-1]))[:, 0])
    return torch.from_numpy(np.stack(found))


def cvrp_logits(net: nn.Module, rows: Tensor, remaining: Tensor) -> Tensor:
    """rows (batch, 1 + available + 1, 3), remaining (batch,) -> (batch, available, 2) float64."""
    found = []
    for one, left in zip(numbers(rows), numbers(remaining), strict=True):
        h = linear(net.embed, one)
        current, depot = np.append(h[0], left), np.append(h[-1], left)
        found.append(linear(net.head, decoder(net.decoder, current, h[1:-1], depot)))
    return torch.from_numpy(np.stack(found))
