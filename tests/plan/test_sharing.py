"""What papers share: labels are made once, trainings are one and the same, a model's evaluations may be one job."""

from pathlib import Path

import pytest
import yaml

from neuroute.accounting.jobs import Estimates
from neuroute.core.errors import NeurouteError
from neuroute.papers.pens.roles import AttentionEvaluation
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.config import load_scale
from neuroute.plan.label_blocks import stream_of
from neuroute.plan.objects import CombinedEvaluation, Dataset, Evaluation, Labels, RescalingEvaluation
from neuroute.plan.papers import with_lenders
from plans import ROOT, SCALES, expect_refusal, plan_of, smoke_with, write_scale


def test_baselines_are_the_same_trainings() -> None:
    every = plan_of().runs
    for paper, shared in {
        "pens": {"scaling/bq", "scaling/lehd_6x128"},
        "icam": {"scaling/bq", "scaling/lehd_6x128", "scaling/lehd_cvrp", "sit/bq_cvrp"},
        "mvmoe": {"scaling/lehd_cvrp"},
    }.items():
        alone = plan_of("smoke", (paper,)).runs
        assert shared <= alone.keys()
        assert alone.items() <= every.items()
    assert not plan_of("smoke", ("pens",)).runs.keys() & {"scaling/base_6x128", "scaling/lehd_cvrp"}


def test_icam_labels_nothing_that_others_have() -> None:
    """Its TSP test sets are those of `scaling`; its own trainings read labels to validate alone."""
    every, alone = plan_of(), plan_of("smoke", ("icam",))
    assert {job.partition("-")[0] for job in alone.label_jobs} == {"icam/labels"}
    own = [job for name, job in every.label_jobs.items() if name.startswith("icam/")]
    left = {labels.dataset.stem for job in own for labels in job.labels}
    tests = {t.labels.dataset for t in alone.evaluations["icam/abl_afm/all"].members()[0].tests}
    assert len(tests) == 4
    assert not left & {dataset.stem for dataset in tests}
    for run in every.runs.values():
        if run.paper == "icam":
            assert run.data == ()
            assert {labels.dataset.split for labels in (run.validation, *run.also_validation)} == {"val"}


def test_mvmoe_takes_lehd_and_its_labels_from_others() -> None:
    every = plan_of()
    alone = plan_of("smoke", ("mvmoe",)).label_jobs
    assert list(alone) == ["mvmoe/labels-val", "mvmoe/labels-train", "mvmoe/labels"]
    assert every.label_jobs_of_run("mvmoe/lehd4eL_cvrp") == ["scaling/cvrp-train", "scaling/cvrp-val"]
    own = [job for name, job in every.label_jobs.items() if name.startswith("mvmoe/")]
    assert {labels.dataset.problem for job in own for labels in job.labels} == {"vrp"}


@pytest.mark.parametrize("block", [{}, None], ids=["empty", "missing"])
def test_a_scale_may_do_without_rivals(block: dict[str, object] | None, tmp_path: Path) -> None:
    """Nothing else of the plan changes but what would show them."""
    values = yaml.safe_load((ROOT / "workflow" / "scales" / "smoke.yaml").read_text())
    values.pop("rivals")
    plan = plan_of(write_scale(tmp_path, values | ({} if block is None else {"rivals": block})), ("sit",))
    assert not [run for run in plan.runs if run.startswith("rivals/")]
    assert plan.runs.items() <= plan_of("smoke", ("sit",)).runs.items()
    assert plan.artifacts.keys() == plan_of("smoke", ("sit",)).artifacts.keys()


@pytest.mark.parametrize("scale", SCALES)
def test_no_training_waits_for_labels_of_a_test_set(scale: str) -> None:
    plan = plan_of(scale)
    for run in plan.runs:
        made = [labels for job in plan.label_jobs_of_run(run) for labels in plan.label_jobs[job].labels]
        assert {labels.dataset.split for labels in made} <= {"train", "val"}


def test_at_the_papers_sizes_a_training_waits_for_its_own_labels_alone() -> None:
    """Of 132 runs, none for an instance of another size, problem or solver than it reads."""
    plan = plan_of("paper")
    for name, run in plan.runs.items():
        read = {stream_of(labels)[0::2] for labels in (*run.data, run.validation, *run.also_validation)}
        jobs = [plan.label_jobs[job] for job in plan.label_jobs_of_run(name)]
        assert {stream_of(labels)[0::2] for job in jobs for labels in job.labels} == read, name
    assert len(plan.label_jobs_of_run("sit/tsp_1k")) == len(plan.label_jobs_of_run("sit/tsp_100k")) == 2
    assert len(plan.label_jobs_of_run("mvmoe/pomo_cvrp_50")) == 1


def test_labels_are_made_once_and_by_one_job_each() -> None:
    for scale in SCALES:
        made = [stream_of(labels) for job in plan_of(scale).label_jobs.values() for labels in job.labels]
        of_one_job = [{stream_of(labels) for labels in job.labels} for job in plan_of(scale).label_jobs.values()]
        assert sum(map(len, of_one_job)) == len(made)


def test_a_scale_may_measure_all_of_a_model_in_one_job() -> None:
    together = plan_of()
    assert "scaling/base_6x128/greedy" in plan_of("laptop").evaluations
    tests = [t for part in together.evaluations["scaling/base_6x128/all"].members() for t in getattr(part, "tests", ())]
    assert len(tests) == len(set(tests)) > 20
    assert "scaling/base_6x128/all" in together.artifacts["scaling/table12"].evaluations


def test_one_job_measures_a_model_and_finds_its_factors_first() -> None:
    plan = plan_of()
    merged = plan.evaluations["pens/pens_a/all"]
    assert isinstance(merged, CombinedEvaluation)
    kinds = [type(part) for part in merged.members()]
    assert kinds[:2] == [RescalingEvaluation, Evaluation]
    assert AttentionEvaluation in kinds
    assert isinstance(plan.evaluations["pens/small_a_zero/all"], Evaluation)  # nothing to merge
    assert plan.rescaling_of_evaluation("pens/pens_a/all") is None  # it has its own


def test_what_asks_for_the_best_factor_waits_for_the_sweep() -> None:
    plan = plan_of("laptop", ("pens",))
    sweep = plan.evaluation_file("pens/pens_a/rescaling").with_suffix(".npz")
    for group in ("uniform", "tsplib", "attention"):
        assert plan.rescaling_of_evaluation(f"pens/pens_a/{group}") == sweep
    for evaluation in ("pens/coordns/uniform", "scaling/bq/uniform_pens"):
        assert plan.rescaling_of_evaluation(evaluation) is None


def test_two_papers_may_borrow_from_each_other() -> None:
    """sit shows icam's POMO, icam sit's BQ: alone, each has the other's run and the labels that it needs."""
    for own, lent in (("sit", "icam/pomo_cvrp"), ("icam", "sit/bq_cvrp")):
        alone, together = plan_of("smoke", (own,)), plan_of("smoke", ("sit", "icam"))
        assert alone.runs[lent] == together.runs[lent]
        assert {run.partition("/")[0] for run in alone.runs} - {"rivals"} == {"scaling", "sit", "icam"}
        assert alone.label_jobs_of_run(lent)
        assert f"{lent}/all" in alone.evaluations
    assert with_lenders(["sit"]) == ["scaling", "rivals", "icam", "sit"]
    assert with_lenders(["icam", "sit"]) == ["scaling", "rivals", "sit", "icam"]


def test_a_paper_depends_on_its_own_part_of_a_scale() -> None:
    scale = load_scale("smoke")
    pens = scale[PensScale].model_copy(update={"repeats": 2})
    other = scale.model_copy(update={"blocks": scale.blocks | {"pens": pens}})
    assert scale.of("scaling") == other.of("scaling")
    assert scale.of("pens") != other.of("pens")


def test_papers_are_trained_on_the_same_size(tmp_path: Path) -> None:
    path = write_scale(tmp_path, smoke_with("pens", ("sizes", 100), 21))
    with pytest.raises(NeurouteError, match="pens.sizes.100 is 21, .* 20 nodes: make them equal"):
        plan_of(path, ("pens",))


def test_a_scale_has_only_the_papers_that_it_supports(tmp_path: Path) -> None:
    values = yaml.safe_load((ROOT / "workflow" / "scales" / "smoke.yaml").read_text())
    path = write_scale(tmp_path, {key: value for key, value in values.items() if key != "scaling"})
    for paper, why in {"scaling": "config.yaml asks for", "pens": "pens borrows from"}.items():
        with pytest.raises(NeurouteError, match=rf"own.yaml: no block 'scaling', which {why}$"):
            plan_of(path, (paper,))
    values["sit"] = "broken"  # which nobody asks for
    assert plan_of(write_scale(tmp_path, values), ("scaling",)).runs
    expect_refusal(tmp_path, values | {"scalling": {}}, "scalling: unknown key")


def test_a_factor_that_is_not_positive_is_refused() -> None:
    from neuroute.plan import decodings
    from neuroute.user.options import choose_decoding

    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(NeurouteError, match="--rescale .* above 0"):
            choose_decoding(1, 0, wrong)
    assert choose_decoding(1, 0, 2.0) == decodings.Decoding(rescale=2.0)


@pytest.mark.parametrize(("solver", "n"), [("lkh", 100_000), ("lkh-long", 10_000), ("concorde-6h", 10_000)])
def test_a_large_reference_is_estimated_by_its_budget(solver: str, n: int) -> None:
    estimates = Estimates(plan_of("paper"))
    one, two = (estimates.label_seconds(Labels(dataset=Dataset(n=n, count=c), solver=solver)) for c in (1, 2))
    assert two == pytest.approx(2 * one)
    assert one <= 6 * 3600 + 60
    unlimited = estimates.label_seconds(Labels(dataset=Dataset(n=n, count=1), solver="concorde"))
    assert unlimited > 100 * one
