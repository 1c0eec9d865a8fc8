"""SIT from its equations (sit, Eq. 2-5), written without regard to cost: every side is projected, head by head."""

from copy import deepcopy

import torch
from torch import Tensor, nn

import by_the_book
from neuroute.networks.blocks.layers import ResidualLayer


def half(layer: nn.Module, x: Tensor, context: Tensor) -> Tensor:
    w_k, w_v = layer.key_value.weight.chunk(2)
    x = x + layer.out(by_the_book.attention(layer.heads, layer.query(x), context @ w_k.T, context @ w_v.T))
    return x + layer.down(torch.relu(layer.up(x)))


def decoder(net: nn.Module, current: Tensor, available: Tensor, destination: Tensor) -> Tensor:
    """Last-layer states of what is available (batch, a, width); current and destination (batch, 1, inputs).

    The order is the published one: the destination, the repetitions of the current node, what is available.
    """
    linears = zip(*(part.chunk(net.repetitions) for part in (net.current.weight, net.current.bias)), strict=True)
    repeated = [current @ weight.T + bias for weight, bias in linears]  # each repetition has a linear of its own
    z = torch.cat([net.start(destination), *repeated], dim=1)
    h = torch.cat([z, available], dim=1)
    for layer in net.layers:
        if isinstance(layer, ResidualLayer):
            h = by_the_book.residual_layer(layer, h)
        else:
            z = half(layer.gather, z, h)
            h = half(layer.spread, h, z)
    return h[:, net.repetitions + 1 :]


@torch.no_grad()
def logits(net: nn.Module, rows: Tensor, *left: Tensor) -> Tensor:
    """rows (batch, 1 + available + 1, 2) -> (batch, available) float64.

    Of the CVRP, rows (..., 3) and what is left (batch,) -> (batch, available, 2).
    """
    net = deepcopy(net).double()
    h = net.embed(rows.double())
    current, destination = (torch.cat([end, *(x[:, None, None] for x in left)], -1) for end in (h[:, :1], h[:, -1:]))
    found: Tensor = net.head(decoder(net.decoder, current, h[:, 1:-1], destination))
    return found if left else found[..., 0]
