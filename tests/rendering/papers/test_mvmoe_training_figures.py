"""Figures 5 to 7 of paper `mvmoe`: drawn is what was logged and measured of trainings, and what the paper prints."""

import json
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fabricated_mvmoe import FABRIC
from fabricated_mvmoe_figures import FIGURES, fabricate, run_of, study, write_logs
from figure_checks import drawn, drawn_figure
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe.figures_training import (
    WITH,
    WITHOUT,
    Curve,
    epochs,
    few_shot_needs,
    few_shot_points,
    idle_limits,
)
from neuroute.pipeline.papers.mvmoe.paper import MvmoeScale
from neuroute.pipeline.rendering.render import render
from neuroute.pipeline.rendering.style import MEASURED
from neuroute.specs.objects import FIGURE_FORMATS, Dataset, Decoding, Reinforced, Test

RECORDS = fabricate


# -- Figures 5 and 7 ------------------------------------------------------------------------------------------------


draw = partial(drawn_figure, study)


def test_trainings_in_stages_are_followed_over_a_test_set_of_so_many_instances() -> None:
    """Each epoch a stage: before it the model of six problems, after it the checkpoint, and the run at the end."""
    (stage,) = FIGURES[MvmoeScale].few_shot.stages
    one = stage.model_copy(update={"epochs": 1})
    epochs_ = tuple(one.model_copy(update={"name": f"epoch{i}"}) for i in (1, 2, 3))
    block = FIGURES[MvmoeScale]
    few = block.few_shot.model_copy(update={"stages": epochs_})
    scale = FIGURES.with_block(block.model_copy(update={"few_shot": few, "few_shot_count": 50}))
    wanted = list(few_shot_needs(scale))
    assert {need.stage for need in wanted if isinstance(need, Test)} == {"epoch1", "epoch2", None}
    dataset, run = mvmoe.adapted(scale, "VRPBLTW").dataset, "mvmoe/few_mtl_vrpbltw"
    assert dataset == mvmoe.reference(scale, "VRPBLTW", 50).dataset.model_copy(update={"count": 50})
    gaps = {"mvmoe/mtl_50": 9.0, f"{run}@epoch1": 5.0, f"{run}@epoch2": 4.0, run: 3.0}

    def value(metric: str, name: str, on: Dataset, decoding: Decoding) -> float | None:
        assert (metric, on, decoding) == ("gap_mean_of_ratios_pct", dataset, mvmoe.X8)
        return gaps.get(name)

    found = few_shot_points(SimpleNamespace(scale=scale, value=value), "POMO-MTL", "VRPBLTW")  # type: ignore[arg-type]
    assert [(epoch, gap) for epoch, _, _, gap in found] == [(0, 9.0), (1, 5.0), (2, 4.0), (3, 3.0)]
    assert [batch for _, batch, _, _ in found] == [i * one.batches for i in range(4)]
    del gaps[f"{run}@epoch2"]  # not measured yet: the others are drawn
    found = few_shot_points(SimpleNamespace(scale=scale, value=value), "POMO-MTL", "VRPBLTW")  # type: ignore[arg-type]
    assert [epoch for epoch, *_ in found] == [0, 1, 3]


def test_epochs_are_counted_stage_by_stage() -> None:
    training = run_of(mvmoe.run_id("mtl_50")).training
    assert isinstance(training, Reinforced)
    (stage,) = training.stages
    other = stage.model_copy(update={"name": "b", "batches_per_epoch": 5, "epochs": 3})
    two, end, before = training.model_copy(update={"stages": (stage, other)}), stage.batches, stage.epochs
    assert [epochs(two, b) for b in (0, end, end + 5, end + 15)] == [0, before, before + 1, before + 3]
    assert epochs(two, stage.batches_per_epoch // 2) == 0.5


def test_panels_of_figure5_have_the_same_axis(work: Path) -> None:
    assert len({axes.get_ylim() for axes in draw("figure5", work).figure.axes}) == 1


def test_a_limit_that_never_binds_is_told() -> None:
    def curves(of: dict[str, float]) -> list[Curve]:
        gaps = {variant: of.get(variant, float(i)) for i, variant in enumerate(mvmoe.VARIANTS)}
        return [Curve("run", v, series, ((0.0, 0, 0, gap),)) for v, gap in gaps.items() for series in (WITH, WITHOUT)]

    assert idle_limits(curves({})) == []
    (note,) = idle_limits(curves({"VRPL": 5.0, "CVRP": 5.0, "OVRPBLTW": 2.5, "OVRPBTW": 2.5}))
    assert "VRPL, OVRPBLTW:" in note


@pytest.mark.parametrize("name", ["figure5", "figure7"])
@pytest.mark.parametrize("gap", [np.nan, -2.5])
def test_odd_gaps_are_told(name: str, gap: float, copy: Path) -> None:
    write_logs(copy, lambda run, variant, share: gap)
    assert len(render(study(name, copy), copy / name)) == len(FIGURE_FORMATS)
    told = json.loads((copy / f"{name}.json").read_text())["notes"]
    assert any("are not finite and not drawn" in note for note in told) == np.isnan(gap)


# -- Figure 6 -------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error:constrained_layout")
def test_figure6_draws_gaps_below_zero(copy: Path) -> None:
    FABRIC.by(lambda *_: -0.4, FIGURES).write(copy)
    assert len(render(study("figure6", copy), copy / "figure6")) == len(FIGURE_FORMATS)
    points = pd.read_csv(copy / "figure6.csv")
    assert points[points.side == MEASURED].gap_pct.max() < 0.5


def test_figure6_has_means_of_seeds_of_times_as_of_gaps(copy: Path) -> None:
    run = mvmoe.run_id(mvmoe.DEFAULT)
    fabric = FABRIC.by(scale=FIGURES.model_copy(update={"seeds": {run: 2}}))
    shutil.copytree(fabric.write(copy) / "runs" / run, copy / "runs" / f"{run}-s1")
    (copy / "runs" / f"{run}-s1" / "run.json").write_text(json.dumps({"wall_time_s": 600.0}))
    assert f"{run}-s1" in fabric.artifacts["figure6"].runs  # which it waits for
    told = [note for note in drawn(fabric.study("figure6", copy)).notes if note.startswith("(e) ")]
    assert len(told) == 1
    assert "base 8.3 min" in told[0]  # of 400 and 600 s
