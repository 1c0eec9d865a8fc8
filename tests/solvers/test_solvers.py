"""Solvers: valid and deterministic tours, optimal where optimality is claimed, and honest when missing."""

import itertools
import re
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from refusals import one_line

from neuroute.core import digest
from neuroute.core.errors import NeurouteError
from neuroute.datasets.streams import coordinates
from neuroute.problems.tsp import canonical, is_permutation, tour_length
from neuroute.solvers import hgs, lkh3, registry
from neuroute.solvers.registry import SOLVERS, entry, get, is_installed

SKIPPED = {n: pytest.mark.skipif(not is_installed(n), reason=f"{n} not installed") for n in SOLVERS}
SLOW = {"hgs-long", "ortools-x10"}  # the searches of 'hgs' and 'ortools' with more time
ALL = [pytest.param(n, marks=[SKIPPED[n], *([pytest.mark.slow] if n in SLOW else [])]) for n in SOLVERS]
needs_concorde = pytest.mark.skipif(not is_installed("concorde"), reason="concorde not installed")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("n", "seed"), [(4, 0), (5, 2**32 - 1), (9, 7), (30, 7)])
def test_tours_are_permutations_and_repeat_with_any_32_bit_seed(name, n, seed):
    coords = coordinates("uniform", "test", n, 0, 1)[0]
    first, again = (get(name).solve(coords, seed) for _ in range(2))
    assert is_permutation(first[None])[0]
    np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("name", ALL)
def test_duplicate_and_collinear_nodes_are_no_trouble(name):
    rng = np.random.default_rng(0)
    line = np.stack([rng.random(12), np.zeros(12)], axis=1)
    tour, shortest = get(name).solve(line, 0), 2 * np.ptp(line[:, 0])
    assert is_permutation(tour[None])[0]
    if name != "nearest":
        assert tour_length(line, tour) == pytest.approx(shortest, abs=1e-4)
    twins = np.repeat(rng.random((2, 2)), 5, axis=0)
    assert tour_length(twins, get(name).solve(twins, 0)) == pytest.approx(2 * np.linalg.norm(twins[0] - twins[-1]))


@pytest.mark.parametrize("name", [p for p in ALL if p.values[0] in ("concorde", "lkh", "lkh3", "hgs")])
def test_small_instances_are_solved_to_optimality(name):
    every = np.array([(0, *rest) for rest in itertools.permutations(range(1, 7))])
    for coords in coordinates("cluster", "test", 7, 0, 5 if name != "hgs" else 1):
        shortest = tour_length(coords, every).min()
        assert tour_length(coords, get(name).solve(coords, 1)) == pytest.approx(shortest, abs=7e-6)


@needs_concorde
def test_concorde_matches_published_tours_of_200_nodes(shared):
    data = np.load(shared / "testsets" / "tsp200_128_lehd.npz")
    length = tour_length(data["coords"][0], get("concorde").solve(data["coords"][0], 0))
    assert length == pytest.approx(data["length"][0], rel=1e-5)


@needs_concorde
def test_concorde_works_from_a_folder_that_is_gone(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    tour = get("concorde").solve(coordinates("uniform", "test", 40, 0, 1)[0], 0)
    assert is_permutation(tour[None])[0]


@needs_concorde
def test_concorde_prints_nothing_leaves_nothing_and_imports_no_package(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    get("concorde").solve(coordinates("uniform", "test", 40, 0, 1)[0], 0)
    print("after")
    assert capfd.readouterr() == ("after\n", "")
    assert list(tmp_path.iterdir()) == []
    assert Path.cwd() == tmp_path
    assert "ml4co_kit" not in sys.modules


def test_coordinates_far_from_the_unit_square_are_fitted_to_the_grid():
    coords = coordinates("uniform", "test", 12, 3, 1)[0].astype(np.float64)
    for name in ("concorde", "lkh", "hgs"):
        if is_installed(name):
            near, far = get(name).solve(coords, 0), get(name).solve(coords * 7000 - 3000, 0)
            np.testing.assert_array_equal(canonical(near[None]), canonical(far[None]))


# A stand-in for the binary of LKH: the nodes from the last to the first.
REVERSED = """
n = int(re.search(r"DIMENSION ?: ?(\\d+)", text).group(1))
tour = range(n, 0, -1)
assert int(parameters["SEED"]) == 4, "wrong seed"
"""


def test_lkh3_speaks_with_a_binary_on_the_path(lkh_on_path):
    lkh_on_path(REVERSED)
    assert get("lkh3").version().startswith("LKH")
    coords = coordinates("uniform", "test", 8, 0, 1)[0]
    np.testing.assert_array_equal(get("lkh3").solve(coords, 3), np.arange(8)[::-1])
    with pytest.raises(NeurouteError, match=r"LKH failed .*wrong seed"):
        get("lkh3").solve(coords, 4)


def test_lkh3_is_known_by_the_contents_of_its_binary(lkh_on_path):
    found = set()
    for body in (REVERSED, "tour = [1]", REVERSED):
        lkh_on_path(body)
        found.add(get("lkh3").version())
    assert len(found) == 2
    assert all(re.fullmatch(r"LKH-3 \(sha256 [0-9a-f]{16}\)", version) for version in found)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit('no memory')", "LKH failed on an instance of 8 nodes: no memory"),
        ("os.kill(os.getpid(), 11)", "LKH failed on an instance of 8 nodes: ended by SIGSEGV"),
        ("sys.exit(0)", "LKH found no tour of 8 nodes that keeps to the constraints"),
        ("tour = [1, 2, 3]", "LKH wrote no tour of the 8 nodes"),
        ("import time; time.sleep(60); tour = range(1, 9)", "LKH gave no answer to an instance of 8 nodes in 1 s"),
    ],
)
def test_a_failure_of_lkh3_is_one_line_and_leaves_no_file(lkh_on_path, tmp_path, monkeypatch, body, words):
    lkh_on_path(body)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(lkh3, "GRACE_S", 0.0)
    monkeypatch.setattr(lkh3, "limit_s", lambda nodes: 0.5 if "sleep" in body else 20.0)
    with one_line(words):
        get("lkh3").solve(coordinates("uniform", "test", 8, 0, 1)[0], 3)
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    "names", [["hgs", "insertion", "nearest"], pytest.param(list(SOLVERS), marks=pytest.mark.slow)]
)
def test_doctor_reports_every_solver_and_survives_a_crash(names, monkeypatch):
    monkeypatch.setattr(registry, "SOLVERS", {name: SOLVERS[name] for name in names})
    real = registry.call
    crash = {"hgs": ("os:abort", registry.TIMEOUT)}
    monkeypatch.setattr(registry, "call", lambda *asked: real(*crash.get(asked[-1], asked)))
    lines = {line.split()[0]: line for line in registry.examine()}
    assert list(lines) == list(names)
    assert lines["insertion"].split()[1] == "ok"
    assert float(lines["nearest"].split()[2]) >= 1
    assert "missing" in lines["hgs"]
    assert "died with exit status -6" in lines["hgs"]
    assert not any("\n" in line for line in lines.values())


def test_an_edit_of_a_variant_reruns_its_own_labels_only():
    for place in map(entry, SOLVERS):
        reached = {":".join(definition) for definition in digest.reach([place])}
        module = place.partition(":")[0]
        plain = {f"{module}:{name}" for name in ("SOLVER", "LKH", "LKH3")}  # which variants are made from
        assert reached & set(SOLVERS.values()) <= {place, *plain}
        assert place in reached


def test_a_new_solver_reruns_no_labels_of_the_others():
    """The table is addressed by name, so no digest hangs on all of it."""
    reached = digest.reach(["neuroute.datasets.labels:make_labels"])
    assert ("neuroute.solvers.registry", "get") in reached
    assert ("neuroute.solvers.registry", "SOLVERS") not in reached


def test_the_best_of_hgs_s_legs_is_kept_and_told_of_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts processor time, of which a machine gives half to the first leg; the second finds nothing."""
    clock, legs, told = {"wall": 0.0, "cpu": 0.0}, list[Any](), list[Any]()
    finds = iter([(2, 9.0), (1, None), (1, 7.0)])

    class Search:
        def __init__(self, limits: Any, verbose: bool) -> None:
            self.limits = limits

        def solve_cvrp(self, data: object, rounding: bool) -> Any:
            legs.append(self.limits)
            slower, cost = next(finds)
            clock["cpu"] += self.limits.timeLimit
            clock["wall"] += slower * self.limits.timeLimit
            return SimpleNamespace(cost=cost, routes=[] if cost is None else [[1, int(cost)]])

    library = SimpleNamespace(AlgorithmParameters=SimpleNamespace, Solver=Search)
    monkeypatch.setattr(hgs, "importlib", SimpleNamespace(import_module=lambda name: library))
    clocks = {"perf_counter": lambda: clock["wall"], "process_time": lambda: clock["cpu"]}
    monkeypatch.setattr(hgs, "time", SimpleNamespace(**clocks))
    monkeypatch.setattr(hgs.limited, "folder", lambda: Path())
    monkeypatch.setattr(hgs.limited, "say", lambda kind, routes: told.append(routes))
    answer = hgs._search("solve_cvrp", {}, 5, 100, 8.0)
    assert (answer.cost, told, clock["wall"]) == (7, [[[1, 9]], [[1, 7]]], 8)
    assert [leg.timeLimit for leg in legs] == [2.0, 2.0, 2.0]  # a quarter, then what is left at the last leg's pace
    assert len({leg.seed for leg in legs}) == 3
