"""Searches for a time: never longer, whatever is improved, and the same where nothing is cut by the clock."""

from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import neuroute
from neuroute.api.by_network import solutions
from neuroute.api.solution import Best, keep_best
from neuroute.api.within_time import start_of_search
from neuroute.decoding.environment import ENVIRONMENT
from own_parts import Starts
from stand_ins import Ship


class Costs:
    """An instance whose tours cost what is said, by their first node; they are all solutions."""

    def __init__(self, *costs: float) -> None:
        self.costs = costs

    def cost(self, tour: np.ndarray) -> float:
        return self.costs[int(tour[0])]


def tours(count: int) -> Iterator[np.ndarray]:
    yield from (np.roll(np.arange(count), -first) for first in range(count))


def test_the_shortest_in_ones_own_distances_is_kept_and_each_improvement_told() -> None:
    told = list[float]()
    best = Best(Costs(5.0, 3.0, 4.0, 3.0), lambda best: told.append(best.cost))
    keep_best(tours(4), best)
    assert (best.cost, best.iterations, best.stops.tolist()) == (3, 4, [1, 2, 3, 0])
    assert [length for _, length in best.trace] == told == [5, 3]


def test_a_search_ends_when_its_time_is_over_but_not_before_it_has_brought_one() -> None:
    taken = []

    def endless() -> Iterator[np.ndarray | None]:
        for number in count():
            taken.append(number)
            yield None if number < 3 else np.arange(6)

    best = Best(Costs(1.0))
    best.offer(np.arange(6))  # a construction is no solution of the search
    keep_best(endless(), best, seconds=0)
    assert taken == [0, 1, 2, 3]


def tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second pass each time that the clock of searches is looked at."""
    ticks = count()
    for module in ("solution", "by_network"):
        monkeypatch.setattr(f"neuroute.api.{module}.time", SimpleNamespace(perf_counter=lambda: next(ticks)))


@pytest.mark.parametrize("problem", ["tsp", "cvrp", "vrpbtw"])
def test_a_search_goes_on_from_the_best_construction(ship: Ship, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a solution before the network decides anything, and is never worse."""
    ship(problem if problem in ("tsp", "cvrp") else "vrp")
    instance = neuroute.generate(problem, 12)[0]
    built = start_of_search(instance)
    tick(monkeypatch)
    found = [neuroute.solve(instance, seconds=seconds, seed=3) for seconds in (1, 300)]
    assert all(each.cost <= each.trace[0][1] <= built.cost for each in found)
    assert neuroute.solve(instance, seconds=0).basis is None  # its own one, when that is asked for


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_of_many_stops_no_own_solution_is_built(ship: Ship, monkeypatch: pytest.MonkeyPatch, problem: str) -> None:
    """A default refuses no size, and pieces of a construction are re-built at any."""
    ship(problem, nodes=(4, 20))
    instance = neuroute.generate(problem, 30)[0]
    monkeypatch.setattr("neuroute.api.by_network.MOST_OWN", 29)
    tick(monkeypatch)
    solution = neuroute.solve(instance, seconds=400)
    assert solution.basis is not None
    assert solution.basis[2] is None
    assert solution.cost <= solution.basis[1] <= start_of_search(instance).cost


def test_an_interrupted_search_has_what_it_found(ship: Ship, monkeypatch: pytest.MonkeyPatch) -> None:
    ship("tsp")
    instance = neuroute.generate("tsp", 12)[0]
    model = neuroute.load_model("tsp", "cpu")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model.net), "decide", interrupt)
    with pytest.raises(KeyboardInterrupt) as stop:
        neuroute.solve(instance, model=model, seconds=60)
    assert stop.value.best.cost <= start_of_search(instance).cost
    assert "interrupted after" in str(stop.value.best)
    with pytest.raises(KeyboardInterrupt) as stop:
        neuroute.solve(instance, model=model, seconds=0)
    assert stop.value.best is None


@pytest.mark.slow
def test_many_starts_of_eight_images_are_what_tours_go_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = neuroute.generate("tsp", 20)[0]
    images = neuroute.solve(instance, model="tsp", decoding=neuroute.Decoding(starts="all", augment=True))
    tick(monkeypatch)
    assert neuroute.solve(instance, model="tsp", seconds=400).cost <= images.cost * (1 + 1e-9)


def search(net: Any, instance: neuroute.Instance, seconds: float) -> Best:
    """What a network finds without a construction to go on from."""
    best, environment = Best(instance), ENVIRONMENT.of(net.problem)
    batch = environment.batch(instance.inputs(net.problem), torch.device("cpu"))
    found = solutions(net, batch, neuroute.Decoding(), 4.0, 0, best, seconds)
    with torch.inference_mode():
        keep_best((several[int(batch.lengths(several[None])[0].argmin())].numpy() for several in found), best, seconds)
    return best


def test_a_network_of_many_starts_improves_given_routes() -> None:
    instance = neuroute.generate("cvrp", 12)[0]
    start = np.array([np.arange(1, 13), np.ones(12, dtype=int)])  # a route for each customer
    decoding = neuroute.Decoding(method="prc", iterations=4, longest=6)
    assert neuroute.solve(instance, model="cvrp", decoding=decoding, start=start).cost < instance.cost(start)
    before = neuroute.Solution(instance, [[customer] for customer in range(1, 13)])
    assert neuroute.solve(instance, model="cvrp", seconds=0.5, start=before).cost < before.cost


def test_a_network_of_many_starts_without_paths_searches_by_sampling() -> None:
    instance = neuroute.generate("tsp", 9)[0]
    model = neuroute.Model(Starts(), {"run": "mine"}, torch.device("cpu"))
    with pytest.raises(neuroute.NeurouteError, match="has no `path_rows`"):
        neuroute.solve(instance, model=model, decoding="rrc5")
    best = search(model.net, instance, 0.0)
    assert best.trace[-1][1] <= neuroute.solve(instance, model=model, seconds=0).cost
    assert neuroute.solve(instance, model=model, seconds=0.5).cost <= best.trace[-1][1]
    with pytest.raises(neuroute.NeurouteError, match="mine builds solutions and improves none"):
        neuroute.solve(instance, model=model, start=np.arange(9))


@pytest.mark.slow
def test_what_it_goes_on_from_is_said_and_improved_only_where_something_was_gained(
    ship: Ship, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untrained network's own routes are longer; they stay visible."""
    ship("cvrp")
    instance = neuroute.generate("cvrp", 30)[0]
    own, built = neuroute.solve(instance, seconds=0), start_of_search(instance, 40)
    assert (own.basis, own.origin) == (None, "")
    assert own.cost > built.cost
    tick(monkeypatch)
    solution = neuroute.solve(instance, seconds=400)
    assert solution.basis == (built.method, built.cost, own.cost)
    assert solution.cost < built.cost
    longer, shorter = instance.format(own.cost), instance.format(built.cost)
    assert f"improved from {built.method} ({shorter}; the network's own: {longer})" in str(solution)
    short = neuroute.solve(instance, seconds=1)  # over before anything is improved
    assert (short.cost, short.basis) == (built.cost, (built.method, built.cost, own.cost))
    assert "improved" not in str(short)
    assert f", by {built.method}, which the network did not shorten" in str(short)
