"""Counts of networks: against formulas by hand, against runs of any size, and kept for later processes."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.evaluation import counting, flops
from neuroute.evaluation.flops import counts
from neuroute.networks.base import PathNetwork
from neuroute.networks.weights import build, parameters
from neuroute.pipeline.papers.scaling.tables import DecoderOnly
from neuroute.specs.objects import Network

SHAPE: dict[str, Any] = {"depth": 3, "width": 24, "feed_forward": 40}
HEADS = SHAPE | {"heads": 3}
OURS = {"depth": 3, "width": 24, "heads": 3}
CROSS = HEADS | {"attention": "cross", "representatives": 4}


def network(name: str, arguments: dict[str, Any] | None = None) -> Network:
    return Network(kind=f"neuroute.networks.{name}", arguments=arguments or {})


# -- by hand ----------------------------------------------------------------------------------------------------------


def attention(width: int, heads: int, queries: int, keys: int) -> int:
    return 4 * width * queries * keys + heads * queries * keys


def ffn(rows: int, width: int, hidden: int) -> int:
    return 4 * rows * width * hidden + rows * hidden


def layers(tokens: int) -> int:
    depth, w, h, f = (HEADS[name] for name in ("depth", "width", "heads", "feed_forward"))
    return depth * (8 * tokens * w * w + attention(w, h, tokens, tokens) + ffn(tokens, w, f))


@pytest.mark.parametrize("k", [4, 21, 140, 10_001])
def test_counts_are_those_of_the_equations(k: int) -> None:
    w, h, n = HEADS["width"], HEADS["heads"], k - 1
    lehd, bq, pomo = (counts(network(name, HEADS)) for name in ("lehd:Lehd", "bq:Bq", "pomo:Pomo"))
    assert lehd.decision(k) == layers(k) + 4 * w * w + 2 * w * (k - 2) + 2 * w * 2
    assert lehd.encoder(k) == 4 * w * k + layers(k) // HEADS["depth"]
    assert (bq.decision(k), bq.encoder(k)) == (layers(k) + 6 * w * k, 0)
    assert pomo.encoder(k) == layers(k) + 4 * w * k + 4 * 2 * k * w * w + 2 * k * w * w + 2 * k * w
    assert pomo.decision(k) == attention(w, h, 1, n) + 2 * w * n + n
    # scaling counts the head on the two ends of the path, too
    assert counts(network("decoder_only:DecoderOnly", OURS)).decision(k) == DecoderOnly(**OURS).decision(k) - 4 * w


@pytest.mark.parametrize("k", [4, 277, 278, 1001, 100_001])
def test_cross_attention_is_one_of_two_sums_of_products(k: int) -> None:
    """From 293 tokens of the stream on SIT folds: that takes a sixteenth less."""
    w, h, m, f, depth = 128, 8, 16, 512, 6
    stream = k - 2 + m
    plain, folded = 4 * w * w * (m + stream) + 4 * w * m * stream, 8 * w * w * m + 4 * h * m * w * stream
    products = folded if 16 * folded < 15 * plain else plain
    module = 2 * (products + h * m * stream) + ffn(m + stream, w, f)
    assert counts(network("sit:Sit")).decision(k) == depth * module + 4 * k * w + 2 * m * w * w + 2 * (k - 2) * w
    assert (products == folded) == (stream >= 293)


# -- at any size ------------------------------------------------------------------------------------------------------

KINDS: list[tuple[str, dict[str, Any]]] = [
    ("bq:BqCvrp", CROSS | {"nearest": 5}),
    ("sit:Sit", CROSS),
    ("sit:SitCvrp", HEADS | {"attention": "self"}),
    ("pens:Pens", HEADS | {"positions": "both"}),
    ("pomo:PomoCvrp", HEADS),
    ("icam:IcamCvrp", SHAPE),
    ("mvmoe:MvMoe", HEADS),
]


@pytest.mark.parametrize(("name", "arguments"), KINDS, ids=str)
def test_a_size_takes_what_a_run_of_that_size_takes(name: str, arguments: dict[str, Any]) -> None:
    count, net = counts(network(name, arguments)), build(network(name, arguments)).eval()
    assert count.parameters == parameters(net)
    for size in (5, 7, 8, 20, 21, 150, 301):
        assert (count.encoder(size), count.decision(size)) == counting.count_at(net, size)
    for first, last in ((3, 3), (1, 5), (10, 200), (95, 4000), (7, 6)):
        assert count.decision.total(first, last) == sum(map(count.decision, range(first, last + 1)))


def test_amounts_that_go_up_in_steps_lie_between_them() -> None:
    described = network("mvmoe:MvMoe", HEADS | {"method": "expert-choice"})
    count, net = counts(described), build(described).eval()
    for size in (20, 101, 150):
        assert (count.encoder(size), count.decision(size)) == pytest.approx(counting.count_at(net, size), rel=0.02)


def test_a_light_decoder_is_counted_with_its_experts() -> None:
    step, dense = (counts(network("mvmoe:MvMoe", HEADS | more)) for more in ({"hierarchy": "step"}, {"experts": 0}))
    w = HEADS["width"]
    assert step.decision(50) - dense.decision(50) > 2 * 2 * w * w - 2 * w  # two experts of W^2, not one dense layer


def test_what_is_not_routed_is_not_computed() -> None:
    """Twice as many experts cost what their gates do: their products, and two softmaxes."""
    four, eight = (counts(network("mvmoe:MvMoe", {"experts": m})) for m in (4, 8))
    assert 0 <= eight.encoder(51) - four.encoder(51) - 6 * 51 * 2 * 128 * 4 < 6 * 51 * 16
    assert 0 <= eight.decision(51) - four.decision(51) - 2 * 128 * 4 < 16


# -- once -------------------------------------------------------------------------------------------------------------


def test_a_network_is_counted_once_for_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def next_process() -> None:
        flops._counts.cache_clear()
        flops._load.cache_clear()

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    next_process()
    described = network("bq:Bq", HEADS)
    first = counts(described)
    with monkeypatch.context() as without:
        without.setattr(flops, "COUNTING", "neuroute.evaluation.counting:nothing")
        without.setattr(flops, "code_digest", lambda *entries: "other")
        next_process()
        with pytest.raises(NeurouteError, match="no attribute"):  # of other code: counted anew
            counts(described)
    monkeypatch.setattr(counting, "measure", None)
    next_process()
    assert counts(described) == first
    (file,) = tmp_path.rglob("counts.json")
    for damaged in ("{", "[1]", json.dumps({key: [1] for key in json.loads(file.read_text())})):
        file.write_text(damaged)
        next_process()
        with pytest.raises(TypeError, match="not callable"):
            counts(described)


class Values(PathNetwork):
    """Reads values, and only of enough nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = 4, 1, 10
        self.layer = torch.nn.Linear(2, 1)

    def encode(self, coords: Tensor) -> Tensor:
        return coords

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        if float(rows.max()) > 2 or rows.shape[1] < 8:
            raise ValueError("no such instances")
        return self.layer(rows[:, 1:-1]).squeeze(-1)


class Refuses(Values):
    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        raise ValueError("never")


def test_a_network_that_reads_values_is_counted_on_a_cpu() -> None:
    count = counting.measure(Network(kind=f"{__name__}:Values", arguments={}))
    assert [count.decision(k) for k in (8, 9, 1000)] == [24, 28, 3992]
    assert count.decision(3) == 24


def test_a_network_that_cannot_be_run_has_no_number() -> None:
    count = counting.measure(Network(kind=f"{__name__}:Refuses", arguments={}))
    assert count.parameters == 3
    assert math.isnan(count.decision(50))
    assert math.isnan(count.encoder(50))
    assert math.isnan(count.decision.total(3, 50))


def test_arguments_that_a_network_does_not_take() -> None:
    with pytest.raises(NeurouteError, match="cannot be built"):
        counts(network("bq:Bq", {"layers": 3}))
    with pytest.raises(NeurouteError, match="does not exist"):
        counts(network("other:Other"))
