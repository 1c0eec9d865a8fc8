"""Rates of this machine: typical, or as config.yaml says."""

import math
from pathlib import Path

import pytest

from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import parse_config
from neuroute.pipeline.plan.estimates import FLOPS, Estimates
from neuroute.solvers.base import at_size
from neuroute.specs.objects import Dataset, Labels


def test_sizes_between_and_beyond() -> None:
    points = {10: 1.0, 100: 100.0}  # the square
    assert at_size(points, 10) == 1
    assert at_size(points, 20) == pytest.approx(4)
    assert at_size(points, 5) == 1
    assert at_size(points, 1000) == pytest.approx(10_000)
    assert at_size({7: 3.0}, 1000) == 3


def test_what_config_yaml_says_goes_before_what_is_typical(tmp_path: Path) -> None:
    def tested(**machine: float) -> float:
        given = {"papers": ["pens"], "work_dir": str(tmp_path), "device": "cpu", "machine": machine}
        estimates = Estimates(build_plan(parse_config(given)))
        return estimates.evaluate(next(iter(estimates.plan.evaluations))).seconds - estimates.start_s

    assert tested(cpu_gflops_per_thread=FLOPS["cpu"] / 2e9) == pytest.approx(2 * tested())


def test_references_have_a_budget_and_unknown_solvers_no_estimate(tmp_path: Path) -> None:
    estimates = Estimates(build_plan(parse_config({"papers": ["pens"], "work_dir": str(tmp_path)})))

    def seconds(solver: str, n: int) -> float:
        return estimates.label_seconds(Labels(dataset=Dataset(n=n, count=2), solver=solver))

    assert seconds("lkh", 100_000) == pytest.approx(2 * 6 * 3600)
    for solver in ("lkh-long", "concorde-6h"):
        assert seconds(solver, 10_000) <= 2 * (6 * 3600 + 60)
        assert seconds("concorde", 10_000) > 100 * seconds(solver, 10_000)
    assert seconds("lkh3", 50_000) == 2 * (600 + 50_000)
    assert seconds("ortools-x10", 50) == 10 * seconds("ortools", 50) == pytest.approx(2 * 200)
    printed = {1000: 150.0, 5000: 7200.0, 10_000: 18_000.0, 50_000: 29_160.0, 100_000: 86_400.0}  # sit, Table 1
    assert {n: seconds("hgs-timed", n) / 2 for n in printed} == pytest.approx(printed)
    assert seconds("published", 100_000) == 0
    assert math.isnan(seconds("savings", 100))
