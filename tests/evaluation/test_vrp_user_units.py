"""The 16 VRPs in units of the user's own: what networks could not complete, nor add up, is one line that names whom."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.user.files import read_instances

CUSTOMERS = 6


def coords(size: float, middle: float = 0.0) -> np.ndarray:
    """An instance (1, 7, 2) in a square of this size around a point of the diagonal, its depot in a corner."""
    inner = np.random.default_rng(0).uniform(0.2, 1.0, (1, CUSTOMERS, 2))
    return np.concatenate([np.zeros((1, 1, 2)), inner], axis=1) * size + (middle - size / 2)


def way_out(points: np.ndarray) -> np.ndarray:
    """From the depot: (1, 7)."""
    found: np.ndarray = np.sqrt(((points - points[:, :1]) ** 2).sum(-1))
    return found


def npz(folder: Path, **given: Any) -> Path:
    demand = np.concatenate([[[0]], np.ones((1, CUSTOMERS), dtype=int)], axis=1)
    np.savez(folder / "mine.npz", **{"demand": demand, "capacity": np.array([3]), **given})
    return folder / "mine.npz"


def refused(path: Path) -> str:
    with pytest.raises(NeurouteError) as error:
        read_instances(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("size", [1e-2, 1e-6])
def test_what_small_units_hide_from_the_tolerance_is_found(size: float, tmp_path: Path) -> None:
    """1e-5 of these units is much of the unit square: no network could serve the farthest customer."""
    points = coords(size)
    farthest = int(way_out(points).argmax())
    limit = 2 * way_out(points).max() - min(8e-6, size / 10)
    said = refused(npz(tmp_path, coords=points, limit=np.array(limit)))
    assert f"as networks take it (in the unit square, float32), instance 0, customer {farthest}: the way there" in said
    fair = npz(tmp_path, coords=points, limit=np.array(2 * way_out(points).max()))
    (group,) = read_instances(fair).groups
    assert group.inputs().limit[0] == pytest.approx(2 * way_out(group.inputs().coords.astype(float)).max(), rel=1e-5)


def test_late_times_that_float32_rounds_are_found(tmp_path: Path) -> None:
    """Every customer is served at the last moment from which there is a way home, a millionth of which gets lost."""
    points, closing, service = coords(0.9, 0.5), 100_000.03, 10.0
    windows, times = np.zeros((1, CUSTOMERS + 1, 2)), np.full((1, CUSTOMERS + 1), service)
    windows[..., 1], times[0, 0] = closing, 0
    windows[0, 1:, 0] = closing - service - way_out(points)[0, 1:]
    said = refused(npz(tmp_path, coords=points, windows=windows, service=times))
    assert "as networks take it" in said
    assert "customer" in said
    windows[0, 1:, 0] -= 1.0
    assert len(read_instances(npz(tmp_path, coords=points, windows=windows, service=times)).groups) == 1


@pytest.mark.parametrize(("node", "end"), [(0, 1), (4, 0), (4, 1)])
def test_windows_without_an_end_name_whose_they_are(node: int, end: int, tmp_path: Path) -> None:
    windows = np.zeros((1, CUSTOMERS + 1, 2))
    windows[..., 1] = 20.0
    windows[0, node, end] = (-np.inf, np.inf)[end]
    said = refused(npz(tmp_path, coords=coords(0.9, 0.5), windows=windows, service=np.zeros((1, CUSTOMERS + 1))))
    assert f"a window has no end, that of {f'customer {node}' if node else 'the depot'}" in said


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("key", "whose"), [("demand", "demand of customer 2 of 1e+300"), ("capacity", "capacity of 1e")]
)
def test_loads_that_no_whole_number_holds_are_one_line(key: str, whose: str, tmp_path: Path) -> None:
    loads = {"demand": np.ones((1, CUSTOMERS + 1)), "capacity": np.array([3.0])}
    loads["demand"][0, 0] = 0
    loads[key][(0, 2) if key == "demand" else (0,)] = 1e300
    assert whose in refused(npz(tmp_path, coords=coords(0.9, 0.5), variant=np.array("CVRP"), **loads))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("key", ["node", "via_depot"])
@pytest.mark.parametrize("value", [1.5, np.nan])
def test_solutions_are_not_rounded_to_what_they_do_not_say(key: str, value: float, tmp_path: Path) -> None:
    given = {"node": np.arange(1.0, 1 + CUSTOMERS)[None], "via_depot": np.ones((1, CUSTOMERS))}
    here = {"coords": coords(0.9, 0.5), "variant": np.array("OVRP")}
    assert read_instances(npz(tmp_path, **here, **given)).groups[0].reference is not None
    given[key][0, 0] = value
    assert "'node' and 'via_depot' are whole numbers" in refused(npz(tmp_path, **here, **given))
