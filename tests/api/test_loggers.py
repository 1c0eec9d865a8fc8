"""Loggers of trainings: stand-ins for services, the real writer of TensorBoard where it is installed."""

import csv
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from refusals import one_line

import neuroute
import own_parts


def train(folder: Path, logger: str, **more: Any) -> Path:
    settings: dict[str, Any] = {"n": 8, "batches": 4, "batch_size": 4, "validations": 2, "validate_on": 4, **more}
    settings |= {"work": folder, "device": "cpu", "solver": "nearest", "workers": 1, "loggers": [logger]}
    path = neuroute.train(own_parts.Starts, **settings).path
    assert path is not None
    return path.parent


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **parts: Any) -> None:
    """A module of this name, which is found as an installed one is."""
    module = ModuleType(name)
    module.__spec__ = SimpleNamespace(name=name)  # type: ignore[assignment]
    vars(module).update(parts)
    monkeypatch.setitem(sys.modules, name, module)


def of_train(calls: list[tuple[Mapping[str, float], int]], name: str) -> list[tuple[int, float]]:
    return [(step, values[name]) for values, step in calls if name in values]


def expected(out: Path, kind: str, name: str) -> list[tuple[int, float]]:
    return [(line["batch"], line[name]) for line in lines(out) if line["kind"] == kind]


def test_csv_has_a_row_for_each_line(tmp_path: Path) -> None:
    out = train(tmp_path, "csv")
    with (out / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["kind"] for row in rows] == [line["kind"] for line in lines(out)]
    losses = [(int(row["batch"]), float(row["loss"])) for row in rows if row["kind"] == "train"]
    assert losses == expected(out, "train", "loss")


def test_wandb_gets_the_run_and_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Mapping[str, float], int]] = []
    begun: list[dict[str, Any]] = []
    ends: list[bool] = []

    def init(**settings: Any) -> Any:
        begun.append(settings)
        return SimpleNamespace(log=lambda values, step: calls.append((values, step)), finish=lambda: ends.append(True))

    stand_in(monkeypatch, "wandb", init=init)
    out = train(tmp_path, "wandb")
    assert begun[0]["name"] == begun[0]["config"]["paper"] + "/starts_tsp8"
    assert of_train(calls, "train/loss") == expected(out, "train", "loss")
    assert of_train(calls, "validation/gap_pct") == expected(out, "validation", "gap_pct")
    assert ends == [True]
    train(tmp_path, "wandb")
    train(tmp_path, "wandb", seed=1)
    assert [begun[0]["id"] == each["id"] for each in begun] == [True, True, False]  # the same training goes on


def test_mlflow_goes_on_with_its_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Mapping[str, float], int]] = []
    starts: list[dict[str, str]] = []

    def start_run(**which: str) -> Any:
        starts.append(which)
        return SimpleNamespace(info=SimpleNamespace(run_id="7"))

    def log_metrics(values: Mapping[str, float], step: int) -> None:
        calls.append((values, step))

    nothing = {name: lambda *_: None for name in ("set_experiment", "log_dict", "end_run")}
    stand_in(monkeypatch, "mlflow", start_run=start_run, log_metrics=log_metrics, **nothing)
    out = train(tmp_path, "mlflow")
    train(tmp_path, "mlflow")
    assert starts == [{"run_name": "python/starts_tsp8"}, {"run_id": "7"}]
    assert of_train(calls, "train/loss") == expected(out, "train", "loss")


def test_tensorboard_has_the_curves(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    out = train(tmp_path, "tensorboard")
    (folder,) = tmp_path.glob("python/state/python/*/*/tensorboard")
    events = EventAccumulator(str(folder)).Reload().Scalars("train/loss")
    assert {event.step: event.value for event in events} == pytest.approx(dict(expected(out, "train", "loss")))


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_one_that_cannot_be_reached_is_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError("no network\nat all")

    stand_in(monkeypatch, name, init=refuse, set_experiment=refuse)
    with one_line(f"^{name}: no network at all; "):
        train(tmp_path, name)
