"""Cells and notes: which solvers were run, what stands behind means over a library, what is printed."""

from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from neuroute.pipeline.papers.scaling.paper import COMPARED, DEEPEST, LEHDS
from neuroute.pipeline.rendering.benchmark import Solved
from neuroute.pipeline.rendering.cells import FEWEST, Solvers, select
from neuroute.pipeline.rendering.grid import LKH_BUDGETS
from neuroute.pipeline.rendering.study import _read_published
from neuroute.solvers import lkh, lkh3
from neuroute.specs.objects import Dataset, Labels

ALL = (1, 1000)


def solved(count: int) -> tuple[Any, Solved]:
    """Two models, b always one point behind a; their records are in different orders."""
    gaps = np.random.default_rng(0).normal(10, 3, count)
    of_all = {"decoding": "greedy", "metric": "gap_pct"}
    rows = [
        of_all | {"run": run, "value": gap + more, "trainings": (gap + more,), "test": f"tsplib_{i}", "n": 100 + i}
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
    run = "run of as many trials as nodes (LKH's default)"
    rounds = f"from {lkh.NODES:,} nodes on a first tour and ten rounds of {lkh.NODE_TRIALS:,} trials over nodes, "
    rounds += "six hours at most"
    assert LKH_BUDGETS["lkh3"] == f"one {run}, 600 s and one more a node at most"
    assert LKH_BUDGETS["lkh"] == f"one {run}, {rounds}"
    assert LKH_BUDGETS["lkh-long"] == f"ten runs of as many trials as nodes, {rounds}"


# -- what notes say of printed numbers alone --------------------------------------------------------------------------


def printed(paper: str, table: str, **where: object) -> float:
    return float(select(_read_published(paper, table), **where).value.mean())


def test_notes_say_what_is_printed() -> None:
    groups, methods = ("<500", ">500 (<5000)", "<5000"), ("POMO-MTL", "MVMoE/4E", "MVMoE/4E-L")
    means = [[printed("scaling", "table6", n=n, **shape._asdict()) for n in groups] for shape in COMPARED]
    weights = [f"{100 * (large - every) / (large - small):.0f}" for small, large, every in means]
    without = printed("scaling", "table8", depth=6, width=256, log_n="no", n=1000, metric="gap_pct")
    with_it = printed("scaling", "table13", depth=6, width=512, n=1000, metric="gap_pct")
    wide, deep = (printed("scaling", "table20", metric="params_m", **shape._asdict()) for shape in LEHDS)
    (layers, w), (depth, width, hidden) = DEEPEST, (9, 192, 512)
    gates, whole = layers * (w**2 + w) / 1e6, (layers * (13 * w**2 + 7 * w + 2) + 2 * w**2 + 6 * w + 1) / 1e6
    count = depth * (3 * width**2 + 2 * width * hidden + 2 * width) + 2 * width**2 + 3 * width
    before, after = (
        printed("pens", "table1", method="PENS-A", scaled=s, n=10_000, metric="gap_pct") for s in ("no", "yes")
    )
    scaled = select(_read_published("pens", "table2"), method="PENS-AR", scaled="yes").n.astype(str)
    places = [f"TSPLIB {n}" if "-" in n else f"TSP{n}" for n in dict.fromkeys(scaled)]
    of_multi = [f"{m} {printed('mvmoe', 'table1', n=100, metric='gap_pct', method=m):.3f} %" for m in methods]
    quoted = {name: printed("scaling", "quoted", quantity=name) for name in ("r2_global", "mape_global", "r2_depth")}
    for note, says in (
        ("scaling/figure2", "R² {r2_global:g} and error {mape_global:g} % for (a)".format_map(quoted)),
        ("scaling/figure2", f"mean R² {quoted['r2_depth']:g}, error"),
        ("scaling/figure1", f"says {printed('scaling', 'quoted', quantity='models_beating_a_larger_one'):.0f} of 12"),
        ("scaling/table6", f"imply {', '.join(weights)} %"),
        ("scaling/table6", f"would be {', '.join(f'{0.6 * small + 0.4 * large:.3f}' for small, large, _ in means)} %"),
        ("scaling/table7", f"has {whole - gates:.2f}M parameters instead of {whole:.2f}M, {100 * gates / whole:.1f} %"),
        ("scaling/table8", f"{without:.3f} % and {with_it:.3f} %, differ by {100 * (1 - with_it / without):.1f} %"),
        ("scaling/table20", f"differ by {100 * (1 - deep / wide):.1f} %"),
        ("pens/table1", f"to {after:.2f} % at TSP10000; the tables print {before:.2f} % before"),
        ("pens/table1", f"a factor of {before / after:.2f}, where"),
        ("pens/table2", f"rescaled at {', '.join(places)} and nowhere else"),
        ("pens/table4", f"{(count + depth * width**2) / 1e6:.2f}M if attention's output is projected and {count:,} if"),
        ("mvmoe/table4", f"Table 1 has {', '.join(of_multi)}"),
    ):
        paper, name = note.split("/")
        text = (files(f"neuroute.pipeline.papers.{paper}") / "published" / f"{name}.md").read_text(encoding="utf-8")
        assert says in text, note
