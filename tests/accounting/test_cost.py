"""What a solution and a training sample cost, by the counts of their network."""

from typing import Any

import pytest

from neuroute.accounting import flops
from neuroute.accounting.counts import counts
from neuroute.plan.objects import Dataset, Labels, Network, Reconstruction, Run, SelfImprovement, Supervised

OURS, LEHD, BQ, BQ_CVRP, POMO, SIT = (
    f"neuroute.networks.{kind}"
    for kind in ("decoder_only:DecoderOnly", "lehd:Lehd", "bq:Bq", "bq:BqCvrp", "pomo:Pomo", "sit:Sit")
)
SHAPE = {"depth": 3, "width": 24, "heads": 3, "feed_forward": 40, "train_nodes": 20}


def run(kind: str, training: Any, n: int = 20, problem: Any = "tsp") -> Run:
    validation = Labels(dataset=Dataset(problem=problem, split="val", n=n, count=5), solver="lkh")
    network = Network(kind=kind, arguments=SHAPE)
    return Run(paper="p", name="r", network=network, training=training, n=n, data=(), validation=validation)


@pytest.mark.parametrize("beam", [1, 16])
def test_a_solution_encodes_once(beam: int) -> None:
    network = Network(kind=LEHD, arguments={})
    c, found = counts(network), flops.per_solution(network, 100, beam)
    assert found["gflops_paper"] == pytest.approx((c.encoder(100) + beam * 99 * c.decision(101)) / 1e9, rel=1e-12)
    live = sum(alive * c.decision(k) for k, alive in flops.live_beams(100, beam))
    assert found["gflops_shrinking"] == pytest.approx((c.encoder(100) + live) / 1e9, rel=1e-12)


def test_ours_is_counted_as_the_paper_counts() -> None:  # scaling, Table 17
    network = Network(kind=OURS, arguments={"depth": 12, "width": 512, "heads": 16})
    assert flops.per_solution(network, 100)["gflops_paper"] == pytest.approx(843.20, abs=0.005)
    decision = counts(network).decision
    assert flops.per_solution(network, 100, 4)["gflops_shrinking"] == flops.solution(decision, 100, 4) / 1e9


def test_many_starts_and_images_encode_once_an_image() -> None:
    network = Network(kind=POMO, arguments={})
    c = counts(network)
    paper = flops.per_solution(network, 100, 100)["gflops_paper"]
    assert paper == pytest.approx((c.encoder(100) + 100 * 99 * c.decision(101)) / 1e9, rel=1e-12)
    found = flops.per_solution(network, 100, 800, 8, shrinks=False)["gflops_shrinking"]
    assert found == pytest.approx((8 * c.encoder(100) + 800 * 98 * c.decision(101)) / 1e9, rel=1e-12)


def test_training_encodes_the_sub_path_at_every_decision() -> None:
    e, d = (lambda c: (c.encoder, c.decision))(counts(Network(kind=LEHD, arguments=SHAPE)))
    # n = 5: L is 4 (tokens 4) or 5 (tokens 5, 4)
    each = run(LEHD, Supervised(samples=1), 5)
    assert flops.training_per_sample(each) == 3 * (e(4) + d(4) + 2 * e(5) + d(5) + d(4)) / 2
    first = run(LEHD, Supervised(samples=1, step="decision"), 5)
    assert flops.training_per_sample(first) == 3 * (e(4) + d(4) + e(5) + d(5)) / 2
    suffixes = run(LEHD, Supervised(samples=1, step="decision", sub_paths="suffix"), 5)  # L is 3, 4 or 5
    assert flops.training_per_sample(suffixes) == 3 * sum(e(k) + d(k) for k in (3, 4, 5)) / 3


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
