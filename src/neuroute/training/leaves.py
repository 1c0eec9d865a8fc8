"""The cut between an encoder and the decisions that are learnt from in parts.

Every part of the decisions has a graph of its own that ends at leaves; what they have gathered goes through the
encoder once.
"""

from typing import Any

import torch
from torch import Tensor


def leaves_of(prepared: Any) -> list[Tensor | None]:
    """For each field that the encoder's graph leads to, a leaf that gathers gradients in at least float32."""
    return [
        field.detach().to(torch.promote_types(field.dtype, torch.float32)).requires_grad_() if _learns(field) else None
        for field in prepared
    ]


def standing_on(leaves: list[Tensor | None], prepared: Any) -> Any:
    """Like `prepared`, on the leaves."""
    given = zip(prepared, leaves, strict=True)
    return type(prepared)(*(field if leaf is None else leaf.to(field.dtype) for field, leaf in given))


def through(prepared: Any, leaves: list[Tensor | None], loss: Tensor | None = None) -> None:
    """The leaves' gradients, backwards through the encoder, and those of a loss of its own."""
    given = zip(prepared, leaves, strict=True)
    found: list[tuple[Tensor, Tensor | None]] = [
        (field, leaf.grad.to(field.dtype)) for field, leaf in given if leaf is not None and leaf.grad is not None
    ]
    if loss is not None and loss.requires_grad:
        found.append((loss, None))
    torch.autograd.backward([root for root, _ in found], [gradient for _, gradient in found])


def _learns(field: Any) -> bool:
    return isinstance(field, Tensor) and field.requires_grad
