"""How tensors of a published file become one of ours, and rules for a tensor or a linear layer."""

from collections.abc import Iterator

import torch
from torch import Tensor

from neuroute.networks.layouts.rules import Arguments, Join, Rule


def _of_heads(weight: Tensor) -> Tensor:
    """(heads, inputs, d_k) -> (heads d_k, inputs)."""
    return weight.transpose(1, 2).flatten(0, 1)


def _chunks(tensor: Tensor, heads: int, parts: int) -> list[Tensor]:
    """(parts heads d_k, ...) -> parts of (heads, d_k, ...)."""
    return [part.unflatten(0, (heads, -1)) for part in tensor.chunk(parts)]


def _below(tensor: Tensor, arguments: Arguments, parts: int) -> list[Tensor]:
    return list(tensor.chunk(parts))


ROWS = Join(lambda parts: parts[0] if len(parts) == 1 else torch.cat(parts), _below)
REPEATED = Join(torch.cat, lambda tensor, arguments, _: tensor.chunk(arguments["representatives"]))
WHOLE = Join(lambda parts: parts[0], lambda tensor, *_: [tensor])
STACKED = Join(torch.stack, lambda tensor, *_: tensor.unbind())
SCALAR = Join(lambda parts: parts[0].reshape(()), lambda tensor, *_: [tensor.reshape(1)])
TRANSPOSED = Join(lambda parts: parts[0].T, lambda tensor, *_: [tensor.T])
REVERSED = Join(lambda parts: parts[0].flip(0), lambda tensor, *_: [tensor.flip(0)])
HEADS = Join(
    lambda parts: torch.cat([_of_heads(part) for part in parts]),
    lambda tensor, arguments, parts: [p.transpose(1, 2) for p in _chunks(tensor, arguments["heads"], parts)],
)
OF_HEADS = Join(  # the output projection, whose inputs are the heads' channels
    lambda parts: _of_heads(parts[0]).T,
    lambda tensor, arguments, _: [_chunks(tensor.T, arguments["heads"], 1)[0].transpose(1, 2)],
)
FROM_HEADS = Join(  # the same, as (heads, d_k, outputs)
    lambda parts: parts[0].flatten(0, 1).T,
    lambda tensor, arguments, _: [tensor.T.unflatten(0, (arguments["heads"], -1))],
)
HEAD_BIAS = Join(
    lambda parts: torch.cat([part.flatten() for part in parts]),
    lambda tensor, arguments, parts: _chunks(tensor, arguments["heads"], parts),
)


def weight(ours: str, *theirs: str, how: Join = ROWS) -> Rule:
    return Rule(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), how)


def linear(ours: str, *theirs: str, how: Join = ROWS) -> Iterator[Rule]:
    """A linear layer with its bias."""
    yield weight(ours, *theirs, how=how)
    yield Rule(f"{ours}.bias", tuple(f"{name}.bias" for name in theirs), how)


def batch_norm(ours: str, theirs: str) -> Iterator[Rule]:
    """Our `BatchNorm`, of torch's one."""
    yield from linear(f"{ours}.norm", theirs)
    for buffer in ("running_mean", "running_var", "num_batches_tracked"):
        yield Rule(f"{ours}.norm.{buffer}", (f"{theirs}.{buffer}",), WHOLE)
