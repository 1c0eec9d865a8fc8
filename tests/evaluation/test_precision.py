"""A training asks for bf16, and this machine's CPU may have no products in it."""

import sys
from pathlib import Path

import pytest

from neuroute.core import device
from neuroute.decoding.precision import in_precision_of_device
from neuroute.plan.config import parse_config

sys.path += [str(Path(__file__).parents[1] / "training")]

import tiny

CPU = parse_config({"device": "cpu"})


@pytest.mark.parametrize("named", ["fp32", "bf16"])
def test_a_precision_that_the_cpu_has_is_taken(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "cpu_features", lambda: {"avx2", "avx512_bf16"})
    run = tiny.make_run(precision=named)
    assert in_precision_of_device(run, CPU) is run


def test_a_cpu_without_bf16_computes_in_fp32_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device, "cpu_features", lambda: {"avx2", "avx512f"})
    run = in_precision_of_device(tiny.make_run(precision="bf16"), CPU)
    assert run.training.precision == "fp32"
    assert "no products in bf16" in capsys.readouterr().out
