"""PRC as a way of decoding, for both problems: starts, milestones, splits, limits."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute.datasets.cvrp_kind import KIND as CVRP
from neuroute.datasets.streams import cvrp_dataset, dataset_coordinates
from neuroute.datasets.tsp_kind import KIND as TSP
from neuroute.decoding import cvrp, decode
from neuroute.errors import NeurouteError
from neuroute.networks.pens import Pens
from neuroute.networks.sit import Sit
from neuroute.networks.sit_cvrp import SitCvrp
from neuroute.plan.objects import Dataset, Decoding
from neuroute.problems.cvrp import Cvrp
from neuroute.solvers import registry

pytestmark = pytest.mark.usefixtures("one_thread")

N = 30
PROBLEMS = {"tsp": (decode, TSP, Sit), "cvrp": (cvrp, CVRP, SitCvrp)}


def prc(**what: Any) -> Decoding:
    return Decoding(**({"method": "prc", "iterations": 6, "start": "insertion-angle"} | what))


@pytest.fixture(params=PROBLEMS)
def problem(request: pytest.FixtureRequest) -> Any:
    """(module that decodes, kind, network, instances)"""
    module, kind, network = PROBLEMS[request.param]
    torch.manual_seed(1)
    net = network(depth=1, width=16, heads=2, feed_forward=24, representatives=2, train_nodes=10).double().eval()
    dataset = Dataset(problem=request.param, n=N, count=7)
    if request.param == "tsp":
        return module, kind, net, dataset_coordinates(dataset).astype(np.float64)
    found = cvrp_dataset(dataset)
    return module, kind, net, Cvrp(found.coords.astype(np.float64), found.demand, found.capacity)


def to_the_nearest(rows: Tensor, *left_and_scale: Any) -> Tensor:
    """Straight, wherever there is a choice."""
    way = -(rows[:, 1:-1, :2] - rows[:, :1, :2]).norm(dim=-1)
    return way if rows.shape[-1] == 2 else torch.stack([way, way - 10], dim=-1)


@pytest.mark.parametrize("start", ["greedy", "insertion-angle", "insertion-published"])
def test_milestones_are_what_so_many_iterations_give_and_the_last_is_decode(problem: Any, start: Any) -> None:
    module, kind, net, instances = problem
    if start != "greedy":
        net.decide = to_the_nearest  # a random network does not improve what is good
    how = {"start": start, "longest": 7}
    found = module.improve(net, instances, prc(**how, iterations=20, milestones=(0, 2, 20)))
    assert [m for m, _, _ in found] == [0, 2, 20]
    for m, solutions, _ in found:
        assert torch.equal(solutions, module.decode(net, instances, prc(**how, iterations=m)))
        assert kind.valid(instances, solutions.numpy()).all()
    lengths = np.stack([kind.lengths(instances, solutions.numpy()) for _, solutions, _ in found])
    assert (np.diff(lengths, axis=0) <= 1e-9).all()
    assert lengths[2].mean() < lengths[0].mean() - 1e-3
    seconds = [s for _, _, s in found]
    assert 0 < seconds[0] <= seconds[1] <= seconds[2]


def test_it_starts_from_what_it_says(problem: Any) -> None:
    module, kind, net, instances = problem
    own = module.decode(net, instances, prc(start="greedy", iterations=0))
    assert torch.equal(own, module.construct(net, instances))
    solver = registry.get("insertion-published")
    for i in range(7):
        start = module.decode(net, instances, prc(start="insertion-published", iterations=0))[i].numpy()
        np.testing.assert_array_equal(start, kind.solve(solver, instances[i : i + 1], i))


@pytest.mark.usefixtures("rounded_lengths")
@pytest.mark.parametrize("start", ["greedy", "insertion-angle"])
def test_neither_parts_nor_memory_change_anything(problem: Any, start: Any) -> None:
    module, _, net, instances = problem
    whole = module.decode(net, instances, prc(start=start))
    for size in (1, 3):
        assert torch.equal(whole, module.decode(net, instances, prc(start=start, batch_size=size)))
    little = 4 * 16 * net.width * (N + 2) * 1e-9  # one greedy instance
    assert decode.blocks_at_once(net, little, N) == 1
    assert torch.equal(whole, module.decode(net, instances, prc(start=start), memory_gb=little))


def test_a_budget_counts_blocks_and_not_instances(problem: Any) -> None:
    """Of instances that would not fit, blocks do: and of what does not fit, the line says how much it needs."""
    module, _, net, instances = problem
    little = 4 * 16 * net.width * 10 * 1e-9
    module.decode(net, instances, prc(longest=8), memory_gb=little)
    for wants_more in (prc(start="greedy", longest=8), prc(longest=N)):
        with pytest.raises(NeurouteError, match="set it in config.yaml"):
            module.decode(net, instances, wants_more, memory_gb=little)


def test_sub_paths_longer_than_an_instance_are_refused_before_anything_runs(problem: Any) -> None:
    module, _, net, instances = problem
    net.decide = None  # nothing may be decided
    with pytest.raises(NeurouteError, match="give a number from 4 to 30") as refusal:
        module.decode(net, instances, prc(start="greedy", longest=N + 1))
    assert "\n" not in str(refusal.value)


def test_the_rule_and_the_cap_get_through(problem: Any) -> None:
    module, kind, net, instances = problem
    net.decide = to_the_nearest
    how: list[dict[str, Any]] = [{}, {"rule": "from-the-end"}, {"most_blocks": 1}]
    found = [module.decode(net, instances, prc(**each, longest=6, iterations=20)) for each in how]
    assert all(kind.valid(instances, solutions.numpy()).all() for solutions in found)
    assert torch.equal(found[0], found[1]) is (kind is TSP)
    assert not torch.equal(found[0], found[2])


def test_a_network_with_random_embeddings_is_refused() -> None:
    net = Pens(depth=1, width=16, heads=2, feed_forward=24, train_nodes=10)
    with pytest.raises(NeurouteError, match="random embeddings"):
        decode.decode(net, dataset_coordinates(Dataset(n=N, count=2)), prc())
