"""SIT for the CVRP: equations, slicing, what is detached."""

import pytest
import torch
from torch import Tensor

import neuroute.networks.blocks.linear_cross_attention as blocks
from neuroute.networks.sit import SitCvrp
from sit_by_the_book import cvrp_logits

pytestmark = pytest.mark.usefixtures("one_thread")

FOLDING = {"depth": 2, "width": 24, "heads": 3, "feed_forward": 40, "representatives": 4}
PLAIN = {"depth": 2, "width": 12, "heads": 3, "feed_forward": 20, "representatives": 15}
TWIN = FOLDING | {"attention": "self"}


def small(shape: dict = FOLDING) -> SitCvrp:
    torch.manual_seed(0)
    return SitCvrp(**shape).double().eval()


def state(batch: int = 3, customers: int = 40) -> tuple[Tensor, Tensor]:
    """Rows [current, available..., depot] and what is left in the vehicle."""
    torch.manual_seed(1)
    rows = torch.rand(batch, customers + 1, 3, dtype=torch.float64)
    rows[:, -1, 2] = 0
    return rows, torch.rand(batch, dtype=torch.float64)


def without_gradients(net: SitCvrp, rows: Tensor, left: Tensor) -> Tensor:
    with torch.inference_mode():
        return net.decide(rows, left).clone()


def test_encoding_puts_demands_beside_coordinates() -> None:
    coords, demand = torch.rand(2, 5, 2), torch.rand(2, 5)
    rows = small().encode(coords, demand)
    assert torch.equal(rows[..., :2], coords)
    assert torch.equal(rows[..., 2], demand)


@pytest.mark.parametrize("shape", [FOLDING, PLAIN, TWIN, FOLDING | {"detach_customers": True}])
@pytest.mark.parametrize("customers", [2, 8, 40])
def test_equals_the_equations(shape: dict, customers: int) -> None:
    net, (rows, left) = small(shape), state(customers=customers)
    expected = cvrp_logits(net, rows, left)
    assert expected.shape == (3, customers - 1, 2)
    torch.testing.assert_close(net.decide(rows, left), expected, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(without_gradients(net, rows, left), expected, rtol=1e-11, atol=1e-11)


def test_sliced_is_unsliced(monkeypatch: pytest.MonkeyPatch) -> None:
    net, (rows, left) = small(), state(5)
    whole = without_gradients(net, rows, left)
    for tokens in (7, 100):
        monkeypatch.setattr(blocks, "CPU_FLOATS", tokens * 40)
        torch.testing.assert_close(without_gradients(net, rows, left), whole, rtol=1e-12, atol=1e-12)


def gradients(net: SitCvrp) -> None:
    rows, left = state()
    net.decide(rows, left).flatten(1).log_softmax(1)[:, 5].sum().neg().backward()


def test_detached_the_embedding_learns_through_the_depot_alone() -> None:
    net = small(FOLDING | {"detach_customers": True})
    gradients(net)
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert net.embed.weight.grad.abs().sum(0).gt(0).tolist() == [True, True, False]
