"""What artifacts of paper `mvmoe` say of where numbers come from: instances, intervals, budgets; what is not there."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from fabricated import with_arrays
from fabricated_mvmoe import FABRIC, SCALE, set_of
from fabricated_mvmoe import study as table_study
from fabricated_mvmoe_figures import BASE, COUNT, LIGHT, N, fabricate, study
from figure_checks import drawn, drawn_figure
from neuroute.core.dotted import resolve
from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.cells import BUDGETS, mean_gap_cell
from neuroute.papers.mvmoe.figures_routing import HATCH
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.rendering import cells, style
from neuroute.solvers import hgs, lkh3, ortools, pyvrp
from neuroute.solvers.base import Solver
from neuroute.solvers.registry import SOLVERS

RECORDS = fabricate
draw = partial(drawn_figure, study)


# -- instances ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [BASE, LIGHT])
def test_routing_says_all_sets_that_it_was_measured_on(run: str, work: Path) -> None:
    records = pd.read_csv(work / "evaluations" / f"{run}/routing.csv")
    assert records.test.tolist() == [f"vrp_{v}_uniform_val_n{N}_c{COUNT}" for v in roles.VARIANTS]
    looked = study("figure9" if run == BASE else "figure8", work)
    resolve(looked.artifact.function)(looked)
    assert {test["test"] for test in looked.measured_on()["tests"]} == set(records.test)


@pytest.mark.parametrize("name", ["figure5", "figure7"])
def test_curves_are_of_validation_instances(name: str, work: Path) -> None:
    note = draw(name, work).notes[0]
    assert f"on {SCALE[MvmoeScale].validation_count} validation instances" in note
    assert "test instances" not in note
    assert roles.validation(SCALE, "VRPBLTW").dataset.split == "val"


# -- intervals ------------------------------------------------------------------------------------------------------


def test_problems_on_the_same_ground_are_resampled_together(tmp_path: Path) -> None:
    """Where all problems have the same gaps, their mean is as uncertain as one of them."""
    FABRIC.write(tmp_path)
    run, sets = roles.run_id(roles.multi(SCALE, "MVMoE/4E", 50)), [set_of(v, 50) for v in roles.UNSEEN]
    path = tmp_path / "evaluations" / f"{run}/mvmoe.npz"
    stored = dict(np.load(path))
    gaps = 1 + np.linspace(0, 1, sets[0].count) ** 2
    for dataset in sets:
        stored[f"{dataset.id}|multistart-x8"] = stored[f"{dataset.id}|reference"] * gaps
    np.savez(path, **stored)  # type: ignore[arg-type]
    looked = table_study("table2", tmp_path)
    one, ten = (mean_gap_cell(looked, run, each) for each in (sets[:1], sets))
    assert one.low is not None
    assert one.low < one.high
    assert (ten.low, ten.high) == pytest.approx((one.low, one.high))


# -- budgets --------------------------------------------------------------------------------------------------------


def setting(solver: Solver, name: str) -> Any:
    """With which a variant calls its solver."""
    function = solver.solve_cvrp or solver.solve_vrp
    assert isinstance(function, partial)
    return function.keywords[name]


def test_budgets_are_those_of_the_solvers() -> None:
    seconds = ortools.SECONDS_PER_CUSTOMER
    expected: dict[str, Any] = {
        "hgs": f"{hgs.ITERATIONS:,} iterations",
        "hgs-long": f"{setting(hgs.LONG, 'iterations'):,} iterations",
        "hgs-short": f"{setting(hgs.SHORT, 'iterations')} iterations",
        "lkh3": f"one run of {lkh3.VRP_TRIALS:,} trials",
        "lkh3-short": f"one run of {lkh3.SHORT.solve_vrp.keywords['trials']} trials",  # type: ignore[union-attr]
        "ortools": f"{seconds} s a customer",
        "ortools-short": f"{setting(ortools.SHORT, 'budget').solutions} solutions",
        "ortools-x10": f"{10 * seconds:g} s a customer",
        "ortools-network": f"{seconds} s a customer",
        "pyvrp": f"{pyvrp.ITERATIONS:,} iterations",
        "pyvrp-long": f"{setting(pyvrp.LONG, 'iterations'):,} iterations",
        "pyvrp-short": f"{setting(pyvrp.SHORT, 'iterations')} iterations",
    }
    assert lkh3.RUNS == 1
    assert set(BUDGETS) == set(expected) <= set(cells.SOLVERS) & set(SOLVERS)
    for solver, words in expected.items():
        assert BUDGETS[solver].startswith(words), solver


def test_tables_say_when_searches_end(tmp_path: Path) -> None:
    FABRIC.write(tmp_path)
    for name in ("table1", "table2"):
        looked = table_study(name, tmp_path)
        (note,) = [n for n in resolve(looked.artifact.function)(looked).notes if n.startswith("Budgets of solvers")]
        assert "short OR-Tools 100 solutions (0.4 s a customer)" in note
        assert ("short HGS 100 iterations without improvement (20,000)" in note) == (name == "table1")


# -- what is not there ----------------------------------------------------------------------------------------------


def test_figure8_tells_squares_without_a_decision_from_blank_ones(work: Path, tmp_path: Path) -> None:
    def shown(folder: Path) -> tuple[str, list[str]]:
        drawing = draw("figure8", folder)
        return drawing.figure.axes[0].patch.get_hatch(), [t.get_text() for t in drawing.figure.legends[0].get_texts()]

    for sparse, said in ((-1, True), (0, False)):
        folder = tmp_path / str(sparse)

        def choose(stored: dict[str, np.ndarray], sparse: int = sparse) -> None:
            stored["sparse"] = np.full_like(stored["sparse"], 1)
            stored["sparse"][0, 5:] = sparse
            stored["sparse_chance"] = np.where(stored["sparse"] == -1, np.nan, 0.5)

        with_arrays(work, folder, f"{LIGHT}/routing", choose)
        hatch, labels = shown(folder)
        assert hatch == HATCH
        assert ("(a) all is served" in labels) == said


def test_figure6_writes_above_the_printed_mark(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trained = tuple(name for name in roles.ablations(study("figure6", work).scale) if name != "h_enc_ec")
    monkeypatch.setattr(roles, "ablations", lambda scale: trained)
    figure = drawn(study("figure6", work)).figure  # not one that is kept: fewer are trained here
    axes = next(a for a in figure.axes if "(c) gating" in (a.get_title(), a.get_title(loc="left")))
    with style.house():
        figure.draw_without_rendering()
    (mark,) = [line for line in axes.lines if line.get_marker() == "D" and line.get_xdata()[0] == 7.19]
    _, y = axes.transData.transform((7.19, mark.get_ydata()[0]))
    half = 0.5 * mark.get_markersize() * figure.dpi / 72
    boxes = [t.get_window_extent() for t in axes.findobj(Text) if t.get_text() == "not trained here"]
    assert boxes
    assert all(box.y0 >= y + half or box.y1 <= y - half for box in boxes)
