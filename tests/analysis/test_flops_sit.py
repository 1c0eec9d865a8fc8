"""Parameters and FLOPs of SIT: against the published sizes, against sums of products, against what torch counts."""

from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from neuroute.accounting import cost, flops_sit
from neuroute.networks.weights import build, parameters
from neuroute.plan.objects import Network

SIT, SIT_CVRP = "neuroute.networks.sit:Sit", "neuroute.networks.sit_cvrp:SitCvrp"
SMALL = {"depth": 2, "width": 24, "heads": 3, "feed_forward": 40, "representatives": 4}
WIDE_HEADS = {"depth": 1, "width": 12, "heads": 3, "feed_forward": 20, "representatives": 15}


def test_published_parameters() -> None:
    assert cost.parameters_of(Network(kind=SIT, arguments={})) == 2_633_217
    assert cost.parameters_of(Network(kind=SIT_CVRP, arguments={})) == 2_635_522


@pytest.mark.parametrize("kind", [SIT, SIT_CVRP])
@pytest.mark.parametrize("shape", [{}, SMALL, WIDE_HEADS, SMALL | {"attention": "self"}])
def test_parameters_are_those_of_the_network(kind: str, shape: dict[str, Any]) -> None:
    network = Network(kind=kind, arguments=shape | {"train_nodes": 50})
    with torch.device("meta"):
        assert cost.parameters_of(network) == parameters(build(network))


def test_the_published_code_is_counted_as_the_paper() -> None:
    one, other = (Network(kind=SIT_CVRP, arguments={"detach_customers": d}) for d in (False, True))
    assert cost.counts(one).decision(100) == cost.counts(other).decision(100)


@pytest.mark.parametrize("kind", [SIT, SIT_CVRP])
@pytest.mark.parametrize("shape", [SMALL, WIDE_HEADS, SMALL | {"attention": "self"}, {"depth": 1}])
@pytest.mark.parametrize("tokens", [3, 20, 113, 114, 115, 400])
def test_matrix_products_are_those_that_torch_counts(kind: str, shape: dict[str, Any], tokens: int) -> None:
    """On both sides of the length at which the network begins to fold (114 tokens, a stream of 128, as published)."""
    net: Any = build(Network(kind=kind, arguments=shape))
    rows = torch.rand(1, tokens, 2 if kind == SIT else 3)
    left = () if kind == SIT else (torch.rand(1),)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        net.decide(rows, *left)
    full = {"depth": 6, "width": 128, "heads": 8, "feed_forward": 512, "representatives": 15} | shape
    full["repetitions"] = full.pop("representatives")
    assert counter.get_total_flops() == flops_sit.decision_flops(
        **full, tokens=tokens, cvrp=kind == SIT_CVRP, matmul_only=True
    )


def product(rows: int, inner: int, columns: int) -> int:
    return 2 * rows * inner * columns


@pytest.mark.parametrize("stream", [17, 128, 129, 1016, 100_016])
def test_attention_is_the_cheaper_of_two_sums_of_products(stream: int) -> None:
    width, heads, m = 128, 8, 16
    d = width // heads
    plain = product(m, width, width) + 2 * product(stream, width, width) + product(m, width, width)
    plain += heads * (product(m, d, stream) + product(m, stream, d))
    folded = 2 * product(m, width, width) + 2 * heads * product(m, d, width)
    folded += 2 * product(heads * m, width, stream)
    assert flops_sit.half_attention_flops(width, heads, m, stream) == min(plain, folded)
    assert (folded < plain) == (stream > 128)


def test_softmax_and_relu_are_counted_once_each() -> None:
    args = (128, 8, 512, 16, 500)
    more = flops_sit.module_flops(*args) - flops_sit.module_flops(*args, matmul_only=True)
    assert more == 2 * 8 * 16 * 500 + 512 * (16 + 500)


def test_a_decision_is_linear_in_its_tokens_and_the_twins_is_not() -> None:
    def flops(tokens: int, attention: flops_sit.Attention) -> int:
        return flops_sit.decision_flops(6, 128, 8, 512, 15, tokens, attention=attention)

    steps = [flops(k + 1, "cross") - flops(k, "cross") for k in (1_000, 10_000, 100_000)]
    assert len(set(steps)) == 1
    assert 2.3e6 < steps[0] < 2.5e6  # about 2.46 MFLOP per token, unfolded
    assert flops(20_000, "self") > 3.5 * flops(10_000, "self")
