"""The label store with CVRP solutions: made, resumed, extended, verified, refused when they do not fit."""

import numpy as np
import pytest
from refusals import one_line

from neuroute.core.errors import NeurouteError
from neuroute.datasets.labels import make_labels
from neuroute.datasets.problem_specs import CVRP
from neuroute.datasets.stored_labels import load_tours
from neuroute.datasets.streams import cvrp_dataset
from neuroute.plan.objects import Dataset, Labels
from neuroute.problems.cvrp import canonical, cost, is_feasible
from neuroute.problems.vrp import from_routes
from neuroute.solvers.registry import get

pytest.importorskip("hygese")


def wanted(count: int, n: int = 6, solver: str = "hgs-short", **more) -> Labels:
    return Labels(dataset=Dataset(problem="cvrp", n=n, count=count, **more), solver=solver)


def test_labels_are_feasible_canonical_and_as_long_as_the_manifest_says(tmp_path):
    block = wanted(12)
    manifest = make_labels(block, tmp_path, [], workers=1)
    solutions, batch = load_tours(block, [tmp_path]), cvrp_dataset(block.dataset)
    assert (solutions.dtype, solutions.shape) == (np.uint8, (12, 2, 6))
    assert is_feasible(batch, solutions).all()
    np.testing.assert_array_equal(canonical(solutions), solutions)
    assert manifest["mean_length"] == pytest.approx(cost(batch, solutions).mean())
    assert (manifest["solved"], manifest["cached"], manifest["solver"]) == (12, 0, "hgs-short")
    assert block.shard_file(0) == "cvrp_uniform_test_n6_s0_hgs-short.npy"
    again = make_labels(block, tmp_path, [], workers=1)
    assert (again["solved"], again["shards"]) == (0, manifest["shards"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s[:, ::-1].copy(), "row 0 does not serve every customer once within the capacity"),
        (lambda s: np.stack([s[:, 0], np.eye(1, s.shape[2], dtype=np.uint8).repeat(len(s), 0)], 1), "row 0 does not"),
        (lambda s: s[:, 0].copy(), r"uint8 \(12, 20\) where uint8 \(up to 10000, 2, 20\) is expected"),
        (lambda s: s.astype(np.int32), "int32 .* where uint8"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, change, message):
    block = wanted(12, 20)
    make_labels(block, tmp_path, [], workers=1)
    path = tmp_path / block.shard_file(0)
    np.save(path, change(np.load(path)))
    with one_line(message):
        make_labels(block, tmp_path, [], workers=1)
    with pytest.raises(NeurouteError):
        load_tours(block, [tmp_path])


def test_a_solver_without_cvrp_says_so():
    instance = cvrp_dataset(Dataset(problem="cvrp", n=5, count=1))
    with pytest.raises(NeurouteError, match="'concorde' does not solve CVRP instances; 'hgs' does"):
        CVRP.solve(get("concorde"), instance, 0)


def test_hgs_finds_the_optimum_of_tiny_instances_and_repeats_itself():
    from itertools import permutations, product

    batch = cvrp_dataset(Dataset(problem="cvrp", n=5, count=3))
    every = np.array([[o, (1, *v)] for o in permutations(range(1, 6)) for v in product((0, 1), repeat=4)])
    for row in range(3):
        one = batch[np.full(len(every), row)]
        best = cost(one, every)[is_feasible(one, every)].min()
        arguments = batch.coords[row], batch.demand[row], int(batch.capacity[row]), 7
        routes = get("hgs-short").solve_cvrp(*arguments)
        assert routes == get("hgs-short").solve_cvrp(*arguments)
        assert cost(batch[row : row + 1], from_routes(routes)[None])[0] == pytest.approx(best)


def test_a_search_without_a_feasible_solution_is_made_longer():
    """A hundred iterations find none for this instance, a thousand do."""
    one = cvrp_dataset(Dataset(problem="cvrp", split="train", n=10, first=488, count=1))
    routes = get("hgs-short").solve_cvrp(one.coords[0], one.demand[0], int(one.capacity[0]), 0)
    assert is_feasible(one, from_routes(routes)[None]).all()
