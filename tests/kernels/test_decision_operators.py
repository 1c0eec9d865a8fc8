"""The compiled decisions are those of the formula: glimpses to float32's digits, and the first of the best nodes."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from networks import MIXTURES, awake
from neuroute.networks.blocks.attention import best_of, packed
from neuroute.networks.blocks.layers import aafm, rows_of, weigh
from neuroute.networks.blocks.routing import Routing
from neuroute.networks.kernels import decision, library
from neuroute.networks.mvmoe import MvMoe

pytestmark = pytest.mark.skipif(library.library() is None, reason=library.describe())
BATCH = 2
SHAPES = [(5, 1, 1, 4), (51, 13, 2, 16), (100, 9, 4, 8), (530, 3, 2, 20)]  # nodes, tours, heads, channels of a head


class Drawn:
    """Instances, and tours that have begun on them; numbers None: queries know where tours began."""

    def __init__(self, nodes: int, tours: int, heads: int, channels: int, numbers: int | None) -> None:
        self.generator = torch.Generator().manual_seed(nodes)
        width = heads * channels
        self.keys, self.values = self.normal(2, BATCH, heads, nodes, channels)
        self.targets, self.offsets = self.normal(BATCH, nodes, width), self.normal(BATCH, 1, nodes)
        self.of_current = self.normal(BATCH, nodes, width)
        self.of_context = self.normal(BATCH, nodes, width) if numbers is None else self.normal(numbers, width)
        self.current = torch.randint(nodes, (BATCH, tours), generator=self.generator)
        self.context = self.current.flip(1) if numbers is None else self.normal(BATCH, tours, numbers)
        closed = torch.rand(BATCH, tours, nodes, generator=self.generator) < 0.5
        self.mask = torch.where(closed.scatter(2, self.current[..., None], False), -math.inf, 0.0)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator)

    def packed(self) -> decision.Decisions:
        with torch.no_grad():
            found = packed(self.keys, self.values, self.targets, self.offsets, self.of_current, self.of_context)
        assert found is not None
        return found

    def queries(self) -> Tensor:
        """In float64, as are those below."""
        of_current, of_context = self.of_current.double(), self.of_context.double()
        known = rows_of(of_context, self.context) if of_context.dim() == 3 else self.context.double() @ of_context
        return rows_of(of_current, self.current) + known

    def glimpses(self) -> Tensor:
        query = self.queries().unflatten(2, (self.keys.shape[1], -1)).transpose(1, 2)
        scores = query @ self.keys.double().transpose(2, 3) / math.sqrt(query.shape[3])
        shares = torch.softmax(scores + self.mask[:, None].double(), dim=-1)
        return (shares @ self.values.double()).transpose(1, 2).flatten(2)

    def fits(self, seen: Tensor) -> Tensor:
        return seen.double() @ self.targets.double().transpose(1, 2) + self.offsets.double()


def assert_best(chosen: Tensor, fits: Tensor, tolerance: float = 1e-4) -> None:
    """What is chosen (batch, tours) fits as well as the best of the nodes, up to rounding."""
    near = fits.gather(2, chosen[..., None]).squeeze(2)
    torch.testing.assert_close(near, fits.amax(dim=2), rtol=0, atol=tolerance)


@pytest.mark.parametrize("numbers", [None, 1, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_the_formula(shape: tuple[int, int, int, int], numbers: int | None) -> None:
    drawn = Drawn(*shape, numbers)
    decisions, state = drawn.packed(), (drawn.context, drawn.current, drawn.mask)
    seen = decisions.glimpse(*state)
    torch.testing.assert_close(seen.double(), drawn.glimpses(), rtol=1e-5, atol=1e-5)
    chosen = decisions.best(*state)
    assert torch.equal(decisions.point(seen, drawn.mask), chosen)
    assert_best(chosen, drawn.fits(drawn.glimpses()).clamp(-9.02, 9.02) + drawn.mask)


@pytest.mark.parametrize("shape", SHAPES)
def test_experts_count_as_much_as_their_shares(shape: tuple[int, int, int, int]) -> None:
    drawn = Drawn(*shape, 4)
    width, nodes, tours = drawn.targets.shape[2], shape[0], shape[1]
    targets, offsets = drawn.normal(BATCH, 3, nodes, width), drawn.normal(BATCH, 3, nodes)
    shares = drawn.normal(BATCH, tours, 3).softmax(dim=-1)
    shares[..., 1] = 0
    shares[0, :2, 0] = 0
    seen, drawn.targets, drawn.offsets = drawn.normal(BATCH, tours, width), targets, offsets
    each = torch.einsum("btw,benw->bten", seen.double(), targets.double()) + offsets[:, None]
    fits = torch.einsum("bten,bte->btn", each, shares.double()).clamp(-9.02, 9.02) + drawn.mask
    assert_best(drawn.packed().point(seen, drawn.mask, shares), fits)


@pytest.mark.parametrize("options", [*MIXTURES, {"experts": 3, "top": 1}], ids=str)
def test_mixtures_choose_the_best_of_their_logits(options: dict[str, Any]) -> None:
    """Over a few moves, whatever gates draw."""
    net, nodes, tours = awake(MvMoe, depth=2, width=32, heads=4, feed_forward=32, **options), 23, 11
    encoded = net.encode(torch.rand(3, nodes, 2).double(), torch.rand(3, nodes).double()).detach()
    single = copy.deepcopy(net).float()
    with torch.no_grad():
        plain = net.prepare(encoded, Routing(torch.Generator().manual_seed(1)))
        found = single.prepare(encoded.float(), Routing(torch.Generator().manual_seed(1)))
        assert plain.decisions is None
        assert found.decisions is not None
        for _ in range(6):
            context, current = torch.rand(3, tours, 4), torch.randint(nodes, (3, tours))
            mask = torch.where(torch.rand(3, tours, nodes) < 0.4, -math.inf, 0.0).scatter(2, current[..., None], 0.0)
            logits = net.decide(plain, context.double(), current, mask.double())
            assert_best(single.decide_best(found, context, current, mask), logits)


def test_the_first_of_equals() -> None:
    drawn = Drawn(100, 9, 4, 8, None)
    drawn.offsets = 40 * drawn.offsets.sign()  # beyond what tanh tells apart
    state = drawn.context, drawn.current, drawn.mask
    wanted = best_of(drawn.fits(drawn.glimpses()).float(), drawn.mask)
    assert torch.equal(drawn.packed().best(*state), wanted)


@pytest.mark.usefixtures("one_thread")
def test_masks_that_are_parts_of_more_and_threads() -> None:
    drawn = Drawn(100, 64, 4, 16, 4)
    wide = torch.zeros(BATCH, 64, 104)[..., :100].copy_(drawn.mask)
    turned = drawn.mask.transpose(1, 2).contiguous().transpose(1, 2)
    decisions = drawn.packed()
    wanted = decisions.glimpse(drawn.context, drawn.current, drawn.mask)
    for mask in (wide, turned):
        assert torch.equal(decisions.glimpse(drawn.context, drawn.current, mask), wanted)
    for number in (1, 2, 3):
        torch.set_num_threads(number)
        assert torch.equal(decisions.glimpse(drawn.context, drawn.current, drawn.mask), wanted)


def test_scores_that_are_no_numbers_choose_the_first_node_as_torch_does() -> None:
    drawn = Drawn(51, 13, 2, 16, None)
    drawn.keys[:] = math.nan
    found = drawn.packed().best(drawn.context, drawn.current, drawn.mask)
    assert torch.equal(found, best_of(drawn.fits(drawn.glimpses()).float(), drawn.mask))


def test_what_it_is_not_for() -> None:
    drawn = Drawn(51, 13, 2, 16, None)
    keys, targets = drawn.keys, drawn.targets
    assert not decision.fits(keys, targets)  # gradients may be asked for
    with torch.no_grad():
        assert decision.fits(keys, targets)
        assert not decision.fits(keys.double(), targets.double())
        assert not decision.fits(keys.to("meta"), targets)


class AttentionFree(Drawn):
    """As `Drawn`, with the decisions of an attention-free module."""

    slopes = -6.6, -3.3

    def __init__(self, nodes: int, tours: int, width: int, numbers: int | None) -> None:
        super().__init__(nodes, tours, 1, width, numbers)
        self.pairs = weigh(self.keys[:, 0], self.values[:, 0])
        self.distances = torch.rand(BATCH, nodes, nodes, generator=self.generator)

    def packed(self) -> decision.AttentionFreeDecisions:
        shared = self.pairs, self.distances, self.targets, self.of_current, self.of_context
        return decision.AttentionFreeDecisions(*shared, self.slopes, 9.02)

    def glimpses(self) -> Tensor:
        query = self.queries()
        bias = self.mask + self.slopes[0] * rows_of(self.distances.double(), self.current)
        return aafm(query, self.pairs.double(), bias) / math.sqrt(query.shape[2])

    def fits(self, seen: Tensor) -> Tensor:
        far = self.slopes[1] * rows_of(self.distances.double(), self.current)
        return seen.double() @ self.targets.double().transpose(1, 2) + far


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("numbers", [None, 1])
@pytest.mark.parametrize("shape", [(5, 1, 16), (51, 13, 32), (100, 9, 128), (530, 3, 48)])
def test_an_attention_free_module_equals_the_formula(shape: tuple[int, int, int], numbers: int | None) -> None:
    drawn = AttentionFree(*shape, numbers)
    decisions, state = drawn.packed(), (drawn.context, drawn.current, drawn.mask)
    seen, wanted = decisions.glimpse(*state), drawn.glimpses()
    torch.testing.assert_close(seen.double(), wanted, rtol=2e-5, atol=2e-6)
    assert_best(decisions.best(*state), drawn.fits(wanted).clamp(-9.02, 9.02) + drawn.mask, 1e-5)
    torch.set_num_threads(2)
    assert torch.equal(decisions.glimpse(*state), seen)
    with torch.no_grad():
        assert decision.fits_attention_free(drawn.pairs)
        assert not decision.fits_attention_free(drawn.pairs[..., :-2])
        assert not decision.fits_attention_free(drawn.pairs.double())
    assert not decision.fits_attention_free(drawn.pairs)  # gradients may be asked for
