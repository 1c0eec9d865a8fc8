"""On a GPU that multiplies in TF32, or in bf16, coordinates go in and logits come out in all digits all the same."""

from typing import Any

import pytest
import torch

import pretended
from networks import MULTI_START, PATH, decision, features, make, midway
from neuroute.core import device as devices
from neuroute.decoding.memory import autocast
from pretended import PLACE, pretended_gpu

aten = torch.ops.aten
PRODUCTS = (aten.mm, aten.addmm, aten.bmm, aten.baddbmm)
WITHOUT_A_FIRST = (
    "pens alibi",
    "pens rope",
    "pens both",
    "glop",
)  # nothing of a node goes in by a product; at a decision


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, torch.dtype]]:
    """Of each product on the GPU, whether it may be in TF32, and the precision of its factors."""
    seen, run = [], pretended._run

    def noting(func: Any, args: Any, kwargs: Any) -> Any:
        if func.overloadpacket in PRODUCTS:
            seen.append((torch.backends.cuda.matmul.allow_tf32, args[-1].dtype))
        return run(func, args, kwargs)

    monkeypatch.setattr(pretended, "_run", noting)
    return seen


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", [*PATH, *MULTI_START])
def test_first_and_last_products(
    name: str, precision: str, products: list[tuple[bool, torch.dtype]], monkeypatch: pytest.MonkeyPatch
) -> None:
    net = make(name)
    state = decision(net) if name in PATH else (*features(net), *midway(net))
    with pretended_gpu(monkeypatch):
        devices.claim("cuda", tf32=True)
        net = net.float().to(PLACE)
        floats = torch.float64 if name.startswith("dgl") else torch.float32
        moved = [part.to(floats if part.is_floating_point() else part.dtype).to(PLACE) for part in state]
        with torch.no_grad(), autocast(PLACE, precision):
            if name in PATH:
                logits = net.decide(*moved)
            else:
                logits = net.decide(net.prepare(net.encode(*moved[:-3])), *moved[-3:])
        assert torch.backends.cuda.matmul.allow_tf32
    in_tf32, dtypes = zip(*products, strict=True)
    assert logits.dtype == dtypes[-1] == torch.float32
    assert not in_tf32[-1]
    if name not in WITHOUT_A_FIRST and not name.startswith("lehd"):  # its rows are encoded
        assert (in_tf32[0], dtypes[0]) == (False, torch.float32)
    if name != "glop":  # whose decision is three products with one query
        assert any(in_tf32)
