"""CVRP decoding: always feasible, batched = single, PRC never worse, equal to plain loops."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from random_cvrp import drive, random_instances
from torch import Tensor

from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.cvrp import CvrpBatch, complete_routes
from neuroute.decoding.cvrp_search import RULES, prc
from neuroute.decoding.decode import decode
from neuroute.networks.lehd import LehdCvrp
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.cvrp_sub_paths import Blocks, arranged, by_angle, cut_off, draw, draw_within, from_the_end
from neuroute.problems.vrp import Vrp, from_routes, to_routes
from neuroute.specs.objects import Dataset, Decoding

V = 13
RRC = Decoding(method="rrc", iterations=12)


@pytest.fixture
def net() -> LehdCvrp:
    torch.manual_seed(2)
    return LehdCvrp(depth=2, width=16, heads=4, feed_forward=24, train_nodes=10).double().eval()


@pytest.fixture
def batch() -> Vrp:
    found = cvrp_dataset(Dataset(problem="cvrp", n=V, count=7))
    return Vrp(found.coords.astype(np.float64), found.demand, found.capacity)


def plain_greedy(net: LehdCvrp, batch: Vrp, row: int) -> list[list[int]]:
    """One instance, every state gathered anew from the list of unvisited customers."""
    one = CvrpBatch.of(batch[row : row + 1], torch.device("cpu"))
    nodes = net.encode(one.coords, one.share)
    capacity = left = int(batch.capacity[row])
    current, waiting, routes = 0, list(range(1, V + 1)), []
    while waiting:
        logits = net.decide(nodes[:, [current, *waiting, 0]], torch.tensor([left / capacity]).double())[0]
        place, via = divmod(int(logits.flatten().argmax()), 2)
        current = waiting.pop(place)
        need = int(batch.demand[row, current])
        if via or need > left or not routes:
            routes, left = [*routes, []], capacity
        routes[-1].append(current)
        left -= need
    return routes


def test_greedy_equals_the_plain_loop(net: LehdCvrp, batch: Vrp) -> None:
    found = decode("cvrp", net, batch, Decoding()).numpy()
    assert [to_routes(s) for s in found] == [plain_greedy(net, batch, row) for row in range(len(batch))]


@pytest.mark.usefixtures("rounded_lengths")
@pytest.mark.parametrize("decoding", [Decoding(), RRC, Decoding(log_n=False)])
def test_solutions_are_feasible_and_do_not_depend_on_the_batch(net: LehdCvrp, batch: Vrp, decoding: Decoding) -> None:
    together = decode("cvrp", net, batch, decoding)
    assert (together.dtype, together.shape) == (torch.int64, (7, 2, V))
    assert is_feasible(batch, together.numpy()).all()
    for size in (1, 3):
        assert torch.equal(together, decode("cvrp", net, batch, decoding.model_copy(update={"batch_size": size})))
    assert torch.equal(together[:4], decode("cvrp", net, batch[:4], decoding))


def fixed(logit: torch.Tensor):
    """Prefers candidates by a number in their rows, always in the way of the larger logit."""
    return lambda rows, left: rows[:, 1:-1] + logit


def test_a_customer_that_does_not_fit_is_reached_through_the_depot() -> None:
    rows = torch.tensor([[9.0, 1, 4, 3, 2, 9]])[..., None]
    demand = torch.tensor([[0, 2, 3, 3, 4, 0]])
    seen = []

    def decide(rows: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
        seen.append(round(float(left) * 7))
        return fixed(torch.tensor([1.0, 0.0]))(rows, left)

    order, via = complete_routes(decide, rows, demand, torch.tensor([7]), torch.tensor([5]))
    assert order.tolist() == [[0, 2, 3, 4, 1]]
    assert via.tolist() == [[0, 0, 1, 0, 1]]  # 5 - 3, then 3 > 2: 7 - 3, 4 - 4, then 2 > 0
    assert seen == [5, 2, 4, 0]


def test_a_return_that_is_chosen_refills_even_if_the_customer_fits() -> None:
    rows = torch.tensor([[9.0, 3, 2, 1, 9]])[..., None]
    demand = torch.tensor([[0, 1, 1, 1, 0]])
    order, via = complete_routes(fixed(torch.tensor([0.0, 1.0])), rows, demand, torch.tensor([7]), torch.tensor([7]))
    assert (order.tolist(), via.tolist()) == ([[0, 1, 2, 3]], [[0, 1, 1, 1]])


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("how", [Decoding(method="rrc", iterations=3), Decoding(method="beam", beam=64)])
def test_smallest_instances(net: LehdCvrp, n: int, how: Decoding) -> None:
    few = cvrp_dataset(Dataset(problem="cvrp", n=n, count=3))
    assert is_feasible(few, decode("cvrp", net.float(), few, how).numpy()).all()


# -- PRC -------------------------------------------------------------------------------------------------------------


CPU = torch.device("cpu")


def whims(seed: int):
    """Decisions by chance, to the nearest, and by perverse rules: straight on, home, farthest, all alike, NaN."""
    generator = torch.Generator().manual_seed(seed)

    def decide(rows: Tensor, left: Tensor) -> Tensor:
        assert ((left >= 0) & (left <= 1)).all()
        assert (rows[:, -1, 2] == 0).all()  # the depot is last, and nowhere else
        assert (rows[:, :-1, 2] > 0).all()
        way = (rows[:, 1:-1, :2] - rows[:, :1, :2]).norm(dim=-1)[..., None].repeat(1, 1, 2)
        chance = torch.rand(way.shape, generator=generator)
        lean = torch.tensor([10.0, 0.0])
        nearest = torch.tensor([0.1, 0.0]) - way
        kinds = (way, nearest, nearest, way + lean, way - lean, chance + lean, chance - lean, chance, chance)
        kinds += (torch.zeros_like(way), torch.full_like(way, torch.nan))
        return kinds[int(torch.randint(len(kinds), (), generator=generator))]

    return decide


def features(coords: Tensor, share: Tensor) -> Tensor:
    return torch.cat([coords, share[..., None]], dim=-1)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(40))
def test_never_worse_and_never_broken_whatever_is_decided(seed: int, rule) -> None:
    """2 x 20 x 30 instances x 10 iterations, of 4..30 customers, from one to as many routes."""
    customers = int(np.random.default_rng(seed).integers(4, 31))
    instances, solutions = random_instances(30, customers, seed)
    decide = whims(seed)
    found = prc(
        lambda m: decide, features, CvrpBatch.of(instances, CPU), solutions, 10, rule=rule, seed=seed,
        longest=[None, 4, customers][seed % 3], blocks_per_batch=[None, lambda m: 7][seed % 2],
    )  # fmt: skip
    before = [drive(instances, i, s) for i, s in enumerate(solutions.tolist())]
    first = sum(before)
    for now in found:
        assert (now.dtype, now.shape) == (torch.int64, solutions.shape)
        after = [drive(instances, i, s) for i, s in enumerate(now.tolist())]
        assert all(a <= b + 1e-12 for a, b in zip(after, before, strict=True))
        assert is_feasible(instances, now.numpy()).all()
        np.testing.assert_allclose(cost(instances, now.numpy()), after)
        before = after
    assert sum(before) < first


def cut_by_hand(via: list[int], length: int) -> list[tuple[int, int]]:
    """Begin and end of the pieces by the paper's rule, as far as there is more than a stop."""
    pieces = []
    for begin in range(0, len(via) // length * length, length):
        end = begin + length
        while end > begin and end < len(via) and via[end] == 0:  # the route that goes on behind it
            end -= 1
        pieces.append((begin, end))
    return [(begin, end) for begin, end in pieces if end - begin > 1]


def cut_as_published(via: list[int], length: int) -> list[tuple[int, int]]:
    return [(first, first + length) for first in from_the_end(torch.tensor([via]), length).first.tolist()]


def plain(
    net: LehdCvrp, instances: Vrp, solutions: Tensor, iterations: int, longest: int, seed: int, rule: str
) -> list[list[list[int]]]:
    """Instance by instance, piece by piece, on lists; only the arrangement is not written anew."""
    batch, customers = len(instances), instances.customers
    tensors = CvrpBatch.of(instances, CPU)
    for index in range(iterations):
        drawn = draw_within(seed, index, customers, 0, batch, longest)
        now = arranged(by_angle(tensors.coords, solutions), drawn).tolist()
        for i, (order, via) in enumerate(now):
            points = [complex(*p) for p in instances.coords[i].tolist()]
            for begin, end in (cut_by_hand if rule == "cut-off" else cut_as_published)(via, drawn.length):
                head = begin
                while via[head] == 0:
                    head -= 1
                left = int(instances.capacity[i]) - sum(int(instances.demand[i, c]) for c in order[head : begin + 1])
                path, flags = decided(net, instances, i, order[begin:end], left)
                ways = []
                for stops, ways_there in ((path, flags), (order[begin:end], via[begin:end])):
                    legs = zip(itertools.pairwise(stops), ways_there[1:], strict=True)
                    ways.append(abs(points[stops[-1]] - points[0]) + sum(
                        abs(points[a] - points[0]) + abs(points[b] - points[0]) if flag else abs(points[a] - points[b])
                        for (a, b), flag in legs
                    ))  # fmt: skip
                if round(ways[0], 9) < round(ways[1], 9):
                    order[begin:end], via[begin + 1 : end] = path, flags[1:]
        solutions = torch.tensor(now)
    return solutions.tolist()


def decided(net: LehdCvrp, instances: Vrp, i: int, stops: list[int], left: int) -> tuple[list[int], list[int]]:
    capacity = int(instances.capacity[i])
    nodes = [0, *stops]
    share = torch.from_numpy(instances.demand[i, nodes] / capacity)[None]
    embedded = dict(zip(nodes, net.encode(torch.from_numpy(instances.coords[i, nodes])[None], share)[0], strict=True))
    path, flags, waiting = [stops[0]], [-1], stops[1:]
    while waiting:
        rows = torch.stack([embedded[c] for c in (path[-1], *waiting, 0)])[None]
        best = int(net.decide(rows, torch.tensor([left / capacity]).double()).flatten().argmax())
        place, flag = divmod(best, 2)
        waiting[0], waiting[place] = waiting[place], waiting[0]
        need = int(instances.demand[i, waiting[0]])
        flag = flag or int(need > left)
        left = (capacity if flag else left) - need
        path, flags, waiting = [*path, waiting[0]], [*flags, flag], waiting[1:]
    return path, flags


@pytest.mark.usefixtures("rounded_lengths")
@pytest.mark.parametrize("rule", RULES)
def test_equals_the_loop_over_instances_and_pieces(net: LehdCvrp, rule: Any) -> None:
    instances, solutions = random_instances(12, 23, 1, grid=False)
    with torch.inference_mode():
        batch = CvrpBatch.of(instances, CPU)
        *_, found = prc(lambda m: net.decide, net.encode, batch, solutions, 12, rule=rule, longest=11, seed=4)
        assert found.tolist() == plain(net, instances, solutions, 12, 11, 4, rule)
    assert not torch.equal(found, solutions)


def test_one_route_longer_than_every_piece_stays_as_it_is() -> None:
    """No piece of four or five ends where a route does but the last: nothing may break."""
    instances, _ = random_instances(2, 10, 0)
    instances = Vrp(instances.coords, instances.demand, np.array([500, 500]))
    solutions = torch.from_numpy(np.stack([from_routes([list(range(1, 11))])] * 2))
    decide = whims(0)
    for now in prc(lambda m: decide, features, CvrpBatch.of(instances, CPU), solutions, 6, longest=6):
        assert is_feasible(instances, now.numpy()).all()


# -- pieces: as printed and as published, apart, and by which routes they go ------------------------------------------


def test_the_papers_example_of_pieces() -> None:
    """B.3: of (0, 1, 2, 3, 4, 5, 0, 6, 7, 0, 8, 9, 10, 0), fours are 1-4, which lie within a route, and 5, 6, 7 | 8."""
    via = torch.tensor([[1, 0, 0, 0, 0, 1, 0, 1, 0, 0]])
    found = cut_off(via, 4)
    assert (found.instance.tolist(), found.first.tolist(), found.size.tolist()) == ([0], [4], [3])
    both = cut_off(torch.cat([via, torch.ones_like(via)]), 4)
    assert both.instance.tolist() == [1, 1, 0]
    assert both.first.tolist() == [0, 4, 4]
    assert both.size.tolist() == [4, 4, 3]
    assert len(cut_off(via, 4, most=1)) == 0


def test_the_published_pieces_end_with_routes_and_skip_an_adjacent_one() -> None:
    via = torch.tensor([[1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0]])  # routes of 3, 2, 3 and 3 stops
    assert from_the_end(via, 4).first.tolist() == [7, 1]  # the last ends before 7 are 4 and 2: 4 - 4 + 1
    assert from_the_end(via, 3).first.tolist() == [8, 2]  # 7 is adjacent, so 4; then nothing ends before 2 with room
    assert from_the_end(via, 4, most=1).first.tolist() == [7]
    assert from_the_end(via, 11).first.tolist() == [0]


@pytest.mark.parametrize("rule", RULES)
def test_pieces_share_no_stop_and_end_where_routes_do(rule: str) -> None:
    for seed in range(50):
        customers = 4 + seed % 20
        _, solutions = random_instances(20, customers, seed)
        via, length = solutions[:, 1], 4 + seed % (customers - 3)
        found: Blocks = RULES[rule](via, length)
        assert found.size.tolist() == sorted(found.size.tolist(), reverse=True)
        taken = torch.zeros_like(via)
        for i, first, size in zip(found.instance, found.first, found.size, strict=True):
            taken[i, first : first + size] += 1
            assert 2 <= size <= length
            assert rule == "cut-off" or size == length
            assert first + size == customers or via[i, first + size] == 1
            if rule == "cut-off":
                assert first % length == 0
                assert not via[i, first + size + 1 : first + length].any()
        assert taken.max() <= 1


def test_routes_are_ordered_by_angle_and_otherwise_untouched() -> None:
    instances, solutions = random_instances(20, 25, 3, grid=False)
    found = by_angle(torch.from_numpy(instances.coords), solutions)
    for i in range(20):
        before, after = to_routes(solutions[i].numpy()), to_routes(found[i].numpy())
        assert sorted(before) == sorted(after)
        middles = [instances.coords[i, route].mean(0) - instances.coords[i, 0] for route in after]
        angles = [math.atan2(y, x) for x, y in middles]
        assert angles == sorted(angles)


def test_lengths_are_drawn_alike_and_the_rest_as_for_re_construct() -> None:
    count = 10_000
    drawn = [draw_within(1, i, 30, 0, 1, 9).length for i in range(count)]
    found = np.bincount(drawn, minlength=10)
    assert found[4:].sum() == count
    assert np.abs(found[4:] - count / 6).max() < 5 * (count * 5 / 36) ** 0.5
    one, other = draw_within(1, 5, 30, 2, 4, 9), draw(1, 5, 30, 2, 4)
    assert one.backwards == other.backwards
    np.testing.assert_array_equal(one.turned, other.turned)
    np.testing.assert_array_equal(one.end, other.end)
