"""MDAM: the same probabilities as by its description, sizes, FLOPs, what is refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import mdam_by_the_book as book
from networks import N, awake
from networks import features as features_of
from neuroute.accounting.counts import counts
from neuroute.networks.import_weights import import_weights
from neuroute.networks.weights import load_checkpoint
from neuroute.specs.objects import Network
from neuroute.systems.mdam.network import Mdam, MdamCvrp

pytestmark = pytest.mark.usefixtures("one_thread")

NETWORKS: dict[str, type[Mdam]] = {"tsp": Mdam, "cvrp": MdamCvrp}
EXACT = {"rtol": 1e-9, "atol": 1e-9}


def state_of(problem: str) -> book.State:
    torch.manual_seed(0)
    return {name: 0.6 * torch.randn(shape) for name, shape in book.shapes(problem)}


def imported(folder: Path, state: book.State, **arguments: Any) -> tuple[Any, book.State]:
    """The network, and its weights under the published names, in double precision."""
    torch.save({"model": state, "optimizer": {}}, folder / "theirs.pt")
    import_weights(folder / "theirs.pt", folder / "ours.safetensors", None, arguments)
    net = load_checkpoint(folder / "ours.safetensors")[0].double()
    return net, {name: tensor.double() for name, tensor in state.items()}


def network(problem: str, **arguments: Any) -> Network:
    return Network(kind=f"neuroute.systems.mdam.network:{NETWORKS[problem].__name__}", arguments=arguments)


def small(problem: str, **more: Any) -> Any:
    shape = {"depth": 2, "width": 24, "heads": 3, "feed_forward": 40, "decoders": 2}
    return awake(NETWORKS[problem], **shape | more)


def features(problem: str, batch: int = 2) -> tuple[Tensor, ...]:
    return features_of(NETWORKS[problem], batch)  # type: ignore[arg-type]


# -- the same probabilities -------------------------------------------------------------------------------------------


def closed(tours: list[list[int]], stops: int) -> Tensor:
    """What the mask is after so many stops: (batch, 1, N)."""
    mask = torch.zeros(len(tours), 1, N, dtype=torch.float64)
    for row, tour in enumerate(tours):
        mask[row, 0, tour[:stops]] = -torch.inf
    return mask


@pytest.mark.parametrize("every", [2, 3])
def test_tours_are_as_probable_as_by_the_book(tmp_path: Path, every: int) -> None:
    """Every decision of tours of several instances: their last layers are normalised together."""
    net, p = imported(tmp_path, state_of("tsp"), glimpse_every=every)
    assert net.is_batch_dependent
    (coords,) = features("tsp", 3)
    tours = [torch.randperm(N).tolist() for _ in range(3)]
    for d in range(book.DECODERS):
        encoded = net.encode(coords)
        prepared, found = net.prepare(d, encoded.nodes), []
        for j in range(N - 1):
            if net.glimpses(j):
                prepared = net.prepare(d, net.glimpse(encoded, closed(tours, j - 1)))
            first, last = (torch.tensor([[tour[i] if j else -1] for tour in tours]) for i in (0, j - 1))
            found.append(net.decide(d, prepared, first, last, closed(tours, j)).log_softmax(-1).flatten(0, 1))
        wanted = torch.stack(book.walk_tours(p, d, coords, tours, every)).view(N, 3, N)[:-1]
        torch.testing.assert_close(torch.stack(found), wanted, **EXACT)


def test_routes_are_as_probable_as_by_the_book(tmp_path: Path) -> None:
    """A decision of several solutions of each instance, before and behind a glimpse."""
    net, p = imported(tmp_path, state_of("cvrp"))
    given = features("cvrp", 2)
    at, left = torch.tensor([[3, 0, 5], [1, 4, 0]]), torch.rand(2, 3, dtype=torch.float64)
    masks = [torch.zeros(2, 3, N).double().masked_fill(torch.rand(2, 3, N) < 0.4, -torch.inf) for _ in range(2)]
    for mask in masks:
        mask[..., 6] = 0
    encoded = net.encode(*given)
    h, below, shares = book.encode(p, list(zip(*given, strict=True)))
    for glimpses in (False, True):
        nodes, theirs = encoded.nodes, [h[b] for b in range(2) for _ in range(3)]
        if glimpses:
            nodes = net.glimpse(encoded, masks[0])
            hidden = [torch.isneginf(row).nonzero().flatten().tolist() for row in masks[0].flatten(0, 1)]
            each = [b for b in range(2) for _ in range(3)]
            theirs = book.glimpse(p, [below[b] for b in each], [shares[b] for b in each], hidden)
        found = net.decide(1, net.prepare(1, nodes), left, at, masks[1]).log_softmax(-1).flatten(0, 1)
        for row, (nodes_here, log_p) in enumerate(zip(theirs, found, strict=True)):
            b, t = divmod(row, 3)
            known = torch.cat([nodes_here[at[b, t]], left[b, t, None]])
            hidden_now = torch.isneginf(masks[1][b, t]).nonzero().flatten().tolist()
            torch.testing.assert_close(log_p, book.step(p, 1, nodes_here, known, hidden_now), **EXACT)


# -- FLOPs and refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", NETWORKS)
def test_a_decision_is_one_of_each_decoder_and_its_part_of_the_last_layer(problem: str) -> None:
    shape = {"depth": 2, "width": 24, "heads": 3, "feed_forward": 40}
    two, four, often = (
        counts(network(problem, **shape, **more))
        for more in ({"decoders": 2}, {"decoders": 4}, {"decoders": 2, "glimpse_every": 1})
    )
    assert four.decision(N) == 2 * two.decision(N)
    step = 2 * two.decision(N) - often.decision(N)  # two halves of the last layer are one
    w, n, context_width = 24, N - 1, 48 if problem == "tsp" else 25
    one = 2 * context_width * w + 2 * w * w + 4 * w * n + 3 * n + 2 * w * n + n
    assert step == pytest.approx(2 * one, abs=4)
    assert four.encoder(N) - two.encoder(N) == 2 * (6 * N * w * w + 2 * w * w)


@pytest.mark.parametrize("wrong", [{"depth": 0}, {"decoders": 0}, {"glimpse_every": 0}, {"width": 20}])
def test_arguments_that_make_no_network(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1|not divisible"):
        Mdam(**wrong)
