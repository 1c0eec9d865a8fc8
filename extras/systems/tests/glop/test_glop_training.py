"""Training of GLOP: what its losses and its data are, and that partitions are judged by revisers."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from published_trainings import published_phases
from refusals import one_line
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.networks.weights import build
from neuroute.problems.sub_paths import path_lengths
from neuroute.problems.vrp import from_routes, to_routes
from neuroute.specs.decodings import Decoding, Revision
from neuroute_systems.blocks.path_attention import Prepared
from neuroute_systems.glop.decoding import PartitionRollout, partition, solve_routes
from neuroute_systems.glop.network import FLOOR, Glop, Heat
from neuroute_systems.glop.partitioning import partitioning, revised_costs
from neuroute_systems.glop.revising import _open, draw_paths, greedy_lengths, revising
from neuroute_systems.glop.system import Revising
from tiny import run_training, scheme_of
from tiny_systems import PARTITION, REVISERS, partitioning_run, phase, revisers, revising_run

pytestmark = pytest.mark.usefixtures("one_thread")


def batches(*phases: Any, folder: Path | None = None, **training: Any) -> Any:
    run = revising_run(*phases, **training)
    torch.manual_seed(0)
    net = build(run.network).double()
    return revising(scheme_of(run, net, folder, model=net))


# -- revisers ---------------------------------------------------------------------------------------------------------


def test_the_published_training() -> None:
    t = Revising(phases=published_phases((100, 50, 20)))
    assert [(p.block, p.source, p.epochs) for p in t.phases] == [
        *((block, "drawn", 200) for block in (100, 50, 20)),
        *((block, "revised", 300) for block in (100, 50, 20)),
    ]
    assert t.phases[0].batches_per_epoch == 2500
    assert t.batches == 3 * (200 * 2500 + 300 * 1954)


def test_drawn_paths_lie_in_boxes_of_any_height() -> None:
    points = draw_paths(500, 30, 1)
    tops = points[..., 1].amax(1)
    assert bool(((points >= 0) & (points <= 1)).all())
    assert float(points[..., 0].amax(1).min()) > 0.7
    assert torch.histc(tops, 4, 0, 1).min() > 60


def expected_gradient(make: Any, points: Tensor, baseline: Tensor) -> list[Tensor]:
    """Of REINFORCE, by enumeration: the gradient of both directions' mean length, whatever the baseline."""
    reviser, m, total = make.net.reviser(points.shape[1]), points.shape[1], torch.zeros((), dtype=torch.float64)
    prepared = reviser.prepare(points)
    for backwards, inner in itertools.product((False, True), itertools.permutations(range(1, m - 1))):
        ends = (m - 1, 0) if backwards else (0, m - 1)
        order = [ends[0], *inner, ends[1]]
        along = Prepared(*(part[:, order] for part in prepared))
        logs = reviser.decide_all(along, _open(m, points.device)).log_softmax(-1)
        chosen = sum(logs[:, step, step + 1] for step in range(m - 3))
        lengths = path_lengths(points[:, order])
        total = total + ((lengths - baseline) * chosen.exp()).mean()
    return list(torch.autograd.grad(total, list(reviser.parameters()), allow_unused=True))


@pytest.mark.slow
def test_the_loss_has_the_gradient_of_the_expected_length() -> None:
    """Sampled often enough, in evaluation mode, where norms do not mix paths."""
    make = batches(phase(block=4), clip=None)
    make.net.eval()
    points = torch.rand(1, 5, 2, dtype=torch.float64)
    wanted = expected_gradient(make, points, torch.tensor(1.7))
    lengths, logs = make._sample(points.expand(40_000, -1, -1), 7)
    ((lengths - 1.7) * logs).sum(0).mean().backward()
    found = [p.grad for p in make.net.reviser(5).parameters()]
    pairs = [(f, w) for f, w in zip(found, wanted, strict=True) if w is not None]
    flat = [torch.cat([part.flatten() for part in parts]) for parts in zip(*pairs, strict=True)]
    assert float(torch.nn.functional.cosine_similarity(*flat, dim=0)) > 0.98
    assert float((flat[0] - flat[1]).norm() / flat[1].norm()) < 0.2


def test_samples_are_as_likely_as_they_say() -> None:
    make = batches(phase())
    make.net.eval()
    points = torch.rand(1, 5, 2, dtype=torch.float64).expand(6000, -1, -1)
    with torch.no_grad():
        lengths, logs = make._sample(points, 3)
    for one in (0, 1):
        for log in logs[one].unique():
            share = float((logs[one] == log).double().mean())
            assert share == pytest.approx(math.exp(log), abs=0.03)
    assert lengths.shape == logs.shape == (2, 6000)


def test_the_largest_blocks_are_those_of_insertion_at_every_place(tmp_path: Path) -> None:
    make = batches(phase(source="revised", samples=14, nodes=9), folder=tmp_path)
    paths = make._make_paths(make.training.phases[0])
    assert paths.shape == (14, 7, 2)
    for shift in range(1, 7):  # two tours, each cut once at every place
        for tour in range(2):
            torch.testing.assert_close(paths[2 * shift + tour][:-1], paths[2 * (shift - 1) + tour][1:])


def test_smaller_blocks_are_pieces_of_revised_ones(tmp_path: Path) -> None:
    large, small = (phase(source="revised", block=block, samples=8, nodes=18) for block in (8, 4))
    run = revising_run(large, small)
    run = run.model_copy(
        update={"network": REVISERS.model_copy(update={"arguments": REVISERS.arguments | {"blocks": [8, 4]}})}
    )
    net = build(run.network)
    make = revising(scheme_of(run, net, tmp_path, model=net))
    pieces = make._make_paths(small)
    whole = make._rebuilt(make._make_paths(large.model_copy(update={"samples": 4})))
    assert torch.equal(pieces, whole.reshape(8, 4, 2))
    before = make._make_paths(large.model_copy(update={"samples": 4}))
    assert bool((path_lengths(whole) <= path_lengths(before) + 1e-6).all())


def test_greedy_lengths_are_of_both_directions() -> None:
    torch.manual_seed(0)
    reviser = Glop(depth=1, width=16, heads=2, feed_forward=16, blocks=(6,)).double().eval().revisers[0]
    points = torch.rand(9, 6, 2, dtype=torch.float64)
    there, back = greedy_lengths(reviser, points)
    assert bool((there != back).any())
    torch.testing.assert_close(greedy_lengths(reviser, points.flip(1)), torch.stack([back, there]))


def test_the_first_epoch_is_compared_with_a_running_mean() -> None:
    make = batches(phase(epochs=2, samples=2))
    make.restore({"phase": 0, "mean": None, "baseline": {"frozen": make.net.reviser(5).state_dict(), "number": 0}})
    points, lengths = torch.rand(2, 5, 2, dtype=torch.float64), torch.tensor([[3.0, 5.0], [4.0, 4.0]])
    assert float(make._baseline_of(points, lengths, warm_up=True)) == 4.0
    assert float(make._baseline_of(points, lengths + 1, warm_up=True)) == pytest.approx(0.8 * 4 + 0.2 * 5)
    greedy = greedy_lengths(make.net.reviser(5).eval(), points).mean(dim=0)
    assert torch.equal(make._baseline_of(points, lengths, warm_up=False), greedy)


def test_a_wrong_network_is_refused() -> None:
    run = revising_run().model_copy(update={"network": PARTITION})
    with pytest.raises(NeurouteError, match="training is for Glop, not GlopPartition"):
        revising(scheme_of(run, model=None))


# -- partitions -------------------------------------------------------------------------------------------------------


def test_costs_are_those_of_tours_through_the_depot() -> None:
    torch.manual_seed(0)
    net = Glop(depth=1, width=16, heads=2, feed_forward=16, blocks=(6, 4)).double().eval()
    coords = torch.rand(10, 2, dtype=torch.float64)
    parted = torch.from_numpy(
        np.stack([from_routes([[1, 2, 3], [4], [5, 6, 7, 8, 9]]), from_routes([[i] for i in range(1, 10)])])
    )
    found = revised_costs(net, coords, parted, Revision(blocks=((6, 2),), flips="none"))
    out = (coords - coords[0]).norm(dim=-1)
    assert float(found[1]) == pytest.approx(2 * float(out.sum()))

    def shortest(route: list[int]) -> float:
        orders = (torch.tensor([0, *order, 0]) for order in itertools.permutations(route))
        return min(float(path_lengths(coords[order][None])) for order in orders)

    best = shortest([1, 2, 3]) + shortest([4]) + shortest([5, 6, 7, 8, 9])
    assert best - 1e-9 <= float(found[0]) < 1.5 * best


def test_only_a_vehicle_more_than_needed_while_that_can_be() -> None:
    """Five customers of 6 for vehicles of 10: one each, though 3 + 1 vehicles would do by weight."""
    demand = torch.tensor([[0, 6, 6, 6, 6, 6]])
    rollout = PartitionRollout(CvrpBatch(torch.rand(1, 6, 2), demand, torch.tensor([10])), 1, torch.float32)
    seen = []
    for stop in (1, 0, 2, 0, 3, 0, 4, 0, 5):
        seen.append(bool(rollout.action_mask[0, 0, 0] == 0))
        assert bool(rollout.action_mask[0, 0, stop] == 0)
        rollout.step(torch.tensor([[stop]]))
    assert seen == [False, True] * 4 + [False]
    assert rollout.done()


def test_the_depot_waits_for_vehicles_that_carry_the_rest() -> None:
    demand = torch.tensor([[0, 5, 5, 5, 5]])
    rollout = PartitionRollout(CvrpBatch(torch.rand(1, 5, 2), demand, torch.tensor([10])), 1, torch.float32)
    closed = []
    for stop in (1, 0, 2, 3, 0, 4):  # at most 3 vehicles
        rollout.step(torch.tensor([[stop]]))
        closed.append(bool(rollout.action_mask[0, 0, 0] == -torch.inf))
    assert closed[0] is False  # 15 for two more
    assert closed[2] is False  # 10 for one more
    rollout = PartitionRollout(CvrpBatch(torch.rand(1, 5, 2), demand, torch.tensor([10])), 1, torch.float32)
    for stop in (1, 0, 2, 0):
        rollout.step(torch.tensor([[stop]]))
    rollout.step(torch.tensor([[3]]))
    assert bool(rollout.action_mask[0, 0, 0] == -torch.inf)  # the third is the last: 5 are left for none, and fit
    rollout.step(torch.tensor([[4]]))
    assert rollout.done()


def test_routes_get_no_longer_and_keep_their_customers() -> None:
    pytest.importorskip("elkai")
    rng = np.random.default_rng(0)
    coords = rng.random((16, 2)).astype(np.float32)
    coords[3] = coords[7]
    routes = [[1], [2, 3], [4, 5, 6, 7, 3 + 5], list(range(9, 16))]
    found = to_routes(solve_routes(coords, routes))
    assert [sorted(route) for route in found] == [sorted(route) for route in routes]


def test_one_heat_for_all_is_the_floor_elsewhere() -> None:
    net = build(PARTITION).double().eval()
    heat = Heat(torch.tensor([[[1, 2], [0, 2], [1, 3], [1, 2]]]), torch.rand(1, 4, 2, dtype=torch.float64) + 1)
    mask = torch.zeros(1, 2, 4, dtype=torch.float64)
    found = net.decide(heat, mask[..., 0], torch.tensor([[1, 3]]), mask).exp()[0]
    for row, at in zip(found, (1, 3), strict=True):
        wanted = torch.full((4,), FLOOR, dtype=torch.float64)
        wanted[heat.neighbours[0, at]] = heat.weights[0, at]
        torch.testing.assert_close(row, wanted)


def test_partitions_learn_from_revisers(tmp_path: Path, cvrp_store: Path) -> None:
    pytest.importorskip("elkai")
    start = revisers(tmp_path)
    whole = run_training(partitioning_run(), tmp_path / "whole", cvrp_store, start)
    again = run_training(partitioning_run(), tmp_path / "again", cvrp_store, start)
    name = "model.safetensors"
    assert (whole / name).read_bytes() == (again / name).read_bytes()


def test_partitions_need_revisers(tmp_path: Path) -> None:
    run = partitioning_run()
    with pytest.raises(NeurouteError, match="let the run start from one that trains GLOP's revisers"):
        partitioning(scheme_of(run, model=None))
    with pytest.raises(NeurouteError, match="training is for GlopPartition, not Glop"):
        partitioning(scheme_of(run.model_copy(update={"network": REVISERS}), model=None))
    start = revisers(tmp_path).replace(tmp_path / "model.safetensors")
    start.with_name("run.json").write_text('{"weights_sha256": "that of others"}')
    with one_line(r"model\.safetensors: .* differ from run\.json"):
        partitioning(scheme_of(run, model=None, start=start))


def test_other_networks_make_no_partitions() -> None:
    batch = CvrpBatch(torch.rand(1, 5, 2), torch.tensor([[0, 5, 5, 5, 5]]), torch.tensor([10]))
    with pytest.raises(NeurouteError, match="method 'partition' is for GlopPartition, not for Glop"):
        partition(build(REVISERS), batch, Decoding(method="glop:partition"), 1.0, 0)  # type: ignore[arg-type]
