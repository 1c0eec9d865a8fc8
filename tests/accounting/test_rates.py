"""Rates of this machine: typical, rehearsed, or as config.yaml says."""

import json
from pathlib import Path

import pytest

from neuroute.accounting.estimates import Estimates
from neuroute.accounting.rates import TYPICAL, at_size, rates_of
from neuroute.accounting.rehearsed import Paces, TrainingPace, keep_rehearsal, rehearsal_of
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


def test_what_was_rehearsed_stays_beside_what_comes_later(tmp_path: Path) -> None:
    config = parse_config({"work_dir": str(tmp_path / "work"), "device": "cpu"})
    assert rates_of(config) == TYPICAL
    training = TrainingPace(of="a/b", batches_s=(1.0,), validation_s=1.0, validated=1, rest_s=0.0, memory_mb=1.0)
    for name, solver in (("one", "lkh"), ("two", "hgs")):
        paces = Paces(measured="2026-01-02", device="mine", trainings={name: training})
        path = keep_rehearsal(config, "cpu", paces, {solver: {100: 7.0}}, 3.0)
    assert set(json.loads(path.read_text())["solvers"]) == {"lkh", "hgs"}
    assert rehearsal_of(config).devices["cpu"].trainings.keys() == {"one", "two"}
    rates = rates_of(config)
    assert rates.start_s == 3
    assert rates.solvers["concorde"] == TYPICAL.solvers["concorde"]
    slower = 7 / TYPICAL.solvers["lkh"][100]
    assert at_size(rates.solvers["lkh"], 500) == pytest.approx(slower * TYPICAL.solvers["lkh"][500])
    assert at_size(rates.solvers["lkh"], 20) == pytest.approx(slower * TYPICAL.solvers["lkh"][20])
    paces = Paces(measured="2026-01-03", device="another", trainings={"three": training})
    keep_rehearsal(config, "cpu", paces, {}, 3.0)
    assert rehearsal_of(config).devices["cpu"].trainings.keys() == {"three"}


def test_what_config_yaml_says_goes_first(tmp_path: Path) -> None:
    given = {"work_dir": str(tmp_path), "machine": {"cpu_gflops_per_thread": 3, "gpu_tflops": 2}}
    devices = rates_of(parse_config(given)).devices
    assert {at_size(devices["cpu"].gflops[p], 16) for p in ("fp32", "bf16")} == {3}
    assert at_size(devices["cuda"].gflops["tf32"], 512) == 2000


def test_a_damaged_file_is_one_line(tmp_path: Path) -> None:
    config = parse_config({"work_dir": str(tmp_path)})
    (tmp_path / "rehearsal.json").write_text("{")
    with pytest.raises(NeurouteError, match="rehearsal.json: not valid JSON .* rehearse again: neuroute rehearse"):
        rates_of(config)


def test_references_have_a_budget_and_unknown_solvers_no_estimate() -> None:
    estimates = Estimates(build_plan(parse_config({"papers": ["pens"]})))

    def seconds(solver: str, n: int) -> float:
        return estimates.label_seconds(Labels(dataset=Dataset(n=n, count=2), solver=solver))

    assert seconds("lkh", 100_000) == pytest.approx(2 * 6 * 3600, rel=1e-3)
    assert seconds("published", 100_000) == 0
    assert seconds("insertion", 100) != seconds("insertion", 100)  # not a number
