"""The compiled attention gives what the formula says, to float32's digits, and is left out where it must be."""

import math
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel

from neuroute.networks.blocks.attention import attend
from neuroute.networks.kernels import attention as kernel
from neuroute.networks.kernels import library

SCALE = 0.37
compiled = pytest.mark.skipif(library.library() is None, reason=library.describe())


@pytest.fixture(autouse=True)
def _however_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes shapes, too, that are not worth a call."""
    monkeypatch.setattr(kernel, "FEW", 0)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Calls of the compiled operator."""
    calls, real = [], kernel._attention
    monkeypatch.setattr(kernel, "_attention", lambda *given: calls.append(1) or real(*given))
    return calls


@compiled
@pytest.mark.parametrize(("batch", "tokens", "ours"), [(1, 4, 0), (1, 11, 0), (1, 12, 1), (8, 4, 1)])
def test_few_tokens_are_torch_s(
    monkeypatch: pytest.MonkeyPatch, batch: int, tokens: int, ours: int, request: pytest.FixtureRequest
) -> None:
    monkeypatch.undo()
    asked = request.getfixturevalue("asked")
    q, k, v = drawn(batch, 8, tokens, tokens, 16)
    with torch.inference_mode():
        found = attend(q, k, v, SCALE)
    assert len(asked) == ours
    torch.testing.assert_close(found.double(), dense(q, k, v), rtol=1e-5, atol=1e-5)


def dense(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None) -> Tensor:
    """In float64; queries that see no key give 0."""
    q, k, v = q.double(), k.double(), v.double()
    scores = q @ k.transpose(-1, -2) * SCALE
    scores = scores if bias is None else scores + bias.double()
    return torch.softmax(scores, dim=-1).nan_to_num(0.0) @ v


def drawn(batch: int, heads: int, queries: int, keys: int, channels: int, size: float = 2.0) -> tuple[Tensor, ...]:
    """As a layer has them: of one product, so that a head's tokens are no neighbours."""
    generator = torch.Generator().manual_seed(channels + keys)
    q, k, v = torch.randn(batch, max(queries, keys), 3, heads, channels, generator=generator).permute(2, 0, 3, 1, 4)
    return size * q[:, :, :queries], k[:, :, :keys], v[:, :, :keys]


@compiled
@pytest.mark.parametrize("channels", [4, 8, 16, 20, 32, 48, 64])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (3, 17), (16, 16), (33, 100), (11, 513), (2, 1100), (0, 5)])
def test_equals_the_formula(asked: list[int], channels: int, queries: int, keys: int) -> None:
    q, k, v = drawn(2, 3, queries, keys, channels)
    with torch.inference_mode():
        found = attend(q, k, v, SCALE)
    assert asked
    torch.testing.assert_close(found.double(), dense(q, k, v), rtol=1e-5, atol=1e-5)


@compiled
@pytest.mark.parametrize(("queries", "keys"), [(3, 17), (33, 100), (11, 513)])
def test_wide_heads_are_for_wide_vectors_without_gradients(asked: list[int], queries: int, keys: int) -> None:
    q, k, v = drawn(2, 1, queries, keys, 128)
    attend(q, k, v, SCALE)
    with torch.inference_mode():
        attend(*(each.bfloat16() for each in (q, k, v)), SCALE)
        assert not asked
        found = attend(q / 8, k, v, SCALE)
    assert len(asked) == (library.lanes() == 16)
    torch.testing.assert_close(found.double(), dense(q / 8, k, v), rtol=1e-5, atol=1e-5)


def biases(batch: int, heads: int, queries: int, keys: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(2)
    full = -5 * torch.rand(batch, heads, queries, keys, generator=generator)
    closed = torch.where(torch.rand(batch, 1, queries, keys, generator=generator) < 0.5, -math.inf, 0.0)
    kept = -torch.rand(batch, heads, queries + 5, keys + 5, generator=generator)
    return {
        "of heads": full,
        "of all heads": full[:, :1],
        "of all instances": full[:1],
        "closing keys of a query": closed,
        "closing keys of all": closed[:, :, :1],
        "first keys closed": torch.where(torch.arange(keys) < keys - 3, -math.inf, 0.0).expand(1, 1, 1, -1),
        "a corner of more": kept[:, :, 5:, 5:],
        "turned": full.transpose(2, 3).contiguous().transpose(2, 3),
        "in float64": full.double(),
        "with a query that sees nothing": full.masked_fill((torch.arange(queries) == 1)[:, None], -math.inf),
    }


@compiled
@pytest.mark.parametrize("keys", [31, 1030])
@pytest.mark.parametrize("name", biases(1, 1, 2, 4))
def test_a_bias(name: str, keys: int) -> None:
    shape = (2, 3, 13, keys)
    q, k, v = drawn(*shape, channels=16)
    bias = biases(*shape)[name]
    with torch.inference_mode():
        found = attend(q, k, v, SCALE, bias)
    torch.testing.assert_close(found.double(), dense(q, k, v, bias), rtol=1e-5, atol=1e-5)


@compiled
@pytest.mark.parametrize("keys", [7, 100, 600])
def test_half_precision_is_rounded_once(keys: int) -> None:
    """What comes in is exact in float32; what goes out is the nearest number but for float32's own error."""
    q, k, v = (each.bfloat16() for each in drawn(2, 3, 9, keys, 16))
    with torch.inference_mode():
        found = attend(q, k, v, SCALE)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), dense(q, k, v), rtol=2**-8, atol=1e-5)


@compiled
def test_scores_far_apart_and_numbers_that_are_none() -> None:
    q, k, v = drawn(1, 2, 5, 40, 16, size=300.0)
    with torch.inference_mode():
        torch.testing.assert_close(attend(q, k, v, SCALE).double(), dense(q, k, v), rtol=1e-4, atol=1e-4)
        broken = q.clone()
        broken[0, 1, 2, 3] = math.nan
        found = attend(broken, k, v, SCALE).isnan().all(dim=-1)
    wanted = torch.zeros(1, 2, 5, dtype=torch.bool)
    wanted[0, 1, 2] = True
    assert torch.equal(found, wanted)


@compiled
@pytest.mark.parametrize("channels", [8, 16, 20, 48])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (7, 17), (33, 50), (11, 513), (2, 1100)])
@pytest.mark.parametrize("name", ["none", "of heads", "closing keys of a query"])
def test_gradients_are_the_formula_s(asked: list[int], name: str, channels: int, queries: int, keys: int) -> None:
    shape = (2, 3, queries, keys)
    bias = None if name == "none" else biases(*shape)[name]
    given = torch.randn(2, 3, queries, channels, generator=torch.Generator().manual_seed(7))
    found = [each.clone().requires_grad_() for each in drawn(*shape, channels, size=1.0)]
    exact = [each.detach().double().requires_grad_() for each in found]
    out = attend(*found, SCALE, bias)
    assert asked
    (out * given).sum().backward()
    (dense(*exact, bias) * given.double()).sum().backward()
    for ours, wanted in zip(found, exact, strict=True):
        torch.testing.assert_close(ours.grad.double(), wanted.grad.nan_to_num(0.0), rtol=1e-4, atol=2e-5)


@compiled
@pytest.mark.usefixtures("one_thread")
def test_threads_do_not_change_a_bit() -> None:
    found = []
    for batch, heads in ((4, 8), (1, 1)):
        q, k, v = drawn(batch, heads, 300, 300, 16)
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            with torch.inference_mode():
                found.append(attend(q, k, v, SCALE))
        assert torch.equal(found[-1], found[-3])
        assert torch.equal(found[-2], found[-3])


@pytest.mark.slow
@compiled
def test_torch_s_checks() -> None:
    q, k, v = (each.requires_grad_() for each in drawn(2, 3, 5, 7, 8))
    torch.library.opcheck(kernel._attention, (q, k, v, SCALE, None, True))
    with FakeTensorMode() as fake, torch.no_grad():
        shown = kernel._attention(*(fake.from_tensor(each) for each in (q, k, v)), SCALE, None, False)[0]
    real = kernel._attention(q, k, v, SCALE, None, False)[0]
    assert (shown.shape, shown.stride(), shown.dtype) == (real.shape, real.stride(), real.dtype)


@compiled
def test_what_it_is_not_for(asked: list[int]) -> None:
    q, k, v = drawn(2, 2, 5, 7, 16)
    for given in (
        [q.double(), k.double(), v.double()],
        drawn(1, 1, 2, 2, 128),
        [each.to("meta") for each in (q, k, v)],
    ):
        attend(*given, SCALE)
    with sdpa_kernel(SDPBackend.MATH):  # plain products, which are counted
        attend(q, k, v, SCALE)
    assert not asked


TELL = """
import torch
from neuroute.networks.kernels import attention, library
attention.FEW = 0
q, k, v = torch.arange(48.0).view(3, 1, 1, 2, 8).sin()
with torch.inference_mode():
    print(round(float(attention.attention(q, k, v, 0.5).sum()), 4), library.describe(), sep=";")
"""


@cache
def told(**environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", TELL], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip().split(";")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        (lambda _: {"NEUROUTE_KERNELS": "off"}, "torch's own: NEUROUTE_KERNELS=off"),
        (lambda folder: {"PATH": str(folder), "ATEN_CPU_CAPABILITY": "avx2"}, "torch's own: no C compiler (cc)"),
        (lambda _: {"ATEN_CPU_CAPABILITY": "default"}, "torch's own: no AVX2"),
    ],
)
def test_without_it_torch_s_attention_does_the_work(
    environment: Callable[[Path], dict[str, str]], wanted: str, tmp_path: Path
) -> None:
    assert told(**environment(tmp_path)) == [told()[0], wanted]
