"""GLOP's revision: cutting, mirroring, and that tours never get longer, by whatever network."""

from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute.decoding.decode import decode, solve_with
from neuroute.decoding.revision import from_either_end, mirrored, published, rebuild, revise
from neuroute.decoding.tsp import tour_lengths
from neuroute.networks.lehd import Lehd
from neuroute.networks.pomo import Pomo
from neuroute.networks.sit import Sit
from neuroute.problems.tsp import canonical, is_permutation
from neuroute.specs.decodings import Revision
from neuroute.specs.decodings import revise as revised
from neuroute_systems.glop.network import Glop

SHAPE: dict[str, Any] = {"depth": 1, "width": 16, "heads": 2, "feed_forward": 16}
HOW = revised((8, 2), (5, 5))


def in_order(rows: Tensor) -> Tensor:
    """The decision of a reviser that leaves paths as they are."""
    return rows.new_zeros(len(rows), rows.shape[1] - 2)


def at_random(rows: Tensor) -> Tensor:
    return torch.rand(len(rows), rows.shape[1] - 2)


def same(points: Tensor) -> Tensor:
    return points.clone()


def start(count: int, n: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.rand(count, n, 2, dtype=torch.float64), torch.stack([torch.randperm(n) for _ in range(count)])


@pytest.mark.parametrize("flips", [False, True])
@pytest.mark.parametrize(("n", "nodes", "iterations"), [(24, 8, 4), (23, 8, 3), (9, 9, 2), (10, 4, 9)])
def test_a_reviser_that_changes_nothing(n: int, nodes: int, iterations: int, flips: bool) -> None:
    coords, tours = start(3, n)
    after = revise(partial(from_either_end, in_order), same, coords, tours, nodes, iterations, flips=flips)
    np.testing.assert_array_equal(canonical(after.numpy()), canonical(tours.numpy()))
    lengths = [tour_lengths(coords, each[:, None]) for each in (after, tours)]
    torch.testing.assert_close(*lengths, rtol=0, atol=1e-12)


@pytest.mark.parametrize("flips", [False, True])
def test_no_tour_gets_longer(flips: bool) -> None:
    coords, tours = start(4, 21)
    before = tour_lengths(coords, tours[:, None])
    for _ in range(5):
        tours = revise(partial(from_either_end, at_random), same, coords, tours, 6, 3, flips=flips)
        assert is_permutation(tours.numpy()).all()
        now = tour_lengths(coords, tours[:, None])
        assert bool((now <= before + 1e-12).all())
        before = now
    assert bool((now < tour_lengths(coords, start(4, 21)[1][:, None])).all())


def test_ends_of_blocks_stay_and_the_best_is_kept() -> None:
    torch.manual_seed(0)
    points = torch.rand(50, 7, 2, dtype=torch.float64)
    orders = rebuild(partial(from_either_end, at_random), same, points, flips=True)
    assert torch.equal(orders.sort(dim=1).values, torch.arange(7).expand(50, -1))
    assert bool((orders[:, 0] == 0).all())
    assert bool((orders[:, -1] == 6).all())
    assert bool((orders != torch.arange(7)).any())


@pytest.mark.parametrize(("nodes", "iterations"), [(20, 4), (10, 5), (20, 20), (8, 2)])
def test_every_cut_is_met_where_iterations_divide_the_block(nodes: int, iterations: int) -> None:
    """As 100 / 20, 50 / 25 and 20 / 5 do: the shift times the iterations is a block."""
    n, shift, begins = 3 * nodes, nodes // iterations, set[int]()
    coords = torch.arange(n, dtype=torch.float64)[None, :, None].expand(-1, -1, 2).clone()

    def noted(points: Tensor) -> Tensor:
        begins.update(int(x) for x in points[:, 0, 0])
        assert points.shape[1] == nodes
        assert torch.equal(points[:, :, 0].diff().remainder(n), torch.ones(len(points), nodes - 1).double())
        return points.clone()

    revise(partial(from_either_end, in_order), noted, coords, torch.arange(n)[None], nodes, iterations, flips=False)
    assert begins == set(range(0, n, shift))


def test_what_is_left_of_a_tour_stays_at_its_end() -> None:
    seen: list[Tensor] = []

    def noted(points: Tensor) -> Tensor:
        seen.append(points)
        return points.clone()

    coords = torch.arange(11, dtype=torch.float64)[None, :, None].expand(-1, -1, 2).clone()
    revise(partial(from_either_end, in_order), noted, coords, torch.arange(11)[None], 4, 4, flips=False)
    firsts = [part[:, :, 0].flatten().tolist() for part in seen]
    assert [len(first) for first in firsts] == [8] * 4
    assert firsts[0] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert firsts[3] == [4, 5, 6, 7, 8, 9, 10, 0]


def test_mirror_images_lie_in_the_same_box() -> None:
    points = torch.rand(3, 6, 2, dtype=torch.float64) * 5 - 2
    images = mirrored(points)
    torch.testing.assert_close(images[0], points)
    for image in images:
        torch.testing.assert_close(torch.cdist(image, image), torch.cdist(points, points), rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(image.amin(1), points.amin(1))
        torch.testing.assert_close(image.amax(1), points.amax(1))
    assert len({tuple(image.flatten().tolist()) for image in images}) == 4


# -- networks ---------------------------------------------------------------------------------------------------------


def net(kind: Any = Glop, **more: Any) -> Any:
    torch.manual_seed(1)
    return kind(**SHAPE | more).double().eval()


@pytest.mark.slow
@pytest.mark.parametrize(
    "revisers",
    [(Glop, {"blocks": (8, 5)}), (Lehd, {}), (Sit, {"representatives": 3}), (Pomo, {})],
    ids=lambda r: r[0].__name__,
)
def test_any_network_of_paths_revises(revisers: Any) -> None:
    coords, _ = start(3, 21)
    insertions = solve_with("tsp", "insertion", coords, 0)
    tours = decode("tsp", net(revisers[0], **revisers[1]), coords.numpy(), HOW)
    assert is_permutation(tours.numpy()).all()
    before, after = (tour_lengths(coords, each[:, None]) for each in (insertions, tours))
    assert bool((after <= before + 1e-12).all())


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("m", [4, 5, 17])
def test_the_compiled_loop_makes_the_decisions_of_the_network(m: int, dtype: torch.dtype) -> None:
    exact = net(blocks=(8,), depth=2)
    for layer in exact.revisers[0].layers:  # as after training: nothing is its neutral value
        for norm in (layer.attention_norm.norm, layer.feed_forward_norm.norm):
            torch.nn.init.normal_(norm.running_mean)
            torch.nn.init.uniform_(norm.running_var, 1, 4)
    reviser = deepcopy(exact).to(dtype)
    points = torch.rand(60, m, 2, dtype=torch.float64)
    points[0] = 0.5
    margins: list[Tensor] = []  # of each decision in float64, the best logit's lead on the next

    def noted(rows: Tensor) -> Tensor:
        logits = exact.decide(rows)
        best, second = logits.topk(2, dim=1).values.unbind(1)
        margins.append(best - second)
        return logits

    with torch.inference_mode():
        wanted = from_either_end(noted, exact.encode(points))
        found = reviser.build(reviser.encode(points.to(dtype)))
    assert not torch.equal(found[60:], found[:60])
    if dtype == torch.float64:
        assert torch.equal(found, wanted)
    else:  # what float32 may decide otherwise is left out
        clear = (torch.stack(margins) > 1e-3).all(dim=0)
        assert torch.equal(found[clear], wanted[clear])
        assert int(clear.sum()) > 60


def test_a_batch_is_its_instances_alone() -> None:
    reviser = net(blocks=(8, 5))
    coords, tours = start(5, 21)
    together = revise(reviser.build, reviser.encode, coords, tours, 8, 4, batch_size=9)
    for i in range(5):
        alone = revise(reviser.build, reviser.encode, coords[i : i + 1], tours[i : i + 1], 8, 4)
        assert torch.equal(alone[0], together[i])


@pytest.mark.parametrize("flips", ["none", "blocks", "tours"])
@pytest.mark.parametrize("prune", [False, True])
def test_the_best_of_more_starts_is_no_longer(flips: str, prune: bool) -> None:
    reviser, (coords, _) = net(blocks=(8, 5)), start(4, 21)
    lengths = []
    for width in (1, 4):
        how = revised((8, 2), (5, 5), width=width, prune=prune, flips=flips)
        tours = decode("tsp", reviser, coords.numpy(), how)
        lengths.append(tour_lengths(coords, tours[:, None]))
    if not prune:
        assert bool((lengths[1] <= lengths[0] + 1e-12).all())
    assert bool(lengths[1].mean() < lengths[0].mean())


def test_recipes_are_the_published_ones() -> None:
    blocks = {1000: ((100, 20), (50, 25), (20, 5)), 10_000: ((100, 50), (50, 25), (20, 5))}
    glop = Glop(**SHAPE, blocks=(100, 50, 20))
    assert published(glop, 1000, "usual") == Revision(blocks=blocks[1000], width=10)
    assert published(glop, 10_000, "usual") == Revision(blocks=blocks[10_000])
    assert published(glop, 1000, "library") == Revision(blocks=((100, 10), (50, 10), (20, 5)), width=128, prune=False)
    small = Glop(**SHAPE, blocks=(100, 50, 20, 10))
    wanted = ((100, 20), (50, 10), (20, 10), (10, 5))
    assert published(small, 100, "usual") == Revision(blocks=wanted, width=35, prune=False, flips="tours")
    assert published(small, 500, "usual").blocks == blocks[1000]


# -- bad input --------------------------------------------------------------------------------------------------------


def test_nodes_in_one_place() -> None:
    coords = np.zeros((2, 12, 2))
    coords[1, 6:] = 1.0
    tours = decode("tsp", net(blocks=(8, 5)), coords, HOW)
    assert is_permutation(tours.numpy()).all()
