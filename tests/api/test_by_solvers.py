"""`neuroute evaluate --reference` and `neuroute solve --solver`: gaps to what solvers find, and tables of several."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import call, done, refused
from untrained import tsp_text

from neuroute.api.classical import available, solve_with
from neuroute.api.files import read_instances
from neuroute.api.reference import with_reference
from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.arrays import check_arrays
from neuroute.problems.instances.instance import Instances
from stand_ins import checkpoint
from test_explicit import SYMMETRIC, text

COORDS = np.random.default_rng(0).random((3, 9, 2))


def made() -> Instances:
    return Instances.of_arrays("mine", {"points": COORDS})


def test_references_are_the_solvers_lengths_and_are_kept(tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    solved = with_reference(made(), "nearest", out, workers=1)
    expected = [each.cost(solve_with("nearest", each).stops) for each in made().members]
    assert solved.groups[0].reference == pytest.approx(expected)
    kept = tmp_path / "r.nearest.npz"
    assert read_instances(kept).groups[0].reference == pytest.approx(expected)
    before = kept.stat().st_mtime_ns
    again = with_reference(made(), "nearest", out, workers=1)
    assert again.groups[0].reference == pytest.approx(expected)
    assert kept.stat().st_mtime_ns == before


def vehicles(**changes: Any) -> Instances:
    fields = {
        "demand": np.tile([0, *[2] * 8], (3, 1)),
        "capacity": np.full(3, 6),
        "limit": np.full(3, 9.0),
        "windows": np.tile([0.0, 50.0], (3, 9, 1)),
        "service": np.tile([0.0, *[0.1] * 8], (3, 1)),
    }
    return Instances.of_arrays("mine", check_arrays(Path("mine.npz"), {"coords": COORDS, **fields, **changes}))


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records beside which the solutions of `vehicles` are kept."""
    out = tmp_path_factory.mktemp("solved") / "r.csv"
    with_reference(vehicles(), "pyvrp-short", out, workers=1)
    return out


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("coords", COORDS + 0.1),
        ("demand", np.tile([0, *[1] * 8], (3, 1))),
        ("capacity", np.full(3, 16)),
        ("limit", np.full(3, 10.0)),
        ("windows", np.tile([0.0, 60.0], (3, 9, 1))),
        ("service", np.tile([0.0, *[0.2] * 8], (3, 1))),
        ("open", np.array(True)),
    ],
)
def test_references_of_other_instances_are_refused_whatever_differs(solved: Path, key: str, other: Any) -> None:
    kept = read_instances(solved.with_name("r.pyvrp-short.npz")).groups[0].reference
    again = with_reference(vehicles(), "pyvrp-short", solved, workers=1)
    assert again.groups[0].reference == pytest.approx(kept)
    with pytest.raises(NeurouteError, match=rf"r.pyvrp-short.npz: holds other instances \(.*{key}"):
        with_reference(vehicles(**{key: other}), "pyvrp-short", solved, workers=1)


def test_evaluate_measures_against_a_solver(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", coords=COORDS)
    model = checkpoint(tmp_path / "m.safetensors", "tsp")
    given = ("evaluate", "--model", model, "--data", tmp_path / "mine.npz", "--device", "cpu", "--workers", 1)
    assert "gap     unknown" in done(*given)
    said = done(*given, "--reference", "lkh", "--out", tmp_path / "r.csv")
    assert re.search(r"gap     ([\d.]+) % \(of mean lengths\)", said)
    assert (tmp_path / "r.lkh.npz").is_file()
    assert "no solver 'hg'; did you mean hgs? solvers of the TSP: " in refused(*given, "--reference", "hg")
    assert "--out" in refused(*given, "--reference", "lkh", "--out", tmp_path / "mine.npz" / "r.csv")


def test_several_solvers_make_a_table(tmp_path: Path) -> None:
    (tmp_path / "p.tsp").write_text(tsp_text((COORDS[0] * 1000).round(), name="p"))
    save = tmp_path / "p.tour"
    said = done("solve", tmp_path / "p.tsp", "--solver", "lkh,nearest", "--solver", "insertion", "--save", save)
    table = said[said.index("p: TSP, n=9, EUC_2D; gaps to the shortest here") :].splitlines()
    assert [row.split()[0] for row in table[1:]][:2] == ["method", "lkh"]
    assert {row.split()[0] for row in table[2:5]} == {"lkh", "nearest", "insertion"}
    assert "length" in save.read_text()
    assert float(table[2].split()[2]) == 0
    said = done("solve", tmp_path / "p.tsp", "--solver", "lkh,nearest", "--reference", "insertion")
    assert "gaps to insertion" in said


@pytest.mark.parametrize(("scale", "best"), [(1e9, 16_841_619_252), (3e8, 5_052_485_776)])
def test_a_solver_that_cannot_count_so_far_is_a_row(tmp_path: Path, scale: float, best: int) -> None:
    if "concorde" not in available("tsp"):
        pytest.skip("concorde is not installed")
    coords = scale * np.array([[0, 0], [3, 0], [3, 4], [0, 4], [1.5, 2], [5, 1]])
    (tmp_path / "t.tsp").write_text(tsp_text(coords))
    said = done("solve", tmp_path / "t.tsp", "--solver", "concorde,lkh,insertion")
    assert re.search(r"^concorde +- .*a tour's length of .* is more than it counts to", said, re.MULTILINE)
    assert len(re.findall(rf"^(?:lkh|insertion) +{best:,} +0.000 ", said, re.MULTILINE)) == 2


def test_distances_are_solved_and_refused_to_networks(tmp_path: Path) -> None:
    matrix, save = tmp_path / "m.tsp", tmp_path / "m.tour"
    matrix.write_text(text(SYMMETRIC))
    by_lkh = ("solve", matrix, "--solver", "lkh")
    assert "t: n=8, length " in done(*by_lkh, "--save", save)
    assert "TYPE : TOUR" in save.read_text()
    assert "which networks need; solve it with --solver " in refused("solve", matrix)
    assert "not coordinates to draw" in refused(*by_lkh, "--out", matrix.with_suffix(".svg"))
    code, said = call(*by_lkh, "--seconds", 0)
    assert (code, "give a number above 0" in said) == (2, True)
