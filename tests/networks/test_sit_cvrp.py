"""SIT for the CVRP: size, equations, what the vehicle's load does, what is detached, that it learns and decodes."""

import numpy as np
import pytest
import torch
from torch import Tensor

import neuroute.networks.blocks.linear_cross_attention as blocks
from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.decode import decode
from neuroute.networks.sit import SitCvrp
from neuroute.networks.weights import parameters
from neuroute.plan.objects import Dataset, Decoding
from neuroute.problems.cvrp import is_feasible
from neuroute.problems.vrp import Vrp
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


def test_published_size() -> None:
    """sit's own code: 512 of the embedding, 16 linears, 6 modules of two halves, 258 of the head."""
    with torch.device("meta"):
        net = SitCvrp()
    assert parameters(net.embed) == 512
    assert parameters(net.decoder.start) + parameters(net.decoder.current) == 266_240
    assert [parameters(layer) for layer in net.decoder.layers] == [394_752] * 6
    assert parameters(net.head) == 258
    assert parameters(net) == 2_635_522


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


def test_hidden_states_are_those_that_the_head_reads() -> None:
    net, (rows, left) = small(), state()
    states = net.hidden(rows, left)
    assert states.shape == (3, 41, 24)
    torch.testing.assert_close(net.head(states)[:, 1:-1], net.decide(rows, left), rtol=1e-12, atol=1e-12)


def test_sliced_is_unsliced(monkeypatch: pytest.MonkeyPatch) -> None:
    net, (rows, left) = small(), state(5)
    whole = without_gradients(net, rows, left)
    for tokens in (7, 100):
        monkeypatch.setattr(blocks, "CPU_FLOATS", tokens * 40)
        torch.testing.assert_close(without_gradients(net, rows, left), whole, rtol=1e-12, atol=1e-12)


def test_demand_and_what_is_left_matter_and_the_order_of_candidates_does_not() -> None:
    net, (rows, left) = small(), state()
    logits = net.decide(rows, left)
    shuffle = torch.randperm(39)
    shuffled = torch.cat([rows[:, :1], rows[:, 1:-1][:, shuffle], rows[:, -1:]], 1)
    torch.testing.assert_close(net.decide(shuffled, left), logits[:, shuffle], rtol=1e-11, atol=1e-11)
    assert not torch.allclose(net.decide(rows, left / 2), logits)
    lighter = rows * torch.tensor([1, 1, 0.5], dtype=torch.float64)
    assert not torch.allclose(net.decide(lighter, left), logits)


def test_a_batch_decides_as_its_instances_do() -> None:
    net, (rows, left) = small(), state(6)
    alone = torch.cat([without_gradients(net, rows[i : i + 1], left[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(without_gradients(net, rows, left), alone, rtol=1e-12, atol=1e-12)


def gradients(net: SitCvrp) -> None:
    rows, left = state()
    net.decide(rows, left).flatten(1).log_softmax(1)[:, 5].sum().neg().backward()


@pytest.mark.parametrize("shape", [FOLDING, PLAIN, TWIN])
def test_everything_learns(shape: dict) -> None:
    net = small(shape)
    gradients(net)
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert net.embed.weight.grad.abs().sum(0).gt(0).all()  # the demand column too


def test_detached_the_embedding_learns_through_the_depot_alone() -> None:
    net = small(FOLDING | {"detach_customers": True})
    gradients(net)
    assert [name for name, p in net.named_parameters() if p.grad is None or not p.grad.any()] == []
    assert net.embed.weight.grad.abs().sum(0).gt(0).tolist() == [True, True, False]


@pytest.mark.parametrize("shape", [FOLDING, PLAIN, TWIN])
def test_decoding_gives_feasible_solutions(shape: dict) -> None:
    found = cvrp_dataset(Dataset(problem="cvrp", n=21, count=5))
    batch = Vrp(found.coords.astype(np.float64), found.demand, found.capacity)
    net = small(shape)
    for how in (Decoding(), Decoding(method="rrc", iterations=5)):
        solutions = decode("cvrp", net, batch, how)
        assert is_feasible(batch, solutions.numpy()).all()
        alone = torch.cat([decode("cvrp", net, batch[i : i + 1], Decoding()) for i in range(5)])
        assert how.method == "rrc" or torch.equal(solutions, alone)


def test_what_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="not divisible"):
        SitCvrp(width=10, heads=4)
