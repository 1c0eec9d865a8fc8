"""Where coordinates go in and where logits come out: products in float32, whatever the rest is computed in.

bf16 keeps 8 binary digits of a number and TF32 11: to a product in bf16 two nodes that are 0.001 apart in the unit
square are one point, and logits of about 8 that differ by less than 0.03 are ties.  These products are narrow: of two
to 24 numbers of a node, or of one logit of it.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def in_all_digits(function: Callable[..., Tensor], first: Tensor, *more: Any) -> Tensor:
    """function(first, *more), of tensors in at least float32 and with products in all their digits.

    So autocast ends here, and so does TF32; of the products of the backward pass only autocast is off.
    """
    device = first.device.type
    arguments = [at_least_float32(each) if isinstance(each, Tensor) else each for each in (first, *more)]
    if device == "cuda" and torch.backends.cuda.matmul.allow_tf32:
        switched = _kept_whole() if torch.compiler.is_compiling() else _without_tf32
        out: Tensor = switched(function, arguments)
    elif _casts(device):
        with torch.autocast(device, enabled=False):
            out = function(*arguments)
    else:
        out = function(*arguments)
    return out


@cache
def _kept_whole() -> Callable[..., Tensor]:
    """`_without_tf32` where torch.compile would move the switch behind the product; to say so takes a second."""
    whole: Callable[..., Tensor] = torch.compiler.disable(_without_tf32)
    return whole


def _without_tf32(function: Callable[..., Tensor], arguments: list[Any]) -> Tensor:
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        with torch.autocast("cuda", enabled=False):
            return function(*arguments)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = True


def at_least_float32(x: Tensor) -> Tensor:
    """x as it is, unless it has fewer digits."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def in_products(x: Tensor) -> Tensor:
    """x in the precision in which autocast computes products: a stream that stays in it is not cast by each layer."""
    device = x.device.type
    casts = _casts(device) and x.dtype != torch.float64
    return x.to(torch.get_autocast_dtype(device)) if casts else x


def _casts(device: str) -> bool:
    """Whether autocast is on; of shapes alone ("meta") torch has none."""
    return device != "meta" and torch.is_autocast_enabled(device)


class FullLinear(nn.Linear):
    """A linear layer of features, or to logits, `in_all_digits`."""

    def forward(self, x: Tensor) -> Tensor:
        return in_all_digits(F.linear, x, self.weight, self.bias)
