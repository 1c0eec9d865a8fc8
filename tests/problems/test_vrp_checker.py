"""The checker of the 16 vehicle routing problems: every way to break a rule is seen, and named."""

from dataclasses import replace

import numpy as np
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import Vrp, fault, from_routes, valid

LINE = np.array([[[0, 0], [1, 0], [2, 0], [3, 0], [4, 0]]], dtype=np.float32)  # the depot, and customers 1 to 4 behind


def line(demand: list[int], capacity: int = 5, **more) -> Vrp:
    return Vrp(LINE, np.array([[0, *demand]]), np.array([capacity]), **more)


def why(batch: Vrp, routes: list[list[int]], rule: str = "network", tolerance: float = 1e-5) -> str | None:
    solution = from_routes(routes)
    found = fault(batch, 0, solution, rule, tolerance)
    assert valid(batch, solution[None], rule, tolerance).tolist() == [found is None]
    return found


def test_everybody_is_served_once() -> None:
    batch = line([1, 1, 1, 1])
    assert why(batch, [[1, 2], [3, 4]]) is None
    assert why(batch, [[1, 2], [3, 3]]) == "customer 3 is served 2 times"
    assert why(batch, [[1, 2], [3, 5]]) == "there is no customer 5 among 1..4"
    assert why(batch, [[0, 2], [3, 4]]) == "there is no customer 0 among 1..4"
    for flags in ([0, 0, 1, 0], [1, 0, 2, 0]):
        assert "flags" in fault(batch, 0, np.array([[1, 2, 3, 4], flags]))


def test_capacity() -> None:
    assert why(line([2, 3, 2, 3]), [[1, 2], [3, 4]]) is None
    assert why(line([2, 3, 3, 3]), [[1, 2], [4, 3]]) == "route 2, customer 3: more than what is left in the vehicle"


# demands, routes, allowed by: network, in order, free start
@pytest.mark.parametrize(
    ("demand", "routes", "allowed"),
    [
        ([3, 2, -2, -3], [[1, 2, 3, 4]], (1, 1, 1)),
        ([3, 2, -2, -3], [[1, 3, 2, 4]], (1, 1, 1)),
        ([3, 4, -2, -3], [[1, 3, 2, 4]], (1, 1, 1)),  # delivers more than it starts with
        ([3, 3, -3, -3], [[3, 1, 4, 2]], (0, 0, 1)),  # a pick-up cannot be first, but in a vehicle that is not full
        ([3, 3, -3, -3], [[1, 3, 4, 2]], (0, 0, 0)),  # more than the capacity
        ([3, 2, -2, -3], [[1, 2], [3, 4]], (1, 1, 1)),  # nothing to be delivered is left: starts empty
        ([3, 2, -2, -3], [[3, 4], [1, 2]], (1, 0, 1)),
        ([3, 2, -3, -3], [[1, 2], [3, 4]], (0, 0, 0)),
        ([3, 2, -2, -3], [[1, 2, 3], [4]], (1, 1, 1)),
        ([3, 2, -2, -3], [[1], [3, 2], [4]], (0, 0, 1)),
    ],
)
def test_three_readings_of_the_backhaul_rule(demand: list[int], routes: list[list[int]], allowed: tuple) -> None:
    batch = line(demand)
    assert tuple(int(why(batch, routes, rule) is None) for rule in ("network", "in order", "free start")) == allowed


def test_a_free_start_is_some_load() -> None:
    """Against trying every load."""
    rng = np.random.default_rng(1)
    seen = set()
    for _ in range(300):
        demand = rng.integers(-4, 5, 4)
        tried = any(all(0 <= load - s <= 5 for s in np.cumsum(demand)) for load in range(6))
        assert (why(line(demand.tolist()), [[1, 2, 3, 4]], "free start") is None) == tried
        seen.add(tried)
    assert seen == {True, False}


def test_the_length_of_a_route_and_open_routes() -> None:
    batch = line([1, 1, 1, 1], limit=np.array([6.0]))
    found = why(batch, [[1], [2], [3], [4]])
    assert found == "route 4, way home: a length of 8, more than the limit 6"
    assert why(replace(batch, open=True), [[1], [2], [3], [4]]) is None
    assert why(replace(batch, open=True), [[4, 3, 2], [1]]) is None
    assert why(replace(batch, open=True), [[4, 3, 2, 1]]) == "route 1, customer 1: a length of 7, more than the limit 6"
    assert why(replace(batch, limit=np.array([8.0])), [[1], [2], [3], [4]]) is None


def windowed(windows: list[list[float]], service: float = 1.0, **more) -> Vrp:
    times = np.array([windows], dtype=np.float32)
    return line([1, 1, 1, 1], windows=times, service=np.array([[0] + [service] * 4], dtype=np.float32), **more)


def test_windows_waiting_and_service() -> None:
    wide = [0, 20]
    assert why(windowed([wide] * 5), [[1, 2, 3, 4]]) is None  # 4 there, 4 served, 4 back
    assert why(windowed([[0, 11.9], *[wide] * 4]), [[1, 2, 3, 4]]) == (
        "route 1, way home: reached at 12, after its window closes at 11.9"
    )
    assert why(windowed([[0, 11.9], *[wide] * 4], open=True), [[1, 2, 3, 4]]) is None
    late = "route 1, customer 2: reached at 3, after its window closes at 2.9"
    assert why(windowed([wide, wide, [0, 2.9], wide, wide]), [[1, 2, 3, 4]]) == late
    assert why(windowed([wide, wide, [0, 2.9], wide, wide], service=0.9), [[1, 2, 3, 4]]) is None
    waits = windowed([wide, [5, 9], [0, 6.5], wide, wide])  # leaves customer 1 at 6
    assert why(waits, [[1, 2, 3, 4]]) == "route 1, customer 2: reached at 7, after its window closes at 6.5"
    assert why(waits, [[2, 1, 3, 4]]) is None


def test_tolerance() -> None:
    batch = windowed([[0, 20], [0, 20], [0, 3 - 5e-4], [0, 20], [0, 20]])
    assert why(batch, [[1, 2, 3, 4]]) is not None
    assert why(batch, [[1, 2, 3, 4]], tolerance=1e-3) is None
    limited = line([1, 1, 1, 1], limit=np.array([8 - 5e-4]))
    assert why(limited, [[1, 2, 3, 4]]) is not None
    assert why(limited, [[1, 2, 3, 4]], tolerance=1e-3) is None


def test_an_unknown_rule_is_one_line() -> None:
    with pytest.raises(NeurouteError, match="no backhaul rule 'strict'; there are: network, in order, free start"):
        valid(line([1, 1, 1, 1]), from_routes([[1, 2, 3, 4]])[None], "strict")
