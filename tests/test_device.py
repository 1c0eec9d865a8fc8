"""How many threads are taken: by what pieces of work have cost, and what else holds the cores.  Seeds of streams."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from neuroute.core import device
from neuroute.core.device import Threads, stream_seed

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def two() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def settle(
    monkeypatch: pytest.MonkeyPatch, costs: dict[int, float], share: float = 1.0, busy: bool = False
) -> tuple[Threads, list[int]]:
    """Threads that are tried on pieces which cost so many seconds in so many device, and those of each piece."""
    now, used = [0.0], [0.0]
    clock = SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: used[0])
    monkeypatch.setattr(device, "time", clock)
    monkeypatch.setattr(device, "is_busy", lambda: busy)
    taken = list[int]()
    with Threads(None, CPU) as pace:
        while pace.chosen is None:
            with pace.piece():
                taken.append(torch.get_num_threads())
                now[0] += costs[taken[-1]]
                used[0] += costs[taken[-1]] * share
        assert torch.get_num_threads() == pace.chosen
    return pace, taken


def test_the_faster_number_is_taken_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pace, taken = settle(monkeypatch, {1: 1.0, 2: 0.6})
    assert (pace.chosen, pace.reason) == (2, "2 threads: 1.7 times as fast as 1")
    assert taken[: 1 + device.PIECES] == [1] * (1 + device.PIECES)
    assert taken.count(2) == device.PIECES
    assert torch.get_num_threads() == 2  # as before
    assert settle(monkeypatch, {1: 1.0, 2: 1.5})[0].reason == "1 thread: 2 take 1.5 times as long"


def test_one_piece_that_is_hopeless_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    pace, taken = settle(monkeypatch, {1: 1.0, 2: 20.0})
    assert (pace.chosen, taken.count(2)) == (1, 1)


@pytest.mark.parametrize(("share", "busy"), [(0.5, False), (1.0, True)])
def test_where_other_work_holds_the_cores_several_are_not_even_tried(
    monkeypatch: pytest.MonkeyPatch, share: float, busy: bool
) -> None:
    pace, taken = settle(monkeypatch, {1: 1.0, 2: 0.5}, share, busy)
    assert (pace.reason, set(taken)) == ("1 thread: other work holds the cores", {1})


def test_what_is_fixed_stays() -> None:
    with Threads(1, CPU) as pace, pace.piece():
        assert (pace.chosen, pace.reason, torch.get_num_threads()) == (1, "", 1)


def test_streams_and_numbers_differ_in_what_a_generator_heeds() -> None:
    seeds = {stream_seed(stream, number) for stream in range(20) for number in range(2000)}
    assert len(seeds) == 20 * 2000
    assert all(0 <= seed < 2**32 for seed in seeds)
    drawn = {float(torch.rand((), generator=torch.Generator().manual_seed(stream_seed(s, 0)))) for s in range(50)}
    assert len(drawn) == 50
