"""The cut between an encoder and the decisions that are learnt from in parts."""

from typing import Any

import torch
from torch import Tensor

from neuroute.networks.blocks.all_digits import at_least_float32


class SplitBackward:
    """Every part of the decisions has a graph of its own that ends at leaves, one for each field of what is prepared
    that the encoder's graph leads to; what these have gathered goes through the encoder once.
    """

    def __init__(self, prepared: Any) -> None:
        """prepared: a NamedTuple.  Leaves gather gradients in at least float32."""
        self.prepared = prepared
        self._leaves = [
            at_least_float32(field.detach()).requires_grad_()
            if isinstance(field, Tensor) and field.requires_grad
            else None
            for field in prepared
        ]

    def detached(self) -> Any:
        """What is prepared, on the leaves: anew for each part."""
        pairs = zip(self.prepared, self._leaves, strict=True)
        return type(self.prepared)(*(field if leaf is None else leaf.to(field.dtype) for field, leaf in pairs))

    def backward(self, loss: Tensor | None = None) -> None:
        """Carry the leaves' gradients through the encoder, and those of a loss of its own."""
        pairs = zip(self.prepared, self._leaves, strict=True)
        roots: list[tuple[Tensor, Tensor | None]] = [
            (field, leaf.grad.to(field.dtype)) for field, leaf in pairs if leaf is not None and leaf.grad is not None
        ]
        if loss is not None and loss.requires_grad:
            roots.append((loss, None))
        if roots:  # of several processes one may have learnt from nothing
            torch.autograd.backward([root for root, _ in roots], [gradient for _, gradient in roots])
