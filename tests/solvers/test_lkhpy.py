"""LKH-3 as LKHpy carries it, where there is a wheel of it: right on what can be counted out, and bounded."""

import itertools
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuroute.core import digest
from neuroute.core.errors import NeurouteError
from neuroute.datasets.streams import coordinates
from neuroute.problems.instances.instance import Instance
from neuroute.problems.vrp import fault, from_routes, lengths
from neuroute.solvers import lkh3
from neuroute.solvers.base import tsplib_text
from neuroute.solvers.registry import get, stand_in
from test_vrp_solvers import instances, shortest

HAS_WHEEL = (
    sys.platform == "linux"
    and platform.machine() == "x86_64"
    and platform.libc_ver()[0] == "glibc"
    and sys.implementation.name == "cpython"
    and sys.version_info[:2] in ((3, 11), (3, 12))
)
needs_wheel = pytest.mark.skipif(not HAS_WHEEL, reason="LKHpy has no wheel for this machine and Python")
ROUTED = tuple(lkh3.TYPES)


@pytest.fixture(autouse=True)
def no_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


@needs_wheel
def test_it_is_installed_with_the_rest_and_a_binary_goes_first(lkh_on_path, hide_solvers) -> None:
    assert get("lkh3").version() == f"LKHpy {lkh3.LKHPY}, LKH-3.0.12"
    lkh_on_path("tour = range(1, 9)[::-1]")
    assert get("lkh3").version().startswith("LKH-3 (sha256 ")
    assert get("lkh3").solve(coordinates("uniform", "test", 8, 0, 1)[0], 0).tolist() == [*range(8)][::-1]
    hide_solvers("LKHpy")
    assert get("lkh3").version().startswith("LKH-3 (sha256 ")


def test_without_it_and_a_binary_another_solver_stands_in(hide_solvers) -> None:
    hide_solvers("LKHpy")
    with pytest.raises(NeurouteError, match="'lkh3' is not installed; run `pip install --no-deps .*LKHpy==.*`LKH`"):
        get("lkh3").solve(coordinates("uniform", "test", 8, 0, 1)[0], 0)
    assert (stand_in("lkh3"), stand_in("lkh3-short")) == ("pyvrp", "pyvrp-short")


@needs_wheel
@pytest.mark.parametrize("customers", [1, 2, 3, 5])
@pytest.mark.parametrize("variant", ROUTED)
def test_routes_are_the_shortest_that_keep_to_all_constraints(variant: str, customers: int) -> None:
    one = instances(variant, customers)
    solution = get("lkh3-short").solve_vrp(one, 0)
    assert fault(one, 0, solution) is None
    assert lengths(one, solution[None])[0] == pytest.approx(shortest(one, "network"), abs=1e-6)


@needs_wheel
@pytest.mark.parametrize("variant", ROUTED)
def test_routes_of_more_customers_keep_to_all_constraints_and_repeat(variant: str) -> None:
    one = instances(variant, 25)
    first, again = (get("lkh3-short").solve_vrp(one, 3) for _ in range(2))
    assert fault(one, 0, first) is None
    np.testing.assert_array_equal(first, again)


@needs_wheel
def test_routes_of_distances_that_differ_there_and_back() -> None:
    ways = np.random.default_rng(4).integers(1, 100, (7, 7))
    np.fill_diagonal(ways, 0)
    demand = np.array([0, *[1] * 6])
    routed = Instance.from_distances(ways, demand, 3, name="t")
    halves = [np.array([rest, [1, 0, 0, 1, 0, 0]]) for rest in itertools.permutations(range(1, 7))]
    assert routed.length(from_routes(lkh3.routes_of_ways(ways, demand, 3, 0))) <= min(map(routed.length, halves))


@needs_wheel
def test_it_does_what_the_main_of_lkh_does(tmp_path: Path) -> None:
    """Which LKHpy has a copy of, for problems whose nodes are not doubled."""
    coords = coordinates("uniform", "test", 60, 3, 1)[0]
    (tmp_path / "problem").write_text(tsplib_text(coords))
    parameters = tmp_path / "parameters"
    parameters.write_text(f"PROBLEM_FILE = {tmp_path / 'problem'}\nRUNS = 1\nSEED = 8\nTRACE_LEVEL = 0\n")
    program = "import sys, LKHpy; print('tour', *LKHpy.par_file(sys.argv[1]))"
    text = subprocess.run([sys.executable, "-c", program, str(parameters)], capture_output=True, text=True).stdout
    tour = list(map(int, text.rpartition("tour")[2].split()))
    assert tour[: len(coords)] == lkh3.solve(coords, 7).tolist()


@needs_wheel
def test_time_ends_the_search() -> None:
    """Of trials without end: LKH itself looks at the clock, and is not killed."""
    one = instances("VRPTW", 12)
    assert fault(one, 0, lkh3.solve_vrp(one, 0, seconds=0.3, trials=10**9)) is None


@needs_wheel
def test_a_search_that_does_not_end_is_killed(monkeypatch) -> None:
    monkeypatch.setattr(lkh3, "GRACE_S", 0.0)
    with pytest.raises(NeurouteError, match="LKH gave no answer to an instance of 4000 nodes in 0 s"):
        lkh3.solve(np.random.default_rng(0).random((4000, 2)), 0, seconds=0.05)


def test_an_edit_of_what_runs_lkh_reruns_its_labels() -> None:
    assert ("neuroute.solvers.lkhpy_main", "run") in digest.reach(["neuroute.solvers.lkh3:LKH3"])


@needs_wheel
def test_more_nodes_than_it_takes_are_refused_and_a_user_s_binary_takes_them(lkh_on_path, monkeypatch) -> None:
    monkeypatch.setattr(lkh3, "MOST_NODES", 9)
    coords = coordinates("uniform", "test", 10, 0, 1)[0]
    with pytest.raises(NeurouteError, match="lkh3: 10 nodes, LKHpy takes 9; put your own `LKH`"):
        lkh3.solve(coords, 0)
    lkh_on_path("sys.exit(3)")
    with pytest.raises(NeurouteError, match="LKH failed on an instance of 10 nodes"):
        lkh3.solve(coords, 0)
