"""LKH-3 through a stand-in for its binary: what it is asked, what comes of it, and what may go wrong."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import one_line

from neuroute.api.classical import available, solve_with
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.sections import split
from neuroute.problems.instances.tsplib import parse
from neuroute.problems.vrp import SWITCHES, Vrp, fault, to_routes
from neuroute.solvers.lkh3 import FEW_RUNS, TYPES
from neuroute.solvers.registry import get

N = 6
WAYS = np.random.default_rng(2).integers(1, 100, (N, N))
np.fill_diagonal(WAYS, 0)
SYMMETRIC = np.triu(WAYS) + np.triu(WAYS).T
DEMAND = np.array([0, 3, 2, 4, 1, 2])
# Tours go around; with vehicles, whose depots are numbered on, each customer has one, or one has all.  What LKH was
# asked stays for the test.
STAND_IN = """
shutil.copy(parameters["PROBLEM_FILE"], os.environ["ASKED"])
shutil.copy(sys.argv[1], os.environ["ASKED"] + ".par")
nodes = int(re.search(r"DIMENSION *: *(\\d+)", text)[1])
tour = range(1, nodes + 1)
if "CAPACITY" in text:
    fleet = re.search(r"VEHICLES : (\\d+)", text)[1]
    open(os.environ["ASKED"] + ".fleets", "a").write(fleet + " " + parameters["SEED"] + "\\n")
    if os.environ["FLEET"] == "many":
        tour = [1] + [n for i in range(2, nodes + 1) for n in (i, nodes + i - 1)][:-1]
"""


@pytest.fixture
def asked(tmp_path: Path, lkh_on_path: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> Path:
    lkh_on_path(STAND_IN)
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setenv("FLEET", "many")
    return tmp_path / "asked"


# -- four of the 16 problems ------------------------------------------------------------------------------------------


def instance(variant: str) -> Vrp:
    rng, switches = np.random.default_rng(5), SWITCHES[variant]
    windows = np.tile(np.array([0.5, 2.25], dtype=np.float32), (1, 6, 1))
    windows[:, 0] = 0, 4
    service = np.array([[0, 0.2, 0.2, 0.2, 0.2, 0.25]], dtype=np.float32)
    return Vrp(
        coords=rng.random((1, 6, 2)).astype(np.float32),
        demand=np.array([[0, 4, 5, 6, 7, -8 if switches.backhaul else 8]]),
        capacity=np.array([10]),
        open=switches.open,
        limit=np.array([3.0]) if switches.limit else None,
        windows=windows if switches.windows else None,
        service=service if switches.windows else None,
    )


@pytest.mark.parametrize("variant", TYPES)
def test_lkh3_is_asked_for_the_problem(variant, asked):
    one = instance(variant)
    solution = get("lkh3").solve_vrp(one, 0)
    assert fault(one, 0, solution) is None
    assert solution.tolist() == [[1, 2, 3, 4, 5], [1, 1, 1, 1, 1]]
    parameters = asked.with_suffix(".par").read_text()
    assert all(line in parameters for line in ("MAX_TRIALS = 10000\n", "RUNS = 1\n", "MTSP_MIN_SIZE = 0\n"))
    parts = split(asked.read_text(), "asked")
    said, rows = parts.header, {name: [line for _, line in each] for name, each in parts.rows.items()}
    assert said["TYPE"] == {"VRPL": "DCVRP", "VRPTW": "CVRPTW"}.get(variant, variant)
    assert (said["DIMENSION"], said["CAPACITY"], said["VEHICLES"]) == ("6", "10", "5")
    assert said["EDGE_WEIGHT_TYPE"] == "CEIL_2D"  # no leg is taken for shorter than it is
    x, y = map(float, rows["NODE_COORD_SECTION"][1].split()[1:])
    np.testing.assert_allclose([x, y], one.coords[0, 1] * 1e6, rtol=1e-6)
    assert rows["DEMAND_SECTION"] == ["1 0", "2 4", "3 5", "4 6", "5 7", "6 8"]
    # Grid units of 1e-6; limits and closing times have eight tenths of the checker's tolerance of 1e-5.
    assert said.get("DISTANCE") == ("3000008" if variant == "VRPL" else None)
    if variant == "VRPTW":
        assert rows["TIME_WINDOW_SECTION"][1] == "2 500000 2250008"
        assert rows["SERVICE_TIME_SECTION"][5] == "6 250000"
    else:
        assert "TIME_WINDOW_SECTION" not in rows


def test_a_solution_that_breaks_a_constraint_is_one_clear_line(monkeypatch, asked):
    monkeypatch.setenv("FLEET", "one")
    with one_line("lkh3: no feasible routes found .*'ortools'"):
        get("lkh3").solve_vrp(instance("OVRP"), 0)
    # With the default fleet, with a vehicle for each customer, and once more with another seed.
    fleets = asked.with_suffix(".fleets").read_text().splitlines()
    assert fleets[::FEW_RUNS] == ["5 1", "5 1", "5 2"]
    roomy = replace(instance("OVRP"), capacity=np.array([30]))
    assert get("lkh3").solve_vrp(roomy, 0)[1].tolist() == [1, 0, 0, 0, 0]


# -- whole distances --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ways", [SYMMETRIC, WAYS], ids=["there and back alike", "one way"])
def test_lkh3_is_asked_for_a_tour_of_these_distances(ways: np.ndarray, asked: Path) -> None:
    instance = Instance.from_distances(ways, name="t")
    assert "lkh3" in available("tsp", instance)
    assert solve_with("lkh3", instance).stops.tolist() == list(range(N))
    back = parse(asked.read_text(), "asked", "t")
    assert (back.ways == ways).all()
    assert f"TYPE : {'' if instance.is_symmetric else 'A'}TSP" in asked.read_text()
    assert "PRECISION" not in asked.with_suffix(".par").read_text()


@pytest.mark.parametrize("ways", [SYMMETRIC, WAYS], ids=["there and back alike", "one way"])
def test_lkh3_is_asked_for_routes_of_these_distances(ways: np.ndarray, asked: Path) -> None:
    instance = Instance.from_distances(ways, DEMAND, 5, name="t")
    routes = to_routes(solve_with("lkh3", instance).stops)
    assert routes == [[customer] for customer in range(1, N)]
    text = asked.read_text()
    assert f"TYPE : {'' if instance.is_symmetric else 'A'}CVRP" in text
    back = parse(text.replace("ACVRP", "CVRP"), "asked", "t")
    assert (back.ways == ways).all()
    assert (back.demand.tolist(), back.capacity) == (DEMAND.tolist(), 5)
    assert f"VEHICLES : {N - 1}" in text
    assert "MTSP_MIN_SIZE = 0" in asked.with_suffix(".par").read_text()


def test_distances_that_lkh_cannot_count_are_coarser(asked: Path) -> None:
    solve_with("lkh3", Instance.from_distances(10**6 * SYMMETRIC, name="t"))
    assert f"PRECISION = {2**30 // int(10**6 * SYMMETRIC.max())}" in asked.with_suffix(".par").read_text()
    solve_with("lkh3", Instance("t", ways=10**8 * SYMMETRIC, distances="EXPLICIT"))
    numbers = asked.read_text().partition("EDGE_WEIGHT_SECTION\n")[2].partition("EOF")[0].split()
    ways = np.array(numbers, dtype=float)
    assert ways.max() == 2**30
    assert np.allclose(ways / ways.max(), SYMMETRIC.flatten() / SYMMETRIC.max(), atol=1e-8)


def test_files_of_tsplib_are_solved_by_its_own_rules(asked: Path) -> None:
    coords = np.random.default_rng(0).integers(0, 90, (N, 2)).astype(float)
    solve_with("lkh3", Instance("t", coords, distances="GEO", library="tsplib"))
    assert "EDGE_WEIGHT_TYPE : GEO" in asked.read_text()
