"""Demands, capacities and coordinates that nobody can compute with: one clear line, whatever digits they come in."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.datasets.sections import whole
from neuroute.datasets.vrplib import read_solution, read_vrplib
from neuroute.user.data import read_instances

VRP = (
    "NAME : four\nTYPE : CVRP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 10\n"
    "NODE_COORD_SECTION\n1 0 0\n2 3 4\n3 6 0\n4 0 9\nDEMAND_SECTION\n1 0\n2 5\n3 6\n4 7\nDEPOT_SECTION\n1\n-1\nEOF\n"
)
COORDS = np.random.default_rng(0).random((2, 5, 2))
CVRP: dict[str, Any] = {
    "coords": COORDS,
    "demand": np.array([[0, 3, 4, 3, 2]] * 2),
    "capacity": np.array([10, 10]),
    "node": np.array([[1, 2, 3, 4]] * 2),
    "via_depot": np.array([[1, 0, 0, 1]] * 2),
}


def test_whole_numbers_are_plain_digits() -> None:
    assert [whole(text) for text in ("0", "007", "999999999")] == [0, 7, 999_999_999]
    assert {whole(text) for text in ("", "-1", "1.0", "1e3", "²", "٣", "1000000000", "9" * 5000)} == {None}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("CAPACITY : 10", "CAPACITY : ²", "CAPACITY says ²; give a whole number above 0"),
        ("CAPACITY : 10", f"CAPACITY : {'9' * 30}", "of at most 9 digits"),
        ("CAPACITY : 10\n", "", "CAPACITY says nothing"),
        ("DIMENSION : 4", "DIMENSION : ²", "DIMENSION says ², but 4 nodes"),
        ("\n2 5\n", "\n2 ²\n", "line 13: expected `node demand` in whole numbers from 0 on, got `2 ²`"),
        ("\n2 5\n", f"\n2 {'9' * 30}\n", "line 13: expected `node demand`"),
        ("\n2 5\n", "\n2 -5\n", "line 13: expected `node demand` in whole numbers from 0 on"),
        ("\n2 5\n", "\n2 11\n", "node 2 demands 11, more than the capacity 10; split it"),
        ("DEPOT_SECTION\n1", "DEPOT_SECTION\n²", "DEPOT_SECTION names ²; one node"),
        ("2 3 4", "2 3 4e12", "coordinates beyond 1e12"),
    ],
)
def test_numbers_of_a_vrp_file(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in VRP
    path = tmp_path / "four.vrp"
    path.write_text(VRP.replace(before, after, 1))
    with pytest.raises(NeurouteError) as error:
        read_vrplib(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_solution_that_names_the_depot_or_costs_no_number(tmp_path: Path) -> None:
    (tmp_path / "four.vrp").write_text(VRP)
    instance = read_vrplib(tmp_path / "four.vrp")
    with pytest.raises(NeurouteError, match="no customer 0 among 1..3 of four; leave the depot out of the routes"):
        instance.check([[0, 1, 0], [2], [3]], "x.sol")
    for cost in ("nan", "inf"):
        (tmp_path / "x.sol").write_text(f"Route #1: 1\nRoute #2: 2\nRoute #3: 3\nCost {cost}\n")
        with pytest.raises(NeurouteError, match="line 4: expected `Route #k: customers` or `Cost c`"):
            read_solution(tmp_path / "x.sol")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capacity": np.array([10, np.inf])}, "no 'capacity' in whole numbers"),
        ({"capacity": np.array([10, np.nan])}, "no 'capacity' in whole numbers"),
        ({"capacity": np.array([10, 1e300])}, "'capacity' goes beyond 1,000,000,000"),
        ({"demand": CVRP["demand"] * 1e300}, "'demand' goes beyond 1,000,000,000"),
        ({"demand": np.where(CVRP["demand"] == 4, np.nan, CVRP["demand"])}, "no 'demand' in whole numbers"),
        ({"node": CVRP["node"] + 0.5}, "'node' and 'via_depot' are whole numbers"),
        ({"node": np.where(CVRP["node"] == 2, np.nan, CVRP["node"])}, "'node' and 'via_depot' are whole numbers"),
        ({"via_depot": CVRP["via_depot"] * 0.5}, "'node' and 'via_depot' are whole numbers"),
        ({"coords": COORDS * [[[1]], [[1e13]]]}, "instance 1: coordinates beyond 1e12"),
        ({"coords": COORDS * [[[1]], [[1e300]]]}, "instance 1: coordinates beyond 1e12"),
    ],
)
def test_numbers_of_an_npz(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """No warning of numpy's either: what a reader sees is one line."""
    np.savez(tmp_path / "d.npz", **(CVRP | changes))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NeurouteError, match=message):
            read_instances(tmp_path / "d.npz")
