"""`precision: auto`: what is faster is timed once, kept, and chosen alike ever after."""

import json
import sys
from pathlib import Path

import pytest
import torch

from neuroute.accounting.rates import TYPICAL, Rates, keep_factor, keep_rates, kept_factor, rates_file, rates_of
from neuroute.core import device
from neuroute.core.errors import NeurouteError
from neuroute.evaluation import precision
from neuroute.evaluation.precision import MARGIN, factor_of, settle
from neuroute.networks.glop_partition import GlopPartition
from neuroute.networks.mvmoe import MvMoe
from neuroute.plan.config import Config, parse_config
from neuroute.plan.objects import Dataset, Run

sys.path += [str(Path(__file__).parents[1] / room) for room in ("networks", "training")]

import tiny
from networks import MULTI_START, PATH, make

AUTO = tiny.make_run(precision="auto")


@pytest.fixture(autouse=True)
def cpu_with_bf16(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "cpu_features", lambda: {"avx2", "avx512_bf16"})


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return parse_config({"work_dir": str(tmp_path / "work"), "device": "cpu"})


def chosen(run: Run, config: Config, purpose: precision.Purpose = "training") -> tuple[str, list[str]]:
    said: list[str] = []
    return settle(run, config, purpose, 1, said.append).training.precision, said


@pytest.mark.parametrize(("factor", "wanted"), [(MARGIN, "bf16"), (0.9 * MARGIN, "fp32"), (0.5, "fp32")])
def test_bf16_where_it_is_faster_by_a_margin(
    config: Config, monkeypatch: pytest.MonkeyPatch, factor: float, wanted: str
) -> None:
    monkeypatch.setattr(precision, "factor_of", lambda *_, **__: factor)
    found, said = chosen(AUTO, config)
    assert found == wanted
    assert said == [f"scaling/tiny: training in {wanted} (bf16 is {factor:.2f} times as fast as fp32 here)"]
    kept = json.loads(rates_file(config).read_text())["bf16"]
    assert list(kept.values()) == [factor]
    (key,) = kept
    assert "training" in key
    assert "DecoderOnly" in key
    assert "tsp10" in key


def test_it_is_timed_once_for_each_purpose(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    timed: list[bool] = []

    def factor(*_: object, learns: bool) -> float:
        timed.append(learns)
        return 2.0 if learns else 1.0

    monkeypatch.setattr(precision, "factor_of", factor)
    for _ in range(2):
        assert chosen(AUTO, config)[0] == "bf16"
        assert chosen(AUTO, config, "decoding")[0] == "fp32"
    assert timed == [True, False]
    keep_rates(config, Rates(devices={"cpu": TYPICAL.devices["cpu"]}))  # measured anew
    chosen(AUTO, config)
    assert timed == [True, False, True]


@pytest.mark.parametrize("named", ["fp32", "bf16"])
def test_a_named_precision_is_not_questioned(config: Config, named: str) -> None:
    run = tiny.make_run(precision=named)
    assert settle(run, config, "training", 1, print) is run
    assert not rates_file(config).exists()


@pytest.mark.parametrize("asked", ["bf16", "auto"])
def test_a_cpu_without_bf16_computes_in_fp32_and_says_so(
    config: Config, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setattr(device, "cpu_features", lambda: {"avx2", "avx512f"})
    found, said = chosen(tiny.make_run(precision=asked), config)
    assert (found, len(said)) == ("fp32", 1)
    assert "no products in bf16" in said[0]


def test_what_is_kept_leaves_rates_as_they_are(config: Config) -> None:
    keep_rates(config, Rates(measured="2026-01-02", start_s=3.0, devices={}, solvers={"lkh": {100: 7.0}}))
    keep_factor(config, "a", 1.5)
    keep_factor(config, "b", 0.5)
    found = rates_of(config)
    assert (found.measured, found.start_s, found.solvers["lkh"]) == ("2026-01-02", 3.0, {100: 7.0})
    assert found.bf16 == {"a": 1.5, "b": 0.5}
    rates_file(config).write_text("{")
    with pytest.raises(NeurouteError, match="measure again"), kept_factor(config, "a"):
        pass


def test_a_network_whose_decisions_cannot_be_timed_stays_in_fp32(config: Config) -> None:
    network = AUTO.network.model_copy(
        update={"kind": "neuroute.networks.glop_partition:GlopPartition", "arguments": {"depth": 1, "width": 8}}
    )
    assert issubclass(GlopPartition, torch.nn.Module)
    found, said = chosen(AUTO.model_copy(update={"network": network}), config)
    assert found == "fp32"
    assert "cannot be timed" in said[0]


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("name", [*PATH, *MULTI_START, "mvmoe", "mvmoe episode"])
def test_every_network_is_timed_and_left_as_it_was(name: str, learns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "PAIRS", 1)
    monkeypatch.setattr(precision, "TOKENS", {"cpu": 32})
    if name in ("mvmoe", "mvmoe episode"):
        hierarchy = "episode" if " " in name else "none"
        net = MvMoe(depth=1, width=16, heads=2, feed_forward=24, hierarchy=hierarchy)  # type: ignore[arg-type]
        dataset = Dataset(problem="vrp", variant="CVRP", split="val", n=12, count=1)
    else:
        net = make(name).float()
        dataset = Dataset(problem=net.problem, split="val", n=12, count=1)
    before = {key: value.clone() for key, value in net.state_dict().items() if "running" not in key}
    with torch.random.fork_rng():
        factor = factor_of(net, dataset, torch.device("cpu"), learns=learns)
    assert 0 < factor < 1e3
    assert all(parameter.grad is None for parameter in net.parameters())
    after = net.state_dict()
    assert all(torch.equal(after[key], value) for key, value in before.items() if "num_batches" not in key)
