"""LKH-3 on whole distances, through a stand-in for its binary: what it is asked, and what comes of it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.instances.instance import Instance
from neuroute.instances.tsplib import parse_explicit
from neuroute.problems.vrp import to_routes
from neuroute.user.classical import available, solve_with

N = 6
WAYS = np.random.default_rng(2).integers(1, 100, (N, N))
np.fill_diagonal(WAYS, 0)
SYMMETRIC = np.triu(WAYS) + np.triu(WAYS).T
DEMAND = np.array([0, 3, 2, 4, 1, 2])
# Tours go around; with vehicles, each customer has one, whose depots are numbered on.  The problem stays for the test.
STAND_IN = """
shutil.copy(parameters["PROBLEM_FILE"], os.environ["ASKED"])
shutil.copy(sys.argv[1], os.environ["ASKED"] + ".par")
nodes = int(re.search(r"DIMENSION *: *(\\d+)", text)[1])
tour = range(1, nodes + 1)
if "CAPACITY" in text:
    tour = [1] + [n for i in range(2, nodes + 1) for n in (i, nodes + i - 1)][:-1]
"""


@pytest.fixture
def asked(tmp_path: Path, lkh_on_path: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> Path:
    lkh_on_path(STAND_IN)
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    return tmp_path / "asked"


@pytest.mark.parametrize("ways", [SYMMETRIC, WAYS], ids=["there and back alike", "one way"])
def test_lkh3_is_asked_for_a_tour_of_these_distances(ways: np.ndarray, asked: Path) -> None:
    instance = Instance.from_distances(ways, name="t")
    assert "lkh3" in available("tsp", instance)
    assert solve_with("lkh3", instance).solution.tolist() == list(range(N))
    back = parse_explicit(asked.read_text(), "asked", "t")
    assert (back.ways == ways).all()
    assert f"TYPE : {'' if instance.is_symmetric else 'A'}TSP" in asked.read_text()
    assert "PRECISION" not in asked.with_suffix(".par").read_text()


@pytest.mark.parametrize("ways", [SYMMETRIC, WAYS], ids=["there and back alike", "one way"])
def test_lkh3_is_asked_for_routes_of_these_distances(ways: np.ndarray, asked: Path) -> None:
    instance = Instance.from_distances(ways, DEMAND, 5, name="t")
    routes = to_routes(solve_with("lkh3", instance).solution)
    assert routes == [[customer] for customer in range(1, N)]
    text = asked.read_text()
    assert f"TYPE : {'' if instance.is_symmetric else 'A'}CVRP" in text
    back = parse_explicit(text.replace("ACVRP", "CVRP"), "asked", "t")
    assert (back.ways == ways).all()
    assert (back.demand.tolist(), back.capacity) == (DEMAND.tolist(), 5)
    assert f"VEHICLES : {N - 1}" in text
    assert "MTSP_MIN_SIZE = 0" in asked.with_suffix(".par").read_text()


def test_distances_that_lkh_cannot_count_are_coarser_or_refused(asked: Path) -> None:
    solve_with("lkh3", Instance.from_distances(10**6 * SYMMETRIC, name="t"))
    assert f"PRECISION = {2**30 // int(10**6 * SYMMETRIC.max())}" in asked.with_suffix(".par").read_text()
    with pytest.raises(NeurouteError, match="lkh3: a distance of .*; give none above .*: scale the instance down"):
        solve_with("lkh3", Instance("t", ways=10**8 * SYMMETRIC, distances="EXPLICIT"))


def test_files_of_tsplib_are_solved_by_its_own_rules(asked: Path) -> None:
    coords = np.random.default_rng(0).integers(0, 90, (N, 2)).astype(float)
    solve_with("lkh3", Instance("t", coords, distances="GEO", library="tsplib"))
    assert "EDGE_WEIGHT_TYPE : GEO" in asked.read_text()
