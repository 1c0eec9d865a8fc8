"""What papers declare: trainings as their tables print them or as they were kept, and what these are tested on."""

import json
from pathlib import Path

import pytest

from neuroute.pipeline.papers.mvmoe.paper import ABLATIONS, TRAINED, MvmoeScale
from neuroute.pipeline.papers.sit.paper import SitScale
from neuroute.pipeline.plan.overview import describe
from neuroute.specs.data import Problem
from neuroute.specs.objects import Elite, Reconstruction, Test
from plans import ROOT, SCALES, plan_of, read_published, reinforced, smoke_with, write_scale

# -- against printed settings; all others are in paper_runs.txt -------------------------------------------------------


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_paper_scale_is_the_papers_for_icam(problem: Problem) -> None:
    """icam, Table 5, against the printed settings themselves."""
    runs = plan_of("paper", ("icam",)).runs
    rows = [(*row["key"].split("."), row["value"]) for row in read_published("icam", 5)]
    printed = {key: value for whose, key, value in rows if whose in ("both", problem.upper())}
    run = runs[f"icam/icam_{problem}"]
    shape = {"depth": "encoder_layers", "width": "embedding_dim", "feed_forward": "feed_forward_dim"}
    assert {key: run.network.arguments[key] for key in shape} == {k: int(printed[v]) for k, v in shape.items()}
    assert run.n == run.network.arguments["train_nodes"] == int(printed["scale_stage1"])
    t = reinforced(run)
    assert t.epochs == t.validations == int(printed["total_epochs"])
    for number, stage in enumerate(t.stages, 1):
        assert stage.epochs == int(printed[f"epochs_stage{number}"])
        assert stage.batches_per_epoch == int(printed["batches_per_epoch"])
        assert list(stage.sizes) == ([100, 100] if number == 1 else json.loads(printed["scale_stage2_3"]))
        if problem == "cvrp":
            capacities = [50, 50] if number == 1 else json.loads(printed["capacity_stage2_3"])
            assert list(stage.capacities or ()) == capacities
    assert t.stages[0].batch_size == int(printed["batch_size_stage1"])
    assert t.stages[-1].learning_rate == float(printed["learning_rate_stage3"])
    assert t.stages[-1].elite == Elite(k=int(printed["k_stage3"]), beta=float(printed["beta_stage3"]))
    assert t.clip == (float(printed["gradient_clipping_max_norm"]) if problem == "cvrp" else None)


def test_third_stages_go_on_where_the_second_ends() -> None:
    """icam, Table 10: each has the batches of the main run's third stage, and another elite."""
    plan = plan_of("paper", ("icam",))
    main = reinforced(plan.runs["icam/icam_tsp"])
    printed = {
        tuple(part.partition("=")[2] for part in row["method_params"].split(";")[2:])
        for row in read_published("icam", 10)
    }
    wanted = {f"k{k}_b{beta}" for k, beta in printed if (k, beta) != ("20", "0.1") and (beta != "0" or k == "20")}
    forks = {run.name: run for run in plan.runs.values() if run.start and run.paper == "icam"}
    assert set(forks) == wanted
    for name, run in forks.items():
        t = reinforced(run)
        (stage,) = t.stages
        assert run.start == "icam/icam_tsp@stage2"
        assert t.batches_before == main.ends[1]
        assert stage.elite
        assert f"k{stage.elite.k}_b{stage.elite.beta:g}" == name
        assert stage.model_copy(update={"elite": main.stages[2].elite}) == main.stages[2]
        assert run.network == plan.runs["icam/icam_tsp"].network


def test_rows_of_table_5_say_what_is_trained() -> None:
    paper = plan_of("paper", ("mvmoe",))
    assert list(ABLATIONS["table5"]) == list(dict.fromkeys(row["method_params"] for row in read_published("mvmoe", 5)))
    for row, name in ABLATIONS["table5"].items():
        said, run = dict(part.split("=") for part in row.split(";")), paper.runs[f"mvmoe/{name}"]
        arguments = {"norm": "instance"} | run.network.arguments
        assert reinforced(run).balance == float(said["alpha"])
        assert (arguments["norm"], arguments["top"]) == (said["norm"], int(said["K"]))
        assert reinforced(run).epochs == int(said["epochs"])


def test_paper_scale_is_the_papers_for_sit() -> None:
    """sit, Table 6, against the printed settings themselves."""
    plan = plan_of("paper")
    printed = {row["key"]: float(row["value"]) for row in read_published("sit", 6)}
    for size, name in {1000: "1k", 5000: "5k", 10_000: "10k", 50_000: "50k", 100_000: "100k"}.items():
        for problem in ("tsp", "cvrp"):
            run = plan.runs[f"sit/{problem}_{name}"]
            t = run.training
            assert isinstance(t, Reconstruction)
            assert run.n == size
            assert run.start == (f"sit/warm_{problem}" if size == 1000 else f"sit/{problem}_1k")
            for key, value in {
                "dataset_size": t.samples,
                "self_improved_iteration": t.rounds,
                "training_epoch": t.epochs_per_round,
                "training_batch_size": t.batch_size,
                "reconstruction_iteration": t.reconstructions,
            }.items():
                assert printed[f"{run.name.upper().replace('_', '')}.{key}"] == value
    (budgets,) = (t.decoding for t in plan.evaluations["sit/cvrp_100k/sit"].of_kind(Test) if t.decoding.milestones)
    assert budgets.milestones == (0, 10, 50, 100, 500, 1000)


# -- in place of what is not trained, and for several readers ---------------------------------------------------------


def test_sizes_that_are_not_trained_take_the_next_smaller_model() -> None:
    plan = plan_of()
    assert {"sit/tsp_1k", "sit/tsp_10k", "sit/cvrp_1k"} <= set(plan.runs)
    assert not {"sit/tsp_5k", "sit/tsp_100k", "sit/cvrp_5k"} & set(plan.runs)
    sizes = plan.scale[SitScale].tsp.sizes
    decoded = {t.labels.dataset.n for t in plan.evaluations["sit/tsp_10k/all"].of_kind(Test)}
    assert {sizes[10_000], sizes[50_000], sizes[100_000]} <= decoded
    assert sizes[5000] not in decoded


def test_the_published_detachment_is_for_the_cvrp_alone(tmp_path: Path) -> None:
    runs = plan_of(write_scale(tmp_path, smoke_with("sit", ("network", "detach_customers"), True)), ("sit",)).runs
    assert runs["sit/cvrp_1k"].network.arguments["detach_customers"]
    assert "detach_customers" not in runs["sit/tsp_1k"].network.arguments


def test_one_job_measures_a_model_on_two_benchmarks() -> None:
    """At smoke a model's evaluations are one: its job waits for both, and its digest covers both."""
    plan = plan_of("smoke", ("mvmoe",))
    assert sorted(plan.benchmarks_of_evaluation("mvmoe/moe4e_50/all")) == ["cvrplib", "solomon"]
    assert plan.benchmarks_of_evaluation("mvmoe/pomo_cvrp_50/all") == ["cvrplib"]
    assert plan.benchmarks_of_evaluation("mvmoe/h_default/all") == []


def test_models_of_50_stand_in_for_those_of_100() -> None:
    plan = plan_of("smoke", ("mvmoe",))
    sizes = plan.scale[MvmoeScale].sizes
    assert not [run for run in plan.runs if run.endswith("_100")]
    tests = plan.evaluations["mvmoe/pomo_vrpb_50/all"].of_kind(Test)
    seen = {(t.labels.dataset.variant, t.labels.dataset.n) for t in tests}
    assert seen == {("VRPB", sizes[50]), *((variant, sizes[100]) for variant in TRAINED)}


@pytest.mark.parametrize("scale", SCALES)
def test_nothing_is_trained_or_measured_in_vain(scale: str) -> None:
    plan = plan_of(scale, ("mvmoe",))
    read = {e for a in plan.artifacts.values() for e in a.evaluations}
    assert read == set(plan.evaluations)
    shown = {*(plan.evaluations[e].run for e in read), *(r for a in plan.artifacts.values() for r in a.runs)}
    assert shown == set(plan.runs)


# -- scaling ----------------------------------------------------------------------------------------------------------


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


def test_kept_trainings_are_those_that_laptop_plans() -> None:
    """So that `snakemake --config scale=laptop` trains again what the kept tables show."""
    plan = plan_of("laptop", ("scaling",))
    kept = sorted((ROOT / "docs/measured/runs/laptop/scaling").glob("*/run.json"))
    assert len(kept) > 40
    for file in kept:
        spec, run = json.loads(file.read_text())["spec"], plan.runs[f"scaling/{file.parent.name}"]
        planned = run.model_dump(mode="json")
        assert (spec["network"], spec["training"]) == (planned["network"], planned["training"]), run.id
