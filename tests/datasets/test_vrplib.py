"""TSPLIB and VRPLIB files: what is read, TSPLIB's own distances, and the line that says what is wrong."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from refusals import one_line

from neuroute.api.files import load, load_all
from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.sections import whole
from neuroute.problems.instances.tsplib import read_solution

SQUARE = """NAME : square5
TYPE: TSP
COMMENT : five points, two spellings of the header
COMMENT : and two of these
DIMENSION: 5
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 10.0 0
3 1e1 10
4 0 10
5 5 15.5
EOF
"""
GOOD = """NAME : five
TYPE : CVRP
DIMENSION : 5
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 10
NODE_COORD_SECTION
1 0 10
2 3 4
3 0 0
4 10 0
5 10 10
DEMAND_SECTION
1 4
2 5
3 0
4 6
5 3
DEPOT_SECTION
 3
 -1
EOF
"""
POINTS = SQUARE[SQUARE.index("1 0 0") :]
UNSCALED = GOOD[GOOD.index("1 0 10") : GOOD.index("DEMAND")]


def read(tmp_path: Path, text: str = GOOD, name: str = "five.vrp"):  # type: ignore[no-untyped-def]
    path = tmp_path / name
    path.write_text(text)
    return load(path)


def test_reads_coordinates_and_rounds_as_tsplib(tmp_path: Path) -> None:
    instance = read(tmp_path, SQUARE, "file.tsp")
    assert instance.name == "square5"
    assert instance.coords.shape == (5, 2)
    tour = np.array([0, 1, 2, 4, 3])
    assert instance.length(tour) == 10 + 10 + 7 + 7 + 10
    assert instance.length(tour, rounded=False) == pytest.approx(30 + 2 * np.hypot(5, 5.5))


def test_a_folder_says_which_instances_it_leaves_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a.tsp", "b.TSP", "c.vrp", "d.hcp", "notes.md"):
        (tmp_path / name).write_text(SQUARE)
    assert [each.file for each in load_all(tmp_path)] == ["a", "b"]
    assert [Path(line.partition(":")[0]).name for line in caplog.messages] == ["c.vrp", "d.hcp"]


def test_nodes_on_one_point_are_named_by_the_file_s_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(tmp_path, SQUARE.replace("\n4 0 10", "\n40 0 0"), "file.tsp")
    assert "the file's nodes 1 and 40)" in caplog.text


def test_the_depot_becomes_row_0_wherever_the_file_has_it(tmp_path: Path) -> None:
    instance = read(tmp_path)
    assert instance.coords.tolist() == [[0, 0], [0, 10], [3, 4], [10, 0], [10, 10]]
    assert instance.demand.tolist() == [0, 4, 5, 6, 3]
    routes = [[1, 2], [3, 4]]
    instance.check(routes)
    assert instance.cost(routes) == 10 + 7 + 5 + 10 + 10 + 14
    assert instance.length(routes, rounded=False) == pytest.approx(10 + np.hypot(3, 6) + 5 + 20 + np.hypot(10, 10))
    exact = read(tmp_path, GOOD.replace("EUC_2D", "EXACT_2D"))
    assert exact.cost(routes) == instance.length(routes, rounded=False)


@pytest.mark.parametrize(
    ("name", "before", "after", "message"),
    [
        ("file.tsp", "3 1e1 10\n", "", "DIMENSION says 5, but 4 nodes"),
        ("file.tsp", "4 0 10", "4 nan 10", "line 11: expected `node x y` in plain digits, got `4 nan 10`"),
        ("file.tsp", "4 0 10", "3 0 10", "line 11: node 3 has coordinates twice"),
        ("file.tsp", "EUC_2D", "EXPLICIT", "EDGE_WEIGHT_FORMAT nothing is not read"),
        ("file.tsp", "TYPE: TSP", "TYPE: ATSP", "EDGE_WEIGHT_TYPE EUC_2D is not read with TYPE ATSP"),
        ("file.tsp", POINTS, "", "DIMENSION says 5, but 0 nodes"),
        ("file.tsp", "EOF", "NODE_COORD_SECTION\n6 1 1\nEOF", "a second NODE_COORD_SECTION"),
        ("file.tsp", "EOF", "COMMENT : \x1b[31m\nEOF", "line 13: not a text file"),
        ("file.tsp", "4 0 10", "9" * 30 + " 0 10", "number nodes by whole numbers from 0"),
        ("file.tsp", POINTS, "1 0 0\n2 1 0\n3 1 1\n4 0 1\n5 .5 .5\nEOF", "span 1, and EUC_2D rounds distances"),
        ("five.vrp", "4 10 0\n", "", "DIMENSION says 5, but 4 nodes"),
        ("five.vrp", "4 6\n", "4 -6\n", "line 16: expected `node demand` in whole numbers from 0 on"),
        ("five.vrp", "4 6\n", "4 6\n4 6\n", "line 17: node 4 has demand twice"),
        ("five.vrp", "4 6\n", "4 11\n", "node 4 demands 11, more than the capacity 10; split it"),
        ("five.vrp", "3 0\n4 6", "3 1\n4 6", "the depot, node 3, has a demand of 1"),
        ("five.vrp", " 3\n -1", " 3\n 4\n -1", "DEPOT_SECTION names 3 4; one node"),
        ("five.vrp", ": 10", ": 10\nCAPACITY : 5", "CAPACITY says 5, and 10 above; leave one"),
        ("five.vrp", ": 10", ": 10\nDISTANCES : 5", "DISTANCES is not supported.*did you mean DISTANCE"),
        ("five.vrp", "DEPOT", "RELEASE_TIME_SECTION\n1 5\nDEPOT", "RELEASE_TIME_SECTION is not supported"),
        ("five.vrp", "CAPACITY : 10", "CAPACITY : ten", "CAPACITY says ten"),
        ("five.vrp", "DIMENSION : 5", "DIMENSION : ²", "DIMENSION says ², but 5 nodes"),
        ("five.vrp", "\n2 5\n", "\n2 ²\n", "line 14: expected `node demand` in plain digits, got `2 ²`"),
        ("five.vrp", "2 3 4", "2 3 4e12", "coordinates beyond 1e12"),
        ("five.vrp", "TYPE : CVRP", "TYPE : TSP", "CAPACITY is not supported for TYPE TSP"),
        ("five.vrp", ": EUC_2D", ": EXPLICIT", "EDGE_WEIGHT_FORMAT nothing is not read"),
        ("five.vrp", UNSCALED, UNSCALED.replace("10", "1").replace("3 4", ".3 .4"), "span 1, and EUC_2D rounds"),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path: Path, name: str, before: str, after: str, message: str) -> None:
    good = SQUARE if name == "file.tsp" else GOOD
    assert before in good
    with one_line(message, name):
        read(tmp_path, good.replace(before, after, 1), name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Route #1: 1 two\n", "line 1: expected `Route"),
        ("nothing\n", "no line `Route"),
        ("Route #1: 1 2\nCost nan\n", "line 2: expected `Route #k: customers` or `Cost c`"),
    ],
)
def test_bad_solutions_are_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.sol"
    path.write_text("Route #1: 1 2\nRoute #2: 3 4\nCost 56\n")
    assert read_solution(path) == ([[1, 2], [3, 4]], 56)
    path.write_text(text)
    with pytest.raises(NeurouteError, match=message):
        read_solution(path)


def test_whole_numbers_are_plain_digits() -> None:
    assert [whole(text) for text in ("0", "007", "999999999")] == [0, 7, 999_999_999]
    assert {whole(text) for text in ("", "-1", "1.0", "1e3", "²", "٣", "1000000000", "9" * 5000)} == {None}


def test_a_fleet_and_times_at_customers_are_ignored_with_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        read(tmp_path, GOOD.replace("CAPACITY", "VEHICLES : 1\nSERVICE_TIME : 5\nCAPACITY", 1))
    assert "its time at each customer (5) and its number of vehicles (1) is ignored" in caplog.text


def test_lis_limit_on_route_lengths_is_ignored_with_a_line(
    public: Callable[[str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    path = public("benchmarks/cvrplib_li/Li_21.vrp")
    with caplog.at_level("INFO"):
        instance = load(path)
    assert (len(instance.coords), instance.capacity, instance.coords[0].tolist()) == (561, 1200, [0, 0])
    assert "limit on the length of a route (1800)" in caplog.text
    assert "number of vehicles (" in caplog.text


# TSPLIB's own check of an implementation: the length of the tour 1, 2, ..., n.
CANONICAL = {"pcb442": 221_440, "att532": 309_636, "gr666": 423_710}


@pytest.mark.parametrize("name", CANONICAL)
def test_canonical_tours_have_tsplibs_lengths(public: Callable[[str], Path], name: str) -> None:
    instance = load(public(f"benchmarks/tsplib/{name}.tsp"))
    assert instance.length(np.arange(len(instance.coords))) == CANONICAL[name]
