"""Bytes at the peak: by hand, and against what torch's own profiler sees."""

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile

from neuroute.evaluation.efficiency import LiveBytes, measure_memory, out_of_memory
from neuroute.networks.weights import build
from neuroute.plan.objects import Network

CPU = torch.device("cpu")
MB = 4 * 1000 * 250  # bytes of one tensor below


def tensor() -> Tensor:
    return torch.rand(1000, 250)


def test_peak_and_what_is_kept_by_hand() -> None:
    before = tensor()

    def call() -> Tensor:
        a = before + 1  # one
        b = a * 2  # two
        del a
        view = b[:10].relu_()  # no memory of its own
        c = torch.cat([b, b])  # three
        d = c.sum(dim=0)  # and a row
        return view + d[:1] * 0

    _, peak, kept = measure_memory(call, CPU)
    assert 3 * MB < peak < 3 * MB + 20_000
    assert kept == 4 * 10 * 250


def test_what_was_there_before_does_not_count() -> None:
    before = tensor()
    assert measure_memory(lambda: before.relu_().view(-1)[:7], CPU)[1:] == (0, 0)
    assert measure_memory(lambda: torch.add(before, before, out=before), CPU)[1:] == (0, 0)


def test_memory_that_is_freed_and_taken_again_counts_once() -> None:
    with torch.no_grad(), LiveBytes() as live:
        for _ in range(20):
            last = tensor() * 2
        assert live.now == MB
        assert MB < live.peak <= 3 * MB
        del last
        assert live.now == 0


def profiled(call: Any) -> int:
    """The same by the profiler, which sees what every kernel takes: its events are running sums of bytes."""
    with torch.no_grad(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        call()
    events = [e for e in found.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


@pytest.mark.parametrize("kind", ["sit:Sit", "lehd:Lehd", "bq:Bq"])
@pytest.mark.parametrize("math", [False, True])
def test_agrees_with_the_profiler(kind: str, math: bool) -> None:
    # Wide enough that without kernels the FFN is the peak: what torch's attention makes on its way is not seen.
    arguments = {"depth": 2, "width": 32, "heads": 4, "feed_forward": 256}
    net: Any = build(Network(kind=f"neuroute.networks.{kind}", arguments=arguments))
    rows = torch.rand(1, 300, 32 if kind == "lehd:Lehd" else 2)
    with sdpa_kernel(SDPBackend.MATH) if math else nullcontext():
        with torch.no_grad():
            net.decide(rows)
        _, peak, kept = measure_memory(lambda: net.decide(rows), CPU)
        expected = profiled(lambda: net.decide(rows))
    assert 4 * 298 <= kept <= 4 * (300 + 15)  # the logits, and those of other tokens that they are a view of
    held = 4 * 300**2 * 4  # bytes of the scores of four heads
    if math:  # the softmax makes a mask that no operation returns
        assert 0.85 * expected < peak <= expected
    else:
        assert peak == pytest.approx(expected, rel=0.02)
    if math and kind != "sit:Sit":
        assert peak > 2 * held
    else:
        assert peak < held


def test_what_torch_says_when_memory_runs_out() -> None:
    with pytest.raises(RuntimeError) as found:
        torch.empty(1 << 50)
    assert out_of_memory(found.value)
    assert out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not out_of_memory(RuntimeError("shapes cannot be multiplied"))
