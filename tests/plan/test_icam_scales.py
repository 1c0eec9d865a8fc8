"""What paper `icam` declares: its trainings as printed, its tests as its tables ask, and scales that are refused."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from neuroute.core.errors import NeurouteError
from neuroute.plan.build import build_plan
from neuroute.plan.config import Config, load_scale, parse_config
from neuroute.plan.objects import (
    BenchmarkEvaluation,
    Decoding,
    Elite,
    Evaluation,
    Reinforced,
    StageEvaluation,
)
from neuroute.plan.reinforced import single_size, three_stages
from neuroute.plan.specs import Problem
from own_scale import ROOT, refused, smoke_with, written


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_paper_scale_is_the_papers_for_icam(problem: Problem) -> None:
    """icam, Section 4 and Tables 5 and 7, against the printed settings themselves."""
    runs = build_plan(Config(scale="paper", papers=["icam"])).runs
    for name in (f"icam_{problem}", f"pomo3_{problem}"):
        assert _unvalidated(runs[f"icam/{name}"].training) == three_stages(problem)
    assert _unvalidated(runs[f"icam/pomo_{problem}"].training) == single_size(problem)
    with (ROOT / "src/neuroute/papers/icam/published/table5.csv").open() as file:
        rows = [(*row["key"].split("."), row["value"]) for row in csv.DictReader(file)]
    printed = {key: value for whose, key, value in rows if whose in ("both", problem.upper())}
    run = runs[f"icam/icam_{problem}"]
    shape = {"depth": "encoder_layers", "width": "embedding_dim", "feed_forward": "feed_forward_dim"}
    assert {key: run.network.arguments[key] for key in shape} == {k: int(printed[v]) for k, v in shape.items()}
    assert run.n == run.network.arguments["train_nodes"] == int(printed["scale_stage1"])
    t = run.training
    assert isinstance(t, Reinforced)
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


def _unvalidated(training: Any) -> Reinforced:
    """How often a run looks at its gaps is no part of what is trained."""
    assert isinstance(training, Reinforced)
    stages = tuple(stage.model_copy(update={"validations": 1}) for stage in training.stages)
    return training.model_copy(update={"stages": stages})


def test_third_stages_go_on_where_the_second_ends() -> None:
    """icam, Table 10: each has the batches of the main run's third stage, and another elite."""
    plan = build_plan(Config(scale="paper", papers=["icam"]))
    main = plan.runs["icam/icam_tsp"].training
    assert isinstance(main, Reinforced)
    printed = {
        tuple(part.partition("=")[2] for part in row["method_params"].split(";")[2:])
        for row in csv.DictReader((ROOT / "src/neuroute/papers/icam/published/table10.csv").open())
    }
    wanted = {f"k{k}_b{beta}" for k, beta in printed if (k, beta) != ("20", "0.1") and (beta != "0" or k == "20")}
    forks = {run.name: run for run in plan.runs.values() if run.start and run.paper == "icam"}
    assert set(forks) == wanted
    for name, run in forks.items():
        t = run.training
        assert isinstance(t, Reinforced)
        (stage,) = t.stages
        assert run.start == "icam/icam_tsp@stage2"
        assert t.batches_before == main.ends[1]
        assert stage.elite
        assert f"k{stage.elite.k}_b{stage.elite.beta:g}" == name
        assert stage.model_copy(update={"elite": main.stages[2].elite}) == main.stages[2]
        assert run.network == plan.runs["icam/icam_tsp"].network


def test_icam_is_measured_as_its_tables_ask() -> None:
    plan = build_plan(Config(scale="paper", papers=["icam"]))

    def cells(evaluation: str) -> set[tuple[int, str]]:
        found = plan.evaluations[evaluation]
        assert isinstance(found, Evaluation | StageEvaluation)
        return {(t.labels.dataset.n, t.decoding.id) for t in found.tests}

    sizes = (100, 200, 500, 1000)
    three = {(n, way) for n in sizes for way in ("greedy", "multi", "multi-x8")}
    larger = {(n, "multi") for n in (2000, 3000, 4000, 5000)}
    searches = {(n, way) for n in sizes for way in ("rrc100-multi", "beam16-multi")}
    assert cells("icam/icam_tsp/icam") == three | larger | searches
    assert cells("icam/pomo_tsp/icam") == three | larger
    assert cells("icam/pomo3_cvrp/icam") == three
    assert cells("icam/icam_tsp/stages") == cells("icam/abl_afm/icam") == {(n, "multi") for n in sizes}
    assert cells("icam/k20_b0.5/icam") == {(1000, "greedy"), (1000, "multi")}
    tam = {
        t.labels.dataset.n: t.labels.dataset.capacity
        for t in plan.evaluations["sit/bq_cvrp/tests_icam"].tests
        if t.labels.dataset.capacity
    }
    assert tam == {1000: 200, 2000: 300, 3000: 300, 4000: 300, 5000: 300}  # Section 4, following TAM
    for run, ways, apart in (
        ("icam/icam_cvrp/cvrplib", Decoding(starts="all"), True),
        ("scaling/lehd_cvrp/cvrplib_icam", Decoding(), False),
    ):
        e = plan.evaluations[run]
        assert isinstance(e, BenchmarkEvaluation)
        assert (e.sets, e.min_nodes, e.max_nodes, e.decodings, e.per_axis) == (("X",), 101, 1002, (ways,), apart)


def test_a_change_of_icam_holds_for_that_run_alone() -> None:
    change = {"papers": ["icam"], "runs": {"icam/icam_cvrp": {"seed": 7, "training": {"clip": 2, "precision": "bf16"}}}}
    runs = build_plan(parse_config(change)).runs
    run, other = runs["icam/icam_cvrp"], runs["icam/pomo3_cvrp"]
    assert (run.seed, run.training.clip, run.training.precision) == (7, 2, "bf16")
    assert (other.seed, other.training.clip, other.training.precision) == (0, 5, "fp32")
    with pytest.raises(NeurouteError, match="runs.icam/icam_tsp.training: samples: unknown key"):
        build_plan(parse_config({"papers": ["icam"], "runs": {"icam/icam_tsp": {"training": {"samples": 9}}}}))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("forks",), [[20, 0.1]], "is the main run"),
        (("forks",), [[20, 0.2]], "Table 10 has k of"),
        (("forks",), [[20, 0.5], [20, 0.5]], "must all differ"),
        (("elites", "20"), 10, "elite of stage3 is"),
        (("elites", "50"), 20, "must all differ"),
        (("large_sizes", "2000"), 100, "must all differ"),
        (("large_counts", "2000"), None, "large_counts must name"),
        (("cvrp", "tam_capacities", "4000"), None, "tam_capacities must name"),
        (("tsp", "validation_counts", "1000"), None, "validation_counts must name"),
        (("tsp", "training", "stages", "1", "name"), "second", "its stages must be"),
        (("tsp", "training", "batches_before"), 5, "nothing comes before it"),
        (("tsp", "training", "stages", "0", "capacities"), [30, 30], "they are for the CVRP"),
        (("tsp", "other_solvers"), {"150": ["lkh"]}, "none of the paper's sizes"),
    ],
)
def test_sizes_of_icam_that_do_not_fit_are_refused(
    tmp_path: Path, path: tuple[str, ...], value: object, words: str
) -> None:
    refused(tmp_path, smoke_with("icam", path, value), words)


def test_a_third_stage_has_as_many_solutions_as_its_elite(tmp_path: Path) -> None:
    values = smoke_with("icam", ("elites", "100"), 21)
    load_scale(written(tmp_path, values))  # which no third stage asks for
    values["icam"]["forks"] = [[100, 0.5]]
    refused(tmp_path, values, "elites.100: the best 21 of 20 solutions")
