"""TSPLIB files: what is read, TSPLIB's own distances, and the line that says what is wrong."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from refusals import one_line

from neuroute.api.files import load, load_all

GOOD = """NAME : square5
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


def read(tmp_path: Path, text: str = GOOD):  # type: ignore[no-untyped-def]
    path = tmp_path / "file.tsp"
    path.write_text(text)
    return load(path)


def test_reads_coordinates_and_rounds_as_tsplib(tmp_path: Path) -> None:
    instance = read(tmp_path)
    assert instance.name == "square5"
    assert instance.coords.shape == (5, 2)
    tour = np.array([0, 1, 2, 4, 3])
    assert instance.length(tour) == 10 + 10 + 7 + 7 + 10
    assert instance.length(tour, rounded=False) == pytest.approx(30 + 2 * np.hypot(5, 5.5))


def test_a_folder_says_which_instances_it_leaves_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("a.tsp", "b.TSP", "c.vrp", "d.hcp", "notes.md"):
        (tmp_path / name).write_text(GOOD)
    assert [each.file for each in load_all(tmp_path)] == ["a", "b"]
    assert [Path(line.partition(":")[0]).name for line in caplog.messages] == ["c.vrp", "d.hcp"]


def test_nodes_on_one_point_are_named_by_the_file_s_numbers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(tmp_path, GOOD.replace("\n4 0 10", "\n40 0 0"))
    assert "the file's nodes 1 and 40)" in caplog.text


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("3 1e1 10\n", "", "DIMENSION says 5, but 4 nodes"),
        ("4 0 10", "4 nan 10", "line 11: expected `node x y` in plain digits, got `4 nan 10`"),
        ("4 0 10", "3 0 10", "line 11: node 3 has coordinates twice"),
        ("EUC_2D", "EXPLICIT", "EDGE_WEIGHT_FORMAT nothing is not read"),
        ("TYPE: TSP", "TYPE: ATSP", "EDGE_WEIGHT_TYPE EUC_2D is not read with TYPE ATSP"),
        (GOOD[GOOD.index("1 0 0") :], "", "DIMENSION says 5, but 0 nodes"),
        ("EOF", "NODE_COORD_SECTION\n6 1 1\nEOF", "a second NODE_COORD_SECTION"),
        ("EOF", "COMMENT : \x1b[31m\nEOF", "line 13: not a text file"),
        ("4 0 10", "9" * 30 + " 0 10", "number nodes by whole numbers from 0"),
        (
            GOOD[GOOD.index("1 0 0") :],
            "1 0 0\n2 1 0\n3 1 1\n4 0 1\n5 .5 .5\nEOF",
            "span 1, and EUC_2D rounds distances",
        ),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in GOOD
    with one_line(message, "file.tsp"):
        read(tmp_path, GOOD.replace(before, after))


# TSPLIB's own check of an implementation: the length of the tour 1, 2, ..., n.
CANONICAL = {"pcb442": 221_440, "att532": 309_636, "gr666": 423_710}


@pytest.mark.parametrize("name", CANONICAL)
def test_canonical_tours_have_tsplibs_lengths(public: Callable[[str], Path], name: str) -> None:
    instance = load(public(f"benchmarks/tsplib/{name}.tsp"))
    assert instance.length(np.arange(len(instance.coords))) == CANONICAL[name]
