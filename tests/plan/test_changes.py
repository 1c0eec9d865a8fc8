"""What `runs` of config.yaml changes: that run has it, its chain follows, and the others stay as they are."""

from typing import Any

import pytest
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.plan.plan import Plan
from plans import plan_of, reinforced

MAIN, FORK = "icam/icam_tsp", "icam/k20_b0.5"


def plan_with(run: str, scale: str = "paper", **change: Any) -> Plan:
    return plan_of(scale, (run.partition("/")[0],), runs={run: change})


def changed(plan: Plan, scale: str = "paper") -> set[str]:
    untouched = plan_of(scale, tuple(plan.papers)).runs
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
    plan = plan_with(run, "smoke", seed=seed, training=training)
    assert plan.runs[run].seed == seed
    assert training.items() <= plan.runs[run].training.model_dump().items()
    assert changed(plan, "smoke") == {run}


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
    before, after = plan_of("smoke", (run.partition("/")[0],)), plan_with(run, "smoke", seed=5)
    assert before.shown_spec(table) != after.shown_spec(table)


def test_a_change_of_a_run_holds_for_all_its_seeds() -> None:
    plan = plan_with("scaling/base_6x128", "laptop", training={"learning_rate": 2e-4})
    assert changed(plan, "laptop") == {f"scaling/base_6x128{seed}" for seed in ("", "-s1", "-s2")}
    for run in changed(plan, "laptop"):
        assert plan.runs[run].training.learning_rate == 2e-4
    with pytest.raises(NeurouteError, match="hold for all seeds"):
        plan_with("scaling/base_6x128-s1", "laptop", seed=5)


def test_forks_go_on_where_the_changed_stage_ends() -> None:
    plan = plan_with(MAIN, training={"stages": {"stage2": {"learning_rate": 3e-4, "epochs": 7}}, "clip": 2})
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
    plan = plan_with(main, arguments=arguments)
    followers = {run for run, r in plan.runs.items() if r.start == start}
    assert changed(plan) == {main, *followers}
    assert followers
    assert all(plan.runs[run].network == plan.runs[main].network for run in followers)


@pytest.mark.parametrize(("seed", "own"), [(0, None), (7, None), (7, 3)])
def test_a_fork_draws_as_the_main_run_does_unless_it_has_a_seed(seed: int, own: int | None) -> None:
    """icam, Table 10: the third stages are on the batches of the main run's."""
    changes = {MAIN: {"seed": seed}} | ({FORK: {"seed": own}} if own is not None else {})
    runs = plan_of("smoke", ("icam",), runs=changes).runs
    assert runs[MAIN].seed == seed
    assert runs[FORK].seed == (seed if own is None else own)
    assert runs["icam/abl_afm"].seed == runs["icam/pomo_tsp"].seed == 0


@pytest.mark.parametrize(
    ("run", "training", "message"),
    [
        (MAIN, {"stages": {"stage4": {"epochs": 1}}}, r"stages.stage4: no such stage; there is stage1, stage2, stage3"),
        (MAIN, {"stages": {"stage1": {"epochs": 0}}}, "stage1.epochs"),
        (MAIN, {"stages": {"stage1": {"elite": {"k": 101}}}}, "the best 101 of 100 solutions"),
        (MAIN, {"learning_rate": 1e-3}, "learning_rate"),
        (MAIN, {"samples": 9}, f"runs.{MAIN}.training: samples: unknown key"),
        ("sit/tsp_1k", {"stages": {"main": {"epochs": 1}}}, "there is none in this training"),
        ("scaling/sigd", {"samples": 5}, "runs.scaling/sigd.training: samples: unknown key"),  # it has no labels
    ],
)
def test_a_change_that_does_not_fit_is_one_clear_line(run: str, training: dict[str, Any], message: str) -> None:
    with one_line(message, r"^config\.yaml: runs\."):
        plan_with(run, training=training)
