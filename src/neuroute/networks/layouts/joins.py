"""How tensors of a published file become one of ours, and rules for a tensor or a linear layer."""

from collections.abc import Iterator

import torch
from torch import Tensor

from neuroute.networks.layouts.rules import Join, Rule


def rows(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def whole(parts: list[Tensor]) -> Tensor:
    return parts[0]


def stacked(parts: list[Tensor]) -> Tensor:
    return torch.stack(parts)


def scalar(parts: list[Tensor]) -> Tensor:
    return parts[0].reshape(())


def transposed(parts: list[Tensor]) -> Tensor:
    return parts[0].T


def flipped(parts: list[Tensor]) -> Tensor:
    return parts[0].flip(0)


def rows_of_heads(parts: list[Tensor]) -> Tensor:
    """Of (heads, inputs, d_k) each."""
    return torch.cat([part.transpose(1, 2).flatten(0, 1) for part in parts])


def output_of_heads(parts: list[Tensor]) -> Tensor:
    """The output projection, whose inputs are the heads' channels: (heads, outputs, d_k)."""
    return rows_of_heads(parts).T


def bias_of_heads(parts: list[Tensor]) -> Tensor:
    return torch.cat([part.flatten() for part in parts])


def weight(ours: str, *theirs: str, how: Join = rows) -> Rule:
    return Rule(f"{ours}.weight", tuple(f"{name}.weight" for name in theirs), how)


def linear(ours: str, *theirs: str, how: Join = rows) -> Iterator[Rule]:
    """A linear layer with its bias."""
    yield weight(ours, *theirs, how=how)
    yield Rule(f"{ours}.bias", tuple(f"{name}.bias" for name in theirs), how)
