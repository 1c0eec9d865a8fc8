"""Re-construction as a way of decoding, for both problems: starts, milestones, splits, limits; groups of routes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from networks import make
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.datasets.streams import cvrp_dataset, dataset_coordinates
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.cvrp_search import AROUND
from neuroute.decoding.decode import SEARCH, blocks_per_batch, construct, decode, improve
from neuroute.networks.pens import Pens
from neuroute.networks.pomo import PomoCvrp
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.vrp import Vrp, from_routes, to_routes
from neuroute.solvers import registry
from neuroute.solvers.base import on_vrp_grid
from neuroute.solvers.pyvrp import descend
from neuroute.specs.objects import Dataset, Decoding
from test_path_adapter import NAMES as MANY_STARTS

N = 30
CPU = torch.device("cpu")


def prc(**what: Any) -> Decoding:
    return Decoding(**({"method": "prc", "iterations": 6, "start": "insertion-angle"} | what))


def case_of(name: str) -> Any:
    """(problem, its spec, network, instances) of a network's name."""
    net = make(name, train_nodes=10)
    problem = net.problem
    instances = SPEC.of(problem).instances(Dataset(problem=problem, n=N, count=7))
    if problem == "tsp":
        instances = instances.astype(np.float64)
    else:
        instances = replace(instances, coords=instances.coords.astype(np.float64))
    return problem, SPEC.of(problem), net, instances


@pytest.fixture(params=["sit", "sit cvrp"])
def case(request: pytest.FixtureRequest) -> Any:
    return case_of(request.param)


def to_the_nearest(rows: Tensor, *left_and_scale: Any) -> Tensor:
    """Straight, wherever there is a choice."""
    way = -(rows[:, 1:-1, :2] - rows[:, :1, :2]).norm(dim=-1)
    return way if rows.shape[-1] == 2 else torch.stack([way, way - 10], dim=-1)


STEPS: list[Any] = [
    *(
        (name, Decoding(method="rrc", iterations=12, rescale=rescale))
        for name in ("decoder-only", "pens alibi", "pens rope", "pens both", "pens coordinates")
        for rescale in (1.0, 1.7)
    ),
    *((name, Decoding(method="rrc", iterations=30)) for name in ("sit", "sit cvrp")),
    *(
        (name, prc(start=start, longest=7, iterations=20))
        for name in ("sit", "sit cvrp")
        for start in ("greedy", "insertion-angle", "insertion-published")
    ),
    *(
        pytest.param(name, Decoding(method=method, iterations=30), marks=pytest.mark.slow)
        for name in MANY_STARTS
        for method in ("rrc", "prc")
    ),
]


@pytest.mark.parametrize(("name", "how"), STEPS)
def test_milestones_are_what_so_many_iterations_give_and_never_longer(name: str, how: Decoding) -> None:
    problem, spec, net, instances = case_of(name)
    if how.start != "greedy":
        net.decide = to_the_nearest  # a random network does not improve what is good
    every = tuple(range(how.iterations + 1))
    found = improve(problem, net, instances, how.model_copy(update={"milestones": every}))
    assert [m for m, _, _ in found] == [*every]
    assert all(spec.valid(instances, solutions.numpy()).all() for _, solutions, _ in found)
    for m in (0, 3, how.iterations):
        assert torch.equal(found[m][1], decode(problem, net, instances, how.model_copy(update={"iterations": m})))
    if how.start == "greedy":
        assert torch.equal(found[0][1], decode(problem, net, instances, Decoding(rescale=how.rescale)))
    lengths = np.stack([spec.lengths(instances, solutions.numpy()) for _, solutions, _ in found])
    assert (np.diff(lengths, axis=0) <= 1e-12).all()
    assert lengths[-1].mean() < lengths[0].mean() - 1e-3
    seconds = [s for _, _, s in found]
    assert seconds[0] > 0
    assert seconds == sorted(seconds)


def test_it_starts_from_what_it_says(case: Any) -> None:
    problem, spec, net, instances = case
    own = decode(problem, net, instances, prc(start="greedy", iterations=0))
    assert torch.equal(own, construct(problem, net, instances))
    solver = registry.get("insertion-published")
    built = decode(problem, net, instances, prc(start="insertion-published", iterations=0)).numpy()
    for i, start in enumerate(built):
        np.testing.assert_array_equal(start, spec.solve(solver, instances[i : i + 1], i))


@pytest.mark.parametrize("how", [prc(iterations=8, longest=7), Decoding(method="rrc", iterations=8)])
def test_seeds_fix_everything_and_splitting_changes_nothing(case: Any, how: Decoding) -> None:
    problem, _, net, instances = case
    search, start = SEARCH.of(problem), decode(problem, net, instances, Decoding())

    def go(
        seed: int, part: slice = slice(None), solutions: Tensor = start, memory_gb: float = 4.0, before: int = 0
    ) -> list[Tensor]:
        given, where = search.environment.batch(instances[part], CPU), {"seed": seed, "first": part.start or 0}
        found = search.reconstruct(net, given, solutions[part], how, memory_gb, **where, iterations_before=before)
        return list(found)

    together = go(3)
    assert not together[-1].is_inference()  # it may be trained on
    assert not together[-1].requires_grad
    for again in (go(3), go(3, memory_gb=4 * 16 * net.width * 9 * 2e-9)):  # two blocks at a time
        assert all(torch.equal(a, b) for a, b in zip(together, again, strict=True))
    for part in (slice(0, 2), slice(2, 7)):
        assert torch.equal(together[-1][part], go(3, part)[-1])
    rest = go(3, solutions=together[4], before=5)
    assert len(rest) == 3
    assert torch.equal(rest[-1], together[-1])
    assert not torch.equal(together[-1], go(4)[-1])


@pytest.mark.slow
@pytest.mark.usefixtures("rounded_lengths")
@pytest.mark.parametrize("start", ["greedy", "insertion-angle"])
def test_neither_parts_nor_memory_change_anything(case: Any, start: Any) -> None:
    problem, _, net, instances = case
    whole = decode(problem, net, instances, prc(start=start))
    for size in (1, 3):
        assert torch.equal(whole, decode(problem, net, instances, prc(start=start, batch_size=size)))
    little = 4 * 16 * net.width * (N + 2) * 1e-9  # one greedy instance
    assert blocks_per_batch(net, little, N) == 1
    assert torch.equal(whole, decode(problem, net, instances, prc(start=start), memory_gb=little))


def test_a_budget_counts_blocks_and_not_instances(case: Any) -> None:
    """Of instances that would not fit, blocks do: and of what does not fit, the line says how much it needs."""
    problem, _, net, instances = case
    little = 4 * 16 * net.width * 10 * 1e-9
    decode(problem, net, instances, prc(longest=8), memory_gb=little)
    for wants_more in (prc(start="greedy", longest=8), prc(longest=N)):
        with pytest.raises(NeurouteError, match="raise it in config.yaml"):
            decode(problem, net, instances, wants_more, memory_gb=little)


def test_random_re_construct_rebuilds_no_longer_sub_paths_than_it_may(case: Any) -> None:
    problem, spec, net, instances = case
    rrc, seen = Decoding(method="rrc", iterations=25, longest=7), []
    decide = net.decide

    def watched(rows: Tensor, *more: Any) -> Tensor:
        seen.append(rows.shape[1])
        return decide(rows, *more)

    net.decide = watched
    assert spec.valid(instances, decode(problem, net, instances, rrc).numpy()).all()
    greedy = N - (problem == "tsp")  # decisions: the last stop of a tour goes without saying, the way to a customer not
    depot = problem == "cvrp"
    assert max(seen[greedy - 1 :]) == 7 + depot
    for longest in (N + 1, N + 10):
        with pytest.raises(NeurouteError, match="give 4 to 30"):
            decode(problem, net, instances, rrc.model_copy(update={"longest": longest}))


def test_the_rule_and_the_cap_get_through(case: Any) -> None:
    problem, spec, net, instances = case
    net.decide = to_the_nearest
    how: list[dict[str, Any]] = [{}, {"rule": "from-the-end"}, {"most_blocks": 1}]
    found = [decode(problem, net, instances, prc(**each, longest=6, iterations=20)) for each in how]
    assert all(spec.valid(instances, solutions.numpy()).all() for solutions in found)
    assert torch.equal(found[0], found[1]) is (problem == "tsp")
    assert not torch.equal(found[0], found[2])


# -- groups of routes, by a network of many starts -------------------------------------------------------------------


COUNT, CUSTOMERS, ITERATIONS = 3, 14, 6


def test_a_network_with_random_embeddings_is_refused() -> None:
    net = Pens(depth=1, width=16, heads=2, feed_forward=24, train_nodes=10)
    with pytest.raises(NeurouteError, match="random embeddings"):
        decode("tsp", net, dataset_coordinates(Dataset(n=N, count=2)), prc())


GROUPS = Decoding(method="prc", iterations=ITERATIONS, longest=5)


@pytest.fixture
def pomo() -> PomoCvrp:
    torch.manual_seed(2)
    return PomoCvrp(depth=1, width=16, heads=4, feed_forward=24, train_nodes=10).eval()


def made(count: int = COUNT, customers: int = CUSTOMERS) -> Vrp:
    return cvrp_dataset(Dataset(problem="cvrp", split="test", n=customers, count=count))


def alone(count: int = COUNT, customers: int = CUSTOMERS) -> torch.Tensor:
    """A route for each customer."""
    return torch.from_numpy(np.stack([from_routes([[c] for c in range(1, customers + 1)])] * count))


def rebuilt(
    pomo: PomoCvrp, instances: Vrp, start: torch.Tensor, how: Decoding = GROUPS, **more: int
) -> list[np.ndarray]:
    batch = CvrpBatch.of(instances, CPU)
    return [each.numpy() for each in SEARCH.of("cvrp").reconstruct(pomo, batch, start, how, 4.0, **more)]


def test_solutions_stay_feasible_and_get_no_longer(pomo: PomoCvrp) -> None:
    instances = made()
    steps = [alone().numpy(), *rebuilt(pomo, instances, alone())]
    assert len(steps) == 1 + ITERATIONS
    assert all(is_feasible(instances, each).all() for each in steps)
    costs = np.stack([cost(instances, each) for each in steps])
    assert (np.diff(costs, axis=0) <= 0).all()
    assert (costs[-1] < costs[0]).all()  # any two customers that fit share a vehicle for less


def test_an_iteration_changes_no_more_than_the_routes_around(pomo: PomoCvrp) -> None:
    before = alone(1, 130)
    for after in rebuilt(pomo, made(1, 130), before):
        for old, new in zip(before.numpy(), after, strict=True):
            gone = {tuple(route) for route in to_routes(old)} - {tuple(route) for route in to_routes(new)}
            assert sum(map(len, gone)) <= AROUND
        before = torch.from_numpy(after)


def test_solutions_are_where_a_local_search_ends(pomo: PomoCvrp) -> None:
    instances = made()
    for i, solution in enumerate(rebuilt(pomo, instances, alone())[-1]):
        again = from_routes(descend(on_vrp_grid(instances[i : i + 1]), to_routes(solution), 0))
        assert cost(instances[i : i + 1], again[None]) == pytest.approx(cost(instances[i : i + 1], solution[None]))


def test_iterations_go_on_where_others_ended(pomo: PomoCvrp) -> None:
    instances, half = made(), GROUPS.model_copy(update={"iterations": ITERATIONS // 2})
    whole = rebuilt(pomo, instances, alone(), seed=3)
    first = rebuilt(pomo, instances, alone(), half, seed=3)
    second = rebuilt(pomo, instances, torch.from_numpy(first[-1]), half, seed=3, iterations_before=len(first))
    np.testing.assert_array_equal(np.stack(whole), np.stack([*first, *second]))


def test_customers_at_the_depot_are_rebuilt(pomo: PomoCvrp) -> None:
    instances = made(1)
    there = Vrp(np.full_like(instances.coords, 0.5), instances.demand, instances.capacity)
    assert all(is_feasible(there, each).all() for each in rebuilt(pomo, there, alone(1)))


def test_a_batch_is_its_instances_alone(pomo: PomoCvrp) -> None:
    instances, together = made(), rebuilt(pomo, made(), alone(), seed=3)
    for i in range(COUNT):
        single = rebuilt(pomo, instances[i : i + 1], alone(1), seed=3, first=i)
        np.testing.assert_array_equal(np.concatenate(single), np.stack(together)[:, i])
