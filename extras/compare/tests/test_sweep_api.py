"""A sweep from Python: a training at each point and seed, of any class, and one line for what does not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import one_line

import neuroute
import own_parts

pytestmark = pytest.mark.usefixtures("one_thread")
SMALL = {"n": 8, "batches": 2, "batch_size": 4, "validations": 1, "validate_on": 4, "solver": "nearest", "workers": 1}


def sweep(folder: Path, grid: Any, **more: Any) -> neuroute.Sweep:
    how: dict[str, Any] = {**SMALL, "work": folder / "work", "out": folder / "out", "device": "cpu", "threads": 1}
    return neuroute.sweep(own_parts.Starts, grid, **{**how, **more})


def test_each_point_is_trained_with_each_seed(tmp_path: Path) -> None:
    found = sweep(tmp_path, {"learning_rate": [1e-3, 3e-1], "batch_size": [2, 4]}, seeds=2)
    frame = found.to_frame()
    assert frame[["learning_rate", "batch_size"]].to_numpy().tolist() == [[1e-3, 2], [1e-3, 4], [3e-1, 2], [3e-1, 4]]
    assert (frame.seeds == 2).all()
    assert len(found.records) == 4 * 2 * 128
    first = found.records[(found.records.learning_rate == 1e-3) & (found.records.batch_size == 2)]
    means = first.groupby("seed").gap_pct.mean()
    assert frame.gap_pct[0] == pytest.approx(means.mean())
    assert [frame.least_pct[0], frame.largest_pct[0]] == pytest.approx(sorted(means))
    assert frame.gap_low_pct[0] < frame.gap_pct[0] < frame.gap_high_pct[0]
    loaded = neuroute.evaluate(neuroute.load_model(first.model.iloc[0], "cpu"), neuroute.generate("tsp", 8, 128))
    assert np.allclose(loaded.lengths, first.length[:128])
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"records.csv", "table.csv", "figure.svg"}
    (axes,) = found.plot().axes
    assert axes.get_title("left") == "Starts, 128 instances, n = 8"
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["0.001", "0.3"]
    assert "<table" in found._repr_html_()
    again = sweep(tmp_path, {"learning_rate": [1e-3, 3e-1], "batch_size": [2, 4]}, seeds=2)
    assert again.records.train_s.equals(found.records.train_s)  # loaded, not trained again


@pytest.mark.parametrize(
    ("grid", "more", "says"),
    [
        ({"learning_rat": [1]}, {}, "unknown setting 'learning_rat'.*did you mean learning_rate"),
        ({"seed": [1]}, {}, "seed: cannot vary in the grid; pass it as an argument of `sweep`, such as seeds=3"),
        ({"learning_rate": 1e-3}, {}, "learning_rate: give a list of values"),
        ({"learning_rate": [1e-3, 1e-3]}, {}, "has a value twice"),
        ({"learning_rate": [1e-3, -1]}, {}, "learning_rate"),
        ({"arguments.depths": [1]}, {}, "depths"),
        ({}, {}, "the grid is empty"),
        ({"n": [8]}, {"seeds": 0}, "seeds 0"),
        ({"problem": ["tsp"]}, {}, "give `instances` to measure on"),
        ({"n": [8]}, {"decoding": "quick"}, "quick"),
        ({"n": [8]}, {"decoding": neuroute.Decoding(starts=9)}, "9 is more than its 8 stops"),
        ({"n": [8]}, {"instances": neuroute.generate("cvrp", 8, 2)}, "holds CVRP instances, but .* solves TSP"),
    ],
)
def test_what_does_not_fit_is_said_before_any_training(tmp_path: Path, grid: Any, more: Any, says: str) -> None:
    with one_line(says):
        sweep(tmp_path, grid, **more)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
