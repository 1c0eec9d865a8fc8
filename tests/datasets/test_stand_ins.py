"""Which solver does the work of one that is missing, and where none may."""

from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.datasets.labels import make_labels
from neuroute.pipeline.plan.build import Plan, build_plan, check_solvers, settle
from neuroute.pipeline.plan.config import Config, parse_config
from neuroute.pipeline.plan.overview import describe
from neuroute.solvers import base, registry
from neuroute.solvers.registry import NEXT_BEST, SOLVERS, get

MICRO = Path(__file__).parents[1] / "data" / "micro.yaml"
Hide = Callable[..., None]


def config(folder: Path, **more: object) -> Config:
    return parse_config({"scale": str(MICRO), "papers": ["pens"], "work_dir": str(folder), **more})


def solvers(plan: Plan) -> set[str]:
    return {labels.solver for labels in plan.label_jobs.values()}


def made_by(plan: Plan, solver: str) -> str:
    """A label job of that solver."""
    return next(job for job, labels in plan.label_jobs.items() if labels.solver == solver)


def test_who_stands_in_can_do_the_work() -> None:
    for name, others in NEXT_BEST.items():
        assert name not in others
        assert {name, *others} <= set(SOLVERS)
        stand_ins = [get(other) for other in others]
        if get(name).solve_cvrp is not None:
            assert all(other.solve_cvrp or other.solve_vrp for other in stand_ins)
        if get(name).solve_vrp is not None:
            assert all(other.solve_vrp for other in stand_ins)


def test_with_every_solver_at_hand_the_plan_stays(tmp_path: Path) -> None:
    plan = build_plan(config(tmp_path))
    assert settle(plan) is plan


@pytest.mark.parametrize(("missing", "other"), [(("concorde",), "lkh"), (("concorde", "elkai", "LKHpy"), "hgs")])
def test_the_next_best_takes_the_place_of_a_missing_solver(
    tmp_path: Path, hide_solvers: Hide, missing: tuple[str, ...], other: str, caplog: pytest.LogCaptureFixture
) -> None:
    hide_solvers(*missing)
    caplog.set_level("INFO")
    plan = settle(build_plan(config(tmp_path)))
    assert solvers(plan) == {other}
    assert plan.scale.reference_solver == plan.scale.label_solver == other
    assert f"{other} stands in for concorde" in describe(plan, None)
    assert f"concorde is not installed and labels are missing, so {other} makes" in caplog.text
    assert settle(plan) is plan
    for job in plan.label_jobs:
        check_solvers(plan, job)


def test_what_lies_in_a_cache_needs_no_solver(tmp_path: Path, hide_solvers: Hide) -> None:
    plan = build_plan(config(tmp_path))
    for labels in plan.label_jobs.values():
        make_labels(labels, plan.label_store, [], workers=1)
    hide_solvers("concorde")
    assert settle(plan) is plan
    other = build_plan(config(tmp_path / "other", label_caches=[str(plan.label_store)]))
    assert settle(other) is other


def test_where_nothing_can_stand_in_the_line_says_how_to_get_the_solver(tmp_path: Path, hide_solvers: Hide) -> None:
    hide_solvers("ortools")
    plan = settle(build_plan(config(tmp_path, papers=["mvmoe"])))
    with pytest.raises(NeurouteError, match="solver 'ortools-?.*' is not installed; run `pip install ortools`$"):
        check_solvers(plan, made_by(plan, "ortools-short"))


def test_a_scale_may_want_no_stand_in_until_the_config_names_it(tmp_path: Path, hide_solvers: Hide) -> None:
    hide_solvers("concorde")
    strict = tmp_path / "strict.yaml"
    strict.write_text(MICRO.read_text() + "substitute_solvers: false\n")
    plan = settle(build_plan(config(tmp_path, scale=str(strict))))
    assert solvers(plan) == {"concorde"}
    with pytest.raises(NeurouteError, match=r"ml4co-kit.*or set `substitutes: \{concorde: lkh\}` in config.yaml"):
        check_solvers(plan, made_by(plan, "concorde"))
    plan = settle(build_plan(config(tmp_path, scale=str(strict), substitutes={"concorde": "lkh"})))
    assert solvers(plan) == {"lkh"}
    assert all(
        artifact.stand_ins == {"concorde": "lkh"} for artifact in plan.artifacts.values() if artifact.evaluations
    )


def test_no_substitutes_means_none(tmp_path: Path, hide_solvers: Hide) -> None:
    hide_solvers("concorde")
    plan = build_plan(config(tmp_path, substitutes={}))
    assert settle(plan) is plan
    with pytest.raises(NeurouteError, match="solver 'concorde' is not installed"):
        check_solvers(plan, made_by(plan, "concorde"))


def test_rows_of_solvers_that_became_one_are_theirs(tmp_path: Path, hide_solvers: Hide) -> None:
    hide_solvers("concorde", "hygese")
    plan = settle(build_plan(config(tmp_path, papers=["scaling", "sit"])))
    assert not {"concorde", "hgs", "hgs-short"} & solvers(plan)


def test_doctor_says_who_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"concorde": {"remedy": "get it"}, "lkh": {"length": 2.0, "version": "2", "seconds": 0.1}}
    monkeypatch.setattr(registry, "SOLVERS", answers)
    monkeypatch.setattr(registry, "_ask", answers.__getitem__)
    missing, there = registry.examine()
    assert missing == "concorde            missing  lkh stands in; get it"
    assert there == "lkh                 ok       1.0000 x best, 0.1000 s   2"


def test_an_instance_that_fills_more_than_the_memory_stops_before_the_first_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "machine_memory", lambda: 100.0)
    plan = build_plan(config(tmp_path, papers=["mvmoe"]))
    job = next(job for job, labels in plan.label_jobs.items() if labels.dataset.split == "train")
    check_solvers(plan, job, here=False)
    with one_line(r"^hgs-short: .* insertion-angle .* in the scale file"):
        check_solvers(plan, job)
    monkeypatch.setattr(base, "machine_memory", lambda: 1e9)
    make_labels(plan.label_jobs[job], plan.label_store, [], workers=1)
    monkeypatch.setattr(base, "machine_memory", lambda: 100.0)
    check_solvers(plan, job)  # nothing is left to solve
