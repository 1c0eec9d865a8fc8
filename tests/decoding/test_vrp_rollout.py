"""The 16 VRPs: what may come next, by the definitions in plain Python, what is driven, and gates that draw."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import one_line
from torch import Tensor

from many_starts import CPU, AnyLogits, N, Taste, Vehicle, case_of
from networks import awake
from neuroute.datasets.streams import vrp_dataset
from neuroute.decoding.decode import decode, instances_per_batch
from neuroute.decoding.multi_start import multi_start, roll_out
from neuroute.decoding.vrp import VRP, VrpBatch, VrpRollout
from neuroute.networks.blocks.routing import Routing
from neuroute.networks.mvmoe import MvMoe
from neuroute.problems.vrp import SWITCHES, Vrp, check_instances, lengths, number_of_starts, valid
from neuroute.solvers.nearest import vrp_solutions
from neuroute.specs.objects import Dataset, Decoding

V = 12


def instances(variant: str, count: int = 4, n: int = V, capacity: int | None = 14) -> Vrp:
    return vrp_dataset(Dataset(problem="vrp", variant=variant, n=n, count=count, capacity=capacity))


# -- what may come next ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", SWITCHES)
def test_states_and_closed_nodes_are_those_of_the_definitions(variant: str) -> None:
    """Every move of random solutions; each constraint of the variant is seen to close what no other does."""
    torch.manual_seed(1)
    batch = instances(variant, 6)
    on_device = VrpBatch.of(batch, CPU)
    starts = on_device.start_nodes(3)
    starts[0, 0] = 0
    routes = VrpRollout(on_device, starts, torch.float64)
    vehicles = [[Vehicle(batch, row) for _ in range(3)] for row in range(6)]
    moved, empties = starts, 0
    while True:
        for row in range(6):
            for tour in range(3):
                vehicle = vehicles[row][tour]
                vehicle.move(int(moved[row, tour]))
                np.testing.assert_allclose(routes.context[row, tour].numpy(), vehicle.context(), atol=1e-12)
                expected = [vehicle.may_go(node) for node in range(V + 1)]
                assert (routes.action_mask[row, tour] == 0).tolist() == expected
                empties += bool(vehicle.waiting) and vehicle.at == 0 and vehicle.load == 0
        if routes.done():
            break
        moved = (torch.randn(6, 3, V + 1) + routes.action_mask).argmax(-1)
        routes.step(moved)
    assert (empties > 0) == SWITCHES[variant].backhaul
    assert all(not vehicle.waiting for row in vehicles for vehicle in row)


# -- any instances -----------------------------------------------------------------------------------------------------


def any_instances(rng: np.random.Generator, variant: str, count: int, customers: int) -> Vrp:
    """Anything that passes `check_instances`: other limits, windows, service times and shares of backhauls."""
    on = SWITCHES[variant]
    shape = (count, customers + 1)
    coords = rng.random((*shape, 2)).astype(np.float32)
    demand = rng.integers(1, 10, shape)
    if on.backhaul:
        demand *= np.where(rng.random(shape) < rng.random(), -1, 1)
        demand[:, 1] = -abs(demand[:, 1])  # so that every batch has one
    demand[:, 0] = 0
    capacity = abs(demand).max(1) + rng.integers(0, 20, count)
    out = np.linalg.norm(coords.astype(float) - coords[:, :1], axis=-1)
    limit = (1 if on.open else 2) * out.max(1) + rng.random(count) * rng.choice([0, 1]) if on.limit else None
    windows = service = None
    if on.windows:
        service = (rng.random(shape) * 0.3).astype(np.float32)
        service[:, 0] = 0
        opens = out * rng.random(shape) * 3
        windows = np.stack([opens, np.maximum(opens, out) + rng.random(shape) * 0.3], axis=-1).astype(np.float32)
        windows[:, 0, 0] = 0
        windows[:, 0, 1] = (np.maximum(out, opens) + service + out).max(1)
    return Vrp(coords, demand, capacity, on.open, limit, windows, service)


@pytest.mark.slow
@pytest.mark.parametrize("variant", SWITCHES)
@settings(deadline=None, max_examples=15)
@given(st.integers(1, 20), st.integers(1, 4), st.integers(0, 2**31))
def test_random_policies_may_be_driven_and_lengths_are_right(
    variant: str, customers: int, count: int, seed: int
) -> None:
    torch.manual_seed(seed)
    batch = any_instances(np.random.default_rng(seed), variant, count, customers)
    assert batch.variant == variant
    check_instances(batch, "drawn")
    on_device = VrpBatch.of(batch, CPU)
    starts = on_device.start_nodes(number_of_starts(batch))
    starts = torch.cat([starts, torch.zeros_like(starts[:, :1])], dim=1)
    found = roll_out(AnyLogits(), AnyLogits, on_device, starts)
    assert found.shape == (*starts.shape, 2, customers)
    measured = on_device.lengths(found)
    for tour in range(starts.shape[1]):
        solutions = found[:, tour].numpy()
        assert valid(batch, solutions, "in order").all()
        np.testing.assert_allclose(measured[:, tour].numpy(), lengths(batch, solutions), rtol=1e-12)
    assert torch.equal(found[:, :-1, 0, 0], starts[:, :-1])


@pytest.mark.parametrize("variant", SWITCHES)
def test_nearest_neighbours(variant: str) -> None:
    batch = instances(variant)
    found = vrp_solutions(batch)
    assert valid(batch, found, "in order").all()
    torch.manual_seed(0)
    on_device = VrpBatch.of(batch, CPU)
    random = roll_out(AnyLogits(), AnyLogits, on_device, torch.zeros(4, 1, dtype=torch.int64))[:, 0].numpy()
    assert lengths(batch, found).mean() < lengths(batch, random).mean()
    for row in range(4):
        vehicle = Vehicle(batch, row)
        for customer, through in zip(*found[row].tolist(), strict=True):
            if through and vehicle.at:
                assert not any(vehicle.may_go(c) for c in vehicle.waiting)
                vehicle.move(0)
            near = min((c for c in vehicle.waiting if vehicle.may_go(c)), key=lambda c: vehicle.way(vehicle.at, c))
            assert near == customer
            vehicle.move(customer)


# -- starts ---------------------------------------------------------------------------------------------


def test_solutions_start_at_customers_that_are_more_than_a_pick_up() -> None:
    demand = torch.tensor([[0, -1, 2, 3, -4, 5], [0, -1, -2, -3, -4, -5], [0, 1, 2, 3, 4, 5], [0, -1, -1, 2, -1, -1]])
    batch = VrpBatch(torch.zeros(4, 6, 2), demand, *torch.zeros(4, 4, 1).unbind(), SWITCHES["VRPB"])
    assert batch.start_nodes(3).tolist() == [[2, 3, 5], [1, 2, 3], [1, 2, 3], [4 - 1] * 3]
    assert batch.start_nodes(5)[0].tolist() == [2, 3, 5, 2, 3]
    for variant, number in (("VRPTW", 50), ("VRPB", 40), ("OVRPBLTW", 40)):
        assert number_of_starts(instances(variant, n=50)) == number


def test_one_start_is_the_choice_of_the_network() -> None:
    case = case_of("VRPB")
    batch = case.instances()
    with torch.inference_mode():
        on_device = case.batch(batch)
        own = roll_out(case.net, case.prepare(on_device), on_device, torch.zeros(4, 1, dtype=torch.int64))[:, 0]
    assert torch.equal(case.solve(batch, 1), own)
    assert torch.equal(case.solve(batch, N), case.solve(batch))  # more than have deliveries


@pytest.mark.parametrize("customers", [1, 2, 3])
def test_few_customers_or_nothing_but_pick_ups(customers: int) -> None:
    batch = instances("OVRPBLTW", 3, customers)
    batch = replace(batch, demand=batch.demand * np.array([[1], [-1], [1]]))
    for starts in {None, 1, customers}:
        assert valid(batch, multi_start(VRP, Taste(), batch, starts, augment=True).numpy(), "in order").all()


def test_a_mask_stays_as_it_was_while_gradients_need_it() -> None:
    routes = VrpRollout(VrpBatch.of(instances("VRPLTW", 1), CPU), torch.tensor([[1]]), torch.float32)
    before, kept = routes.action_mask, routes.action_mask.clone()
    routes.step(torch.tensor([[0]]))
    assert torch.equal(before, kept)
    assert not torch.equal(routes.action_mask, kept)


@pytest.mark.parametrize("variant", ["CVRP", "OVRPBLTW"])
def test_scores_that_are_no_numbers_end_in_one_clear_line(variant: str) -> None:
    class Nowhere(Taste):
        def decide(self, prepared: Any, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
            return mask + torch.nan

    with one_line("scores are not finite .diverged training"):
        multi_start(VRP, Nowhere(), instances(variant))


# -- as a way of decoding --------------------------------------------------------------------------------------------


SHAPE: dict[str, Any] = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 24, "train_nodes": V}
DRAWING: list[dict[str, Any]] = [
    {"hierarchy": "step"},
    {"hierarchy": "episode"},
    {"hierarchy": "random"},
    {"method": "random"},
    {"method": "random", "level": "problem"},
]
MIXING: list[dict[str, Any]] = [{"method": "expert-choice"}, {"decoder_method": "soft"}, {"level": "problem"}]


def small(**arguments: Any) -> MvMoe:
    """Gates that tell tokens apart, and norms whose means tell gates something, which at first they do not."""
    net: MvMoe = awake(MvMoe, **SHAPE | arguments).float()
    return net


@pytest.mark.parametrize("arguments", [*DRAWING, *MIXING])
def test_what_a_gate_makes_of_a_batch_is_repeated_whatever_the_memory(arguments: dict[str, Any]) -> None:
    net, batch = small(**arguments), instances("OVRPTW", 12)
    assert net.is_batch_dependent
    decoding = Decoding(starts="all", augment=True)
    found = decode("vrp", net, batch, decoding)
    assert torch.equal(decode("vrp", net, batch, decoding), found)
    assert torch.equal(decode("vrp", net, batch, decoding, memory_gb=0.05), found)
    assert valid(batch, found.numpy()).all()
    if arguments in DRAWING:
        torch.manual_seed(5)  # torch's own numbers are not what is drawn
        assert torch.equal(decode("vrp", net, batch, decoding), found)


@pytest.mark.parametrize("arguments", [{}, {"experts": 0}, {"level": "instance"}, {"norm": "layer"}])
def test_without_such_gates_batches_are_as_large_as_fits_and_change_nothing(arguments: dict[str, Any]) -> None:
    """In float64: where float32 rounds otherwise in other batches, a near tie may end in another solution."""
    net, batch = small(**arguments).double(), instances("OVRPTW")
    floats = {name: getattr(batch, name).astype(np.float64) for name in ("coords", "windows", "service")}
    batch = replace(batch, **floats)
    assert not net.is_batch_dependent
    decoding = Decoding(starts="all")
    in_one = lengths(batch, decode("vrp", net, batch, decoding).numpy())
    by_one = lengths(batch, decode("vrp", net, batch, Decoding(starts="all", batch_size=1)).numpy())
    assert in_one == pytest.approx(by_one, rel=1e-12)


def test_each_batch_draws_from_the_number_of_its_first_instance() -> None:
    net, batch = small(hierarchy="random"), instances("OVRP", 4)
    found = decode("vrp", net, batch, Decoding(starts="all", batch_size=2))
    for first in (0, 2):
        part, routing = (
            VrpBatch.of(batch[first : first + 2], torch.device("cpu")),
            Routing(torch.Generator().manual_seed(first)),
        )
        with torch.inference_mode():
            prepared = net.prepare(net.encode(part.coords, part.share, part.windows, routing), routing)
            routes = VrpRollout(part, part.start_nodes(V), torch.float32)
            while not routes.done():
                logits = net.decide(prepared, routes.context, routes.current, routes.action_mask)
                routes.step(logits.argmax(-1))
        for row, solutions in enumerate(routes.solutions().numpy()):
            one = batch[np.full(V, first + row)]
            shortest = solutions[lengths(one, solutions).argmin()]
            assert (found[first + row].numpy() == shortest).all()


def test_instances_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, light = small(), small(hierarchy="step")
    decoding = Decoding(starts="all", augment=True)
    assert VRP.batch_sizes(light, V + 1, 8 * V, 8, 4.0)[1] == 100
    assert instances_per_batch(light, V, decoding, 4.0) == 100
    assert instances_per_batch(light, V, decoding.model_copy(update={"batch_size": 7}), 4.0) == 7
    monkeypatch.setattr("neuroute.decoding.environment.batch_size_for", lambda *_: 1000)
    one = 48 * (V + 1) * 8 * V / 1e9  # of an instance's tours, in GB
    for fits in (1, 3, 20):
        assert instances_per_batch(plain, V, decoding, 2 * one * (fits + 0.5)) == fits
        assert instances_per_batch(light, V, decoding, 2 * one * (fits + 0.5)) <= fits
