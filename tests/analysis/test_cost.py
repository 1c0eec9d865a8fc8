"""Counts of every network against the networks themselves and against PyTorch's own counter."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from neuroute.accounting import cost, flops, flops_baselines
from neuroute.core.errors import NeurouteError
from neuroute.networks.weights import build, parameters
from neuroute.plan.objects import Dataset, Labels, Network, Run, SelfImprovement, Supervised

OURS, LEHD, BQ = (f"neuroute.networks.{kind}" for kind in ("decoder_only:DecoderOnly", "lehd:Lehd", "bq:Bq"))
SHAPE = {"depth": 3, "width": 24, "heads": 3, "train_nodes": 20}
VALIDATION = Labels(dataset=Dataset(split="val", n=20, count=5), solver="lkh")


def run(kind: str, arguments: dict[str, Any], training: Supervised | SelfImprovement, n: int = 20) -> Run:
    network = Network(kind=kind, arguments=arguments)
    return Run(paper="p", name="r", network=network, training=training, n=n, data=(), validation=VALIDATION)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (OURS, SHAPE),
        (OURS, SHAPE | {"gate": False, "rezero": False}),
        (LEHD, {}),
        (LEHD, {"depth": 24, "width": 64, "heads": 8, "feed_forward": 256}),
        (LEHD, SHAPE | {"feed_forward": 40}),
        (BQ, {}),
        (BQ, SHAPE | {"feed_forward": 40}),
    ],
)
def test_parameters_are_those_of_the_network(kind: str, arguments: dict[str, Any]) -> None:
    network = Network(kind=kind, arguments=arguments)
    with torch.device("meta"):
        assert cost.parameters_of(network) == parameters(build(network))


def test_published_sizes() -> None:
    assert flops_baselines.lehd_parameters(6, 128, 512) == 1_431_681
    assert flops_baselines.lehd_parameters(24, 64, 256) == 1_251_137  # scaling, Table 20: 1.25M
    assert flops_baselines.bq_parameters(9, 192, 512) == 3_107_539


@contextmanager
def counted() -> Iterator[FlopCounterMode]:
    """PyTorch's count of the matrix products."""
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        yield counter


@pytest.mark.parametrize("tokens", [3, 9, 21])
def test_decisions_against_pytorchs_counter(tokens: int) -> None:
    baseline = SHAPE | {"feed_forward": 40}
    shape = {k: v for k, v in baseline.items() if k != "train_nodes"}
    ours = {k: v for k, v in shape.items() if k != "feed_forward"}
    for kind, arguments, expected, row in (
        # The published formula runs the head on all tokens, the network on the candidates.
        (OURS, SHAPE, flops.decision_flops(**ours, tokens=tokens, matmul_only=True) - 2 * 2 * 24, 2),
        (LEHD, baseline, flops_baselines.lehd_decision_flops(**shape, tokens=tokens, matmul_only=True), 24),
        (BQ, baseline, flops_baselines.bq_decision_flops(**shape, tokens=tokens, matmul_only=True), 2),
    ):
        net: Any = build(Network(kind=kind, arguments=arguments))
        with counted() as counter:
            net.decide(torch.rand(1, tokens, row))
        assert counter.get_total_flops() == expected, kind


def test_lehds_encoder_against_pytorchs_counter() -> None:
    net: Any = build(Network(kind=LEHD, arguments=SHAPE | {"feed_forward": 40}))
    with counted() as counter:
        net.encode(torch.rand(1, 17, 2))
    assert counter.get_total_flops() == flops_baselines.lehd_encoder_flops(24, 3, 40, 17, matmul_only=True)


def test_a_solution_encodes_once() -> None:
    network = Network(kind=LEHD, arguments={})
    c = cost.counts(network)
    for beam in (1, 16):
        found = cost.per_solution(network, 100, beam)
        assert found["gflops_paper"] == pytest.approx((c.encoder(100) + beam * 99 * c.decision(101)) / 1e9, rel=1e-12)
        live = sum(alive * c.decision(k) for k, alive in flops.live_beams(100, beam))
        assert found["gflops_shrinking"] == pytest.approx((c.encoder(100) + live) / 1e9, rel=1e-12)


def test_ours_is_counted_as_the_paper_counts() -> None:  # scaling, Table 17
    network = Network(kind=OURS, arguments={"depth": 12, "width": 512, "heads": 16})
    assert cost.per_solution(network, 100)["gflops_paper"] == pytest.approx(843.20, abs=0.005)
    assert cost.per_solution(network, 100, 4)["gflops_shrinking"] == flops.beam_flops(12, 512, 16, 100, 4) / 1e9


def test_training_encodes_the_sub_path_at_every_decision() -> None:
    arguments = SHAPE | {"feed_forward": 40}
    e, d = (lambda c: (c.encoder, c.decision))(cost.counts(Network(kind=LEHD, arguments=arguments)))
    each = Supervised(samples=1)
    first = Supervised(samples=1, step="decision")
    # n = 5: L is 4 (tokens 4) or 5 (tokens 5, 4)
    assert cost.training_per_sample(run(LEHD, arguments, each, 5)) == 3 * (e(4) + d(4) + 2 * e(5) + d(5) + d(4)) / 2
    assert cost.training_per_sample(run(LEHD, arguments, first, 5)) == 3 * (e(4) + d(4) + e(5) + d(5)) / 2


def test_training_on_suffixes() -> None:
    arguments = SHAPE | {"feed_forward": 40}
    d = cost.counts(Network(kind=BQ, arguments=arguments)).decision
    suffixes = Supervised(samples=1, step="decision", sub_paths="suffix")
    assert cost.training_per_sample(run(BQ, arguments, suffixes, 5)) == 3 * (d(3) + d(4) + d(5)) / 3  # L is 3, 4 or 5


def test_self_improvement_pays_for_its_labels() -> None:
    arguments = SHAPE | {"feed_forward": 40}
    imitation = run(BQ, arguments, Supervised(samples=1, step="decision"))
    sampled = SelfImprovement(epochs=1, instances=10, beam=8, rounds=3, passes=2)
    searches = 3 * cost.per_solution(imitation.network, 20, 8)["gflops_shrinking"] * 1e9
    expected = cost.training_per_sample(imitation) + searches / 2
    assert cost.training_per_sample(run(BQ, arguments, sampled)) == pytest.approx(expected, rel=1e-12)


def test_what_nobody_has_counted() -> None:
    with pytest.raises(NeurouteError, match="FLOPs are not known"):
        cost.parameters_of(Network(kind="neuroute.networks.other:Other", arguments={}))
    with pytest.raises(NeurouteError, match="cannot be counted"):
        cost.parameters_of(Network(kind=BQ, arguments={"layers": 3}))
