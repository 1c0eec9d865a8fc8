"""Sums over decisions against the paper's printed numbers and a hand-derived table (GFLOPs per TSP solution)."""

from typing import Any

import pytest

from neuroute.accounting import flops
from neuroute.papers.scaling.cells import DecoderOnly

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

GFLOPS = {  # (paper's convention, shrinking at TSP100, shrinking at TSP1000), the last two matrix products only
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


def model(depth: int, width: int) -> DecoderOnly:
    return DecoderOnly(depth, width, HEADS[width])


@pytest.mark.parametrize(("shape", "count"), PARAMETERS.items())
def test_parameter_counts(shape: tuple[int, int], count: int) -> None:
    assert model(*shape).parameters == count


def test_the_two_printed_flop_counts() -> None:  # scaling, Table 17
    for shape, printed in (((12, 512), 843.20), ((24, 256), 434.40)):
        assert flops.solution_paper(model(*shape).decision, 100) / 1e9 == pytest.approx(printed, abs=0.005)


@pytest.mark.parametrize(("shape", "expected"), GFLOPS.items())
def test_conventions_for_all_shapes(shape: tuple[int, int], expected: tuple[float, float, float]) -> None:
    (depth, width), heads, decision = shape, HEADS[shape[1]], model(*shape).decision

    def products(k: int) -> int:
        return decision(k) - depth * (heads * k**2 + 4 * width * k)  # one FLOP per softmax entry and ReLU output

    paper, small, large = expected
    assert flops.solution_paper(decision, 100) / 1e9 == pytest.approx(paper, abs=0.051)
    assert flops.solution(products, 100) / 1e9 == pytest.approx(small, abs=0.051)
    assert flops.solution(products, 1000) / 1e9 == pytest.approx(large, abs=0.51)


def test_beams_start_with_one() -> None:
    live = dict(flops.live_beams(nodes=10, beam=16))
    assert list(live) == list(range(11, 2, -1))
    assert [live[k] for k in (11, 10)] == [1, 9]
    assert {live[k] for k in range(9, 2, -1)} == {16}
    decision = model(6, 128).decision
    assert flops.solution(decision, 100, 16) < 16 * flops.solution(decision, 100)


def test_rollouts_decide_on_all_nodes() -> None:
    assert flops.rollouts(decision, 100, 40) == sum(decision(101) for _ in range(40 * 98))


# -- training ---------------------------------------------------------------------------------------------------------


def decision(tokens: int) -> int:
    return 5 * tokens * tokens + 3


def encoder(nodes: int) -> int:
    return 7 * nodes


@pytest.mark.parametrize("cvrp", [False, True])
@pytest.mark.parametrize("cut", ["random", "suffix", "pairs"])
@pytest.mark.parametrize("nodes", [5, 9, 40])
def test_a_sample_is_the_mean_over_the_lengths_of_sub_paths(cvrp: bool, cut: Any, nodes: int) -> None:
    """Decision c sees L - c + 1 tokens, of the CVRP one more; all run the encoder on all L stops and the depot."""
    longest = nodes + (cut == "pairs" or (cvrp and cut == "suffix"))  # a suffix of the CVRP may begin at the depot
    lengths = range(3 if cut == "suffix" else 4, longest + 1)
    for step in ("decision", "sub-path", "summed"):
        total = 0
        for length in lengths:
            decisions = 1 if step == "decision" else length - (1 if cvrp else 3)
            for c in range(1, decisions + 1):
                total += encoder(length + cvrp) + decision(length - c + 1 + cvrp)
        found = flops.trained_sample(decision, encoder, flops.lengths_of(nodes, cut, cvrp=cvrp), step, cvrp=cvrp)
        assert found == 3 * total / len(lengths)


@pytest.mark.parametrize("cvrp", [False, True])
@pytest.mark.parametrize("most", [None, 2])
def test_an_iteration_rebuilds_every_block(cvrp: bool, most: int | None) -> None:
    expected = 0.0
    for w in range(4, 13):
        tokens = range(3, w + 2) if cvrp else range(4, w + 1)  # the last one first
        one = encoder(w + cvrp) + sum(decision(k) for k in tokens)
        expected += min(30 // w, most or 30) * one / 9
    found = flops.reconstruction(decision, encoder, 30, 12, most, cvrp=cvrp)
    assert found == pytest.approx(expected, rel=1e-12)
