"""Beams for the CVRP: one is greedy, a wide one is exhaustive; all are feasible, whatever the batch and the network."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

from networks import make
from neuroute.core.errors import NeurouteError
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.decode import decode
from neuroute.decoding.sampling import RoutePrefixes, search_beams
from neuroute.networks.base import PathNetwork
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.vrp import Vrp
from neuroute.specs.objects import Decoding
from test_sampling import CPU, instances

V = 9


@pytest.fixture(params=["bq cvrp", "lehd cvrp", "sit cvrp"])
def net(request: pytest.FixtureRequest) -> PathNetwork:
    return make(request.param)


def prefixes_of(net: PathNetwork, batch: CvrpBatch) -> RoutePrefixes:
    return RoutePrefixes(net.decide, net.encode(batch.coords, batch.share), batch.demand, batch.capacity)


@pytest.mark.parametrize("beam", [2, 5, 40])
def test_solutions_are_feasible_and_do_not_depend_on_the_batch(net: PathNetwork, beam: int) -> None:
    some, decoding = instances(7, V), Decoding(method="beam", beam=beam)
    together = decode("cvrp", net, some, decoding)
    assert is_feasible(some, together.numpy()).all()
    alone = [decode("cvrp", net, some[i : i + 1], decoding) for i in range(7)]
    assert torch.equal(together, torch.cat(alone))
    assert torch.equal(together, decode("cvrp", net, some, decoding.model_copy(update={"batch_size": 3})))


Moves = tuple[tuple[int, int], ...]  # (customer, way)


def policy_of(net: PathNetwork, some: Vrp) -> Callable[[Moves], dict[tuple[int, int], float]]:
    """What follows moves of one instance, each with its log-probability, from one question to the network.

    Of two equal moves (to a customer that does not fit, or from the depot) the likelier one is what is open.
    """
    batch, capacity = CvrpBatch.of(some, CPU), int(some.capacity[0])
    nodes = net.encode(batch.coords, batch.share)

    @cache
    def options(made: Moves) -> dict[tuple[int, int], float]:
        left = capacity
        for stop, way in made:
            left = (capacity if way else left) - int(some.demand[0, stop])
        waiting = [c for c in range(1, some.customers + 1) if c not in dict(made)]
        rows = nodes[:, [made[-1][0] if made else 0, *waiting, 0]]
        found = {}
        logits = net.decide(rows, torch.tensor([left / capacity]))[0].tolist()
        for c, (straight, through) in zip(waiting, logits, strict=True):
            if not made or some.demand[0, c] > left:
                found[c, 1] = max(straight, through)
            else:
                found[c, 0], found[c, 1] = straight, through
        total = np.logaddexp.reduce(list(found.values()))
        return {move: score - total for move, score in found.items()}

    return options


def plain_beam(net: PathNetwork, some: Vrp, beam: int) -> tuple[np.ndarray, np.ndarray]:
    """The most probable solutions (beam, 2, V) of one instance, and their log-probabilities."""
    options = policy_of(net, some)
    live: list[tuple[Moves, float]] = [((), 0.0)]
    for _ in range(some.customers):
        wider = [((*made, move), p + q) for made, p in live for move, q in options(made).items()]
        live = sorted(wider, key=lambda each: -each[1])[:beam]
    return np.array([np.array(made).T for made, _ in live]), np.array([p for _, p in live])


def costs(some: Vrp, solutions: np.ndarray) -> np.ndarray:
    """Of many solutions of one instance, all of them feasible."""
    same = Vrp(*(np.repeat(a, len(solutions), axis=0) for a in (some.coords, some.demand, some.capacity)))
    assert is_feasible(same, solutions).all()
    return cost(same, solutions)


@pytest.mark.parametrize(("customers", "beam"), [(6, 1), (6, 3), (6, 7), (4, 24 * 8)])
def test_a_beam_is_a_search_over_probabilities(net: PathNetwork, customers: int, beam: int) -> None:
    """The widest holds all solutions, and so finds the shortest."""
    some = instances(6, customers, 2)
    found = decode("cvrp", net, some, Decoding(method="beam", beam=beam)).numpy()
    for i in range(len(some)):
        best = costs(some[i : i + 1], plain_beam(net, some[i : i + 1], beam)[0]).min()
        np.testing.assert_allclose(cost(some[i : i + 1], found[i : i + 1]), best)


def test_each_solution_comes_once_and_with_its_probability(net: PathNetwork) -> None:
    some = instances(1, 4, 1)
    batch = CvrpBatch.of(some, CPU)
    prefixes, log_p = prefixes_of(net, batch), torch.zeros(1, 1, dtype=torch.float64)
    with torch.inference_mode():
        for _ in range(prefixes.decisions):  # all that are open
            scores = log_p[..., None] + prefixes.log_p()
            pairs = scores.flatten(1).isfinite().nonzero()[:, 1][None]
            log_p = scores.flatten(1).gather(1, pairs)
            prefixes.extend(pairs // scores.shape[2], pairs % scores.shape[2])
        found = prefixes.solutions_of(prefixes.moves)[0].numpy()
        expected, by_hand = plain_beam(net, some, 10**6)
    assert abs(float(log_p.exp().sum()) - 1) < 1e-9
    by_moves = {s.tobytes(): p for s, p in zip(expected, by_hand, strict=True)}
    assert len(by_moves) == len(found)
    np.testing.assert_allclose(log_p[0], [by_moves[s.tobytes()] for s in found], rtol=1e-6)


def test_scores_that_are_alike_give_feasible_solutions_and_no_numbers_none() -> None:
    some = instances(5, V)
    batch = CvrpBatch.of(some, CPU)
    nodes = batch.coords

    def by(answer: float) -> Tensor:
        def decide(rows: Tensor, left: Tensor) -> Tensor:
            return torch.full((len(rows), rows.shape[1] - 2, 2), answer)

        prefixes = RoutePrefixes(decide, nodes, batch.demand, batch.capacity)
        return search_beams(prefixes, batch.lengths, 6)[0]

    assert is_feasible(some, by(0.0).numpy()).all()
    for answer in (torch.nan, -torch.inf):
        with pytest.raises(NeurouteError, match="scores are no numbers"):
            by(answer)
