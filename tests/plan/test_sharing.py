"""What papers share: labels are made once, trainings are one and the same, a model's evaluations may be one job."""

from pathlib import Path

import pytest
from refusals import one_line

from neuroute.pipeline.papers.pens.paper import AttentionEvaluation
from neuroute.pipeline.papers.rivals.paper import RivalsScale
from neuroute.pipeline.plan.config import load_scale
from neuroute.pipeline.plan.estimates import Estimates
from neuroute.pipeline.plan.paper import with_lenders
from neuroute.pipeline.plan.plan import Plan
from neuroute.specs.objects import Labels, RescalingEvaluation, Test
from plans import PAPERS, SCALES, expect_refusal, plan_of, smoke, smoke_with, write_scale


def texts(plan: Plan) -> dict[tuple[str, str], object]:
    """All that decides whether a job of the plan is done again, besides code: what it does, and what it reads."""
    said: dict[tuple[str, str], object] = {}
    for job, labels in plan.label_jobs.items():
        said["labels", job] = labels.canonical()
    for name, run in plan.runs.items():
        said["train", name] = run.canonical(), plan.label_jobs_of_run(name), plan.files_to_start(name)
    for name, evaluation in plan.evaluations.items():
        reads = plan.checkpoints_of_evaluation(name), plan.rescaling_of_evaluation(name)
        more = plan.label_jobs_of_evaluation(name), plan.benchmarks_of_evaluation(name)
        said["evaluate", name] = evaluation.canonical(), reads, more
    for name, artifact in plan.artifacts.items():
        scale = plan.scale.of(artifact.paper)
        said["render", name] = artifact.canonical(), scale, plan.artifact_stem(name)
    return said


@pytest.mark.parametrize("scale", SCALES)
def test_which_papers_are_chosen_changes_no_job_of_a_paper(scale: str) -> None:
    """So that narrowing and widening `papers` does again nothing that is there."""
    every = texts(plan_of(scale))
    for paper in PAPERS:
        alone = texts(plan_of(scale, (paper,)))
        assert {job for job, text in alone.items() if every[job] != text} == set(), paper


def test_of_labels_that_begin_others_each_reader_has_its_own_job() -> None:
    """Widening `papers` may label more of a stream: what needs the first of it alone hangs on these alone."""
    plan = plan_of("laptop")
    few, many = (plan.runs[run].data[0] for run in ("scaling/small01M_6x128", "scaling/base_6x128"))
    assert stem(few) == stem(many)
    assert few.dataset.count < many.dataset.count
    assert few.id in plan.label_jobs_of_run("scaling/small01M_6x128")
    assert many.id not in plan.label_jobs_of_run("scaling/small01M_6x128")
    estimates = Estimates(plan, cpus=1)
    whole = estimates.label_seconds(many)
    others = {labels.id for labels in plan.label_jobs.values() if stem(labels) == stem(few)}
    assert sum(estimates.labels(job).seconds - estimates.start_s for job in others) == pytest.approx(whole)


def stem(labels: Labels) -> tuple[str, str]:
    return labels.dataset.stem, labels.solver


@pytest.mark.parametrize("block", [{}, None], ids=["empty", "missing"])
def test_a_scale_may_do_without_rivals(block: dict[str, object] | None, tmp_path: Path) -> None:
    """Nothing else of the plan changes but what would show them."""
    values = smoke()
    values.pop("rivals")
    plan = plan_of(write_scale(tmp_path, values | ({} if block is None else {"rivals": block})), ("sit",))
    assert not [run for run in plan.runs if run.startswith("rivals/")]
    assert plan.runs.items() <= plan_of("smoke", ("sit",)).runs.items()
    assert plan.artifacts.keys() == plan_of("smoke", ("sit",)).artifacts.keys()


def test_a_paper_that_a_scale_leaves_apart_is_made_where_it_is_named() -> None:
    """None of the five papers, and half of laptop's hours: other papers' rows of its systems show printed numbers."""
    usual, named = load_scale("laptop"), load_scale("laptop", ["rivals"])
    assert "rivals" in usual.apart
    assert usual[RivalsScale].model_fields_set == {"elg", "pointerformer"}  # which icam compares with
    assert {"elg", "glop"} <= named[RivalsScale].model_fields_set


@pytest.mark.parametrize("scale", SCALES)
def test_no_training_waits_for_labels_of_a_test_set(scale: str) -> None:
    plan = plan_of(scale)
    for run in plan.runs:
        made = [plan.label_jobs[job] for job in plan.label_jobs_of_run(run)]
        assert {labels.dataset.split for labels in made} <= {"train", "val"}


def test_one_job_measures_a_model_and_finds_its_factors_first() -> None:
    plan = plan_of()
    merged = plan.evaluations["pens/pens_a/all"]
    kinds = [type(each) for each in merged.measurements]
    assert kinds[:2] == [RescalingEvaluation, Test]
    assert AttentionEvaluation in kinds
    assert plan.rescaling_of_evaluation("pens/pens_a/all") is None  # it has its own


def test_what_asks_for_the_best_factor_waits_for_the_sweep() -> None:
    plan = plan_of("laptop", ("pens",))
    sweep = plan.evaluation_file("pens/pens_a/rescaling").with_suffix(".npz")
    for group in ("rescaled", "tsplib", "attention"):
        assert plan.rescaling_of_evaluation(f"pens/pens_a/{group}") == sweep
    for evaluation in ("pens/pens_a/uniform", "pens/coordns/uniform", "scaling/bq/uniform_pens"):
        assert plan.rescaling_of_evaluation(evaluation) is None


def test_two_papers_may_borrow_from_each_other() -> None:
    """sit shows icam's POMO, icam sit's BQ: alone, each has the other's run and the labels that it needs."""
    for own, lent in (("sit", "icam/pomo_cvrp"), ("icam", "sit/bq_cvrp")):
        alone, together = plan_of("smoke", (own,)), plan_of("smoke", ("sit", "icam"))
        assert alone.runs[lent] == together.runs[lent]
        assert {run.partition("/")[0] for run in alone.runs} - {"rivals"} == {"scaling", "sit", "icam"}
        assert alone.label_jobs_of_run(lent)
        assert f"{lent}/all_{own}" in alone.evaluations
    assert with_lenders(["sit"]) == ["scaling", "rivals", "icam", "sit"]
    assert with_lenders(["icam", "sit"]) == ["scaling", "rivals", "sit", "icam"]


def test_papers_are_trained_on_the_same_size(tmp_path: Path) -> None:
    path = write_scale(tmp_path, smoke_with("pens", ("sizes", 100), 21))
    with one_line("pens.sizes.100 is 21, .* 20 nodes: make them equal"):
        plan_of(path, ("pens",))


def test_a_scale_has_only_the_papers_that_it_supports(tmp_path: Path) -> None:
    values = smoke()
    path = write_scale(tmp_path, {key: value for key, value in values.items() if key != "scaling"})
    for paper, why in {"scaling": "config.yaml asks for", "pens": "pens borrows from"}.items():
        with one_line(rf"own.yaml: no block 'scaling', which {why}; "):
            plan_of(path, (paper,))
    values["sit"] = "broken"  # which nobody asks for
    assert plan_of(write_scale(tmp_path, values), ("scaling",)).runs
    expect_refusal(tmp_path, values | {"scalling": {}}, "scalling: unknown key")
