"""`precision: auto` takes bf16 where it is faster, by a stand-in clock, and computes as if that were named."""

import json
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from untrained import decoded, evaluated, tiny_run

from neuroute.core import device
from neuroute.datasets.labels import make_labels
from neuroute.decoding import memory
from neuroute.decoding.memory import FASTER, faster_precision, in_precision_of_device
from neuroute.networks.weights import load_checkpoint
from neuroute.pipeline.plan.config import parse_config
from neuroute.specs.objects import ConstructionEvaluation, Dataset, Decoding, Labels
from neuroute.training import supervised
from test_resuming import logs, stop_training
from tiny import make_run, run_training, same_weights

pytestmark = pytest.mark.usefixtures("one_thread")
SetCosts = Callable[[float, float], None]


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> SetCosts:
    """Sets what a pass in fp32, and one in bf16, adds to the clock."""
    now, cost = [0.0], {"fp32": 1.0, "bf16": 1.0}
    autocast = memory.autocast

    def charged(place: torch.device, precision: str) -> AbstractContextManager[Any]:
        now[0] += cost[precision]
        return autocast(place, precision)

    for module in (memory, supervised):
        monkeypatch.setattr(module, "autocast", charged)
    monkeypatch.setattr(memory, "time", SimpleNamespace(process_time=lambda: now[0]))
    return lambda fp32, bf16: cost.update(fp32=fp32, bf16=bf16)


@pytest.mark.parametrize(("bf16", "precision"), [(0.5, "bf16"), (1 / FASTER + 0.01, "fp32"), (2.0, "fp32")])
def test_the_faster_one_is_taken_by_two_batches_after_the_first(
    bf16: float, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What loads in the first batch of each is not counted, and fp32 stays where little is gained."""
    now, done = [0.0], []

    def work(which: str, number: int) -> None:
        done.append((which, number))
        now[0] += 100.0 * (which == "bf16") if number == 0 else {"fp32": 1.0, "bf16": bf16}[which]

    monkeypatch.setattr(memory, "time", SimpleNamespace(process_time=lambda: now[0]))
    chosen, ratio = faster_precision(work, torch.device("cpu"))
    assert chosen == precision
    assert ratio == pytest.approx(1 / bf16)
    assert done == [(which, number) for number in range(3) for which in ("fp32", "bf16")]


def test_a_cpu_without_products_in_bf16_takes_fp32_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is measured for `auto` then."""
    cpu = parse_config({"device": "cpu"})
    for features, has_them in (("avx2 avx512_bf16", True), ("avx2 avx512f", False)):
        monkeypatch.setattr(device, "_cpuinfo", lambda *_, features=features: features)
        for precision in ("fp32", "bf16", "auto"):
            run = make_run(precision=precision)
            assert in_precision_of_device(run, cpu) == (run if has_them else make_run(precision="fp32"))
            lacking = not has_them and precision != "fp32"
            assert ("no products in bf16" in capsys.readouterr().out) == lacking


@pytest.mark.parametrize("faster", ["fp32", "bf16"])
def test_a_training_is_that_of_the_faster_precision_also_when_resumed(
    faster: str, costs: SetCosts, tmp_path: Path, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Byte for byte; after a stop it keeps to its choice, though the clock now says otherwise."""
    costs(1.0, 0.5 if faster == "bf16" else 1.5)
    named = run_training(make_run(precision=faster), tmp_path / "named", store)
    with caplog.at_level(logging.INFO):
        stop_training(make_run(precision="auto"), tmp_path / "auto", store, 2)
    assert f"precision auto: {faster}" in caplog.text
    costs(1.0, 1.5 if faster == "bf16" else 0.5)
    out = run_training(make_run(precision="auto"), tmp_path / "auto", store)
    assert logs(named) == logs(out)
    weights, same = (load_checkpoint(folder / "model.safetensors")[0].state_dict() for folder in (named, out))
    assert same_weights(weights, same)
    about = json.loads((out / "run.json").read_text())
    assert (about["spec"]["training"]["precision"], about["precision"]) == ("auto", faster)


LABELS = Labels(dataset=Dataset(n=9, count=12), solver="nearest")


def test_decodings_choose_for_themselves_and_records_name_what_was_taken(costs: SetCosts, tmp_path: Path) -> None:
    """Of one batch, and of instances one at a time; values are those of the precision that is named."""
    make_labels(LABELS, tmp_path / "labels", [], workers=1)
    plain = tiny_run("scaling", "decoder_only:DecoderOnly", LABELS, depth=1, width=8, heads=2, train_nodes=9)
    found = {}
    for precision, bf16 in (("auto", 0.5), ("bf16", 0.5), ("auto", 1.5), ("fp32", 1.5)):
        costs(1.0, bf16)
        run = plain.model_copy(update={"training": plain.training.model_copy(update={"precision": precision})})
        evaluation = decoded(run, (LABELS, Decoding()), (LABELS, Decoding(method="rrc", iterations=3)))
        alone = ConstructionEvaluation(run=run.id, name="alone", datasets=(LABELS.dataset,), decoding=Decoding())
        evaluation = evaluation.model_copy(update={"measurements": (*evaluation.measurements, alone)})
        folder = tmp_path / f"{precision}-{bf16}"
        rows, arrays = evaluated(folder, evaluation, run, label_dirs=[tmp_path / "labels"])
        assert set(rows.precision) == {"bf16" if bf16 < 1 else "fp32"}
        found[precision, bf16] = arrays
    for taken in (0.5, 1.5):
        one, other = (found[precision, taken] for precision in ("auto", "bf16" if taken < 1 else "fp32"))
        for key in one:
            if "seconds" not in key:
                np.testing.assert_array_equal(one[key], other[key])
