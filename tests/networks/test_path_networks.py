"""What holds of every network that builds one path: order, company, ends, gradients, and every way to decode."""

import numpy as np
import pytest
import torch
from torch import Tensor

from networks import CVRP, PATH, TSP, decision, idle, make, without_gradients
from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding.decode import decode
from neuroute.decoding.sampling import TourPrefixes, search_beams
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.base import PathNetwork
from neuroute.networks.pens import Pens
from neuroute.problems.cvrp import is_feasible
from neuroute.problems.tsp import is_permutation
from neuroute.problems.vrp import Vrp
from neuroute.specs.objects import Dataset, Decoding
from neuroute.training.supervised import PathDecision, loss

pytestmark = pytest.mark.usefixtures("one_thread")

EXACT = {"rtol": 1e-12, "atol": 1e-12}
HIDDEN = [name for name, (kind, _) in PATH.items() if kind.hidden is not PathNetwork.hidden and kind is not Pens]
SIZE_FREE = [name for name in TSP if not name.startswith(("decoder-only", "pens"))]  # scores without a factor of log n


def shuffled(rows: Tensor, order: Tensor) -> Tensor:
    return torch.cat([rows[:, :1], rows[:, 1:-1][:, order], rows[:, -1:]], dim=1)


@pytest.mark.parametrize("name", PATH)
def test_order_of_the_candidates_does_not_matter_and_ends_are_told_apart(name: str) -> None:
    net = make(name)
    rows, *left = decision(net)
    order = torch.randperm(18)
    for decide in (net.decide, lambda *seen: without_gradients(net, *seen)):
        torch.testing.assert_close(decide(shuffled(rows, order), *left), decide(rows, *left)[:, order], **EXACT)
    assert not torch.allclose(net.decide(rows.flip(1), *left).flip(1), net.decide(rows, *left), atol=1e-3)


@pytest.mark.parametrize("name", PATH)
def test_a_batch_decides_as_its_instances_do(name: str) -> None:
    """And neither overwrites what it reads."""
    net = make(name)
    seen = decision(net)
    for decide in (net.decide, lambda *seen: without_gradients(net, *seen)):
        alone = [decide(*(part[i : i + 1] for part in seen)) for i in range(len(seen[0]))]
        torch.testing.assert_close(decide(*seen), torch.cat(alone), **EXACT)


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_states_are_those_that_the_head_reads(name: str) -> None:
    net = make(name)
    seen = decision(net)
    states = net.hidden(*seen)
    assert states.shape == (6, 20, net.width)
    logits = net.head(states)[:, 1:-1]
    torch.testing.assert_close(logits if net.problem == "cvrp" else logits[..., 0], net.decide(*seen), **EXACT)


@pytest.mark.parametrize("name", PATH)
def test_in_float32_which_kernels_compute_it_decides_as_layer_by_layer_in_float64(name: str) -> None:
    net = make(name)
    seen = decision(net, 5, 100)  # as many rows as compiled layers take
    exact = net.decide(*seen).detach()
    spread = exact[exact.isfinite()].std().item()
    rows, *left = (part.float() for part in seen)
    found = without_gradients(net.float(), rows.double() if net.remembers else rows, *left)
    torch.testing.assert_close(found.double(), exact, rtol=0, atol=1e-4 * spread)


UNUSED = {"lehd": {"unused.weight", "unused.bias"}, "glop": {"revisers.0.placeholder"}}


@pytest.mark.parametrize("name", PATH)
def test_everything_learns(name: str) -> None:
    net = make(name)
    if net.problem == "tsp":
        loss(PathDecision(net), torch.rand(8, 12, 2, dtype=torch.float64), 2).backward()
    else:
        coords, demand = torch.rand(3, 12, 2).double(), 0.3 * torch.rand(3, 12).double()
        rows = net.encode(coords, demand).roll(-1, dims=1)
        net.decide(rows, 2 - torch.rand(3).double()).flatten(1).log_softmax(1)[:, 5].sum().neg().backward()
        assert net.embed.weight.grad.abs().sum(0).gt(0).all()  # demand too
    adds_to_all = {"head.bias"} if net.problem == "tsp" else set()  # the same to all scores
    assert idle(net) - adds_to_all == UNUSED.get(name, set())


@pytest.mark.parametrize("name", TSP)
def test_decoding_gives_tours_and_a_beam_of_one_is_greedy(name: str) -> None:
    net, coords = make(name), torch.rand(5, 13, 2, dtype=torch.float64)
    greedy = decode("tsp", net, coords, Decoding())
    others = (Decoding(method="beam", beam=4), Decoding(method="rrc", iterations=5))
    for tours in (greedy, *(decode("tsp", net, coords, how) for how in others)):
        assert tours.shape == (5, 13)
        assert is_permutation(tours.numpy()).all()
    if name in SIZE_FREE:
        prefixes = TourPrefixes(net.decide, net.encode(coords), arrive=net.arrive)
        assert torch.equal(search_beams(prefixes, TspBatch(coords).lengths, 1)[0], greedy)
        assert torch.equal(decode("tsp", net, coords, Decoding(log_n=False)), greedy)
        assert torch.equal(torch.cat([decode("tsp", net, one[None], Decoding()) for one in coords]), greedy)


@pytest.mark.parametrize("name", CVRP)
def test_decoding_gives_feasible_solutions(name: str) -> None:
    instances = cvrp_dataset(Dataset(problem="cvrp", n=21, count=5))
    batch = Vrp(instances.coords.astype(np.float64), instances.demand, instances.capacity)
    net = make(name)
    greedy = decode("cvrp", net, batch, Decoding())
    for solutions in (greedy, decode("cvrp", net, batch, Decoding(method="rrc", iterations=5))):
        assert is_feasible(batch, solutions.numpy()).all()
    alone = torch.cat([decode("cvrp", net, batch[i : i + 1], Decoding()) for i in range(5)])
    assert torch.equal(greedy, alone)


@pytest.mark.parametrize("name", ["decoder-only", "sit", "lehd cvrp"])
def test_a_decision_is_one_graph(name: str) -> None:
    """To torch.compile, which computes on its own what ends a graph."""
    torch.compiler.reset()
    net = make(name)
    seen = decision(net)
    with torch.no_grad():
        found = torch.compile(net.decide, fullgraph=True, backend="eager")(*seen)
        torch.testing.assert_close(found, net.decide(*seen))
