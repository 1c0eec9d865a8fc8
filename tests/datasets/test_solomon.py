"""Solomon's files: read, scaled as published, and refused in one line when they are not whole."""

from pathlib import Path

import numpy as np
import pytest
from refusals import one_line

from neuroute.api.files import load
from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.tsplib import parse
from neuroute.problems.vrp import from_routes, lengths, valid

HEAD = """T1

VEHICLE
NUMBER     CAPACITY
  25         200

CUSTOMER
CUST NO.   XCOORD.   YCOORD.    DEMAND   READY TIME   DUE DATE   SERVICE TIME

"""
ROWS = ["0 40 50 0 0 1236 0", "1 45 68 10 912 967 90", "2 45 70 30 825 870 90"]


def text(rows: list[str] = ROWS, head: str = HEAD) -> str:
    return head + "".join(f"    {row}\n" for row in rows)


def read(tmp_path: Path, content: str):
    return parse(content, str(tmp_path / "T1.txt"), "T1")


def test_a_file_in_its_own_units_and_scaled(tmp_path: Path) -> None:
    found = read(tmp_path, text())
    assert (found.name, found.capacity, found.scale) == ("T1", 200, 412.0)
    own, scaled = found.vrp, found.inputs()
    assert own.windows[0].tolist() == [[0, 1236], [912, 967], [825, 870]]
    assert scaled.windows[0, 0].tolist() == [0, 3]
    assert scaled.variant == "VRPTW"
    np.testing.assert_allclose(scaled.coords[0] * 412, found.coords, rtol=1e-6)
    np.testing.assert_allclose(scaled.service[0] * 412, [0, 90, 90], rtol=1e-6)
    assert {a.dtype for a in (scaled.coords, scaled.windows, scaled.service)} == {np.dtype(np.float32)}
    solution = from_routes([[2, 1]])[None]
    assert valid(own, solution).all()
    assert found.cost([[2, 1]]) == pytest.approx(lengths(own, solution)[0], rel=1e-12)
    assert not valid(own, from_routes([[1, 2]])[None]).any()


def test_where_coordinates_are_larger_than_times_they_set_the_scale(tmp_path: Path) -> None:
    rows = ["0 35 35 0 0 230 0", "1 77 35 7 50 60 10"]
    found = read(tmp_path, text(rows)).inputs()
    assert found.coords.max() == 1
    assert found.windows[0, 0, 1] == pytest.approx(230 / 77)


@pytest.mark.parametrize(
    ("name", "scale", "closes"),
    [("R101", 77, 2.987), ("RC101", 95, 2.526), ("R201", 333.333, 3), ("RC201", 320, 3), ("C101", 412, 3)],
)
def test_published_files(shared: Path, name: str, scale: float, closes: float) -> None:
    found = load(shared / "benchmarks" / "solomon" / f"{name}.txt")
    assert found.name == name
    assert found.scale == pytest.approx(scale, abs=1e-3)
    assert found.inputs().windows[0, 0, 1] == pytest.approx(closes, abs=1e-3)
    assert found.inputs().coords.min() >= 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no EDGE_WEIGHT_TYPE"),
        (HEAD.replace("  25         200", ""), "section VEHICLE needs one row"),
        (HEAD.replace("25         200", "25"), "line 5: expected `vehicles capacity` in plain digits, got `25`"),
        (text()[:-20], "line 12: .* is the file cut short"),
        (text([*ROWS[:2], "2 45 70 1.5 825 870 90"]), "line 12: row 2 is `2 45 70 1.5 .* whole numbers up to"),
        (text([ROWS[0], ROWS[2]]), "line 11: row 1 is `2 45 .* numbered from 0 on"),
        (text([*ROWS[:2], "2 45 70 30 870 825 90"]), "customer 2: its window closes before it opens"),
        (text([*ROWS[:2], "2 45 70 300 825 870 90"]), "customer 2: it demands more than the capacity"),
        (text().rstrip(), "its last line does not end"),
    ],
)
def test_what_is_not_whole_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    with one_line(message):
        read(tmp_path, content)


def test_any_number_of_customers_is_read_but_the_one_that_a_title_states(tmp_path: Path) -> None:
    (tmp_path / "T1.txt").write_text(text())
    assert load(tmp_path / "T1.txt").n == 2
    (tmp_path / "T1.txt").write_text(text().replace("T1", "T1 of 3 customers", 1))
    with one_line("2 customers, not 3 as"):
        load(tmp_path / "T1.txt")
    with pytest.raises(NeurouteError, match="no such file"):
        load(tmp_path / "none.txt")


def test_a_fleet_that_is_ignored_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "T1.txt").write_text(f"T1 of 2 customers\n{text().split(chr(10), 1)[1].replace('25 ', '1 ')}")
    load(tmp_path / "T1.txt")
    assert "its number of vehicles (1) is ignored" in caplog.text
