"""What `runs` of config.yaml changes: that run has it, its chain follows, and the others stay as they are.

It changes settings, gives weights in place of a training, or asks for further trainings of other seeds.
"""

from pathlib import Path
from typing import Any

import pytest
from refusals import one_line

from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import parse_config
from neuroute.pipeline.plan.overview import costs
from neuroute.pipeline.plan.plan import Plan
from neuroute.specs.objects import GivenRun, Test
from plans import plan_of, reinforced, smoke, write_scale

MAIN, FORK = "icam/icam_tsp", "icam/k20_b0.5"
WEIGHTS = {"weights": __file__}  # no plan reads more of such a file than its digest
REPEATED = "pens/pens_a"  # its evaluations find its best scaling factor first
COPIES = [f"{REPEATED}-s1", f"{REPEATED}-s2"]
PAPERS = ("scaling", "pens", "mvmoe")


def plan_with(runs: dict[str, dict[str, Any]], scale: str = "paper") -> Plan:
    """The plan of the papers of these runs, which are changed so."""
    return plan_of(scale, tuple(dict.fromkeys(run.partition("/")[0] for run in runs)), runs=runs)


def changed(plan: Plan) -> set[str]:
    untouched = plan_of(plan.config.scale, tuple(plan.papers)).runs
    return {run for run, declared in plan.runs.items() if declared != untouched[run]}


@pytest.mark.parametrize(
    ("run", "seed", "training"),
    [
        ("icam/icam_cvrp", 7, {"clip": 2, "precision": "bf16"}),
        ("mvmoe/moe4e_50", 3, {"clip": 1, "weight_decay": 0.1}),
        ("scaling/lehd_cvrp", 2, {"learning_rate": 2e-4}),
    ],
)
def test_a_change_holds_for_that_run_alone(run: str, seed: int, training: dict[str, Any]) -> None:
    plan = plan_with({run: {"seed": seed, "training": training}}, "smoke")
    assert plan.runs[run].seed == seed
    assert training.items() <= plan.runs[run].training.model_dump().items()
    assert changed(plan) == {run}


@pytest.mark.parametrize(
    ("run", "table"),
    [
        ("scaling/base_12x128", "scaling/table9"),
        ("icam/abl_aafm", "icam/table5"),
        ("sit/tsp_1k", "sit/table6"),
        ("mvmoe/mtl_50", "mvmoe/table3"),
    ],
)
def test_a_table_of_settings_hangs_on_a_change_of_any_run(run: str, table: str) -> None:
    """It reads no log and no record of the runs whose settings it shows, and says which of them are changed."""
    before, after = plan_with({run: {}}, "smoke"), plan_with({run: {"seed": 5}}, "smoke")
    assert before.shown_spec(table) != after.shown_spec(table)


def test_a_change_of_a_run_holds_for_all_its_seeds() -> None:
    plan = plan_with({"scaling/base_6x128": {"training": {"learning_rate": 2e-4}}}, "laptop")
    assert changed(plan) == {f"scaling/base_6x128{seed}" for seed in ("", "-s1", "-s2")}
    for run in changed(plan):
        assert plan.runs[run].training.learning_rate == 2e-4


def test_forks_go_on_where_the_changed_stage_ends() -> None:
    plan = plan_with({MAIN: {"training": {"stages": {"stage2": {"learning_rate": 3e-4, "epochs": 7}}, "clip": 2}}})
    before, after = (reinforced(p.runs[MAIN]) for p in (plan_of("paper", ("icam",)), plan))
    assert [s.learning_rate for s in after.stages] == [1e-4, 3e-4, 1e-5]
    assert (after.stages[1].epochs, after.clip) == (7, 2)
    assert (after.stages[0], after.stages[2]) == (before.stages[0], before.stages[2])
    assert changed(plan) == {MAIN, *(run for run in plan.runs if (plan.runs[run].start or "").startswith(MAIN))}


@pytest.mark.parametrize(
    ("main", "arguments", "start"),
    [(MAIN, {"depth": 3}, f"{MAIN}@stage2"), ("mvmoe/moe4eL_50", {"hierarchy": "episode"}, "mvmoe/moe4eL_50")],
)
def test_what_starts_from_a_run_has_its_network(main: str, arguments: dict[str, Any], start: str) -> None:
    plan = plan_with({main: {"arguments": arguments}})
    followers = {run for run, r in plan.runs.items() if r.start == start}
    assert changed(plan) == {main, *followers}
    assert followers
    assert all(plan.runs[run].network == plan.runs[main].network for run in followers)


@pytest.mark.parametrize(("seed", "own"), [(0, None), (7, None), (7, 3)])
def test_a_fork_draws_as_the_main_run_does_unless_it_has_a_seed(seed: int, own: int | None) -> None:
    """icam, Table 10: the third stages are on the batches of the main run's."""
    changes = {MAIN: {"seed": seed}} | ({FORK: {"seed": own}} if own is not None else {})
    runs = plan_with(changes, "smoke").runs
    assert runs[MAIN].seed == seed
    assert runs[FORK].seed == (seed if own is None else own)
    assert runs["icam/abl_afm"].seed == runs["icam/pomo_tsp"].seed == 0


# -- weights in place of a training -----------------------------------------------------------------------------------


def test_nothing_is_trained_or_labelled_for_a_given_run() -> None:
    run = "scaling/lehd_6x128"
    plan, before = plan_with({run: WEIGHTS}), plan_of("paper", ("scaling",))
    assert isinstance(plan.runs[run], GivenRun)
    assert before.label_jobs_of_run(run)
    assert plan.label_jobs_of_run(run) == []
    assert [(c.stage, c.flops) for c in costs(plan, run)] == [("weights", 0.0)]
    assert changed(plan) == {run}
    assert plan.evaluations == before.evaluations


def test_ends_of_earlier_stages_are_lost() -> None:
    plan = plan_with({MAIN: WEIGHTS})
    assert plan.unreachable
    assert all(run.startswith("icam/k") for run in plan.unreachable)
    assert not plan.unreachable & set(plan.runs)
    assert not [e for e in plan.evaluations.values() if e.run in plan.unreachable]
    assert not [e for e in plan.evaluations.values() if e.run == MAIN and any(test.stage for test in e.of_kind(Test))]
    assert plan.artifacts["icam/table8"].evaluations  # of the model itself
    needed = {need.run for needs in plan.needs.values() for need in needs if hasattr(need, "run")}
    assert not plan.unreachable & needed
    assert plan.unreachable - plan_with({MAIN: WEIGHTS, FORK: WEIGHTS}).unreachable == {FORK}  # it has its own


def test_what_starts_from_the_end_of_a_given_run_goes_on_from_it() -> None:
    plan = plan_with({"mvmoe/moe4e_50": WEIGHTS}, "smoke")
    few = next(run for run, r in plan.runs.items() if r.start == "mvmoe/moe4e_50")
    assert plan.files_to_start(few) == [plan.checkpoint("mvmoe/moe4e_50"), plan.stages("mvmoe/moe4e_50")]


def test_each_seed_has_weights_of_its_own() -> None:
    run, copy = "scaling/base_6x128", "scaling/base_6x128-s1"
    plan = plan_with({copy: WEIGHTS}, "laptop")
    assert {name for name, r in plan.runs.items() if isinstance(r, GivenRun)} == {copy}
    assert plan_with({run: WEIGHTS, copy: WEIGHTS}, "laptop").trainings(run) == [run, copy]  # of three at this scale
    plan = plan_of("smoke", PAPERS, runs={REPEATED: {"seeds": 2}, COPIES[0]: WEIGHTS})
    assert plan.label_jobs_of_run(COPIES[0]) == []


def test_the_text_of_a_given_run_follows_from_its_network_and_the_files_content(tmp_path: Path) -> None:
    def text(content: bytes, name: str, **change: Any) -> str:
        (tmp_path / name).write_bytes(content)
        return plan_with({MAIN: {"weights": str(tmp_path / name)} | change}).runs[MAIN].canonical()

    first = text(b"weights", "icam.pt")
    assert text(b"weights", "elsewhere.pt") == first
    assert text(b"others", "other.pt") != first
    assert text(b"weights", "icam.pt", arguments={"depth": 3}) != first


# -- further trainings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["smoke", "gpu"])  # one evaluation of all, several of each
def test_each_is_another_seed_of_the_changed_run_and_is_measured_like_it(scale: str) -> None:
    change = {"seeds": 3, "training": {"learning_rate": 2e-4}}
    plan, before = plan_of(scale, PAPERS, runs={REPEATED: change}), plan_of(scale, PAPERS)
    assert set(plan.runs) - set(before.runs) == {*COPIES}
    assert plan.trainings(REPEATED) == [REPEATED, *COPIES]
    for seed, run in enumerate(COPIES, 1):
        assert plan.runs[run] == plan.runs[REPEATED].model_copy(update={"name": f"pens_a-s{seed}", "seed": seed})
        assert plan.runs[run].training.learning_rate == 2e-4
    further = [e for e, evaluation in plan.evaluations.items() if evaluation.run in COPIES]
    for e in further:
        run, _, group = e.rpartition("/")
        original = plan.evaluations[f"{REPEATED}/{group}"]
        assert plan.evaluations[e].labels == original.labels
        assert plan.evaluations[e].decodings_used() == original.decodings_used()
        assert plan.checkpoints_of_evaluation(e) == [plan.checkpoint(run)]
        assert plan.label_jobs_of_evaluation(e) == plan.label_jobs_of_evaluation(original.id)
    for name, artifact in plan.artifacts.items():  # what shows the run shows them, too, and nothing else changes
        more = {e for e in artifact.evaluations if e in further}
        of_run = {e for e in artifact.evaluations if e.rpartition("/")[0] == REPEATED}
        assert {e.replace(REPEATED, copy) for e in of_run for copy in COPIES} >= more
        assert bool(more) == (artifact != before.artifacts[name])
    group = "all" if scale == "smoke" else "uniform"
    assert {f"{copy}/{group}" for copy in COPIES} <= {*plan.artifacts["pens/table1"].evaluations}


def test_what_starts_from_a_run_starts_from_its_training_of_the_same_seed_or_the_first() -> None:
    few = "mvmoe/few_mtl_vrpbltw"
    plan = plan_of("smoke", PAPERS, runs={"mvmoe/mtl_50": {"seeds": 2}, few: {"seeds": 3}})
    starts = [plan.runs[run].start for run in plan.trainings(few)]
    assert starts == ["mvmoe/mtl_50", "mvmoe/mtl_50-s1", "mvmoe/mtl_50"]
    assert plan.runs["mvmoe/few_mtl_ovrpbltw"].start == "mvmoe/mtl_50"


def test_config_and_scale_ask_for_seeds_alike(tmp_path: Path) -> None:
    """And what config.yaml says goes first."""
    by_config = plan_of("smoke", PAPERS, runs={REPEATED: {"seeds": 3}, "mvmoe/mtl_50": {"seeds": 2}})
    values = smoke()
    by_scale = plan_of(write_scale(tmp_path, values | {"seeds": {"pens/pens_[a]": 3, "mvmoe/mtl_50": 2}}), PAPERS)
    assert by_scale.artifacts == by_config.artifacts
    assert by_scale.evaluations == by_config.evaluations
    assert by_scale.runs == by_config.runs
    both = plan_of(str(tmp_path / "own.yaml"), PAPERS, runs={REPEATED: {"seeds": 1}, "mvmoe/mtl_50": {"seed": 7}})
    assert both.trainings(REPEATED) == [REPEATED]
    assert [both.runs[run].seed for run in both.trainings("mvmoe/mtl_50")] == [7, 8]
    with one_line(r"seeds.pens/pens_x: no such run"):
        build_plan(parse_config({"scale": write_scale(tmp_path, values | {"seeds": {"pens/pens_x": 3}})}))


# -- what does not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (
            {MAIN: {"training": {"stages": {"stage4": {"epochs": 1}}}}},
            r"stages.stage4: no such stage; there is stage1, stage2, stage3",
        ),
        ({MAIN: {"training": {"stages": {"stage1": {"epochs": 0}}}}}, "stage1.epochs"),
        ({MAIN: {"training": {"stages": {"stage1": {"elite": {"k": 101}}}}}}, "the best 101 of 100 solutions"),
        ({MAIN: {"training": {"learning_rate": 1e-3}}}, "learning_rate"),
        ({MAIN: {"training": {"samples": 9}}}, f"runs.{MAIN}.training: samples: unknown key"),
        ({"sit/tsp_1k": {"training": {"stages": {"main": {"epochs": 1}}}}}, "there is none in this training"),
        # It has no labels.
        ({"scaling/sigd": {"training": {"samples": 5}}}, "runs.scaling/sigd.training: samples: unknown key"),
        ({MAIN: WEIGHTS | {"seed": 1}}, "leave out seed"),
        ({MAIN: WEIGHTS | {"training": {"clip": 1}}}, "leave out training"),
        ({MAIN: {"weights": "absent.pt"}}, rf"runs\.{MAIN}\.weights: no file .*absent\.pt"),
        ({REPEATED: WEIGHTS | {"seeds": 2}}, "leave out seeds"),
        ({REPEATED: {"seeds": 2}, COPIES[0]: {"seed": 4}}, "hold for all seeds"),
        ({REPEATED: {"seeds": 2}, COPIES[0]: {"seeds": 2}}, "hold for all seeds"),
        ({REPEATED: {"seeds": 2}, COPIES[1]: {"seed": 4}}, "no such run"),
        ({REPEATED: {"seeds": 0}}, "seeds"),
    ],
)
def test_a_change_that_does_not_fit_is_one_clear_line(runs: dict[str, dict[str, Any]], message: str) -> None:
    with one_line(message, r"^config\.yaml: runs\."):
        plan_with(runs)


def test_seeds_beyond_the_last_are_refused() -> None:
    with one_line(f"^{REPEATED}: .* beyond the last"):
        plan_with({REPEATED: {"seed": 2**20 - 1, "seeds": 2}})
