"""Sweeps over scaling factors: lengths by hand, the fit that follows, and bad sweeps."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from untrained import evaluated, ready, run_of

from neuroute.analysis.rescaling import factor_for, read_best
from neuroute.core.errors import NeurouteError
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.decode import decode
from neuroute.evaluation import rescaling
from neuroute.problems.tsp import tour_length
from neuroute.specs.objects import Dataset, Decoding, Labels, Network, RescalingEvaluation, Sweep

SMALL, LARGE = Dataset(split="val", n=9, count=6), Dataset(split="val", n=16, count=4)
ARGUMENTS = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 24, "positions": "both", "train_nodes": 9}
NETWORK = Network(kind="neuroute.networks.pens:Pens", arguments=ARGUMENTS)
LABELS = Labels(dataset=SMALL, solver="concorde")  # not read
RUN = run_of(NETWORK, LABELS, "pens/x")
FACTORS = (0.5, 1.0, 2.0, 4.0)
SWEEPS = (Sweep(dataset=LARGE, factors=FACTORS), Sweep(dataset=SMALL, factors=(1.0, 1.5, 3.0)))


def sweep(folder: Path, sweeps: tuple[Sweep, ...] = SWEEPS) -> tuple[pd.DataFrame, dict[str, Any]]:
    return evaluated(folder, RescalingEvaluation(run=RUN.id, sweeps=sweeps), RUN)


def test_lengths_are_those_of_stretched_coordinates_on_the_original_scale(tmp_path: Path) -> None:
    records, arrays = sweep(tmp_path)
    net = ready(NETWORK)
    for each in SWEEPS:
        coords = dataset_coordinates(each.dataset)
        by_hand = []
        for factor in each.factors:  # the network is given coordinates that somebody else has stretched
            tours = decode("tsp", net, coords * np.float32(factor), Decoding()).numpy()
            by_hand.append(tour_length(coords, tours).mean())
        np.testing.assert_allclose(arrays[f"{each.dataset.id}|lengths"], by_hand, rtol=1e-12)
        np.testing.assert_array_equal(arrays[f"{each.dataset.id}|factors"], each.factors)
        at_1 = each.factors.index(1.0)  # plain greedy, to the last bit
        assert arrays[f"{each.dataset.id}|lengths"][at_1] == by_hand[at_1]
        own = records[(records.test == each.dataset.id) & (records.metric == "length")]
        assert own.decoding.tolist() == ["greedy" if f == 1 else f"greedy-rescale{f}" for f in each.factors]
        np.testing.assert_allclose(own.value, by_hand, rtol=1e-12)
    assert len(set(arrays[f"{LARGE.id}|lengths"])) > 1, "the factor changes nothing: this network shows nothing"


def test_records_and_arrays_agree(tmp_path: Path) -> None:
    records, arrays = sweep(tmp_path)
    assert arrays["sizes"].tolist() == [9, 16]  # smallest first, whatever the order of the sweeps
    assert arrays["sizes"].dtype == np.int64
    assert arrays["interior"].dtype == bool
    for dataset, best, interior in zip((SMALL, LARGE), arrays["best"], arrays["interior"], strict=True):
        own = records[records.test == dataset.id].set_index(["decoding", "metric"]).value
        assert own["greedy-rescalebest", "rescale_factor"] == pytest.approx(best)
        factors, lengths = arrays[f"{dataset.id}|factors"], arrays[f"{dataset.id}|lengths"]
        a, b, _ = parabola = np.polyfit(factors, lengths, 2)
        np.testing.assert_allclose(arrays[f"{dataset.id}|parabola"], parabola, rtol=1e-6)
        assert best == pytest.approx(-b / (2 * a) if interior else factors[lengths.argmin()])
    assert set(records.metric) == {"length", "time_s", "rescale_factor"}
    assert (records.value > 0).all()
    assert set(records.reference) == {"none"}
    sizes, best = read_best(tmp_path / "out" / "rescaling.npz", RUN.id)
    assert factor_for(16, sizes, best) == arrays["best"][1]


def test_a_minimum_outside_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Lengths that fall, and lengths with a minimum at 1.75, whatever the network does."""

    def told(length: Any) -> list[str]:
        calls = iter(length(f) for f in FACTORS)
        monkeypatch.setattr(rescaling, "tour_length", lambda coords, tours: np.full(len(tours), next(calls)))
        caplog.clear()
        with caplog.at_level(logging.WARNING, "neuroute"):
            sweep(tmp_path, (Sweep(dataset=LARGE, factors=FACTORS),))
        return [r.getMessage() for r in caplog.records]

    messages = told(lambda f: 10 - f)
    assert messages == [
        f"pens/x/rescaling: {LARGE.id}: the parabola has no minimum between its factors 1 and 4, "
        "so the best swept factor, 4, is used; widen this size's `factors` in the scale file"
    ]
    assert told(lambda f: (f - 1.75) ** 2 + 3) == []
    with np.load(tmp_path / "out" / "rescaling.npz") as file:
        assert file["rescaling/best"] == pytest.approx([1.75])
        assert file["rescaling/interior"].all()


@pytest.mark.parametrize(
    ("sweeps", "message"),
    [
        ((Sweep(dataset=SMALL, factors=(1.0, 2.0)),), f"{SMALL.id}: 2 different factors are too few for a minimum"),
        ((Sweep(dataset=SMALL, factors=(0.0, 1.0, 2.0)),), f"{SMALL.id}: factor 0; coordinates are stretched"),
    ],
)
def test_bad_sweeps_are_refused_before_anything_is_measured(
    sweeps: tuple[Sweep, ...], message: str, tmp_path: Path
) -> None:
    with pytest.raises(NeurouteError, match=f"^pens/x/rescaling: {message}"):
        sweep(tmp_path, sweeps)
    assert not list((tmp_path / "out").glob("*.csv"))
