"""Many starts at once, of every problem: against plain loops, valid, the best of them, symmetric images, in parts."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cvrp import drive

from many_starts import CPU, NETWORKS, AnyLogits, Case, N, Vehicle, case_of
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.decode import construct, decode, instances_per_batch
from neuroute.decoding.environment import BYTES
from neuroute.decoding.multi_start import augment8, roll_out
from neuroute.decoding.tsp import TSP
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.vrp import SWITCHES, Vrp, from_routes
from neuroute.specs.objects import Decoding

# -- against plain loops ----------------------------------------------------------------------------------------------


@torch.no_grad()
def plain_tour(net: Any, coords: np.ndarray, start: int) -> np.ndarray:
    """A greedy tour of one instance, one decision after the other, the last one included."""
    prepared, n = net.prepare(net.encode(torch.from_numpy(coords))), coords.shape[1]
    tour = [start]
    while len(tour) < n:
        mask = torch.zeros(1, 1, n, dtype=torch.float64)
        mask[..., tour] = -torch.inf
        logits = net.decide(prepared, torch.tensor([[start]]), torch.tensor([[tour[-1]]]), mask)
        tour.append(int(logits[0, 0].argmax()))
    return np.array(tour)


@torch.no_grad()
def plain_routes(net: Any, one: Vrp, start: int) -> np.ndarray:
    """A greedy solution of one instance, as published: forced to the depot, then to the start; 0: the net's choice."""
    batch, vehicle, stops = CvrpBatch.of(one, CPU), Vehicle(one, 0), [start] if start else []
    prepared = net.prepare(net.encode(batch.coords, batch.share))
    if start:
        vehicle.move(start)
    while vehicle.waiting:
        mask = torch.full((1, 1, N + 1), -torch.inf, dtype=torch.float64)
        mask[..., [node for node in range(N + 1) if vehicle.may_go(node)]] = 0
        share = torch.tensor([[vehicle.context()[0]]], dtype=torch.float64)
        stops.append(int(net.decide(prepared, share, torch.tensor([[vehicle.at]]), mask)[0, 0].argmax()))
        vehicle.move(stops[-1])
    text = ",".join(map(str, stops))
    return from_routes([[int(c) for c in route.split(",") if c] for route in text.split(",0,")])


def test_equals_a_plain_loop(planar: Case) -> None:
    instances = planar.instances()
    batch, depot = planar.batch(instances), planar.environment.depots
    build = plain_routes if depot else plain_tour
    each = [instances[i : i + 1] for i in range(4)]
    plain = [[build(planar.net, one, start) for start in range(N + depot)] for one in each]
    by_hand = torch.from_numpy(np.array(plain))
    with torch.inference_mode():
        solutions = roll_out(planar.net, planar.prepare(batch), batch, torch.arange(N + depot).expand(4, -1))
    assert torch.equal(solutions, by_hand)
    lengths = batch.lengths(by_hand)
    for start in range(N + depot):
        np.testing.assert_allclose(lengths[:, start], planar.lengths(instances, by_hand[:, start]), rtol=1e-12)
    lengths = lengths[:, depot:]  # two starts of one tour differ by rounding, which decides
    for starts in (None, 3):
        best = depot + lengths[:, :starts].argmin(1)
        assert planar.same(planar.solve(instances, starts), by_hand[torch.arange(4), best])
    assert torch.equal(planar.solve(instances, 1), by_hand[:, 0])  # with a depot its own choice of the first customer


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NETWORKS, *SWITCHES])
def test_the_best_is_that_of_one_start_and_one_image_after_the_other(name: str) -> None:
    case = case_of(name)
    instances = case.instances(n=8)
    batch, number = case.batch(instances), case.environment.count_starts(instances, None)
    solutions, with_images = case.solve(instances), case.solve(instances, augment=True)
    best = torch.full((4,), torch.inf, dtype=torch.float64)
    with torch.inference_mode():
        for image, coords in enumerate(augment8(batch.coords)):
            prepared = case.prepare(batch.at(coords))
            for start in batch.start_nodes(number).split(1, dim=1):
                best = torch.minimum(best, batch.lengths(roll_out(case.net, prepared, batch, start))[:, 0])
            if image == 0:
                np.testing.assert_allclose(case.lengths(instances, solutions), best.numpy(), rtol=1e-12)
    np.testing.assert_allclose(case.lengths(instances, with_images), best.numpy(), rtol=1e-12)
    assert case.valid(instances, solutions)
    assert case.valid(instances, with_images)


# -- any policy -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 25), st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**31), st.booleans())
def test_random_routes_are_feasible_and_lengths_right(
    customers: int, batch: int, tours: int, seed: int, tight: bool
) -> None:
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    demand = np.zeros((batch, customers + 1), np.int64)
    demand[:, 1:] = rng.integers(1, 10, (batch, customers))
    capacity = demand.max(1) + (0 if tight else rng.integers(0, 40, batch))
    instances = Vrp(rng.random((batch, customers + 1, 2)), demand, capacity)
    starts = torch.from_numpy(rng.integers(0, customers + 1, (batch, tours)))
    drawn = CvrpBatch.of(instances, CPU)
    solutions = roll_out(AnyLogits(), AnyLogits, drawn, starts)  # type: ignore[arg-type]
    lengths = drawn.lengths(solutions)
    for tour in range(tours):
        assert is_feasible(instances, solutions[:, tour].numpy()).all()
        np.testing.assert_allclose(lengths[:, tour], cost(instances, solutions[:, tour].numpy()), rtol=1e-12)
        for row in range(batch):
            by_hand = drive(instances, row, solutions[row, tour].tolist())
            assert float(lengths[row, tour]) == pytest.approx(by_hand, rel=1e-12)
            assert starts[row, tour] in (0, solutions[row, tour, 0, 0])


# -- sizes, parts, images ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 30])
def test_solutions_of_any_size_are_valid(case: Case, n: int) -> None:
    n = max(n, 2 - case.environment.depots)
    instances = case.instances(3, n)
    for starts in {None, 1, min(n, case.environment.count_starts(instances, None))}:
        solutions = case.solve(instances, starts, augment=True)
        assert solutions.dtype == torch.int64
        assert case.valid(instances, solutions)
    assert case.solve(case.instances(3, n)[:0]).shape == (0, *case.environment.shape(n))


@pytest.mark.slow
@pytest.mark.parametrize("augment", [False, True])
def test_how_many_at_a_time_changes_nothing(case: Case, augment: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of what the encoder takes there would be too little.
    monkeypatch.setattr("neuroute.decoding.environment.batch_size_for", lambda *_: 10)
    instances, nodes = case.instances(5), case.environment.nodes(N)
    whole = case.solve(instances, augment=augment)
    for tours in (1, 7, 40, 100):
        memory_gb = (2 if case.problem == "vrp" else 1) * tours * BYTES * nodes / 1e9
        assert case.same(case.solve(instances, augment=augment, memory_gb=memory_gb), whole)
    assert case.same(case.solve(instances, augment=augment, batch_size=2), whole)
    rows = [instances[i : i + 1] for i in range(5)]
    for row, one in enumerate(rows):
        if case.problem != "vrp" or one.variant == instances.variant:
            assert case.same(case.solve(one, augment=augment), whole[row : row + 1])


def test_images_of_the_square() -> None:
    """Eight different isometries of the square onto itself, the identity first; an image has the same images."""
    corners = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]], dtype=torch.float64)
    images = augment8(corners)
    assert torch.equal(images[0], corners)
    assert len({tuple(image.flatten().tolist()) for image in images}) == 8
    assert all({tuple(p) for p in image.tolist()} == {tuple(p) for p in corners.tolist()} for image in images)
    points = torch.rand(4, N, 2, dtype=torch.float64)
    assert augment8(points).shape == (8, 4, N, 2)
    forms = [{tuple(a.tolist()) for a in augment8(p).flatten(1).round(decimals=9) + 0.0} for p in augment8(points)]
    for image, form in zip(augment8(points), forms, strict=True):
        torch.testing.assert_close(torch.cdist(image, image), torch.cdist(points, points))
        assert form == forms[0]


def test_what_the_encoder_needs_counts() -> None:
    for net in (case_of("pomo").net, case_of("icam").net):
        assert TSP.batch_sizes(net, 1000, 1, 1, 4.0)[1] <= 4e9 / (64 * 16 * 1000)
        assert TSP.batch_sizes(net, 1000, 8, 8, 4.0)[1] <= 4e9 / (64 * 16 * 1000) / 8
        assert TSP.batch_sizes(net, 1000, 1000, 1, 1.0) == (20833, 8)


# -- as a way of decoding --------------------------------------------------------------------------------------------


ALL, AUGMENTED = Decoding(starts="all"), Decoding(starts="all", augment=True)


def test_it_is_what_many_starts_find(case: Case) -> None:
    problem, instances = case.problem, case.instances(7, 20)
    found = {}
    for decoding in (Decoding(), Decoding(starts=3), ALL, Decoding(augment=True), AUGMENTED):
        number = None if decoding.starts == "all" else decoding.starts
        solutions = decode(problem, case.net, instances, decoding)
        assert torch.equal(solutions, case.solve(instances, number, augment=decoding.augment))
        assert case.valid(instances, solutions)  # every node once, no vehicle overfull
        found[decoding.name] = case.lengths(instances, solutions)
    assert torch.equal(construct(problem, case.net, instances), decode(problem, case.net, instances, ALL))
    pairs = (("multistart", "multistart3"), ("multistart-x8", "multistart"), ("multistart-x8", "greedy-x8"))
    for better, worse in pairs:
        assert (found[better] <= found[worse] + 1e-12).all()
        assert found[better].mean() < found[worse].mean() - 1e-6
    if problem == "tsp":  # whose only start is the first of all; that of routes is the network's own
        assert (found["multistart"] <= found["greedy"] + 1e-12).all()
        assert (decode(problem, case.net, instances, Decoding())[:, 0] == 0).all()


def test_memory_changes_nothing_and_how_many_are_in_hand_is_known(
    planar: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the records, and for progress."""
    problem, net, instances = planar.problem, planar.net, planar.instances(7)
    encoded: list[int] = []
    encode = net.encode
    monkeypatch.setattr(
        net, "encode", lambda coords, *demand: (encoded.append(len(coords)), encode(coords, *demand))[1]
    )
    nodes = planar.environment.nodes(N)
    least = 1.5 * 4 * 16 * 16 * (nodes + 1) / 1e9
    assert instances_per_batch(net, N, AUGMENTED, least) == 1
    for decoding in (Decoding(), ALL, AUGMENTED, AUGMENTED.model_copy(update={"batch_size": 3})):
        whole = decode(problem, net, instances, decoding)
        for memory_gb in (4.0, 2e-3, 6e-4, least):
            encoded.clear()
            assert planar.same(decode(problem, net, instances, decoding, memory_gb), whole)
            images = 8 if decoding.augment else 1
            assert encoded[0] == images * min(7, instances_per_batch(net, N, decoding, memory_gb))
            assert sum(encoded) == images * 7


@pytest.mark.parametrize("name", ["pomo", "icam"])
def test_beams_from_all_starts_are_no_longer_than_one_which_is_among_them(name: str) -> None:
    case = case_of(name)
    net, coords = case.net.float(), case.instances(7, 20).astype(np.float32)
    beams = [Decoding(method="beam", beam=3), Decoding(method="beam", beam=3, starts="all")]
    one, every = (case.lengths(coords, decode("tsp", net, coords, beam)) for beam in beams)
    assert (every <= one + 1e-9).all()
    assert (every < one - 1e-9).any()
