"""Counts of the networks that sit is compared with, and of its training."""

from typing import Any

import pytest
import torch

from neuroute.accounting import cost, flops, flops_cvrp, flops_reconstruction
from neuroute.networks.weights import build, parameters
from neuroute.plan.objects import Dataset, Labels, Network, Reconstruction, Run

BQ, POMO, SIT = (f"neuroute.networks.{kind}" for kind in ("bq_cvrp:BqCvrp", "pomo:Pomo", "sit:Sit"))
SHAPE = {"depth": 3, "width": 24, "heads": 3, "feed_forward": 40, "train_nodes": 20}


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (BQ, {}),
        (BQ, SHAPE),
        (BQ, {"attention": "cross"}),
        (BQ, SHAPE | {"attention": "cross", "representatives": 4}),
        (POMO, {}),
        (POMO, SHAPE | {"clipping": 50.0}),
    ],
)
def test_parameters_are_those_of_the_network(kind: str, arguments: dict[str, Any]) -> None:
    network = Network(kind=kind, arguments=arguments)
    with torch.device("meta"):
        assert cost.parameters_of(network) == parameters(build(network))


def test_pomos_tours_cost_what_the_paper_convention_says() -> None:
    network = Network(kind=POMO, arguments={})
    c = cost.counts(network)
    found = cost.per_solution(network, 100, 100)["gflops_paper"]
    assert found == pytest.approx((c.encoder(100) + 100 * 99 * c.decision(101)) / 1e9, rel=1e-12)


DECISIONS = (lambda k: 5 * k * k + 3, lambda k: 7 * k)  # a decision, an encoder


@pytest.mark.parametrize("step", ["sub-path", "decision"])
@pytest.mark.parametrize("longest", [4, 9, 40])
def test_sub_paths_are_those_of_supervised_training(step: Any, longest: int) -> None:
    tsp = flops_reconstruction.trained_sample(*DECISIONS, longest, step, cvrp=False)
    assert tsp == pytest.approx(flops.trained_sample(DECISIONS[0], longest, step, "random", DECISIONS[1]), rel=1e-12)
    cvrp = flops_reconstruction.trained_sample(*DECISIONS, longest, step, cvrp=True)
    assert cvrp == pytest.approx(flops_cvrp.trained_sample(DECISIONS[0], longest, step, DECISIONS[1]), rel=1e-12)


@pytest.mark.parametrize("cvrp", [False, True])
@pytest.mark.parametrize("most", [None, 2])
def test_an_iteration_rebuilds_every_block(cvrp: bool, most: int | None) -> None:
    decision, encoder = DECISIONS
    expected = 0
    for w in range(4, 13):
        tokens = range(3, w + 2) if cvrp else range(4, w + 1)  # the last one first
        one = encoder(w + cvrp) + sum(decision(k) for k in tokens)
        expected += min(30 // w, most or 30) * one / 9
    found = flops_reconstruction.iteration(decision, encoder, 30, 12, most, cvrp=cvrp)
    assert found == pytest.approx(expected, rel=1e-12)


def run(training: Reconstruction, n: int = 30, problem: Any = "tsp") -> Run:
    validation = Labels(dataset=Dataset(problem=problem, split="val", n=n, count=5), solver="lkh")
    network = Network(kind=SIT if problem == "tsp" else BQ, arguments=SHAPE)
    return Run(paper="p", name="r", network=network, training=training, n=n, data=(), validation=validation)


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_a_round_shares_its_reconstructions_among_its_epochs(problem: str) -> None:
    def per_sample(**change: Any) -> float:
        training = Reconstruction(samples=4, rounds=3, epochs_per_round=5, validations=3, longest=12, **change)
        return cost.training_per_sample(run(training, problem=problem))

    c = cost.counts(run(Reconstruction(samples=1, rounds=1, validations=1), problem=problem).network)
    cvrp = problem == "cvrp"
    warm_up = per_sample(reconstructions=0)
    assert warm_up == flops_reconstruction.trained_sample(c.decision, c.encoder, 12, "sub-path", cvrp=cvrp)
    one = flops_reconstruction.iteration(c.decision, c.encoder, 30, 12, cvrp=cvrp)
    assert per_sample(reconstructions=10) - warm_up == pytest.approx(10 * one / 5, rel=1e-9)
    first = c.encoder(30 + cvrp) + flops.solution(c.decision, 30 + cvrp)
    assert per_sample(reconstructions=0, initial="greedy") - warm_up == pytest.approx(first / 15, rel=1e-9)


def test_sub_paths_are_as_long_as_solutions_or_1000_stops() -> None:
    training = Reconstruction(samples=1, rounds=1, validations=1, reconstructions=0)
    assert cost.training_per_sample(run(training, 30)) < cost.training_per_sample(run(training, 1000))
    assert cost.training_per_sample(run(training, 1000)) == cost.training_per_sample(run(training, 5000))
