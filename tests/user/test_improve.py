"""Searches for a time: never longer, whatever is improved, and the same where nothing is cut by the clock."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import count, islice
from time import perf_counter, sleep
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

import neuroute
from neuroute.core.errors import Interrupted
from neuroute.decoding.decode import decode
from neuroute.decoding.environment import ENVIRONMENT
from neuroute.networks.lehd import LehdCvrp
from neuroute.user.by_network import Best, TimeIsOverError, ended, keep_best, search_for
from neuroute.user.within_time import Construction, construct
from own_parts import Starts
from stand_ins import Ship

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_shortest_in_ones_own_distances_is_kept() -> None:
    """By the network's distances solutions come in order; by one's own the second is the best."""
    batch = ENVIRONMENT.of("tsp").batch(np.random.default_rng(0).random((1, 6, 2)), torch.device("cpu"))
    tours = [torch.from_numpy(np.roll(range(6), k)[None]) for k in range(4)]
    own = {tuple(tour[0].tolist()): length for tour, length in zip(tours, (5.0, 3.0, 4.0, 3.0), strict=True)}
    best = Best(lambda tour: own[tuple(tour.tolist())])
    keep_best(iter(tours), batch, best)
    assert best.solution.tolist() == tours[1][0].tolist()
    assert [length for _, length in best.trace] == [5, 3]


def test_a_search_ends_when_the_time_is_up() -> None:
    batch = ENVIRONMENT.of("tsp").batch(np.random.default_rng(0).random((1, 6, 2)), torch.device("cpu"))
    taken = []

    def endless() -> Iterator[Tensor]:
        for number in count():
            taken.append(number)
            yield torch.from_numpy(np.random.default_rng(number).permutation(6)[None])

    keep_best(endless(), batch, Best(lambda tour: float(tour[0])), seconds=0)
    assert taken == [0]
    keep_best(islice(endless(), 5), batch, Best(lambda tour: float(tour[0])))
    assert taken == [0, 0, 1, 2, 3, 4]


def tick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a second pass each time that the clock of searches is looked at."""
    ticks = count()
    monkeypatch.setattr("neuroute.user.by_network.time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    monkeypatch.setattr("neuroute.user.within_time.BUILD_LIMIT", 1000)  # of the machine's own clock


@pytest.mark.parametrize("problem", ["tsp", "cvrp", "vrpbtw"])
def test_a_search_goes_on_from_the_best_construction(ship: Ship, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a solution before the network decides anything, and is never worse."""
    ship(problem if problem in ("tsp", "cvrp") else "vrp")
    instance = neuroute.generate(problem, 12)[0]
    built = construct(instance)
    tick(monkeypatch)
    found = [neuroute.solve(instance, seconds=seconds, seed=3) for seconds in (1, 300)]
    assert all(each.cost <= each.trace[0][1] <= built.cost for each in found)
    assert neuroute.solve(instance, seconds=0).basis is None  # its own one, when that is asked for


def test_what_it_goes_on_from_is_said_and_improved_only_where_something_was_gained(
    ship: Ship, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untrained network's own routes are longer; they stay visible."""
    ship("cvrp")
    instance = neuroute.generate("cvrp", 30)[0]
    own, savings = neuroute.solve(instance, seconds=0), neuroute.solve(instance, "savings")
    assert (own.basis, own.origin) == (None, "")
    assert own.cost > savings.cost
    tick(monkeypatch)
    solution = neuroute.solve(instance, seconds=3000)
    assert solution.basis == ("savings", savings.cost, own.cost)
    assert solution.cost < savings.cost
    longer, shorter = instance.format(own.cost), instance.format(savings.cost)
    assert f"improved from savings ({shorter}; the network's own: {longer})" in str(solution)
    short = neuroute.solve(instance, seconds=1)  # over before the network's first decision
    assert (short.cost, short.basis) == (savings.cost, ("savings", savings.cost, None))
    assert "improved" not in str(short)
    assert ", by savings, which the network did not shorten" in str(short)


def test_a_ctrl_c_while_the_network_loads_answers_with_a_solution(ship: Ship, monkeypatch: pytest.MonkeyPatch) -> None:
    ship("tsp")
    instance = neuroute.generate("tsp", 12)[0]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("neuroute.user.model.load_model", interrupted)
    with pytest.raises(Interrupted) as stop:
        neuroute.solve(instance)
    assert stop.value.best.cost == pytest.approx(instance.length(stop.value.best.tour))
    assert "interrupted after" in stop.value.best.note


def test_its_own_routes_are_not_said_to_be_from_savings_of_the_same_cost(
    ship: Ship, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship("cvrp")
    instance = neuroute.generate("cvrp", 12)[0]
    own = neuroute.solve(instance, seconds=0)
    monkeypatch.setattr(Construction, "answer", lambda *_: neuroute.Solution(instance, own.stops, "savings"))
    tick(monkeypatch)
    assert neuroute.solve(instance, seconds=300).basis is None


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_of_many_stops_no_own_solution_is_built(ship: Ship, monkeypatch: pytest.MonkeyPatch, problem: str) -> None:
    """A default refuses no size, and pieces of a construction are re-built at any."""
    ship(problem, nodes=(4, 20))
    instance = neuroute.generate(problem, 30)[0]
    monkeypatch.setattr("neuroute.user.by_network.MOST_OWN", 29)
    tick(monkeypatch)
    solution = neuroute.solve(instance, seconds=3000)
    assert solution.basis is not None
    assert solution.basis[2] is None
    assert solution.cost <= solution.basis[1] <= construct(instance).cost


def test_a_network_that_is_too_slow_is_told_at_its_first_decisions() -> None:
    """Of a thousand decisions of some milliseconds in 50 ms it makes ten; without a solution it makes them all."""
    net = SimpleNamespace(decide=lambda: sleep(0.005))
    best = Best(lambda tour: float(tour[0]))
    with ended(net, perf_counter() + 0.05, best, decisions=1000):
        for _ in range(30):
            net.decide()
    best.offer(np.arange(3))
    made = 0
    with suppress(TimeIsOverError), ended(net, perf_counter() + 3600, best, decisions=10**9):
        while made < 1000:
            net.decide()
            made += 1
    assert made < 10
    with pytest.raises(TimeIsOverError), ended(net, perf_counter() - 1, best):
        net.decide()


def test_an_interrupted_search_has_what_it_found(ship: Ship, monkeypatch: pytest.MonkeyPatch) -> None:
    ship("tsp")
    instance = neuroute.generate("tsp", 12)[0]
    model = neuroute.load_model("tsp", "cpu")

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(model.net), "decide", interrupt)
    with pytest.raises(KeyboardInterrupt) as stop:
        neuroute.solve(instance, model=model, seconds=60)
    assert stop.value.best.cost <= construct(instance).cost
    assert "interrupted after" in str(stop.value.best)
    with pytest.raises(KeyboardInterrupt) as stop:
        neuroute.solve(instance, model=model, seconds=0)
    assert stop.value.best is None


@pytest.mark.slow
def test_many_starts_of_eight_images_are_what_tours_go_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = neuroute.generate("tsp", 20)[0]
    images = neuroute.solve(instance, model="tsp", decoding=neuroute.Decoding(starts="all", augment=True))
    tick(monkeypatch)
    assert neuroute.solve(instance, model="tsp", seconds=3000).cost <= images.cost * (1 + 1e-9)


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_the_smallest_instances_are_searched(problem: str) -> None:
    corners = np.array([[0.5, 0.5], [0.1, 0.2], [0.8, 0.3], [0.4, 0.9]])
    demand = {"demand": np.array([0, 6, 6, 3]), "capacity": 10} if problem == "cvrp" else {}
    instance = neuroute.Instance.from_arrays(corners, **demand)
    assert neuroute.solve(instance, model=problem, seconds=0.3).cost > 0
    if problem == "cvrp":  # its customers are fewer than a sub-path has
        paths, best = LehdCvrp(1, 8, 2, 8), Best(instance.cost)
        search_for(paths, instance.inputs("cvrp"), neuroute.Decoding(), 4.0, best, 0.1)
        assert best.own is not None
        with pytest.raises(neuroute.NeurouteError, match="4 stops or more, and there are 3"):
            decode("cvrp", paths, instance.inputs("cvrp"), neuroute.Decoding(method="prc", iterations=1))


def test_a_network_of_many_starts_improves_given_routes() -> None:
    instance = neuroute.generate("cvrp", 12)[0]
    start = np.array([np.arange(1, 13), np.ones(12, dtype=int)])  # a route for each customer
    decoding = neuroute.Decoding(method="prc", iterations=4, longest=6)
    assert neuroute.solve(instance, model="cvrp", decoding=decoding, start=start).cost < instance.cost(start)
    assert neuroute.solve(instance, model="cvrp", seconds=0.5, start=start).cost < instance.cost(start)


def test_a_network_of_many_starts_without_paths_searches_by_sampling() -> None:
    instance = neuroute.generate("tsp", 9)[0]
    model = neuroute.Model(Starts(), {"run": "mine"}, torch.device("cpu"))
    inputs, best = instance.inputs("tsp"), Best(instance.cost)
    with pytest.raises(neuroute.NeurouteError, match="has no `path_rows`"):
        neuroute.solve(instance, model=model, decoding="rrc5")
    search_for(model.net, inputs, neuroute.Decoding(), 4.0, best, 0.0)
    assert best.trace[-1][1] <= neuroute.solve(instance, model=model, seconds=0).cost
    assert neuroute.solve(instance, model=model, seconds=0.5).cost <= best.trace[-1][1]
    with pytest.raises(neuroute.NeurouteError, match="mine builds solutions and improves none"):
        neuroute.solve(instance, model=model, start=np.arange(9))


def test_a_network_that_improves_nothing_takes_no_start(ship: Ship) -> None:
    ship("vrp")
    instance = neuroute.generate("ovrp", 8)[0]
    model = neuroute.load_model("vrp", "cpu")
    start = np.array([np.arange(1, 9), np.ones(8, dtype=int)])
    with pytest.raises(neuroute.NeurouteError, match="builds solutions and improves none; leave the start out"):
        neuroute.solve(instance, model=model, start=start)
    inputs = instance.inputs("vrp")
    with pytest.raises(neuroute.NeurouteError, match="builds solutions and improves none"):
        search_for(model.net, inputs, neuroute.Decoding(), 4.0, Best(instance.cost), 1.0, start=start)
