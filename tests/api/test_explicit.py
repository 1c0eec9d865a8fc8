"""Files of distances: read in every format, and solved by every solver that takes distances."""

from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import one_line

import neuroute
from neuroute.api.classical import available, solve_with
from neuroute.api.within_time import construct
from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.tsplib import parse

N = 8
WAYS = np.random.default_rng(5).integers(1, 100, (N, N))
np.fill_diagonal(WAYS, 0)
SYMMETRIC = np.triu(WAYS) + np.triu(WAYS).T
DEMAND = np.array([0, 3, 2, 4, 1, 2, 3, 2])
CUTS = {
    "FULL_MATRIX": np.ones((N, N), dtype=bool),
    "UPPER_ROW": np.triu(np.ones((N, N), dtype=bool), 1),
    "LOWER_ROW": np.tril(np.ones((N, N), dtype=bool), -1),
    "UPPER_DIAG_ROW": np.triu(np.ones((N, N), dtype=bool)),
    "LOWER_DIAG_ROW": np.tril(np.ones((N, N), dtype=bool)),
}


def text(ways: np.ndarray, form: str = "FULL_MATRIX", kind: str = "TSP", more: str = "") -> str:
    """A file whose lines break anywhere, as those of TSPLIB do."""
    numbers = list(map(str, ways[CUTS[form]].tolist()))
    rows = "\n".join(" ".join(numbers[i : i + 5]) for i in range(0, len(numbers), 5))
    return (
        f"NAME: t\nTYPE: {kind}\nDIMENSION: {len(ways)}\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: {form}\n"
        f"EDGE_WEIGHT_SECTION\n{rows}\n{more}EOF\n"
    )


def loads(demand: np.ndarray = DEMAND, depot: int = 1) -> str:
    rows = "\n".join(f"{i} {d}" for i, d in enumerate(demand.tolist(), 1))
    return f"CAPACITY: 7\nDEMAND_SECTION\n{rows}\nDEPOT_SECTION\n{depot}\n-1\n"


def shortest(ways: np.ndarray) -> int:
    every = np.array([(0, *p) for p in permutations(range(1, N))])
    return int(ways[every, np.roll(every, -1, axis=1)].sum(1).min())


@pytest.mark.parametrize("form", CUTS)
def test_every_format_gives_the_same_distances(form: str) -> None:
    assert (parse(text(SYMMETRIC, form), "f", "f").ways == SYMMETRIC).all()


@pytest.mark.parametrize("form", CUTS)
def test_a_distance_below_0_is_refused_in_every_format(form: str) -> None:
    ways = SYMMETRIC.copy()
    ways[1, 2] = ways[2, 1] = -1
    with one_line("f: .* from 0"):
        parse(text(ways, form), "f", "f")


def test_asymmetric_distances_are_of_rows_to_columns() -> None:
    instance = parse(text(WAYS + 9 * np.eye(N, dtype=int), kind="ATSP"), "f", "f")
    assert (instance.ways == WAYS).all()
    assert instance.length(np.arange(N)) == WAYS[np.arange(N), np.roll(np.arange(N), -1)].sum()


def test_the_depot_comes_first_wherever_the_file_has_it() -> None:
    order = np.array([3, 0, 1, 2, 4, 5, 6, 7])
    back = np.argsort(order)
    instance = parse(text(SYMMETRIC[np.ix_(back, back)], kind="CVRP", more=loads(DEMAND[back], depot=4)), "f", "f")
    assert instance.demand[0] == 0
    assert sorted(instance.demand) == sorted(DEMAND)
    assert instance.ways[0, 1:].sum() == SYMMETRIC[0].sum()


@pytest.mark.parametrize("solver", ["concorde", "lkh", "lkh3", "hgs-short", "ortools", "pyvrp"])
@pytest.mark.parametrize("ways", [SYMMETRIC, 1_000_000 * SYMMETRIC, WAYS], ids=["small", "large", "one way"])
def test_strong_solvers_find_the_shortest_tour(solver: str, ways: np.ndarray) -> None:
    instance = Instance.from_distances(ways, name="t")
    if solver not in available("tsp", instance):
        pytest.skip(f"{solver} is not installed, or takes no such distances")
    if solver == "concorde" and ways[0, 1] > 10**6:
        with pytest.raises(NeurouteError, match="concorde: a tour's length of .* scale the instance down"):
            solve_with(solver, Instance.from_distances(10 * ways, name="t"))
    assert instance.length(solve_with(solver, instance).stops) == shortest(ways)


def test_routes_agree_among_solvers() -> None:
    instance = Instance.from_distances(SYMMETRIC, DEMAND, 7, name="t")
    lengths = {s: instance.length(solve_with(s, instance).stops) for s in ("hgs-short", "pyvrp-short", "nearest")}
    assert lengths["hgs-short"] == lengths["pyvrp-short"] <= lengths["nearest"]


# -- time windows, as EURO-NeurIPS has them ---------------------------------------------------------------------------

OPENS = np.array([0, 0, 0, 30, 100, 0, 60, 0])
THERE = np.maximum(OPENS, np.maximum(WAYS[0], SYMMETRIC[0]))
WINDOWS = np.c_[OPENS, THERE + np.array([600, 20, 40, 30, 30, 90, 20, 60])]
SERVICE = np.array([0, 10, 5, 20, 10, 5, 10, 15])


def timed(ways: np.ndarray = WAYS, windows: np.ndarray = WINDOWS, kind: str = "VRPTW") -> str:
    """Return a file whose sections come in the order of the competition's."""
    rows = ["\n".join(" ".join(map(str, row)) for row in np.c_[1 : N + 1, part]) for part in (SERVICE, windows)]
    where = "NODE_COORD_SECTION\n" + "".join(f"{i} {i} {i * i}\n" for i in range(1, N + 1))
    more = f"SERVICE_TIME_SECTION\n{rows[0]}\nTIME_WINDOW_SECTION\n{rows[1]}\n"
    return text(ways, kind=kind, more=where + loads() + more)


def in_time(ways: np.ndarray, route: tuple[int, ...]) -> int | None:
    """Return how long the ways of a route are; None: it is late or too heavy."""
    clock, here = 0, 0
    for node in (*route, 0):
        clock = max(clock + SERVICE[here] + ways[here, node], WINDOWS[node, 0])
        here = node
        if clock > WINDOWS[node, 1]:
            return None
    return None if DEMAND[list(route)].sum() > 7 else int(ways[(0, *route), (*route, 0)].sum())


def least(ways: np.ndarray) -> int:
    """Return the least cost of all partitions of the customers into routes, subset by subset."""
    cost = dict[frozenset[int], int]()
    for size in range(1, N):
        for route in permutations(range(1, N), size):
            if (length := in_time(ways, route)) is not None:
                cost[frozenset(route)] = min(length, cost.get(frozenset(route), length))
    best = {frozenset[int](): 0}
    for size in range(1, N):
        for customers in map(frozenset, combinations(range(1, N), size)):
            parts = [part for part in cost if part <= customers and min(customers) in part]
            best[customers] = min(cost[part] + best[customers - part] for part in parts)
    return best[frozenset(range(1, N))]


@pytest.mark.parametrize("ways", [SYMMETRIC, WAYS], ids=["symmetric", "one way"])
@pytest.mark.parametrize("solver", ["ortools-short", "pyvrp-short"])
def test_time_windows_on_given_distances(tmp_path: Path, solver: str, ways: np.ndarray) -> None:
    (tmp_path / "ORTEC.txt").write_text(timed(ways))
    (tmp_path / "b.vrp").write_text(timed(ways, kind="CVRP"))
    instance, other = (neuroute.load(tmp_path / name) for name in ("ORTEC.txt", "b.vrp"))
    assert instance.variant == other.variant == ("VRPTW" if ways is SYMMETRIC else "AVRPTW")
    if solver not in available("vrptw", instance):
        pytest.skip(f"{solver} is not installed")
    solution = neuroute.solve(instance, solver)
    assert solution.cost == least(ways) <= construct(instance).cost
    assert f"length {solution.cost:,.0f} (EXPLICIT)" in str(solution)


def test_time_windows_on_given_distances_are_kept_to(tmp_path: Path) -> None:
    (tmp_path / "a.vrp").write_text(timed())
    instance = neuroute.load(tmp_path / "a.vrp")
    for route in permutations((1, 2, 3, 5), 2):
        routes = [list(route), *([c] for c in range(1, N) if c not in route)]
        if in_time(WAYS, route) is None:
            with pytest.raises(NeurouteError, match=r"route 1(, .*reached at| carries)"):
                instance.check(routes)
        else:
            instance.check(routes)
    assert instance.gap([[c] for c in range(1, N)]) is None
    for wrong, says in (
        (lambda: neuroute.solve(instance), "networks need; solve it with --solver ortools .or pyvrp"),
        (
            lambda: neuroute.solve(instance, "hgs"),
            "hgs does not solve the .*VRPTW.* in distances; take one of: ortools",
        ),
        (lambda: neuroute.evaluate("mvmoe", tmp_path / "a.vrp"), "with --solver pyvrp"),
    ):
        with pytest.raises(NeurouteError, match=says):
            wrong()


def moved(node: int, window: tuple[float, float]) -> str:
    windows = WINDOWS.astype(object)
    windows[node] = window
    return timed(windows=windows)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (text(SYMMETRIC).replace("FULL_MATRIX", "FUNCTION"), "EDGE_WEIGHT_FORMAT FUNCTION is not read"),
        (text(WAYS), "a TSP is symmetric: is TYPE ATSP meant"),
        (text(np.where(SYMMETRIC[0, 1] == SYMMETRIC, 0.5, SYMMETRIC)), "distance 0.5 from node 0 to 1"),
        (text(SYMMETRIC, kind="CVRP", more=loads(DEMAND + 5)), "node 1, has a demand of 5"),
        (moved(0, (5, 600)), "the depot opens at 5"),
        (moved(3, (120, 30)), "customer 3: its window closes before it opens"),
        (moved(3, (0, 1)), "customer 3: no vehicle gets there"),
        (moved(3, (30.5, 600)), "in whole numbers"),
    ],
)
def test_damaged_files_are_one_line(tmp_path: Path, given: str, says: str) -> None:
    (tmp_path / "a.vrp").write_text(given)
    with one_line(says, "a.vrp"):
        neuroute.load(tmp_path / "a.vrp")


# -- from Python ------------------------------------------------------------------------------------------------------


def test_files_of_distances_are_solved_from_python(tmp_path: Path) -> None:
    (tmp_path / "t.atsp").write_text(text(WAYS, kind="ATSP"))
    (tmp_path / "t.tsp").write_text(text(SYMMETRIC))
    (tmp_path / "t.vrp").write_text(text(SYMMETRIC, kind="CVRP", more=loads()))
    for name, variant, n, method in (
        ("t.atsp", "ATSP", N, "lkh"),
        ("t.tsp", "TSP", N, "lkh"),
        ("t.vrp", "CVRP", N - 1, "hgs-short"),
    ):
        instance = neuroute.load(tmp_path / name)
        assert (instance.variant, instance.n, instance.distances) == (variant, n, "EXPLICIT")
        if method not in available(instance.problem, instance):
            pytest.skip(f"{method} is not installed")
        solution = neuroute.solve(instance, method)
        assert solution.cost == instance.cost(solution) == instance.length(solution.stops)
        solution.save(tmp_path / f"s{'.sol' if variant == 'CVRP' else '.tour'}")
        if variant != "CVRP":
            assert solution.cost == shortest(instance.ways)
        assert f"length {solution.cost:,.0f} (EXPLICIT)" in str(solution)
    assert f"length {shortest(SYMMETRIC)} (EXPLICIT)" in (tmp_path / "s.tour").read_text()


def test_arrays_of_distances_make_an_instance() -> None:
    plain = neuroute.Instance.from_distances(WAYS.astype(float) + np.diag([np.inf] * N))
    assert (plain.ways == WAYS).all()
    routes = neuroute.Instance.from_distances(SYMMETRIC, DEMAND, 7)
    assert (routes.problem, routes.variant, routes.n) == ("cvrp", "CVRP", N - 1)
    assert neuroute.Instance.from_distances(WAYS, DEMAND, 7).variant == "ACVRP"
    assert routes.cost([[c] for c in range(1, N)]) == 2 * SYMMETRIC[0].sum()
    for wrong, says in (([[1, 2, 3, 4, 5, 6, 7]], "route 1 carries 17, more than the capacity 7"), ([[1]], "served 0")):
        with pytest.raises(NeurouteError, match=says):
            routes.check(wrong)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ((SYMMETRIC[:3],), r"distances of shape \(3, 8\); give \(n, n\)"),
        ((SYMMETRIC + 0.5,), "distance .*5 from node 0 to 1; give whole numbers from 0"),
        ((SYMMETRIC, DEMAND + 1, 7), "with 0 first, at the depot"),
        ((SYMMETRIC, DEMAND[:-1], 7), "demand is .8,. whole numbers"),
        ((SYMMETRIC, DEMAND, 3), "a capacity of 3; give a whole number that no demand is above .4."),
    ],
)
def test_arrays_that_are_no_instance_say_why(arrays: tuple[Any, ...], says: str) -> None:
    with one_line(says):
        neuroute.Instance.from_distances(*arrays)
