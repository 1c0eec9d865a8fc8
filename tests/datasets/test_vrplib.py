"""VRPLIB files: the best-known solutions of the public sets cost what they say, and bad files say what is wrong."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from refusals import one_line

from neuroute.api.files import load
from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.sections import whole
from neuroute.problems.instances.tsplib import read_solution

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


UNSCALED = GOOD[GOOD.index("1 0 10") : GOOD.index("DEMAND")]


def read(tmp_path: Path, text: str = GOOD):  # type: ignore[no-untyped-def]
    path = tmp_path / "five.vrp"
    path.write_text(text)
    return load(path)


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
    ("before", "after", "message"),
    [
        ("4 10 0\n", "", "DIMENSION says 5, but 4 nodes"),
        ("4 6\n", "4 -6\n", "line 16: expected `node demand` in whole numbers from 0 on"),
        ("4 6\n", "4 6\n4 6\n", "line 17: node 4 has demand twice"),
        ("4 6\n", "4 11\n", "node 4 demands 11, more than the capacity 10; split it"),
        ("3 0\n4 6", "3 1\n4 6", "the depot, node 3, has a demand of 1"),
        (" 3\n -1", " 3\n 4\n -1", "DEPOT_SECTION names 3 4; one node"),
        ("CAPACITY : 10", "CAPACITY : 10\nCAPACITY : 5", "CAPACITY says 5, and 10 above; leave one"),
        (
            "CAPACITY : 10",
            "CAPACITY : 10\nDISTANCES : 5",
            "DISTANCES is not supported.*did you mean DISTANCE",
        ),
        (
            "DEPOT_SECTION",
            "RELEASE_TIME_SECTION\n1 5\nDEPOT_SECTION",
            "RELEASE_TIME_SECTION is not supported",
        ),
        ("CAPACITY : 10", "CAPACITY : ten", "CAPACITY says ten"),
        ("DIMENSION : 5", "DIMENSION : ²", "DIMENSION says ², but 5 nodes"),
        ("\n2 5\n", "\n2 ²\n", "line 14: expected `node demand` in plain digits, got `2 ²`"),
        ("2 3 4", "2 3 4e12", "coordinates beyond 1e12"),
        ("TYPE : CVRP", "TYPE : TSP", "CAPACITY is not supported for TYPE TSP"),
        (": EUC_2D", ": EXPLICIT", "EDGE_WEIGHT_FORMAT nothing is not read"),
        (UNSCALED, UNSCALED.replace("10", "1").replace("3 4", ".3 .4"), "span 1, and EUC_2D rounds"),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in GOOD
    with one_line(message, "five.vrp"):
        read(tmp_path, GOOD.replace(before, after, 1))


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
