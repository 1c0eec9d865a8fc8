"""What papers share: labels are made once, trainings are one and the same, a model's evaluations may be one job."""

from pathlib import Path

import pytest
import yaml

from neuroute.core.errors import NeurouteError
from neuroute.papers.pens.evaluations import AttentionEvaluation
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.build import Plan, build_plan
from neuroute.plan.config import load_scale, parse_config
from neuroute.plan.objects import CombinedEvaluation, Evaluation, RescalingEvaluation
from own_scale import ROOT, smoke_with, written


@pytest.fixture(scope="module")
def both() -> Plan:
    return build_plan(parse_config({"scale": "smoke", "papers": ["scaling", "pens", "sit", "icam", "mvmoe"]}))


@pytest.fixture(scope="module")
def alone() -> Plan:
    return build_plan(parse_config({"scale": "smoke", "papers": ["pens"]}))


def test_no_label_is_made_by_two_label_jobs(both: Plan) -> None:
    seen: dict[tuple[object, ...], int] = {}
    for job in both.label_jobs.values():
        for labels in job.labels:
            d = labels.dataset
            key = (d.stem, d.first, labels.solver)
            seen[key] = seen.get(key, 0) + 1
    assert [key for key, times in seen.items() if times > 1] == []


@pytest.mark.parametrize(
    "papers",
    [
        ["pens"],
        ["sit"],
        ["icam"],
        ["mvmoe"],
        ["pens", "scaling"],
        ["scaling", "pens", "sit", "icam", "mvmoe"],
        ["mvmoe", "icam", "sit", "pens", "scaling"],
    ],
)
@pytest.mark.parametrize("scale", ["smoke", "laptop", "gpu", "paper"])
def test_all_labels_are_provided_whatever_the_papers(papers: list[str], scale: str) -> None:
    plan = build_plan(parse_config({"scale": scale, "papers": papers}))
    for run in plan.runs:
        assert plan.label_jobs_of_run(run)
    for evaluation in plan.evaluations:
        plan.label_jobs_of_evaluation(evaluation)
    for artifact in plan.artifacts.values():
        assert set(artifact.evaluations) <= set(plan.evaluations)
        assert set(artifact.runs) <= set(plan.runs)


def test_baselines_are_the_same_trainings(both: Plan, alone: Plan) -> None:
    for run in ("scaling/bq", "scaling/lehd_6x128"):
        assert alone.runs[run] == both.runs[run]
    assert set(alone.runs) & {"scaling/base_6x128", "scaling/lehd_cvrp"} == set()


def test_icam_labels_nothing_that_others_have(both: Plan) -> None:
    """Its TSP test sets are those of `scaling`; its own trainings read labels to validate alone."""
    only = build_plan(parse_config({"scale": "smoke", "papers": ["icam"]}))
    assert list(only.label_jobs) == ["icam/labels"]
    for run in ("scaling/bq", "scaling/lehd_6x128", "scaling/lehd_cvrp", "sit/bq_cvrp"):
        assert only.runs[run] == both.runs[run]
    left = {labels.dataset.stem for labels in both.label_jobs["icam/labels"].labels}
    tests = {t.labels.dataset for t in only.evaluations["icam/abl_afm/all"].members()[0].tests}
    assert len(tests) == 4
    assert not left & {dataset.stem for dataset in tests}
    for run in both.runs.values():
        if run.paper == "icam":
            assert run.data == ()
            assert {labels.dataset.split for labels in (run.validation, *run.also_validation)} == {"val"}


def test_mvmoe_takes_lehd_and_its_labels_from_others(both: Plan) -> None:
    only = build_plan(parse_config({"scale": "smoke", "papers": ["mvmoe"]}))
    assert list(only.label_jobs) == ["mvmoe/labels"]
    assert only.runs["scaling/lehd_cvrp"] == both.runs["scaling/lehd_cvrp"]
    assert both.label_jobs_of_run("mvmoe/lehd4eL_cvrp") == ["scaling/cvrp"]
    assert {labels.dataset.problem for labels in both.label_jobs["mvmoe/labels"].labels} == {"vrp"}


def test_one_job_measures_a_model_and_finds_its_factors_first(both: Plan) -> None:
    merged = both.evaluations["pens/pens_a/all"]
    assert isinstance(merged, CombinedEvaluation)
    kinds = [type(part) for part in merged.members()]
    assert kinds[:2] == [RescalingEvaluation, Evaluation]
    assert AttentionEvaluation in kinds
    assert isinstance(both.evaluations["pens/small_a_zero/all"], Evaluation)  # nothing to merge
    assert both.rescaling_of_evaluation("pens/pens_a/all") is None  # it has its own


def test_what_asks_for_the_best_factor_waits_for_the_sweep() -> None:
    plan = build_plan(parse_config({"scale": "laptop", "papers": ["pens"]}))
    sweep = plan.evaluation_file("pens/pens_a/rescaling").with_suffix(".npz")
    for group in ("uniform", "tsplib", "attention"):
        assert plan.rescaling_of_evaluation(f"pens/pens_a/{group}") == sweep
    assert plan.rescaling_of_evaluation("pens/coordns/uniform") is None
    assert plan.rescaling_of_evaluation("scaling/bq/uniform_pens") is None


def test_a_paper_depends_on_its_own_part_of_a_scale() -> None:
    scale = load_scale("smoke")
    other = scale.model_copy(
        update={"blocks": scale.blocks | {"pens": scale[PensScale].model_copy(update={"repeats": 2})}}
    )
    assert scale.of("scaling") == other.of("scaling")
    assert scale.of("pens") != other.of("pens")


def test_papers_are_trained_on_the_same_size(tmp_path: Path) -> None:
    path = written(tmp_path, smoke_with("pens", ("sizes", 100), 21))
    with pytest.raises(NeurouteError, match="pens.sizes.100 is 21, .* 20 nodes: make them equal"):
        build_plan(parse_config({"scale": path, "papers": ["pens"]}))


def test_a_scale_has_only_the_papers_that_it_supports(tmp_path: Path) -> None:
    values = yaml.safe_load((ROOT / "workflow" / "scales" / "smoke.yaml").read_text())
    path = written(tmp_path, {key: value for key, value in values.items() if key != "scaling"})
    with pytest.raises(NeurouteError, match=r"own.yaml: no block 'scaling', which config.yaml asks for$"):
        build_plan(parse_config({"scale": path, "papers": ["scaling"]}))
    with pytest.raises(NeurouteError, match=r"own.yaml: no block 'scaling', which pens borrows from$"):
        build_plan(parse_config({"scale": path, "papers": ["pens"]}))
    values["sit"] = "broken"  # which nobody asks for
    assert build_plan(parse_config({"scale": written(tmp_path, values), "papers": ["scaling"]})).runs
    with pytest.raises(NeurouteError, match="scalling: unknown key"):
        load_scale(written(tmp_path, values | {"scalling": {}}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"factors": {100: [1.0, 1.05, 1.1]}}, "too narrow to have a minimum"),
        ({"factors": {100: [0.8, 1.2]}}, "at least three"),
        ({"factors": {100: [0.0, 1.0, 2.0]}}, "greater than 0"),
        ({"network": {"depth": 1, "width": 18, "heads": 3, "feed_forward": 8}}, "multiple of 4"),
        ({"timed_counts": {100: 10_000}}, "timed_counts.100"),
    ],
)
def test_sizes_that_cannot_be_are_refused(change: dict[str, dict[object, object]], message: str) -> None:
    pens = load_scale("smoke")[PensScale].model_dump()
    pens |= {key: (pens[key] | value if key != "network" else value) for key, value in change.items()}
    with pytest.raises(ValueError, match=message):
        type(load_scale("smoke")[PensScale]).model_validate(pens)


def test_a_factor_that_is_not_positive_is_refused() -> None:
    from neuroute.user.options import choose_decoding

    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(NeurouteError, match="--rescale .* above 0"):
            choose_decoding(1, 0, wrong)
    assert choose_decoding(1, 0, 2.0).id == "greedy-x2.0"
