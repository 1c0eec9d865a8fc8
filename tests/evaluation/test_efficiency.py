"""Time and memory by size: what is written, sums over decisions, what does not fit, what would take too long."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor
from untrained import evaluated, ready, run_of

from neuroute.datasets.streams import cvrp_dataset, dataset_coordinates
from neuroute.decoding.decode import decode
from neuroute.evaluation import efficiency
from neuroute.evaluation.efficiency import (
    LiveBytes,
    Starts,
    measure_memory,
    out_of_memory,
    pose_single_step,
    predict_cost,
    sample_tokens,
    sum_decisions,
)
from neuroute.evaluation.flops import counts
from neuroute.evaluation.loaded import COLUMNS
from neuroute.specs.objects import Dataset, Decoding, EfficiencyEvaluation, Labels, Network

SHAPE = {"depth": 2, "width": 16, "heads": 4, "feed_forward": 32}
NETWORKS = {
    name: Network(kind=f"neuroute.networks.{kind}", arguments=SHAPE | more)
    for name, kind, more in (
        ("SIT", "sit:Sit", {"representatives": 3}),
        ("LEHD", "lehd:Lehd", {}),
        ("POMO", "pomo:Pomo", {}),
        ("BQ", "bq:BqCvrp", {}),
        ("BQ cross", "bq:BqCvrp", {"attention": "cross", "representatives": 3}),
        ("LEHD cvrp", "lehd:LehdCvrp", {}),
    )
}
TSP, LARGER = Dataset(n=30, count=3), Dataset(n=80, count=3)
CVRP = Dataset(problem="cvrp", n=25, count=3)
LABELS = Labels(dataset=TSP, solver="lkh")
RUN = run_of(NETWORKS["SIT"], LABELS, "sit/x")
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficiency, "REPEATS", 2)


def measured(
    out: Path,
    networks: dict[str, Network] = NETWORKS,
    datasets: tuple[Dataset, ...] = (LARGER, TSP, CVRP),
    memory_gb: float = 1.0,
) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    evaluation = EfficiencyEvaluation(run=RUN.id, networks=networks, datasets=datasets, decisions=4)
    return evaluated(out, evaluation, RUN, memory_gb=memory_gb)


def test_records_and_arrays(tmp_path: Path) -> None:
    records, arrays = measured(tmp_path)
    assert list(records.columns) == list(COLUMNS)
    assert set(records.group) == {"efficiency"}
    cells = {(d, t) for d, t in zip(records.decoding, records.test, strict=True)}
    expected = {
        (f"efficiency-{name}{math}", dataset.id)
        for name, network in NETWORKS.items()
        for dataset in (TSP, LARGER, CVRP)
        for math in ("", "-math")
        if network.kind.endswith("Cvrp") == (dataset.problem == "cvrp")
    }
    assert cells == expected
    assert {f"efficiency-{key.split('|')[0]}" for key in arrays} == {d for d, _ in cells}
    assert dict(zip(records.metric, records.unit, strict=True)) == {"time_s": "s", "peak_memory_mb": "MiB"}
    for (decoding, test), rows in records.groupby(["decoding", "test"]):
        found = arrays[f"{str(decoding).removeprefix('efficiency-')}|{test}"]
        assert found.shape == (4, 3)
        most = {TSP.id: 31, LARGER.id: 81, CVRP.id: 27}[str(test)]
        assert found[0, 0] == (3 if test == CVRP.id else 4)
        assert found[-1, 0] == most
        values = rows.set_index("metric").value
        assert values.time_s >= sum_decisions(found[:, 0], found[:, 1]) > 0
        assert values.peak_memory_mb >= found[:, 2].max() > 0


def test_a_sum_over_all_decisions() -> None:
    tokens, seconds = np.array([4.0, 6.0, 10.0]), np.array([1.0, 2.0, 6.0])
    assert sum_decisions(tokens, seconds) == pytest.approx(1 + 1.5 + 2 + 3 + 4 + 5 + 6)
    k = np.arange(4, 1002.0)
    sampled = np.linspace(4, 1001, 5).round()
    assert sum_decisions(sampled, sampled**2) == pytest.approx((k**2).sum(), rel=0.035)  # as the module says
    assert sum_decisions(sampled, 3 * sampled + 1) == pytest.approx((3 * k + 1).sum(), rel=1e-12)


@pytest.mark.parametrize(("name", "dataset"), [("LEHD", TSP), ("BQ", CVRP)])
def test_points_are_decisions_that_greedy_construction_makes(name: str, dataset: Dataset) -> None:
    net = ready(NETWORKS[name])
    own, seen = net.decide, []

    def decide(rows: torch.Tensor, *more: Any) -> Any:
        seen.append(rows.shape[1])
        return own(rows, *more)

    net.decide = decide
    one = dataset.model_copy(update={"count": 1})
    if dataset is TSP:
        decode("tsp", net, dataset_coordinates(one), Decoding())
    else:
        decode("cvrp", net, cvrp_dataset(one), Decoding())
    assert seen[::-1] == sample_tokens(pose_single_step(net, dataset), 1000) == list(range(min(seen), max(seen) + 1))


def test_attention_that_holds_its_scores_takes_their_memory(tmp_path: Path) -> None:
    records, _ = measured(tmp_path, datasets=(Dataset(n=400, count=1), Dataset(problem="cvrp", n=400, count=1)))
    peak = records[records.metric == "peak_memory_mb"].set_index("decoding").value
    scores = 4 * 4 * 400**2 / 2**20
    for name in ("LEHD", "POMO", "BQ", "LEHD cvrp"):
        assert peak[f"efficiency-{name}-math"] > peak[f"efficiency-{name}"] + scores, name
    for name in ("SIT", "BQ cross"):
        assert peak[f"efficiency-{name}-math"] < peak[f"efficiency-{name}"] + scores / 10, name


def test_memory_counts_what_encoding_keeps() -> None:
    """LEHD keeps width floats of every node, SIT two; a decision stands on top of them."""
    for name, width in (("LEHD", 16), ("SIT", 2)):
        construction = pose_single_step(ready(NETWORKS[name]), LARGER)
        kept, _, held = measure_memory(construction.encode, CPU)
        assert held == 4 * width * 81
        found = efficiency.measure_construction(construction, [4, 81], CPU)
        assert found is not None
        _, adds, _ = measure_memory(lambda c=construction, k=kept: c.decide(k), CPU)
        assert found.points[-1, 2] * 2**20 == pytest.approx(adds)
        assert found.peak_mb * 2**20 == pytest.approx(held + adds)


def test_what_does_not_fit(tmp_path: Path) -> None:
    records, arrays = measured(tmp_path, memory_gb=1e-5)
    assert set(records.metric) == {"out_of_memory"}
    assert set(records.value) == {1.0}
    assert arrays == {}


@pytest.mark.slow
def test_an_outlook_is_right() -> None:
    for name, dataset in (("LEHD", TSP), ("SIT", TSP), ("POMO", TSP), ("BQ", CVRP)):
        larger = dataset.model_copy(update={"n": 1600})
        net, count = ready(NETWORKS[name]), counts(NETWORKS[name])
        with efficiency.hold_scores():
            outlook = predict_cost(net, larger, count, CPU)
            construction = pose_single_step(net, larger)
            kept, encoding, held = measure_memory(construction.encode, CPU)
            _, adds, _ = measure_memory(lambda c=construction, k=kept: c.decide(c.state(k, c.most)), CPU)
        real = max(encoding, held + adds)
        assert 0.95 * real < outlook.peak(larger.nodes) < (2 if name == "SIT" else 1.1) * real, name
        assert outlook.seconds(construction, count, [4, 1601]) > 0


def test_what_would_take_too_long_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(efficiency, "LIMIT", 1e-9)
    networks = {"SIT": NETWORKS["SIT"]}
    with caplog.at_level(logging.WARNING):
        records, arrays = measured(tmp_path, networks, (Dataset(n=1100, count=1),))
    assert records.empty
    assert arrays == {}
    assert "left out, would take about" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):  # a small size is not foreseen, but given up
        records, _ = measured(tmp_path, networks, (TSP,))
    assert records.empty
    assert "given up" in caplog.text


# -- networks of many starts ------------------------------------------------------------------------------------------

MANY_STARTS = {
    kind: Dataset(problem=problem, n=n, count=2)
    for problem, n, kinds in (("tsp", 30, ("pomo:Pomo", "icam:Icam")), ("cvrp", 29, ("pomo:PomoCvrp", "icam:IcamCvrp")))
    for kind in kinds
}


def many_starts(kind: str) -> Network:
    return Network(kind=f"neuroute.networks.{kind}", arguments={"depth": 2, "width": 16, "feed_forward": 32})


@pytest.mark.parametrize("kind", MANY_STARTS)
def test_all_starts_count_and_as_many_are_closed_as_tokens_are_gone(kind: str) -> None:
    net, dataset = ready(many_starts(kind)), MANY_STARTS[kind]
    whole, part = pose_single_step(net, dataset), pose_single_step(net, dataset, tours=6)
    assert isinstance(whole, Starts)
    assert whole.most == 31
    starts = dataset.n
    assert (whole.share, part.share) == (1.0, 6 / starts)
    with torch.no_grad():
        kept = whole.encode()
        for tokens in (whole.fewest, 12, whole.most):
            _, _, current, closed = whole.state(kept, tokens)
            assert current.tolist() == [list(range(30 - starts, 30))]
            open_ = (closed == 0).sum(-1)
            assert (open_ == tokens - 2 + (dataset.problem == "cvrp")).all()
            chosen = whole.decide(whole.state(kept, tokens))
            assert chosen.shape == (1, starts)
            assert torch.equal(chosen[:, :6], part.decide(part.state(kept, tokens)))
    c = counts(many_starts(kind))
    assert whole.flops(c, 7) == starts * c.decision(31)
    assert whole.nodes == 30


# -- bytes at the peak: by hand, and against what torch's own profiler sees --------------------------------------------

MB = 4 * 1000 * 250  # bytes of one tensor below


def tensor() -> Tensor:
    return torch.rand(1000, 250)


def test_peak_and_what_is_kept_by_hand() -> None:
    before = tensor()

    def call() -> Tensor:
        a = before + 1  # one
        b = a * 2  # two
        del a
        view = b[:10].relu_()  # no memory of its own
        c = torch.cat([b, b])  # three
        d = c.sum(dim=0)  # and a row
        return view + d[:1] * 0

    _, peak, kept = measure_memory(call, CPU)
    assert 3 * MB < peak < 3 * MB + 20_000
    assert kept == 4 * 10 * 250


def test_memory_that_is_freed_and_taken_again_counts_once() -> None:
    with torch.no_grad(), LiveBytes() as live:
        for _ in range(20):
            last = tensor() * 2
        assert live.now == MB
        assert MB < live.peak <= 3 * MB
        del last
        assert live.now == 0


def test_what_torch_says_when_memory_runs_out() -> None:
    with pytest.raises(RuntimeError) as found:
        torch.empty(1 << 50)
    assert out_of_memory(found.value)
    assert out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not out_of_memory(RuntimeError("shapes cannot be multiplied"))
