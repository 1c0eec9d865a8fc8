"""Sampling without replacement: exact against all of small instances, never twice, and drawn to what is short."""

import itertools
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import permutations, product

import numpy as np
import pytest
import torch
from random_cvrp import random_instances
from scipy import stats
from torch import Tensor

from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.sampling import (
    ANY,
    Begin,
    Lengths,
    RoutePrefixes,
    TourPrefixes,
    sample_distinct,
    sample_shortest,
)
from neuroute.decoding.tsp import TspBatch
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.tsp import is_permutation, tour_length
from neuroute.problems.vrp import Vrp

PAIRS = 200_000


def attract(rows: Tensor) -> Tensor:
    """A policy that depends on where one stands, what is left and where one has to go; far from uniform."""
    current, open_rows, last = rows[:, :1], rows[:, 1:-1], rows[:, -1:]
    pull = -4 * (open_rows - current).norm(dim=-1) + 2 * (open_rows - last).norm(dim=-1)
    return pull + 3 * (open_rows * open_rows.mean(dim=1, keepdim=True)).sum(-1)


def tours_of(decide: Callable[[Tensor], Tensor], coords: Tensor, tokens: int = ANY) -> tuple[Begin, Lengths]:
    """What is sampled: tours of coords (batch, n, 2)."""
    return lambda: TourPrefixes(decide, coords, tokens), TspBatch(coords).lengths


def instance(n: int, seed: int = 3) -> Tensor:
    return torch.rand(1, n, 2, generator=torch.Generator().manual_seed(seed))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def conditional(coords: Tensor, prefix: tuple[int, ...]) -> dict[int, float]:
    """The policy's next stop after a prefix, by its definition."""
    left = [node for node in range(len(coords)) if node not in prefix]
    rows = coords[[prefix[-1], *left, 0]][None]
    return dict(zip(left, torch.softmax(attract(rows).double(), dim=1)[0].tolist(), strict=True))


Policy = dict[tuple[int, ...], dict[int, float]]


def policy_of(coords: Tensor) -> Policy:
    """The next stop after every prefix from node 0."""
    nodes = range(1, len(coords))
    prefixes = [(0, *rest) for length in range(len(coords) - 1) for rest in itertools.permutations(nodes, length)]
    return {prefix: conditional(coords, prefix) for prefix in prefixes}


def probabilities(policy: Policy, shift: dict[tuple[int, ...], float] | None = None) -> dict[tuple[int, ...], float]:
    """Of all tours from node 0; `shift` is added to the log-probability of a prefix's last stop."""
    found = {(0,): 1.0}
    while next(iter(found)) in policy:
        longer = {}
        for prefix, p in found.items():
            weights = {node: q * np.exp((shift or {}).get((*prefix, node), 0.0)) for node, q in policy[prefix].items()}
            for node, weight in weights.items():
                longer[(*prefix, node)] = p * weight / sum(weights.values())
        found = longer
    return found


def as_tuples(tours: Tensor) -> list[tuple[int, ...]]:
    return [tuple(tour) for tour in tours.tolist()]


def agrees(counts: Counter, expected: dict, total: int) -> bool:
    """Chi-square at the 0.1 % level, rare outcomes pooled."""
    rare = [key for key, p in expected.items() if p * total < 10]
    observed = [counts[key] for key in expected if key not in set(rare)]
    wanted = [p * total for key, p in expected.items() if key not in set(rare)]
    observed.append(total - sum(observed))
    wanted.append(total - sum(wanted))
    if wanted[-1] < 5:
        observed[-2:], wanted[-2:] = [sum(observed[-2:])], [sum(wanted[-2:])]
    return bool(stats.chisquare(observed, wanted, sum_check=False).pvalue > 1e-3)


@pytest.mark.parametrize("sigma", [0.0, 2.0])
@pytest.mark.parametrize(("n", "beam", "rounds"), [(5, 1, 26), (6, 7, 20), (6, 200, 2)])
def test_rounds_enumerate_every_tour_exactly_once(n: int, sigma: float, beam: int, rounds: int) -> None:
    coords = torch.rand(3, n, 2, generator=generator(1))
    sampled = sample_distinct(*tours_of(attract, coords), beam, rounds, sigma, generator())
    everything = {(0, *rest) for rest in itertools.permutations(range(1, n))}
    for tours, lengths, valid in zip(sampled.moves, sampled.lengths, sampled.valid, strict=True):
        found = as_tuples(tours[valid])
        assert len(found) == len(everything)
        assert set(found) == everything
        assert bool(torch.isinf(lengths[~valid]).all())


@pytest.mark.slow
@pytest.mark.parametrize(("beam", "rounds"), [(2, 1), (1, 2)])
def test_pairs_come_as_in_drawing_without_replacement(beam: int, rounds: int) -> None:
    """Within a round and across rounds: P(a, then b) = p_a p_b / (1 - p_a); the first alone: p_a."""
    coords = instance(5)
    p = probabilities(policy_of(coords[0]))
    assert max(p.values()) > 4 / len(p)  # far from uniform
    many = coords.expand(PAIRS, -1, -1)
    tours = sample_distinct(*tours_of(attract, many), beam, rounds, 0.0, generator()).moves
    firsts, seconds = as_tuples(tours[:, 0]), as_tuples(tours[:, 1])
    assert agrees(Counter(firsts), p, PAIRS)
    pairs = {(a, b): p[a] * p[b] / (1 - p[a]) for a in p for b in p if a != b}
    assert agrees(Counter(zip(firsts, seconds, strict=True)), pairs, PAIRS)


def test_the_next_round_follows_the_shifted_policy_without_what_was_sampled() -> None:
    coords, sigma, times = instance(5, seed=0), 3.0, 50_000
    many = coords.expand(times, -1, -1)
    sampled = sample_distinct(*tours_of(attract, many), 3, 2, sigma, generator())
    policy = policy_of(coords[0])
    lengths = {tour: float(tour_length(coords[0].numpy(), np.array(tour))) for tour in probabilities(policy)}

    def next_round(first: tuple[tuple[int, ...], ...]) -> dict[tuple[int, ...], float]:
        mean = np.mean([lengths[tour] for tour in first])
        gains: dict[tuple[int, ...], list[float]] = {}
        for tour in first:
            for stop in range(2, len(tour)):  # the last stop is no decision
                gains.setdefault(tour[:stop], []).append(mean - lengths[tour])
        p = probabilities(policy, {prefix: sigma * np.mean(g) for prefix, g in gains.items()})
        p = {tour: 0.0 if tour in first else q for tour, q in p.items()}
        return {tour: q / sum(p.values()) for tour, q in p.items()}

    firsts = [tuple(sorted(as_tuples(tours[:3]))) for tours in sampled.moves]
    expected = dict.fromkeys(lengths, 0.0)
    for first, count in Counter(firsts).items():
        for tour, q in next_round(first).items():
            expected[tour] += q * count / times
    assert agrees(Counter(as_tuples(sampled.moves[:, 3])), expected, times)
    # the most frequent first round by itself: no averaging hides a wrong shift
    common, count = Counter(firsts).most_common(1)[0]
    rows = [i for i, first in enumerate(firsts) if first == common]
    assert agrees(Counter(as_tuples(sampled.moves[rows, 3])), next_round(common), count)


def test_tours_of_larger_instances_are_distinct_and_known_log_probabilities() -> None:
    coords = torch.rand(4, 20, 2, generator=generator(1))
    sampled = sample_distinct(*tours_of(lambda rows: 3 * attract(rows), coords), 8, 3, 0.3, generator())
    assert bool(sampled.valid.all())
    assert is_permutation(sampled.moves.numpy()).all()
    np.testing.assert_allclose(sampled.lengths, tour_length(coords.numpy()[:, None], sampled.moves.numpy()))
    for tours in sampled.moves:
        assert len(set(as_tuples(tours))) == 24
    tour, prefix = tuple(sampled.moves[2, 11].tolist()), 7
    rows = coords[2][[tour[prefix - 1], *tour[prefix:], 0]][None]
    expected = torch.log_softmax(3 * attract(rows).double(), dim=1)[0, 0]
    torch.testing.assert_close(sampled.log_p[2, 11, prefix], expected, rtol=1e-5, atol=1e-6)


def test_a_sharp_policy_still_finds_other_tours() -> None:
    """Almost all mass on one tour: what is left after it is below float32's resolution of one."""
    coords = torch.rand(2, 10, 2, generator=generator(1))
    sampled = sample_distinct(*tours_of(lambda rows: 200 * attract(rows), coords), 4, 4, 0.3, generator())
    assert bool(sampled.valid.all())
    assert all(len(set(as_tuples(tours))) == 16 for tours in sampled.moves)


# -- solutions of the CVRP -------------------------------------------------------------------------------------------


CPU = torch.device("cpu")


def attract_routes(rows: Tensor, left: Tensor) -> Tensor:
    """A policy that depends on where one stands, what is left in the vehicle and what waits; far from uniform."""
    current, waiting, depot = rows[:, :1], rows[:, 1:-1], rows[:, -1:]
    straight = -3 * (waiting - current).norm(dim=-1)
    through = -2 * (waiting - depot).norm(dim=-1) - 2 * left[:, None]
    return torch.stack([straight, through], dim=-1)


def sampling_of(some: Vrp, tokens: int = ANY) -> tuple[Begin, Lengths]:
    batch = CvrpBatch.of(some, CPU)
    return lambda: RoutePrefixes(attract_routes, batch.coords, batch.demand, batch.capacity, tokens), batch.lengths


def instances(count: int, customers: int, seed: int = 0) -> Vrp:
    return random_instances(count, customers, seed, grid=False)[0]


def every_solution(some: Vrp) -> dict[bytes, np.ndarray]:
    """All feasible ways (2, V) to serve the customers of one instance."""
    ways = [(1, *rest) for rest in product((0, 1), repeat=some.customers - 1)]
    every = np.array([(order, way) for order in permutations(range(1, some.customers + 1)) for way in ways])
    same = Vrp(*(np.repeat(a, len(every), axis=0) for a in (some.coords, some.demand, some.capacity)))
    return {solution.tobytes(): solution for solution in every[is_feasible(same, every)]}


def found_in(moves: Tensor) -> list[bytes]:
    return [solution.tobytes() for solution in RoutePrefixes.solutions_of(moves).numpy()]


@pytest.mark.parametrize("sigma", [0.0, 2.0])
@pytest.mark.parametrize(("beam", "rounds"), [(1, 49), (5, 12), (60, 2)])
def test_rounds_enumerate_every_solution_exactly_once(sigma: float, beam: int, rounds: int) -> None:
    some = instances(4, 3, 1)
    sampled = sample_distinct(*sampling_of(some), beam, rounds, sigma, generator())
    for i in range(len(some)):
        found = found_in(sampled.moves[i][sampled.valid[i]])
        assert len(found) == len(set(found))
        assert set(found) == set(every_solution(some[i : i + 1]))


def test_solutions_are_distinct_feasible_and_as_long_as_the_checker_says() -> None:
    some = instances(5, 15)
    sampled = sample_distinct(*sampling_of(some), 6, 3, 0.5, generator())
    assert bool(sampled.valid.all())
    for k in range(18):
        solutions = RoutePrefixes.solutions_of(sampled.moves[:, k]).numpy()
        assert is_feasible(some, solutions).all()
        np.testing.assert_allclose(sampled.lengths[:, k], cost(some, solutions))
    assert all(len(set(found_in(moves))) == 18 for moves in sampled.moves)


@pytest.mark.parametrize("problem", ["tsp", "cvrp"])
def test_the_shortest_is_returned_and_parts_change_nothing(problem: str) -> None:
    coords, some = torch.rand(5, 12, 2, generator=generator(1)), instances(5, 12)
    of = partial(tours_of, attract, coords) if problem == "tsp" else partial(sampling_of, some)
    sampled = sample_distinct(*of(), 6, 2, 0.3, generator())
    best = sample_shortest(*of(), 6, 2, 0.3, generator())
    lengths = tour_length(coords.numpy(), best.numpy()) if problem == "tsp" else cost(some, best.numpy())
    np.testing.assert_allclose(lengths, sampled.lengths.amin(dim=1))
    assert torch.equal(best, sample_shortest(*of(tokens=40), 6, 2, 0.3, generator()))
