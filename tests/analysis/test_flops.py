"""Counts against the paper's printed numbers and a hand-derived table (GFLOPs per TSP solution)."""

import pytest

from neuroute.accounting import flops

HEADS = {32: 8, 64: 8, 128: 8, 256: 16, 512: 16}

PARAMETERS = {  # exact integers; scaling, Tables 1 and 2 print them in millions
    (6, 128): 1_316_877,
    (6, 256): 5_255_181,
    (6, 512): 20_996_109,
    (12, 128): 2_600_217,
    (12, 256): 10_377_753,
    (12, 512): 41_464_857,
    (24, 128): 5_166_897,
    (24, 256): 20_622_897,
    (24, 512): 82_402_353,
    (42, 128): 9_016_917,
    (42, 256): 35_990_613,
    (42, 512): 143_808_597,
    (24, 64): 1_297_329,
    (96, 32): 1_301_889,
}

GFLOPS = {  # (paper's convention, shrinking at TSP100, shrinking at TSP1000), the last two matmuls only
    (6, 128): (28.8, 14.2, 2311),
    (6, 256): (108.6, 54.8, 7185),
    (6, 512): (421.7, 214.9, 24626),
    (12, 128): (57.5, 28.5, 4621),
    (12, 256): (217.2, 109.6, 14370),
    (12, 512): (843.2, 429.7, 49248),
    (24, 128): (115.0, 56.9, 9242),
    (24, 256): (434.4, 219.1, 28738),
    (24, 512): (1686.3, 859.4, 98494),
    (42, 128): (201.2, 99.6, 16173),
    (42, 256): (760.2, 383.4, 50291),
    (42, 512): (2950.9, 1503.8, 172363),
    (24, 64): (32.0, 15.3, 3339),
    (96, 32): (38.9, 17.4, 5396),
}


@pytest.mark.parametrize(("shape", "count"), PARAMETERS.items())
def test_parameter_counts(shape: tuple[int, int], count: int) -> None:
    assert flops.parameters(*shape) == count


def test_parameters_without_gate_and_rezero() -> None:
    assert flops.parameters(6, 128) - flops.parameters(6, 128, gate=False) == 6 * (128**2 + 128)
    assert flops.parameters(6, 128) - flops.parameters(6, 128, rezero=False) == 6 * 2


def test_the_two_printed_flop_counts() -> None:  # scaling, Table 17
    assert flops.greedy_flops_paper(12, 512, 16, 100) / 1e9 == pytest.approx(843.20, abs=0.005)
    assert flops.greedy_flops_paper(24, 256, 16, 100) / 1e9 == pytest.approx(434.40, abs=0.005)


@pytest.mark.parametrize(("shape", "expected"), GFLOPS.items())
def test_conventions_for_all_shapes(shape: tuple[int, int], expected: tuple[float, float, float]) -> None:
    depth, width = shape
    heads = HEADS[width]
    paper, small, large = expected
    assert flops.greedy_flops_paper(depth, width, heads, 100) / 1e9 == pytest.approx(paper, abs=0.051)
    assert flops.greedy_flops(depth, width, heads, 100, matmul_only=True) / 1e9 == pytest.approx(small, abs=0.051)
    assert flops.greedy_flops(depth, width, heads, 1000, matmul_only=True) / 1e9 == pytest.approx(large, abs=0.51)


def test_softmax_and_relu_add_one_flop_per_entry() -> None:
    with_all = flops.decision_flops(6, 128, 8, 101)
    assert with_all - flops.decision_flops(6, 128, 8, 101, matmul_only=True) == 6 * (8 * 101**2 + 4 * 128 * 101)


def test_beam_of_one_is_greedy_and_wider_beams_start_with_one() -> None:
    assert flops.beam_flops(6, 128, 8, 100, 1) == flops.greedy_flops(6, 128, 8, 100)
    live = dict(flops.live_beams(nodes=10, beam=16))
    assert list(live) == list(range(11, 2, -1))
    assert live[11] == 1
    assert live[10] == 9
    assert {live[k] for k in range(9, 2, -1)} == {16}
    assert flops.beam_flops(6, 128, 8, 100, 16) < 16 * flops.greedy_flops(6, 128, 8, 100)
    assert flops.beam_flops_paper(6, 128, 8, 100, 16) == 16 * flops.greedy_flops_paper(6, 128, 8, 100)


def test_training_cost_by_reading_of_step() -> None:
    f = lambda k: flops.decision_flops(1, 16, 2, k)  # noqa: E731
    # n = 5: L is 4 (tokens 4) or 5 (tokens 5, 4)
    assert flops.trained_sample(f, 5, "sub-path") == 3 * (f(4) + f(5) + f(4)) / 2
    assert flops.trained_sample(f, 5, "decision") == 3 * (f(4) + f(5)) / 2
    assert flops.trained_sample(f, 100, "summed") == flops.trained_sample(f, 100, "sub-path")
