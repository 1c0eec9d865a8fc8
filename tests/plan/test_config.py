"""Config and scales: what is accepted, and the one line that says what is wrong."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from neuroute.errors import NeurouteError
from neuroute.plan.build import build_plan
from neuroute.plan.config import Config, Scale, load_scale, parse_config
from neuroute.plan.objects import (
    AttentionEvaluation,
    BenchmarkEvaluation,
    ConstructionEvaluation,
    Decoding,
    EfficiencyEvaluation,
    Elite,
    Evaluation,
    Reconstruction,
    Reinforced,
    RescalingEvaluation,
    RoundEvaluation,
    RoutingEvaluation,
    StageEvaluation,
    StructureEvaluation,
    parts_of,
)
from neuroute.plan.reinforced import single_size, three_stages
from neuroute.plan.specs import Problem

ROOT = Path(__file__).resolve().parents[2]
UNLABELLED = (
    RescalingEvaluation,
    AttentionEvaluation,
    BenchmarkEvaluation,
    EfficiencyEvaluation,
    RoundEvaluation,
    StructureEvaluation,
    RoutingEvaluation,
    ConstructionEvaluation,
)
SCALES = sorted(p.stem for p in (ROOT / "workflow" / "scales").glob("*.yaml"))


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_gives_a_plan(scale: str) -> None:
    plan = build_plan(Config(scale=scale))
    own = {run.removesuffix(f"-s{plan.runs[run].seed}") for run in plan.runs if run.startswith("scaling/")}
    assert len(own) == 26  # the paper's 23 (with LEHD), BQ and SIGD, and LEHD for the CVRP
    assert len([run for run in plan.runs if run.startswith("pens/")]) == 8
    assert {a.id for a in plan.artifacts.values()} == {
        *(f"scaling/table{i}" for i in range(1, 21)),
        *(f"scaling/figure{i}" for i in range(1, 13)),
        *(f"pens/table{i}" for i in range(1, 5)),
        *(f"pens/table_figure{i}" for i in (4, 5)),
        *(f"pens/figure{i}" for i in range(1, 7)),
        *(f"sit/table{i}" for i in range(1, 12)),
        *(f"sit/figure{i}" for i in range(1, 4)),
        *(f"icam/table{i}" for i in range(1, 13)),
        *(f"icam/figure{i}" for i in range(1, 7)),
        *(f"mvmoe/table{i}" for i in range(1, 9)),
        *(f"mvmoe/figure{i}" for i in range(1, 10)),
    }
    for evaluation in plan.evaluations.values():
        labelled = not all(isinstance(part, UNLABELLED) for part in parts_of(evaluation))
        assert bool(plan.bundles_of_evaluation(evaluation.id)) == (labelled or bool(evaluation.labels))
    for run in plan.runs:
        assert plan.bundles_of_run(run)
    for artifact in plan.artifacts.values():
        assert set(artifact.evaluations) <= set(plan.evaluations)
        assert set(artifact.runs) <= set(plan.runs)


def test_paper_scale_is_the_papers() -> None:
    """scaling, Tables 1 and 9, Section 3."""
    plan = build_plan(Config(scale="paper"))
    run = plan.runs["scaling/base_42x512"]
    assert run.network.arguments == {
        "depth": 42,
        "width": 512,
        "heads": 16,
        "gate": True,
        "rezero": True,
        "train_nodes": 100,
    }
    t = run.training
    assert (t.batches, t.batch_size, t.epochs) == (60_000, 1024, 1)
    assert (t.learning_rate, t.weight_decay, t.decay_gamma, t.decay_every) == (1.25e-4, 0.01, 0.997, 100)
    assert t.step == "sub-path"
    assert {t.labels.dataset.count for t in plan.evaluations["scaling/base_6x128/greedy"].tests} == {10_000}
    few = plan.runs["scaling/small01M_42x128"].training  # Table 3
    assert (few.samples, few.epochs, few.batch_size, few.learning_rate) == (100_000, 60, 1024, 1.25e-4)
    without = plan.runs["scaling/norezero_42x128"]  # Appendix B.5
    assert not without.network.arguments["rezero"]
    assert (without.training.warmup_batches, without.training.warmup_factor) == (50, 0.1)
    rrc = plan.evaluations["scaling/base_42x512/rrc"].tests  # Table 19
    assert [(t.labels.dataset.n, t.labels.dataset.count) for t in rrc] == [(100, 1000), (1000, 16)]
    assert rrc[0].decoding.milestones == (0, 100, 200, 500, 800, 1000)
    shifted = plan.evaluations["scaling/base_6x128/shifted"].tests  # Tables 14-16
    assert {(t.labels.dataset.distribution, t.labels.dataset.n) for t in shifted} == {
        (d, n) for d in ("explosion", "implosion", "cluster") for n in (100, 200, 500, 1000)
    }


def test_paper_scale_is_the_papers_for_sit() -> None:
    """sit, Section 5 and Tables 5 and 6, against the printed settings themselves."""
    plan = build_plan(Config(scale="paper"))
    with (ROOT / "src/neuroute/papers/sit/published/table6.csv").open() as file:
        printed = {row["key"]: float(row["value"]) for row in csv.DictReader(file)}
    for size, name in {1000: "1k", 5000: "5k", 10_000: "10k", 50_000: "50k", 100_000: "100k"}.items():
        for problem in ("tsp", "cvrp"):
            run = plan.runs[f"sit/{problem}_{name}"]
            t = run.training
            assert isinstance(t, Reconstruction)
            assert run.n == size
            assert run.start == (f"sit/warm_{problem}" if size == 1000 else f"sit/{problem}_1k")
            own = {
                key.split(".")[1]: v
                for key, v in printed.items()
                if key.split(".")[0] == run.name.upper().replace("_", "")
            }
            assert t.samples == own["dataset_size"]
            assert t.rounds == own["self_improved_iteration"]
            assert t.epochs_per_round == own["training_epoch"]
            assert t.batch_size == own["training_batch_size"]
            assert t.reconstructions == own["reconstruction_iteration"]
            assert (t.learning_rate, t.decay_gamma) == (1e-4, 0.97)
            assert (t.longest, t.clip, t.initial, t.starts, t.rule) == (None, None, "labels", "instance", "cut-off")
            assert t.validations == t.epochs
    shape = {"depth": 6, "width": 128, "heads": 8, "feed_forward": 512, "representatives": 15, "train_nodes": 1000}
    assert plan.runs["sit/tsp_1k"].network.arguments == shape
    assert plan.runs["sit/cvrp_self"].network.arguments["attention"] == "self"
    assert plan.runs["sit/tsp_10k_lmax100"].training.longest == 100  # Table 5
    tests = {t.labels.dataset.n: t.labels.dataset.count for t in plan.evaluations["sit/warm_tsp/sit"].tests}
    assert tests == {1000: 128}
    budgets = plan.evaluations["sit/cvrp_100k/sit"].tests[1].decoding
    assert budgets.milestones == (0, 10, 50, 100, 500, 1000)
    assert budgets.start == "insertion-published"


def test_sizes_that_are_not_trained_take_the_next_smaller_model() -> None:
    plan = build_plan(Config(scale="smoke"))
    assert {"sit/tsp_1k", "sit/tsp_10k", "sit/cvrp_1k"} <= set(plan.runs)
    assert not {"sit/tsp_5k", "sit/tsp_100k", "sit/cvrp_5k"} & set(plan.runs)
    sizes = plan.scale.sit.tsp.sizes
    decoded = {
        t.labels.dataset.n for part in parts_of(plan.evaluations["sit/tsp_10k/all"]) for t in getattr(part, "tests", ())
    }
    assert {sizes[10_000], sizes[50_000], sizes[100_000]} <= decoded
    assert sizes[5000] not in decoded


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("longest", "100"), 3, "longest"),
        (("longest", "10000"), 10**6, "give a number from 4 to tsp.sizes.10000"),
        (("repetitions", "7"), 1, "none of the paper's"),
        (("tsp", "warm_up", "reconstructions"), 1, "warm_up is one round"),
        (("tsp", "training", "1000", "validations"), 7, "no multiple"),
        (("cvrp", "tam_capacities", "1000"), None, "tam_capacities"),
        (("tsp", "training", "1000", "longest"), 2000, "longest is above"),
    ],
)
def test_sizes_of_sit_that_do_not_fit_are_refused(
    tmp_path: Path, path: tuple[str, ...], value: object, words: str
) -> None:
    values = _changed("sit", path, value)
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(NeurouteError, match=words) as caught:
        load_scale(str(tmp_path / "own.yaml"))
    assert "\n" not in str(caught.value)


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
    values = _changed("icam", path, value)
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(NeurouteError, match=words) as caught:
        load_scale(str(tmp_path / "own.yaml"))
    assert "\n" not in str(caught.value)


def test_a_third_stage_has_as_many_solutions_as_its_elite(tmp_path: Path) -> None:
    values = _changed("icam", ("elites", "100"), 21)
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump(values))
    load_scale(str(own))  # which no third stage asks for
    values["icam"]["forks"] = [[100, 0.5]]
    own.write_text(yaml.safe_dump(values))
    with pytest.raises(NeurouteError, match="elites.100: the best 21 of 20 solutions"):
        load_scale(str(own))


def _changed(paper: str, path: tuple[str, ...], value: object) -> dict[str, Any]:
    """The smoke scale with one value of a paper's another; None: without it."""
    values: dict[str, Any] = yaml.safe_load((ROOT / "workflow" / "scales" / "smoke.yaml").read_text())
    place = values[paper] = json.loads(json.dumps(values[paper]), object_hook=_integer_keys)
    keys = [int(key) if key.isdigit() else key for key in path]
    for key in keys[:-1]:
        place = place[key]
    if value is None:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return values


def _integer_keys(given: dict[str, Any]) -> dict[Any, Any]:
    return {int(k) if k.isdigit() else k: v for k, v in given.items()}


def test_paper_scale_is_the_papers_for_pens() -> None:
    """pens, Section 5.1: nine layers of width 192, a million batches of 1,024, 1e-4 to 1e-5, five repeats."""
    plan = build_plan(Config(scale="paper"))
    run = plan.runs["pens/pens_a"]
    shape = {"depth": 9, "width": 192, "heads": 12, "feed_forward": 512, "train_nodes": 100}
    assert run.network.arguments == shape | {"positions": "alibi"}
    t = run.training
    assert (t.batches, t.batch_size, t.learning_rate, t.final_learning_rate) == (1_000_000, 1024, 1e-4, 1e-5)
    assert (t.sub_paths, t.step, t.scheme) == ("pairs", "decision", "path-tsp")
    assert plan.scale.pens.repeats == 5
    assert {size: plan.scale.pens.test_counts[size] for size in (100, 250, 500, 1000, 10_000)} == {
        100: 128, 250: 128, 500: 128, 1000: 128, 10_000: 10
    }  # fmt: skip
    assert plan.scale.pens.sizes == {n: n for n in (20, 50, 100, 250, 500, 1000, 10_000)}


def test_baselines_at_paper_scale_are_the_published_recipes() -> None:
    """LEHD: 150 epochs of 1M samples, Adam 1e-4, times 0.97 an epoch.  BQ-NCO: its training script's defaults."""
    runs = build_plan(Config(scale="paper")).runs
    lehd, bq = runs["scaling/lehd_6x128"].training, runs["scaling/bq"].training
    assert (lehd.samples, lehd.epochs, lehd.batch_size, lehd.learning_rate) == (1_000_000, 150, 1024, 1e-4)
    assert (lehd.decay_gamma, lehd.decay_every, lehd.weight_decay) == (0.97, lehd.batches_per_epoch, 0)
    assert (bq.step, bq.sub_paths, bq.keep) == ("decision", "suffix", "best")
    assert bq.decay_every == 50 * bq.batches_per_epoch
    assert runs["scaling/sigd"].data == ()


def test_a_scale_may_measure_all_of_a_model_in_one_job() -> None:
    apart, together = build_plan(Config(scale="laptop")), build_plan(Config(scale="smoke"))
    assert "scaling/base_6x128/greedy" in apart.evaluations
    assert "scaling/base_6x128/all" in together.evaluations
    tests = [t for part in parts_of(together.evaluations["scaling/base_6x128/all"]) for t in getattr(part, "tests", ())]
    assert len(tests) == len(set(tests)) > 20
    assert "scaling/base_6x128/all" in together.artifacts["scaling/table12"].evaluations


def test_schemas_are_in_step_with_the_models() -> None:
    for model, name in ((Config, "config"), (Scale, "scale")):
        written = json.loads((ROOT / "workflow" / "schemas" / f"{name}.schema.json").read_text())
        assert written == model.model_json_schema(), "run `neuroute schema`"


def test_text_values_from_the_command_line_are_coerced() -> None:
    config = parse_config({"memory_gb": "8", "runs": {"scaling/base_6x128": {"training": {"learning_rate": "1e-3"}}}})
    assert config.memory_gb == 8.0
    assert config.runs["scaling/base_6x128"].training.learning_rate == 1e-3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scael": "smoke"}, "scael: unknown key"),
        ({"memory_gb": "lots"}, "memory_gb: .*number"),
        ({"memory_gb": -1}, "memory_gb"),
        ({"device": "tpu"}, "device: .*'auto', 'cpu' or 'cuda'"),
        ({"papers": ["scalling"]}, "papers.0"),
        ({"papers": []}, "papers"),
        ({"runs": {"scaling/base_6x128": {"training": {"lr": 1}}}}, "training.lr: unknown key"),
        ({"runs": {"scaling/base_6x128": {"training": {"learning_rate": -1}}}}, "training.learning_rate"),
    ],
)
def test_bad_config_is_one_clear_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(NeurouteError, match=message) as error:
        parse_config(values)
    assert "\n" not in str(error.value)


def test_unknown_scale_and_run_name_the_nearest() -> None:
    with pytest.raises(NeurouteError, match="known scales: .*smoke"):
        load_scale("smok")
    with pytest.raises(NeurouteError, match="did you mean .*scaling/base_6x128"):
        build_plan(parse_config({"runs": {"scaling/base_6x129": {"seed": 1}}}))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("scaling", "sizes", 100), 3, "scaling.sizes.100.*greater than or equal to 4"),
        (("scaling", "beams", 2), 0, "scaling.beams.2.*greater than or equal to 1"),
        (("scaling", "widths", 128), {"width": 30, "heads": 4}, "width 30 is not divisible by 4 heads"),
        (("scaling", "depths"), {6: 6}, "depths must name exactly the paper's"),
        (("scaling", "training", "step"), "leap", "scaling.training.step"),
        (("scaling", "training", "samples"), "many", "scaling.training.samples.*integer"),
    ],
)
def test_impossible_scales_are_refused(tmp_path: Path, path: tuple[Any, ...], value: Any, message: str) -> None:
    values = yaml.safe_load((ROOT / "workflow" / "scales" / "smoke.yaml").read_text())
    inner = values
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    (tmp_path / "odd.yaml").write_text(yaml.safe_dump(values))
    with pytest.raises(NeurouteError, match=message):
        load_scale(str(tmp_path / "odd.yaml"))


def test_a_change_that_does_not_fit_a_run_is_said() -> None:
    """SIGD has no labelled samples: a number of them is refused before anything runs."""
    with pytest.raises(NeurouteError, match="runs.scaling/sigd.training: samples: unknown key"):
        build_plan(parse_config({"runs": {"scaling/sigd": {"training": {"samples": 5}}}}))


def test_a_change_of_a_run_holds_for_all_its_seeds() -> None:
    change = {"scale": "laptop", "runs": {"scaling/base_6x128": {"training": {"learning_rate": 2e-4}}}}
    plan = build_plan(parse_config(change))
    for name in ("base_6x128", "base_6x128-s1", "base_6x128-s2"):
        assert plan.runs[f"scaling/{name}"].training.learning_rate == 2e-4
    with pytest.raises(NeurouteError, match="hold for all seeds"):
        build_plan(parse_config(change | {"runs": {"scaling/base_6x128-s1": {"seed": 5}}}))
    with pytest.raises(NeurouteError, match="several seeds"):
        build_plan(parse_config(change | {"runs": {"scaling/base_6x128": {"seed": 5}}}))


def test_more_cvrp_samples_are_labelled_where_a_change_asks_for_them() -> None:
    plan = build_plan(parse_config({"runs": {"scaling/lehd_cvrp": {"training": {"samples": 4000}}}}))
    assert plan.bundles_of_run("scaling/lehd_cvrp") == ["scaling/cvrp"]
    assert plan.bundles["scaling/cvrp"].labels[0].dataset.count == 4000


def test_code_digests_keep_stages_and_networks_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Supervised training hangs neither on searches nor on SIGD; an evaluation only on its own network's FLOPs."""
    from neuroute.plan import digest

    plan = build_plan(Config(scale="smoke"))
    reached: list[str] = []
    code_digest = digest.code_digest

    def noted(*entries: str) -> str:
        reached.extend(module for module, _ in digest.reach(entries))
        return code_digest(*entries)

    monkeypatch.setattr("neuroute.plan.build.code_digest", noted)
    plan.train_code("scaling/base_6x128")
    assert "neuroute.training.supervised" in reached
    apart = ("decoding.beam", "decoding.prc", "decoding.sampling", "training.self_improvement", "training.cvrp")
    for other in (*apart, "training.reconstruction"):
        assert f"neuroute.{other}" not in reached
    plan.train_code("scaling/sigd")
    assert "neuroute.decoding.sampling" in reached
    reached.clear()
    plan.evaluate_code("scaling/base_6x128/all")
    assert "neuroute.decoding.beam" in reached
    assert "neuroute.analysis.flops" in reached
    assert "neuroute.analysis.flops_baselines" not in reached


def test_the_published_detachment_is_for_the_cvrp_alone(tmp_path: Path) -> None:
    values = yaml.safe_load((ROOT / "workflow" / "scales" / "smoke.yaml").read_text())
    values["sit"]["network"]["detach_customers"] = True
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(values))
    plan = build_plan(Config(scale=str(tmp_path / "own.yaml"), papers=["sit"]))
    assert plan.runs["sit/cvrp_1k"].network.arguments["detach_customers"]
    assert "detach_customers" not in plan.runs["sit/tsp_1k"].network.arguments
