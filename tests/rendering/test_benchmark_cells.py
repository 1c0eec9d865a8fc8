"""Means over a public library: what stands behind them is of the same instances for all models."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from neuroute.pipeline.rendering.benchmark import Solved
from neuroute.pipeline.rendering.cells import FEWEST

ALL = (1, 1000)


def solved(count: int) -> tuple[Any, Solved]:
    """Two models, b always one point behind a; their records are in different orders."""
    gaps = np.random.default_rng(0).normal(10, 3, count)
    rows = [
        {
            "run": run,
            "decoding": "greedy",
            "metric": "gap_pct",
            "value": gap + more,
            "trainings": (gap + more,),
            "test": f"tsplib_{i}",
            "n": 100 + i,
        }
        for run, more, order in (("a", 0, 1), ("b", 1, -1))
        for i, gap in list(enumerate(gaps))[::order]
    ]
    network = SimpleNamespace(kind="neuroute.networks:Net")
    study = SimpleNamespace(runs={run: SimpleNamespace(n=50, network=network) for run in "ab"})
    return study, Solved("tsplib", pd.DataFrame(rows))


def test_models_are_resampled_on_the_same_instances() -> None:
    study, of = solved(20)
    a, b = (of.gap_cell(study, run, "greedy", ALL, 5.0) for run in "ab")
    assert (a.published, a.low) == (5.0, None)
    assert b.behind.errors == pytest.approx(a.behind.errors)
    assert a.behind.drawn == b.behind.drawn
    assert a.behind.values == pytest.approx((a.measured,))
    assert a.behind.run == "a"
    assert (a.behind.instances, a.behind.network, a.behind.problem) == (20, "Net", "tsp")
    assert a.behind.times == pytest.approx(119 / 50)


def test_what_stands_behind_says_how_few_instances_there_are() -> None:
    study, of = solved(FEWEST - 1)
    assert of.gap_cell(study, "a", "greedy", ALL).behind.instances == FEWEST - 1
    assert of.gap_cell(study, "a", "greedy", ALL).measured is not None
    assert of.gap_cell(study, "c", "greedy", ALL).measured is None
