"""Parameters and FLOPs of PENS: against the paper, against sums of products, against what torch counts."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from neuroute.accounting.flops_pens import decision_flops, parameters
from neuroute.networks.pens import Pens

SHAPES = [(9, 192, 512, 12), (2, 32, 48, 4), (3, 24, 40, 3)]


def test_published_parameters() -> None:
    """2.8M (pens, Section 5.1); the paper does not print the digits."""
    assert (
        parameters(9, 192, 512) == 9 * (3 * 192 * 192 + 2 * 192 * 512 + 2 * 192) + 2 * 192 * 192 + 3 * 192 == 2_842_560
    )
    assert parameters(9, 192, 512, output_projection=True) == 3_174_336
    assert parameters(9, 192, 512, coordinates=True) - parameters(9, 192, 512) == 2 * 192


def product(rows: int, inner: int, columns: int) -> int:
    return 2 * rows * inner * columns


def counted(depth: int, width: int, feed_forward: int, heads: int, k: int, projection: bool, alibi: bool) -> int:
    """One matrix product after the other, with what is done to each score and each ReLU."""
    total = 0
    for _ in range(depth):
        total += 3 * product(k, width, width)
        for _ in range(heads):
            d = width // heads
            total += product(k, d, k) + product(k, k, d) + k * k  # scores, values, softmax
            total += 2 * k * k if alibi else 0  # slope times distance, added
        total += product(k, width, width) if projection else 0
        total += product(k, width, feed_forward) + product(k, feed_forward, width) + k * feed_forward
    return total + product(1, width, width) + product(k, width, width) + product(1, width, k)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("k", [4, 101, 1001])
@pytest.mark.parametrize("projection", [False, True])
@pytest.mark.parametrize("alibi", [False, True])
def test_a_decision_is_the_sum_of_its_products(
    shape: tuple[int, int, int, int], k: int, projection: bool, alibi: bool
) -> None:
    assert decision_flops(*shape, k, output_projection=projection, alibi=alibi) == counted(*shape, k, projection, alibi)


def test_more_of_anything_costs_more() -> None:
    def flops(depth: int = 9, width: int = 192, feed_forward: int = 512, tokens: int = 101, **options: bool) -> int:
        return decision_flops(depth, width, feed_forward, 12, tokens, **options)

    base = flops()
    for more in (flops(depth=10), flops(width=240), flops(feed_forward=513), flops(tokens=102)):
        assert more > base
    assert flops(alibi=True) > base
    assert flops(output_projection=True) > base
    assert flops(matmul_only=True) < base
    assert flops(matmul_only=True, alibi=True) == flops(matmul_only=True)


@pytest.mark.parametrize("positions", ["alibi", "rope", "both"])
@pytest.mark.parametrize("projection", [False, True])
def test_matrix_products_are_those_that_torch_counts(positions: str, projection: bool) -> None:
    """But for the pointer: the network needs no keys of the origin and the destination."""
    k, width = 21, 24
    net = Pens(3, width, 3, 40, positions, output_projection=projection)  # type: ignore[arg-type]
    rows = net.encode(torch.rand(1, k, 2))
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        net.decide(rows)
    expected = decision_flops(3, width, 40, 3, k, output_projection=projection, matmul_only=True)
    assert counter.get_total_flops() == expected - 2 * (2 * width**2 + 2 * width)
