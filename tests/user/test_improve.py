"""Searches for a time: never longer, whatever is improved, and the same where nothing is cut by the clock."""

from collections.abc import Iterator
from itertools import count, islice
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

import neuroute
from neuroute.decoding.environment import ENVIRONMENT
from neuroute.user.improve import keep_best, solve_for
from stand_ins import Ship

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_shortest_in_ones_own_distances_is_kept() -> None:
    """By the network's distances solutions come in order; by one's own the second is the best."""
    batch = ENVIRONMENT.of("tsp").batch(np.random.default_rng(0).random((1, 6, 2)), torch.device("cpu"))
    tours = [torch.from_numpy(np.roll(range(6), k)[None]) for k in range(4)]
    own = {tuple(tour[0].tolist()): length for tour, length in zip(tours, (5.0, 3.0, 4.0, 3.0), strict=True)}
    best, trace = keep_best(iter(tours), batch, lambda tour: own[tuple(tour.tolist())])
    assert best.tolist() == tours[1][0].tolist()
    assert [length for _, length in trace] == [5, 3]


def test_a_search_ends_when_the_time_is_up() -> None:
    batch = ENVIRONMENT.of("tsp").batch(np.random.default_rng(0).random((1, 6, 2)), torch.device("cpu"))
    taken = []

    def endless() -> Iterator[Tensor]:
        for number in count():
            taken.append(number)
            yield torch.from_numpy(np.random.default_rng(number).permutation(6)[None])

    keep_best(endless(), batch, lambda tour: float(tour[0]), seconds=0)
    assert taken == [0]
    keep_best(islice(endless(), 5), batch, lambda tour: float(tour[0]))
    assert taken == [0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("problem", ["tsp", "cvrp", "vrpbtw"])
def test_a_search_goes_on_from_what_it_has(ship: Ship, problem: str) -> None:
    """The first solutions are the same with more time; all are solutions, which `Solution` checks."""
    ship(problem if problem in ("tsp", "cvrp") else "vrp")
    instance = neuroute.generate(problem, 12)[0]
    short, longer = (neuroute.solve(instance, seconds=s, seed=3) for s in (0.0, 0.3))
    assert [cost for _, cost in longer.trace][: len(short.trace)] == [cost for _, cost in short.trace]
    assert longer.cost <= short.cost


def test_routes_go_on_from_savings_and_say_so(ship: Ship, monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrained network's own routes are longer; they stay visible, and alone count where there is no time."""
    ship("cvrp")
    instance = neuroute.generate("cvrp", 30)[0]
    own, savings = neuroute.solve(instance, seconds=0), neuroute.solve(instance, "savings")
    assert (own.basis, own.origin) == (None, "")
    assert own.cost > savings.cost
    ticks = count()
    monkeypatch.setattr("neuroute.user.improve.time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    solution = neuroute.solve(instance, seconds=30)
    assert [cost for _, cost in solution.trace[:2]] == [own.cost, savings.cost]
    assert solution.basis == ("savings", savings.cost)
    assert solution.cost <= savings.cost
    longer, shorter = instance.format(own.cost), instance.format(savings.cost)
    assert f"improved from savings ({shorter}; the network's own routes: {longer})" in str(solution)


def test_its_own_routes_are_not_said_to_be_from_savings_of_the_same_cost(
    ship: Ship, monkeypatch: pytest.MonkeyPatch
) -> None:
    ship("cvrp")
    instance = neuroute.generate("cvrp", 12)[0]
    own = neuroute.solve(instance, seconds=0)
    monkeypatch.setattr("neuroute.user.by_network.solve_with", lambda *_: torch.from_numpy(own.stops)[None])
    solution = neuroute.solve(instance, seconds=1e-9)
    assert (solution.cost, solution.basis) == (own.cost, None)


def test_of_many_customers_no_own_routes_are_built(ship: Ship, monkeypatch: pytest.MonkeyPatch) -> None:
    ship("cvrp")
    instance = neuroute.generate("cvrp", 30)[0]
    savings = neuroute.solve(instance, "savings")
    model = neuroute.load_model("cvrp", "cpu")
    for module in ("improve", "by_network"):
        monkeypatch.setattr(f"neuroute.user.{module}.MOST_OWN", 29)
    with monkeypatch.context() as patch:
        patch.setattr(type(model.net), "decide", None)  # nothing may be decided where no time is left
        solution = neuroute.solve(instance, model=model, seconds=1e-9)
    assert (solution.cost, solution.basis) == (savings.cost, ("savings", savings.cost))
    assert f"improved from savings ({instance.format(savings.cost)})" in str(solution)
    later = neuroute.solve(instance, model=model, seconds=0.3)
    assert later.trace[0][1] == savings.cost >= later.cost
    assert neuroute.solve(instance, model=model, seconds=0).basis is None  # its own ones, when they are asked for


def test_a_longer_solution_is_not_gone_on_from_and_a_shorter_one_counts_though_the_time_is_over(ship: Ship) -> None:
    ship("cvrp")
    instance = neuroute.generate("cvrp", 12)[0]
    model, inputs = neuroute.load_model("cvrp", "cpu"), instance.inputs("cvrp")
    best = neuroute.solve(instance, "hgs", seconds=0.1).stops
    each = np.array([np.arange(1, 13), np.ones(12, dtype=int)])  # a route for each customer
    how = neuroute.Decoding(method="prc", longest=8)
    found = [
        solve_for(model.net, inputs, how, 4.0, instance.cost, seconds, other=other)[1]
        for other, seconds in ((each, 0.0), (best, 0.0), (best, 0.3))
    ]
    assert len(found[0]) == 1
    assert [trace[1][1] for trace in found[1:]] == pytest.approx([instance.cost(best)] * 2)


def test_many_starts_of_eight_images_are_what_tours_go_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    instance, ticks = neuroute.generate("tsp", 20)[0], count()
    images = neuroute.solve(instance, model="tsp", decoding=neuroute.Decoding(starts="all", augment=True))
    monkeypatch.setattr("neuroute.user.improve.time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    trace = neuroute.solve(instance, model="tsp", seconds=33).trace
    assert min(cost for _, cost in trace[:2]) == pytest.approx(images.cost)


def test_a_network_that_improves_nothing_takes_no_start(ship: Ship) -> None:
    ship("vrp")
    instance = neuroute.generate("ovrp", 8)[0]
    model = neuroute.load_model("vrp", "cpu")
    start = np.array([np.arange(1, 9), np.ones(8, dtype=int)])
    with pytest.raises(neuroute.NeurouteError, match="builds solutions and improves none; leave the start out"):
        neuroute.solve(instance, model=model, start=start)
    inputs = instance.inputs("vrp")
    with pytest.raises(neuroute.NeurouteError, match="builds solutions and improves none"):
        solve_for(model.net, inputs, neuroute.Decoding(), 4.0, instance.cost, 1.0, start=start)
