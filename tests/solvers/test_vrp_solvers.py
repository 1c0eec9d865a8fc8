"""OR-Tools and PyVRP on the 16 routing problems: feasible, optimal where that is easy, and plain about what fails."""

import itertools
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_specs import CVRP, VRP
from neuroute.datasets.streams import vrp_dataset
from neuroute.problems.vrp import SWITCHES, Vrp, fault, from_routes, lengths, to_routes, valid
from neuroute.solvers.base import on_vrp_grid
from neuroute.solvers.ortools import SECONDS_PER_CUSTOMER, solve_vrp
from neuroute.solvers.pyvrp import descend
from neuroute.solvers.pyvrp import solve_vrp as solve_with_pyvrp
from neuroute.solvers.registry import get
from neuroute.specs.objects import Dataset

pytest.importorskip("ortools")
pytest.importorskip("pyvrp")

WITHOUT_BACKHAULS = [name for name, switches in SWITCHES.items() if not switches.backhaul]
brief = partial(solve_vrp, seed=0, solutions=100)


def instances(variant: str, customers: int, count: int = 1) -> Vrp:
    """Loads, limit and windows are so tight that each of them rules out some solutions."""
    switches = SWITCHES[variant]
    rng = np.random.default_rng(customers)
    coords = rng.random((count, customers + 1, 2)).astype(np.float32)
    demand = rng.integers(3, 9, (count, customers + 1))
    demand[:, 0] = 0
    if switches.backhaul:
        demand[:, 1 : 1 + max(2, customers // 4)] *= -1
    away = np.linalg.norm(coords - coords[:, :1], axis=-1)
    middle = rng.uniform(away, 2.8 - away)
    windows = np.stack([middle - 0.25, middle + 0.25], axis=-1)
    windows[:, 0] = 0, 3
    service = np.where(np.arange(customers + 1) > 0, 0.1, 0) * np.ones((count, 1))
    return Vrp(
        coords=coords,
        demand=demand.astype(np.int64),
        capacity=np.full(count, 13),
        open=switches.open,
        limit=2.1 * away.max(1) if switches.limit else None,
        windows=windows.clip(0, 3).astype(np.float32) if switches.windows else None,
        service=service.astype(np.float32) if switches.windows else None,
    )


def shortest(instance: Vrp, rule: str) -> float:
    """Of all solutions there are."""
    customers = instance.customers
    starts = [(1, *rest) for rest in itertools.product((0, 1), repeat=customers - 1)]
    every = np.array(list(itertools.product(itertools.permutations(range(1, customers + 1)), starts)))
    batch = instance[np.zeros(len(every), dtype=np.int64)]
    by_length = lengths(batch, every)
    for row in np.argsort(by_length):
        if fault(instance, 0, every[row], rule) is None:
            return float(by_length[row])
    raise AssertionError("no solution at all")


@pytest.mark.slow
@pytest.mark.parametrize("variant", SWITCHES)
def test_ortools_keeps_to_every_constraint(variant):
    batch = instances(variant, 12, count=2)
    assert batch.variant == variant
    for rule, reading in (("free start", "free start"), ("network", "in order")):
        solutions = np.stack([brief(batch[i : i + 1], rule=rule) for i in range(2)])
        assert solutions.dtype == np.int64
        assert [fault(batch, i, solution, reading) for i, solution in enumerate(solutions)] == [None, None]


@pytest.mark.parametrize("rule", ["free start", "network"])
@pytest.mark.parametrize("variant", SWITCHES)
def test_ortools_finds_the_shortest_solution_of_four_customers(variant, rule):
    instance = instances(variant, 4)
    found = lengths(instance, brief(instance, rule=rule)[None])
    assert found == pytest.approx(shortest(instance, rule), abs=1e-6)


@pytest.mark.parametrize("variant", WITHOUT_BACKHAULS)
def test_pyvrp_does_both(variant):
    instance, larger = instances(variant, 4), instances(variant, 12)
    found = lengths(instance, solve_with_pyvrp(instance, 0, 200)[None])
    assert found == pytest.approx(shortest(instance, "network"), abs=1e-6)
    assert fault(larger, 0, solve_with_pyvrp(larger, 0, 100)) is None


@pytest.mark.parametrize("variant", WITHOUT_BACKHAULS)
def test_a_local_search_shortens_routes_and_keeps_to_constraints(variant):
    instance = instances(variant, 12)
    before = [[customer] for customer in range(1, 13)]
    after = from_routes(descend(on_vrp_grid(instance), before, 0))
    assert fault(instance, 0, after) is None
    assert lengths(instance, after[None]) < 0.9 * lengths(instance, from_routes(before)[None])


@pytest.mark.parametrize("customers", [1, 2])
@pytest.mark.parametrize("solve", [brief, partial(solve_with_pyvrp, seed=0, iterations=10)])
def test_next_to_no_customers_are_no_trouble(solve, customers):
    instance = instances("OVRPLTW", customers)
    assert fault(instance, 0, solve(instance)) is None


def test_vehicles_that_start_empty_only_pick_up():
    line = np.array([[[0, 0], [0.1, 0], [0.2, 0], [0.3, 0], [0.4, 0]]], dtype=np.float32)
    mixed = Vrp(line, np.array([[0, -5, -5, 5, 5]]), np.array([10]), open=True)
    free, network = (brief(mixed, rule=rule)[None] for rule in ("free start", "network"))
    assert lengths(mixed, free) == pytest.approx(0.4)  # picks up first
    assert lengths(mixed, network) == pytest.approx(0.6)  # one vehicle delivers, one starts empty
    assert valid(mixed, network, "in order").all()
    only = Vrp(line, np.array([[0, -5, -5, -5, -5]]), np.array([10]))
    collected = brief(only, rule="network")[None]
    assert lengths(only, collected) == pytest.approx(1.2)
    assert valid(only, collected, "in order").all()


@pytest.mark.parametrize("solve", [brief, partial(solve_with_pyvrp, seed=7, iterations=100)])
def test_results_repeat_and_do_not_depend_on_the_unit(solve):
    instance = instances("VRPLTW", 15)
    first, again = solve(instance), solve(instance)
    np.testing.assert_array_equal(first, again)
    times_eight = replace(instance, **{name: getattr(instance, name) * 8 for name in ("coords", "limit", "windows")})
    larger = replace(times_eight, service=instance.service * 8)
    assert fault(larger, 0, solve(larger)) is None
    assert lengths(larger, solve(larger)[None]) / 8 == pytest.approx(lengths(instance, first[None]), rel=0.05)


def test_time_ends_the_search():
    instance = instances("VRPTW", 12)
    start = time.perf_counter()
    assert fault(instance, 0, solve_vrp(instance, 0, seconds=0.6)) is None
    assert 0.5 < time.perf_counter() - start < 60  # by no clock it would have no end


def test_registered_searches_have_the_published_time():
    assert SECONDS_PER_CUSTOMER * 50 == 20
    assert get("ortools-x10").solve_vrp.keywords["per_customer"] * 100 == 400
    assert get("ortools-network").solve_vrp.keywords == {"rule": "network"}
    for name in ("ortools", "ortools-x10", "ortools-network", "pyvrp"):
        assert get(name).name == name


@pytest.mark.parametrize("name", ["ortools", "pyvrp"])
def test_routes_of_cvrp_are_those_of_the_same_problem_here(name):
    instance = instances("CVRP", 6)
    setting = {"solutions": 100} if name == "ortools" else {"iterations": 100}
    routes = to_routes(CVRP.solve(get(name).variant(name, "solve_vrp", **setting), instance, 0))
    assert sorted(customer for route in routes for customer in route) == [1, 2, 3, 4, 5, 6]
    assert max(instance.demand[0, route].sum() for route in routes) <= 13


@pytest.mark.parametrize("solve", [brief, partial(solve_with_pyvrp, seed=0, iterations=20)])
@pytest.mark.parametrize("fault_of", ["demand", "limit", "window", "late opening"])
def test_an_instance_without_solution_is_one_clear_line(solve, fault_of):
    instance = instances("VRPLTW", 5)
    if fault_of == "demand":
        instance.demand[0, 3] = 14
    elif fault_of == "limit":
        instance = replace(instance, limit=np.array([0.01]))
    else:
        instance.windows[0, 3] = (0, 0.001) if fault_of == "window" else (5, 6)
    with pytest.raises(NeurouteError, match="no feasible routes found; check demands, windows"):
        solve(instance)


# -- short searches, whose labels repeat -----------------------------------------------------------------------------


def one_of(variant: str) -> Vrp:
    return vrp_dataset(Dataset(problem="vrp", variant=variant, n=9, count=1))


@pytest.mark.parametrize("variant", SWITCHES)
def test_a_number_of_solutions_ends_at_the_same_place(variant: str) -> None:
    instance = one_of(variant)
    first, again = (VRP.solve(get("ortools-short"), instance, seed) for seed in (0, 1))
    np.testing.assert_array_equal(first, again)
    assert VRP.valid(instance, first[None]).all()


def test_solvers_of_the_cvrp_solve_it_as_a_variant() -> None:
    pytest.importorskip("hygese")
    instance = one_of("CVRP")
    found, short = VRP.solve(get("hgs-short"), instance, 0), VRP.solve(get("ortools-short"), instance, 0)
    assert valid(instance, found[None]).all()
    assert lengths(instance, found[None])[0] <= lengths(instance, short[None])[0] + 1e-6
    with pytest.raises(NeurouteError, match="'hgs-short' does not solve OVRP"):
        VRP.solve(get("hgs-short"), one_of("OVRP"), 0)
