"""Sums over decisions: by printed numbers, a hand-derived table (GFLOPs per TSP solution), and networks' counts."""

from typing import Any

import pytest

from neuroute.evaluation import flops
from neuroute.evaluation.flops import counts
from neuroute.pipeline.papers.scaling.tables import DecoderOnly
from neuroute.specs.objects import (
    Dataset,
    Labels,
    Network,
    Reconstruction,
    Reinforced,
    Run,
    SelfImprovement,
    Stage,
    Supervised,
)

HEADS = {32: 8, 64: 8, 128: 8, 256: 16, 512: 16}

# (depth, width): parameters, which scaling, Tables 1 and 2 print in millions; then GFLOPs by the paper's convention,
# and shrinking at TSP100 and at TSP1000, these two of matrix products only
SHAPES = {
    (6, 128): (1_316_877, 28.8, 14.2, 2311),
    (6, 256): (5_255_181, 108.6, 54.8, 7185),
    (6, 512): (20_996_109, 421.7, 214.9, 24626),
    (12, 128): (2_600_217, 57.5, 28.5, 4621),
    (12, 256): (10_377_753, 217.2, 109.6, 14370),
    (12, 512): (41_464_857, 843.2, 429.7, 49248),
    (24, 128): (5_166_897, 115.0, 56.9, 9242),
    (24, 256): (20_622_897, 434.4, 219.1, 28738),
    (24, 512): (82_402_353, 1686.3, 859.4, 98494),
    (42, 128): (9_016_917, 201.2, 99.6, 16173),
    (42, 256): (35_990_613, 760.2, 383.4, 50291),
    (42, 512): (143_808_597, 2950.9, 1503.8, 172363),
    (24, 64): (1_297_329, 32.0, 15.3, 3339),
    (96, 32): (1_301_889, 38.9, 17.4, 5396),
}


def model(depth: int, width: int) -> DecoderOnly:
    return DecoderOnly(depth, width, HEADS[width])


@pytest.mark.parametrize(("shape", "expected"), SHAPES.items())
def test_parameters_and_conventions_for_all_shapes(
    shape: tuple[int, int], expected: tuple[int, float, float, float]
) -> None:
    (depth, width), heads, decision = shape, HEADS[shape[1]], model(*shape).decision

    def products(k: int) -> int:
        return decision(k) - depth * (heads * k**2 + 4 * width * k)  # one FLOP per softmax entry and ReLU output

    parameters, paper, small, large = expected
    assert model(*shape).parameters == parameters
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


# -- by the counts of a network ----------------------------------------------------------------------------------------

LEHD, BQ, BQ_CVRP, SIT = (f"neuroute.networks.{kind}" for kind in ("lehd:Lehd", "bq:Bq", "bq:BqCvrp", "sit:Sit"))
SHAPE = {"depth": 3, "width": 24, "heads": 3, "feed_forward": 40, "train_nodes": 20}


def run(kind: str, training: Any, n: int = 20, problem: Any = "tsp") -> Run:
    validation = Labels(dataset=Dataset(problem=problem, split="val", n=n, count=5), solver="lkh")
    network = Network(kind=kind, arguments=SHAPE)
    return Run(paper="p", name="r", network=network, training=training, n=n, data=(), validation=validation)


@pytest.mark.parametrize(("beam", "images", "shrinks"), [(1, 1, True), (16, 1, True), (800, 8, False)])
def test_a_solution_encodes_each_image_once(beam: int, images: int, shrinks: bool) -> None:
    """Of many starts that are not searched with, all decisions are on all nodes."""
    network = Network(kind=LEHD, arguments={})
    c, found = counts(network), flops.per_solution(network, 100, beam, images, shrinks=shrinks)
    of_sizes = flops.live_beams(100, beam) if shrinks else [(101, 98 * beam)]
    decisions = sum(alive * c.decision(k) for k, alive in of_sizes)
    assert found["gflops_paper"] == pytest.approx((images * c.encoder(100) + beam * 99 * c.decision(101)) / 1e9)
    assert found["gflops_shrinking"] == pytest.approx((images * c.encoder(100) + decisions) / 1e9)


def test_training_encodes_the_sub_path_at_every_decision() -> None:
    e, d = (lambda c: (c.encoder, c.decision))(counts(Network(kind=LEHD, arguments=SHAPE)))
    # n = 5: L is 4 (tokens 4) or 5 (tokens 5, 4)
    each = run(LEHD, Supervised(samples=1), 5)
    assert flops.training_per_sample(each) == 3 * (e(4) + d(4) + 2 * e(5) + d(5) + d(4)) / 2
    first = run(LEHD, Supervised(samples=1, step="decision"), 5)
    assert flops.training_per_sample(first) == 3 * (e(4) + d(4) + e(5) + d(5)) / 2
    suffixes = run(LEHD, Supervised(samples=1, step="decision", sub_paths="suffix"), 5)  # L is 3, 4 or 5
    assert flops.training_per_sample(suffixes) == 3 * sum(e(k) + d(k) for k in (3, 4, 5)) / 3


@pytest.mark.parametrize(
    ("training", "tsp", "cvrp"),
    [
        (Supervised(samples=1), 9, 11),  # 4..20 stops: 12 on average, of which 3 (CVRP: 1) go without saying
        (Supervised(samples=1, step="summed"), 9, 11),
        (Supervised(samples=1, sub_paths="suffix"), 8.5, 11),  # 3..20; CVRP: 3..21
        (Supervised(samples=1, step="decision"), 1, 1),
        (SelfImprovement(epochs=1, instances=10, step="sub-path"), 9, 11),
        (Reconstruction(samples=1, rounds=1, validations=1, longest=12), 5, 7),  # 4..12
        (Reinforced(stages=(Stage(name="s", epochs=1, sizes=(20, 20), batch_size=1, validations=1),)), 20, 20),
    ],
)
def test_a_batch_makes_the_decisions_of_its_sub_path(training: Any, tsp: float, cvrp: float) -> None:
    for problem, expected in {"tsp": tsp, "cvrp": cvrp}.items():
        assert flops.decisions_per_batch(run(LEHD, training, problem=problem)) == expected


@pytest.mark.parametrize(("problem", "kind"), [("tsp", BQ), ("cvrp", BQ_CVRP)])
def test_self_improvement_pays_for_its_labels(problem: str, kind: str) -> None:
    imitation = run(kind, Supervised(samples=1, step="decision"), problem=problem)
    sampled = run(kind, SelfImprovement(epochs=1, instances=10, beam=8, rounds=3, passes=2), problem=problem)
    nodes = imitation.n + (problem == "cvrp")
    searches = 3 * flops.per_solution(imitation.network, nodes, 8)["gflops_shrinking"] * 1e9
    expected = flops.training_per_sample(imitation) + searches / 2
    assert flops.training_per_sample(sampled) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("problem", "kind"), [("tsp", SIT), ("cvrp", BQ_CVRP)])
def test_a_round_shares_its_reconstructions_among_its_epochs(problem: str, kind: str) -> None:
    def per_sample(**change: Any) -> float:
        training = Reconstruction(samples=4, rounds=3, epochs_per_round=5, validations=3, longest=12, **change)
        return flops.training_per_sample(run(kind, training, 30, problem))

    c, cvrp = counts(Network(kind=kind, arguments=SHAPE)), problem == "cvrp"
    warm_up = per_sample(reconstructions=0)
    assert warm_up == flops.trained_sample(c.decision, c.encoder, range(4, 13), "sub-path", cvrp=cvrp)
    one = flops.reconstruction(c.decision, c.encoder, 30, 12, cvrp=cvrp)
    assert per_sample(reconstructions=10) - warm_up == pytest.approx(10 * one / 5, rel=1e-9)
    first = c.encoder(30 + cvrp) + flops.solution(c.decision, 30 + cvrp)
    assert per_sample(reconstructions=0, initial="greedy") - warm_up == pytest.approx(first / 15, rel=1e-9)


def test_sub_paths_are_as_long_as_solutions_or_1000_stops() -> None:
    training = Reconstruction(samples=1, rounds=1, validations=1, reconstructions=0)
    costs = [flops.training_per_sample(run(SIT, training, n)) for n in (30, 1000, 5000)]
    assert costs[0] < costs[1] == costs[2]
