"""Cells of tables: which solvers a row says were run, and what stands behind means over a public library."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from neuroute.pipeline.rendering.benchmark import Solved
from neuroute.pipeline.rendering.cells import FEWEST, Solvers
from neuroute.pipeline.rendering.grid import LKH_BUDGETS
from neuroute.solvers import lkh, lkh3
from neuroute.specs.objects import Dataset, Labels

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


# -- solvers ---------------------------------------------------------------------------------------------------------

SMALL, LARGE = Dataset(problem="cvrp", n=20, count=8), Dataset(problem="cvrp", n=20, count=64)


def told(*made: Labels) -> Solvers:
    entries = {m.id: {"count": m.dataset.count, "mean_length": 4.0, "seconds": 1.0, "version": "1"} for m in made}
    return Solvers(SimpleNamespace(), entries)  # type: ignore[arg-type]


def test_solutions_of_more_instances_show_no_mean_of_these() -> None:
    """So they are not named, and the next solver of the row is."""
    solvers = told(Labels(dataset=LARGE, solver="hgs"), Labels(dataset=SMALL, solver="hgs-short"))
    reference = Labels(dataset=SMALL, solver="hgs-short")
    assert solvers.here([reference], ["hgs", "hgs-short"]) == "short HGS (1)"
    assert solvers.here([reference], ["lkh3"]) == "–"


def test_budgets_of_lkh_are_those_of_the_solvers() -> None:
    assert (lkh.RUNS, lkh3.RUNS, lkh.ROUNDS) == (1, 1, 10)
    assert (lkh.SECONDS, lkh3.limit_s(0), lkh3.limit_s(1)) == (6 * 3600, 600, 601)
    assert lkh.LONG.solve.keywords["runs"] == 10  # type: ignore[union-attr]
    run, rounds = (
        "run of as many trials as nodes (LKH's default)",
        (
            f"from {lkh.NODES:,} nodes on a first tour and ten rounds of {lkh.NODE_TRIALS:,} trials over nodes, "
            "six hours at most"
        ),
    )
    assert LKH_BUDGETS["lkh3"] == f"one {run}, 600 s and one more a node at most"
    assert LKH_BUDGETS["lkh"] == f"one {run}, {rounds}"
    assert LKH_BUDGETS["lkh-long"] == f"ten runs of as many trials as nodes, {rounds}"
