"""Figures of paper `mvmoe`: drawn is what was measured of networks at work, and logged of trainings."""

import json
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fabricated import stored, with_arrays
from fabricated_mvmoe import FABRIC
from fabricated_mvmoe_figures import (
    BASE,
    COUNT,
    FIGURES,
    LIGHT,
    SHAPE,
    STEPS,
    N,
    fabricate,
    run_of,
    small,
    study,
    write_logs,
)
from neuroute.datasets.streams import vrp_dataset
from neuroute.pipeline.papers.mvmoe import figures_training as training
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe.figures_model import HATCH, Routing
from neuroute.pipeline.papers.mvmoe.paper import MvmoeScale
from neuroute.pipeline.rendering.render import render
from neuroute.pipeline.rendering.style import MEASURED, PUBLISHED
from neuroute.problems.vrp import lengths
from neuroute.specs.objects import FIGURE_FORMATS, Dataset, Decoding, Reinforced, Test
from shown import drawn, drawn_figure, texts

RECORDS = fabricate
draw = partial(drawn_figure, study)

Arrays = dict[str, np.ndarray]


# -- Figure 1 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["OVRP", "VRPB", "VRPL", "VRPTW"])
def test_figure1_drives_the_routes_that_were_found(variant: str, work: Path) -> None:
    a, points = stored(work, f"{BASE}/routing"), draw("figure1", work).points
    own = points[(points.variant == variant) & (points.node > 0)]
    instance = vrp_dataset(Dataset(problem="vrp", variant=variant, split="val", n=N, count=1))
    solution = np.stack([a[f"order_{variant}"], a[f"flags_{variant}"]])[None]
    np.testing.assert_array_equal(own.node, solution[0, 0])
    np.testing.assert_array_equal(own["stop"] == 1, solution[0, 1] == 1)
    assert own.groupby("route").route_length.first().sum() == pytest.approx(float(lengths(instance, solution)[0]))
    assert float(a[f"length_{variant}"]) == pytest.approx(float(lengths(instance, solution)[0]))
    assert own.load.between(0, int(instance.capacity[0])).all()
    if instance.limit is not None:
        assert own.route_length.max() <= instance.limit[0] + 1e-5
    if instance.windows is not None:
        assert (own.begins <= own.closes + 1e-5).all()
        assert (own.begins == np.maximum(own.arrives, own.opens)).all()
    assert own[own.followed].route.nunique() == 1


# -- Figures 2 to 4 -------------------------------------------------------------------------------------------------


def test_figure2_is_the_live_network(work: Path) -> None:
    drawing, a = draw("figure2", work), stored(work, f"{BASE}/routing")
    told, net = texts(drawing), small(run_of(BASE))
    w, f, m = SHAPE["width"], SHAPE["feed_forward"], SHAPE["experts"]
    assert f"(a) MVMoE, {sum(p.numel() for p in net.parameters()):,} parameters" in told
    layer = sum(p.numel() for p in net.layers[0].parameters())
    assert f"{SHAPE['depth']} layers alike, {layer:,} parameters each" in told
    for text in (f"depot {w} × 2", f"others {w} × 5", f"q, k, v {3 * w} × {w}", f"{m} FFNs", f"{w}–{f}–{w}",
                 f"{w} × {w + 4}", f"k, v {2 * w} × {w}", f"{m} linears", f"{m} × {w}"):  # fmt: skip
        assert text in told
    points = drawing.points[drawing.points.panel == "a, decision"]
    np.testing.assert_allclose(points.probability.to_numpy(float), a["probabilities"], rtol=1e-6)
    assert points.probability.sum() == pytest.approx(1)
    assert list(points[points["stop"].notna()].sort_values("stop").node) == [n for n in a["prefix"] if n]


def test_figure2_routes_the_node_where_the_vehicle_is(work: Path) -> None:
    a, points = stored(work, f"{BASE}/routing"), draw("figure2", work).points
    own, node = points[points.panel == "b"], int(a["prefix"][-1])
    assert set(own.node) == {node}
    np.testing.assert_allclose(own.score, a["scores"][node])
    best = np.sort(np.argsort(own.score.to_numpy())[-2:])
    np.testing.assert_array_equal(np.flatnonzero(own.weight > 0), best)
    top = np.exp(own.score.to_numpy()[best])
    np.testing.assert_allclose(own.weight.to_numpy()[best], top / top.sum(), rtol=1e-4)


def test_figure3_shows_both_ways_to_choose(work: Path) -> None:
    drawing = draw("figure3", work)
    wide = {key: drawing.points.pivot_table(index="node", columns="expert", values=key).to_numpy()
            for key in ("score", "input_choice_weight", "expert_choice_weight")}  # fmt: skip
    scores, taken = wide["score"], (N + 1) * 2 // 4
    assert scores.shape == (N + 1, 4)
    by_node = np.argsort(scores, axis=1)[:, -2:]
    chosen = np.zeros_like(scores, bool)
    np.put_along_axis(chosen, by_node, True, 1)
    np.testing.assert_array_equal(wide["input_choice_weight"] > 0, chosen)
    of_nodes = np.exp(scores) / np.exp(scores).sum(axis=0)
    least = np.sort(of_nodes, axis=0)[-taken]
    expected = np.where(of_nodes >= least, of_nodes, 0)
    np.testing.assert_allclose(wide["expert_choice_weight"], expected, rtol=1e-4)
    assert f"takes the {taken} nodes that score best" in drawing.notes[1]
    loads = ", ".join(str(n) for n in (wide["input_choice_weight"] > 0).sum(axis=0))
    assert f"whose loads are {loads}." in drawing.notes[1]
    without = int((wide["expert_choice_weight"] > 0).any(axis=1).sum())
    assert f"nodes that none takes: {N + 1 - without}." in drawing.notes[1]


def test_figure4_has_the_loads_and_probabilities(work: Path) -> None:
    drawing = draw("figure4", work)
    told = texts(drawing)
    for run, panel in ((BASE, "a"), (LIGHT, "b")):
        a, own = stored(work, f"{run}/routing"), drawing.points[drawing.points.panel == panel]
        load = 100 * np.bincount(a["decoder_experts"].ravel(), minlength=4) / a["decoder_experts"].size
        assert f"({panel}) {', '.join(f'{percent:.1f}' for percent in load)}" in drawing.notes[0]
        for percent in load:
            assert f"{percent:.0f} %" in told
        weights = own[own.expert.notna()].groupby("tour").weight.sum()
        np.testing.assert_allclose(weights, 1, rtol=1e-4)
    p = stored(work, f"{LIGHT}/routing")["gate"]
    assert f"sparse layer, p₀ = {p[0]:.2f}" in told
    assert f"dense layer, p₁ = {p[1]:.2f}" in told
    assert f"2 × {SHAPE['width']}" in told


# -- Figures 8 and 9 ------------------------------------------------------------------------------------------------


def test_figure8_shows_every_decision(work: Path) -> None:
    a, drawing = stored(work, f"{LIGHT}/routing"), draw("figure8", work)
    points = drawing.points
    for i, variant in enumerate(mvmoe.VARIANTS):
        own = points[(points.variant == variant) & (points.panel == "a")]
        assert len(own) == min(STEPS, int(a["decisions"][i]))
        np.testing.assert_array_equal((own.layer == "sparse").astype(int), a["sparse"][i][: len(own)])
        np.testing.assert_allclose(own.probability, a["sparse_chance"][i][: len(own)], rtol=1e-6)
        (share,) = points[(points.variant == variant) & (points.panel == "b")].sparse_pct
        assert share == pytest.approx(100 * a["sparse_decisions"][i] / a["decisions"][i])
        assert f"{share:.0f} %" in texts(drawing)
    mean = (100 * a["sparse_decisions"] / a["decisions"]).mean()
    assert f"Experts ran at {mean:.1f} % of the decisions on average" in drawing.notes[1]
    assert f"one batch of {COUNT} instances of each problem of {N} customers" in drawing.notes[0]


def test_figure8_colours_probabilities_not_what_random_numbers_made_of_them(work: Path, tmp_path: Path) -> None:
    a, panel = stored(work, f"{LIGHT}/routing"), draw("figure8", work).figure.axes[0]
    np.testing.assert_allclose(panel.collections[0].get_array().filled(np.nan), a["sparse_chance"], rtol=1e-6)
    nothing = with_arrays(work, tmp_path, f"{LIGHT}/routing", lambda a: a["sparse_chance"].fill(np.nan))
    assert "not measured at this scale" in texts(draw("figure8", nothing))


@pytest.mark.parametrize(("sparse", "is_said"), [(-1, True), (0, False)])
def test_figure8_tells_squares_without_a_decision_from_blank_ones(
    sparse: int, is_said: bool, work: Path, tmp_path: Path
) -> None:
    def choose(a: Arrays) -> None:
        a["sparse"] = np.full_like(a["sparse"], 1)
        a["sparse"][0, 5:] = sparse
        a["sparse_chance"] = np.where(a["sparse"] == -1, np.nan, 0.5)

    figure = draw("figure8", with_arrays(work, tmp_path, f"{LIGHT}/routing", choose)).figure
    assert figure.axes[0].patch.get_hatch() == HATCH
    assert ("(a) all is served" in [text.get_text() for text in figure.legends[0].get_texts()]) == is_said


def test_figure9_has_shares_of_all_layers(work: Path) -> None:
    a, drawing = stored(work, f"{BASE}/routing"), draw("figure9", work)
    points = drawing.points[drawing.points.side == MEASURED]
    every = points[points.panel == "b"]
    assert set(every.layer) == {"enc 1", "enc 2", "enc 3", "dec"}
    np.testing.assert_allclose(every.groupby(["variant", "layer"]).pct.sum(), 100)
    means = every.groupby(["variant", "expert"]).pct.mean()
    shown = points[points.panel == "a"].set_index(["variant", "expert"]).pct
    np.testing.assert_allclose(shown.loc[means.index], means)
    load = a["encoder_load"][0, 0]
    own = every[(every.variant == "CVRP") & (every.layer == "enc 1")].pct
    np.testing.assert_allclose(own, 100 * load / (2 * COUNT * (N + 1)))
    assert f"The largest mean share is {means.max():.1f} %" in drawing.notes[1]
    assert "24.1, 49.9, 0.1, 25.9 %" in drawing.notes[2]
    (printed,) = drawing.points[drawing.points.side == PUBLISHED].pct
    assert printed == 27


def test_a_vehicle_that_only_picks_up_leaves_empty(work: Path) -> None:
    solved = Routing.of_model(study("figure1", work)).solution("VRPB")
    backhauls = np.flatnonzero(solved.demand < 0)
    stops = solved.stops(backhauls)
    assert [stop.load for stop in stops] == np.cumsum(-solved.demand[backhauls]).tolist()
    full = solved.stops(np.flatnonzero(solved.demand > 0)[:1])
    assert full[0].load == solved.capacity - solved.demand[full[0].node]


# -- Figures 5 to 7, of trainings -------------------------------------------------------------------------------------


def test_trainings_in_stages_are_followed_over_a_test_set_of_so_many_instances() -> None:
    """Each epoch a stage: before it the model of six problems, after it the checkpoint, and the run at the end."""
    (stage,) = FIGURES[MvmoeScale].few_shot.stages
    one = stage.model_copy(update={"epochs": 1})
    epochs_ = tuple(one.model_copy(update={"name": f"epoch{i}"}) for i in (1, 2, 3))
    block = FIGURES[MvmoeScale]
    few = block.few_shot.model_copy(update={"stages": epochs_})
    scale = FIGURES.with_block(block.model_copy(update={"few_shot": few, "few_shot_count": 50}))
    wanted = list(training.few_shot_needs(scale))
    assert {need.stage for need in wanted if isinstance(need, Test)} == {"epoch1", "epoch2", None}
    dataset, run = mvmoe.adapted(scale, "VRPBLTW").dataset, "mvmoe/few_mtl_vrpbltw"
    assert dataset == mvmoe.reference(scale, "VRPBLTW", 50).dataset.model_copy(update={"count": 50})
    gaps = {"mvmoe/mtl_50": 9.0, f"{run}@epoch1": 5.0, f"{run}@epoch2": 4.0, run: 3.0}

    def value(metric: str, name: str, on: Dataset, decoding: Decoding) -> float | None:
        assert (metric, on, decoding) == ("gap_mean_of_ratios_pct", dataset, mvmoe.X8)
        return gaps.get(name)

    study: Any = SimpleNamespace(scale=scale, value=value)
    found = training.few_shot_points(study, "POMO-MTL", "VRPBLTW")
    assert [(epoch, gap) for epoch, _, _, gap in found] == [(0, 9.0), (1, 5.0), (2, 4.0), (3, 3.0)]
    assert [batch for _, batch, _, _ in found] == [i * one.batches for i in range(4)]
    del gaps[f"{run}@epoch2"]  # not measured yet: the others are drawn
    found = training.few_shot_points(study, "POMO-MTL", "VRPBLTW")
    assert [epoch for epoch, *_ in found] == [0, 1, 3]


def test_epochs_are_counted_stage_by_stage() -> None:
    of_run = run_of(mvmoe.run_id("mtl_50")).training
    assert isinstance(of_run, Reinforced)
    (stage,) = of_run.stages
    other = stage.model_copy(update={"name": "b", "batches_per_epoch": 5, "epochs": 3})
    two, end, before = of_run.model_copy(update={"stages": (stage, other)}), stage.batches, stage.epochs
    assert [training.epochs(two, b) for b in (0, end, end + 5, end + 15)] == [0, before, before + 1, before + 3]
    assert training.epochs(two, stage.batches_per_epoch // 2) == 0.5


def test_panels_of_figure5_have_the_same_axis(work: Path) -> None:
    assert len({axes.get_ylim() for axes in draw("figure5", work).figure.axes}) == 1


def test_a_limit_that_never_binds_is_told() -> None:
    def curves(of: dict[str, float]) -> list[training.Curve]:
        gaps = {variant: of.get(variant, float(i)) for i, variant in enumerate(mvmoe.VARIANTS)}
        return [
            training.Curve("run", v, series, ((0.0, 0, 0, gap),))
            for v, gap in gaps.items()
            for series in (training.WITH, training.WITHOUT)
        ]

    assert training.idle_limits(curves({})) == []
    (note,) = training.idle_limits(curves({"VRPL": 5.0, "CVRP": 5.0, "OVRPBLTW": 2.5, "OVRPBTW": 2.5}))
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
