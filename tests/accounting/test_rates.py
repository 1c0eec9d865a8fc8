"""Rates of this machine: measured, kept, and reckoned with."""

import json
from pathlib import Path

import pytest

from neuroute.accounting import measure
from neuroute.accounting.jobs import Estimates
from neuroute.accounting.rates import TYPICAL, Rates, at_size, keep_rates, rates_of
from neuroute.core.errors import NeurouteError
from neuroute.plan.build import build_plan
from neuroute.plan.config import parse_config
from neuroute.plan.objects import Dataset, Labels


def test_sizes_between_and_beyond() -> None:
    points = {10: 1.0, 100: 100.0}  # the square
    assert at_size(points, 10) == 1
    assert at_size(points, 20) == pytest.approx(4)
    assert at_size(points, 5) == 1
    assert at_size(points, 1000) == 100
    assert at_size(points, 1000, beyond=True) == pytest.approx(10_000)
    assert at_size({7: 3.0}, 1000, beyond=True) == 3


def test_what_is_measured_is_reckoned_with(tmp_path: Path) -> None:
    config = parse_config({"work_dir": str(tmp_path / "work")})
    assert rates_of(config).devices == TYPICAL.devices
    slower = TYPICAL.devices["cpu"].model_copy(update={"name": "mine", "gflops": {"fp32": {128: 1.0}}})
    for solver in ("lkh", "hgs"):  # the second call keeps what the first has found
        path = keep_rates(config, Rates(measured="2026-01-02", devices={"cpu": slower}, solvers={solver: {100: 7.0}}))
    held = json.loads(path.read_text())
    assert set(held["solvers"]) == {"lkh", "hgs"}
    found = rates_of(parse_config({"work_dir": str(tmp_path / "work"), "loggers": ["csv"]}))
    assert found.measured == "2026-01-02"
    assert found.devices["cpu"].name == "mine"
    assert found.devices["cuda"] == TYPICAL.devices["cuda"]
    assert found.solvers["concorde"] == TYPICAL.solvers["concorde"]
    plans = [
        build_plan(parse_config({"papers": ["pens"], "device": "cpu", "work_dir": str(tmp_path / work)}))
        for work in ("none", "work")
    ]
    typical, mine = (Estimates(plan) for plan in plans)
    assert all(mine.train(run).seconds > typical.train(run).seconds for run in plans[0].runs)


def test_what_config_yaml_says_goes_first(tmp_path: Path) -> None:
    given = {"work_dir": str(tmp_path), "machine": {"cpu_gflops_per_thread": 3, "gpu_tflops": 2}}
    devices = rates_of(parse_config(given)).devices
    assert {at_size(devices["cpu"].gflops[p], 16) for p in ("fp32", "bf16")} == {3}
    assert at_size(devices["cuda"].gflops["tf32"], 512) == 2000


def test_a_damaged_file_of_rates_is_one_line(tmp_path: Path) -> None:
    config = parse_config({"work_dir": str(tmp_path)})
    (tmp_path / "rates.json").write_text("{")
    with pytest.raises(NeurouteError, match="rates.json: not valid JSON .* measure again: neuroute doctor --measure"):
        rates_of(config)


def test_a_core_and_a_solver_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "WIDTHS", {"cpu": (16,)})
    monkeypatch.setattr(measure, "SIZES", (8, 12))
    found = measure.measure_device("cpu")
    assert found.gflops["fp32"][16] > 0.01
    assert 0 < found.layer_us[16] < found.update_us[16]
    points = measure.measure_solver("hgs-short")
    assert points == {} or set(points) == {8, 12}
    assert measure.measure_solver("nearest").keys() == {8, 12}


def test_references_have_a_budget_and_unknown_solvers_no_estimate() -> None:
    estimates = Estimates(build_plan(parse_config({"papers": ["pens"]})))

    def seconds(solver: str, n: int) -> float:
        return estimates.label_seconds(Labels(dataset=Dataset(n=n, count=2), solver=solver))

    assert seconds("lkh", 100_000) == pytest.approx(2 * 6 * 3600, rel=1e-3)
    assert seconds("published", 100_000) == 0
    assert seconds("insertion", 100) != seconds("insertion", 100)  # not a number
