"""What papers `scaling` and `pens` declare at the scale `paper`: trainings and tests as printed."""

import json
from typing import Any

import pytest

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.papers.pens.paper import PensScale
from neuroute.pipeline.papers.scaling.paper import ScalingScale
from neuroute.pipeline.plan.config import load_scale
from neuroute.pipeline.plan.overview import costs, describe
from neuroute.specs.objects import EfficiencyEvaluation, Test
from plans import ROOT, plan_of


def test_paper_scale_is_the_papers() -> None:
    """scaling, Tables 1 and 9, Section 3."""
    plan = plan_of("paper")
    run = plan.runs["scaling/base_42x512"]
    shape = {"depth": 42, "width": 512, "heads": 16, "gate": True, "rezero": True, "train_nodes": 100}
    assert run.network.arguments == shape
    t = run.training
    assert (t.batches, t.batch_size, t.epochs) == (60_000, 1024, 1)
    assert (t.learning_rate, t.weight_decay, t.decay_gamma, t.decay_every) == (1.25e-4, 0.01, 0.997, 100)
    assert t.step == "sub-path"
    assert {t.labels.dataset.count for t in plan.evaluations["scaling/base_6x128/greedy"].of_kind(Test)} == {10_000}
    few = plan.runs["scaling/small01M_42x128"].training  # Table 3
    assert (few.samples, few.epochs, few.batch_size, few.learning_rate) == (100_000, 60, 1024, 1.25e-4)
    without = plan.runs["scaling/norezero_42x128"]  # Appendix B.5
    assert not without.network.arguments["rezero"]
    assert (without.training.warmup_batches, without.training.warmup_factor) == (50, 0.1)
    rrc = plan.evaluations["scaling/base_42x512/rrc"].of_kind(Test)  # Table 19
    assert [(t.labels.dataset.n, t.labels.dataset.count) for t in rrc] == [(100, 1000), (1000, 16)]
    assert rrc[0].decoding.milestones == (0, 100, 200, 500, 800, 1000)
    shifted = plan.evaluations["scaling/base_6x128/shifted"].of_kind(Test)  # Tables 14-16
    assert {(t.labels.dataset.distribution, t.labels.dataset.n) for t in shifted} == {
        (d, n) for d in ("explosion", "implosion", "cluster") for n in (100, 200, 500, 1000)
    }


def test_paper_scale_is_the_papers_for_pens() -> None:
    """pens, Section 5.1: nine layers of width 192, a million batches of 1,024, 1e-4 to 1e-5, five repeats."""
    plan = plan_of("paper")
    run, scale = plan.runs["pens/pens_a"], plan.scale[PensScale]
    shape = {"depth": 9, "width": 192, "heads": 12, "feed_forward": 512, "train_nodes": 100}
    assert run.network.arguments == shape | {"positions": "alibi"}
    t = run.training
    assert (t.batches, t.batch_size, t.learning_rate, t.final_learning_rate) == (1_000_000, 1024, 1e-4, 1e-5)
    assert (t.sub_paths, t.step, t.scheme) == ("pairs", "decision", "path-tsp")
    assert scale.repeats == 5
    assert [scale.test_counts[size] for size in (100, 250, 500, 1000, 10_000)] == [128, 128, 128, 128, 10]
    assert scale.sizes == {n: n for n in (20, 50, 100, 250, 500, 1000, 10_000)}


def test_baselines_at_paper_scale_are_the_published_recipes() -> None:
    """LEHD: 150 epochs of 1M samples, Adam 1e-4, times 0.97 an epoch.  BQ-NCO: its training script's defaults.

    SIGD: the shape of its TSP network, where sit times it, too (Table 4).
    """
    plan = plan_of("paper")
    runs = plan.runs
    (timed,) = plan.evaluations["sit/tsp_1k/efficiency"].of_kind(EfficiencyEvaluation)
    lehd, bq = runs["scaling/lehd_6x128"].training, runs["scaling/bq"].training
    assert (lehd.samples, lehd.epochs, lehd.batch_size, lehd.learning_rate) == (1_000_000, 150, 1024, 1e-4)
    assert (lehd.decay_gamma, lehd.decay_every, lehd.weight_decay) == (0.97, lehd.batches_per_epoch, 0)
    assert (bq.step, bq.sub_paths, bq.keep) == ("decision", "suffix", "best")
    assert bq.decay_every == 50 * bq.batches_per_epoch
    assert runs["scaling/sigd"].data == ()
    shape = {"depth": 9, "width": 128, "heads": 8, "feed_forward": 512}
    assert runs["scaling/sigd"].network.arguments == shape | {"train_nodes": 100}
    assert timed.networks["SIGD"].arguments == shape


def test_references_at_paper_scale_are_proven_and_the_row_of_lkh3_is_run() -> None:
    """One run of LKH is 0.0044 % above TSP100's optima: better models would have negative gaps."""
    plan = plan_of("paper")
    own = [need for name, each in plan.needs.items() if name.startswith("scaling/") for need in each]
    assert {need.labels.solver for need in own if isinstance(need, Test)} == {"concorde"}
    held = {(labels.dataset.stem, labels.solver) for labels in plan.label_jobs.values()}
    stems = {f"tsp_{d}_test_n{n}" for d in ("uniform", "explosion", "cluster") for n in (100, 200, 500, 1000)}
    assert {(stem, "lkh-long") for stem in stems} <= held
    assert ("tsp_uniform_test_n10000", "concorde-6h") in held  # pens, whose paper stops Concorde after six hours


def test_models_join_the_grid_by_the_config_alone() -> None:
    """Trained, and measured as its other models are; labels and other trainings stay as they are."""
    more = {"depths": {60: 6}, "more_models": {"18x192": {"depth": 3, "width": 20, "heads": 2}}}
    plan, before = plan_of("smoke", ("scaling",), scale_changes={"scaling": more}), plan_of("smoke", ("scaling",))
    joined = [f"scaling/base_{shape}" for shape in ("18x192", "60x128", "60x256", "60x512")]
    assert {*plan.runs} - {*before.runs} == {*joined}
    assert all(plan.runs[run] == of_before for run, of_before in before.runs.items())
    assert plan.label_jobs == before.label_jobs
    assert [plan.runs[run].network.arguments["depth"] for run in joined] == [3, 6, 6, 6]
    for name in ("figure1", "figure2", "figure5", "table12", "table13", "table14", "table18"):
        shown = {plan.evaluations[e].run for e in plan.artifacts[f"scaling/{name}"].evaluations}
        assert {*joined} <= shown
    assert "scaling/base_18x192" in describe(plan, "figure1")


def test_who_asks_for_one_of_another_scale_hears_which_has_it() -> None:
    plan = plan_of("smoke", ("scaling",))
    with pytest.raises(NeurouteError, match=r"scale smoke does not train its models; scales that do: laptop$"):
        costs(plan, "table22")
    with pytest.raises(NeurouteError, match="did you mean figure9"):
        costs(plan, "figure99")


def test_a_factor_is_found_on_enough_held_out_instances() -> None:
    """pens, Figure 3: on 8 it is noise."""
    assert min(load_scale("smoke")[PensScale].sweep_counts.values()) >= 32


def test_rates_are_interpolated_between_the_corners_of_the_grid() -> None:
    plan = plan_of("laptop", ("scaling",))
    rates = plan.scale[ScalingScale].rates
    assert rates is not None
    trainings = {name.removeprefix("scaling/"): run.training for name, run in plan.runs.items()}
    for corner, best in rates.best.items():
        whole = trainings[f"base_{corner}"]
        assert whole.learning_rate == best
        for rate in rates.tried[corner]:
            short = trainings[f"pilot_{corner}_{rate:g}"]
            assert (short.learning_rate, short.samples) == (rate, whole.samples // rates.part)
            assert short.final_learning_rate == pytest.approx(0.005 * rate)
    low, high = (rates.best[corner] for corner in ("6x128", "42x128"))  # 1 and 8 layers; between them 2 and 4
    between = [trainings[f"base_{depth}x128"].learning_rate for depth in (12, 24)]
    assert between == pytest.approx([low * (high / low) ** (i / 3) for i in (1, 2)], rel=0.01)
    assert trainings["deep_96x32"].learning_rate == high  # 16 layers of the least width: the nearest corner's


def test_points_of_a_learning_curve_are_trainings_of_their_own() -> None:
    """scaling, Figure 3: one decaying schedule would mix what data and what the rate does."""
    plan = plan_of("laptop", ("scaling",))
    whole = plan.runs["scaling/base_42x128"].training
    for part in plan.scale[ScalingScale].parts:
        t = plan.runs[f"scaling/part{part}_42x128"].training
        assert (t.samples, t.warmup_batches) == (whole.samples // part, whole.warmup_batches // part)
        assert (t.learning_rate, t.final_learning_rate) == (whole.learning_rate, whole.final_learning_rate)
    assert "scaling/part8_42x128" in plan.artifacts["scaling/figure3"].runs
    assert plan_of("paper").artifacts["scaling/figure3"].runs[0] == "scaling/base_6x128"


def test_a_shape_of_table_2_that_the_grid_has_is_not_trained_twice() -> None:
    plan = plan_of("laptop", ("scaling",))
    runs = {plan.evaluations[e].run for e in plan.artifacts["scaling/table2"].evaluations}
    assert {run.partition("-s")[0] for run in runs} == {
        "scaling/base_6x512",
        "scaling/base_24x256",
        "scaling/deep_96x32",
    }


@pytest.mark.parametrize(
    ("change", "says"),
    {
        "a corner is missing": ({"tried": {"6x128": None}}, "6x128"),
        "a rate was not tried": ({"best": {"6x128": 0.5}}, "best: 6x128 has 0.5, which is not tried there"),
        "no corner": ({"best": {"12x128": 1e-3}, "tried": {"12x128": [1e-3, 3e-3]}}, "12x128 is no corner"),
    }.values(),
)
def test_a_wrong_table_of_rates_is_named_in_one_line(change: dict[str, Any], says: str) -> None:
    with pytest.raises(NeurouteError, match=says) as error:
        load_scale("laptop", ("scaling",), {"scaling": {"rates": change}})
    assert "\n" not in str(error.value)


def test_kept_trainings_are_those_that_laptop_plans() -> None:
    """So that `snakemake --config scale=laptop` trains again what the kept tables show."""
    plan = plan_of("laptop", ("scaling",))
    kept = sorted((ROOT / "docs/measured/runs/laptop/scaling").glob("*/run.json"))
    assert len(kept) > 40
    for file in kept:
        spec, run = json.loads(file.read_text())["spec"], plan.runs[f"scaling/{file.parent.name}"]
        planned = run.model_dump(mode="json")
        assert (spec["network"], spec["training"]) == (planned["network"], planned["training"]), run.id
