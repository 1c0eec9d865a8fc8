"""DIMES with the weights that its authors published (MIT), on instances of Fu's sets, beside their code's numbers."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute_systems.dimes.network import KEPT, Dimes
from published_numbers import differ, state

pytestmark = pytest.mark.usefixtures("one_thread")
LAYERS = {"node": "v_lins1", "message": "v_lins2", "tail": "v_lins3", "head": "v_lins4", "edge": "e_lins0"}


def renamed(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Under our names."""
    names = {"graph.embed_nodes": "emb_net.v_lin0", "graph.embed_edges": "emb_net.e_lin0"}
    names |= {f"head.{i}": f"par_net.lins.{i}" for i in range(3)}
    for i in range(12):
        names |= {f"graph.layers.{i}.{ours}": f"emb_net.{there}.{i}" for ours, there in LAYERS.items()}
        names |= {f"graph.layers.{i}.{kind}_norm": f"emb_net.{kind[0]}_bns.{i}.module" for kind in ("edge",)}
        names[f"graph.layers.{i}.node_norm"] = f"emb_net.v_bns.{i}.module"
    parts = ("weight", "bias")
    return {f"{o}.{part}": theirs[f"{t}.{part}"] for o, t in names.items() for part in parts if f"{t}.{part}" in theirs}


def network(numbers: dict[str, np.ndarray], which: str, dtype: torch.dtype) -> Dimes:
    net = Dimes().to(dtype)
    tensors, own = renamed(state(numbers, f"state/{which}/", dtype)), net.state_dict()
    net.load_state_dict({name: tensor.view(own[name].shape) for name, tensor in tensors.items()})
    return net


@pytest.fixture(scope="module")
def numbers(public: Callable[[str], Path]) -> dict[str, np.ndarray]:
    return dict(np.load(public("refdata/systems/dimes.npz")))


@pytest.mark.parametrize(("which", "n"), [("tsp500~net120", 500), ("tsp1000~net120", 1000)])
def test_maps_are_the_published_ones(numbers: dict[str, np.ndarray], which: str, n: int) -> None:
    """Neighbours, theta, and the edges of the search, of which zeros off the graph may be among the published five
    (docs/choices.md): compared where they are not."""
    exact, single = (network(numbers, which, dtype).eval() for dtype in (torch.float64, torch.float32))
    assert sum(p.numel() for p in exact.parameters()) == 67_201
    for i, coords in enumerate(numbers[f"coords{n}"]):
        points = torch.from_numpy(coords).float()
        neighbours, theta = exact.encode(points.double()[None])
        order = neighbours[0].argsort(dim=1)
        assert torch.equal(neighbours[0].gather(1, order), torch.from_numpy(numbers[f"nb/{which}"][i]))
        theirs = torch.from_numpy(numbers[f"theta64/{which}"][i])
        assert differ(theta[0].gather(1, order), theirs) < 1e-9
        near, rounded = single.encode(points[None])
        ours = differ(rounded[0].gather(1, near[0].argsort(dim=1)).double(), theirs)
        assert ours < 2 * differ(torch.from_numpy(numbers[f"theta32/{which}"][i]).double(), theirs)
        ends, heat = exact.edges(points.double().numpy(), neighbours[0].numpy(), theta[0].numpy(), search=True)
        clear = np.sort(numbers[f"theta64/{which}"][i], axis=1)[:, -KEPT] > 0
        places, there = np.argsort(ends, axis=1), np.argsort(numbers[f"heat_idx/{which}"][i], axis=1)
        in_order = np.take_along_axis(numbers[f"heat_idx/{which}"][i], there, axis=1)
        np.testing.assert_array_equal(np.take_along_axis(ends, places, axis=1)[clear], in_order[clear])
        if clear.all():  # one temperature for all nodes
            wanted = np.take_along_axis(numbers[f"heat/{which}"][i], there, axis=1)
            np.testing.assert_allclose(np.take_along_axis(heat, places, axis=1), wanted, atol=1e-9)


def test_gradients_are_the_published_ones(numbers: dict[str, np.ndarray]) -> None:
    """Of a sum of theta, weighed from -1 to 1, on the first instance."""
    net = network(numbers, "tsp500~net120", torch.float64).train()
    neighbours, edges = net.embed(torch.from_numpy(numbers["coords500"][:1]))
    theta = net.head(edges)[..., 0].gather(1, neighbours.argsort(dim=1)).flatten()
    (theta * torch.linspace(-1, 1, len(theta), dtype=torch.float64)).sum().backward()
    theirs = renamed(state(numbers, "grad/", torch.float64))
    largest = max(float(gradient.abs().max()) for gradient in theirs.values())
    own = {name: p.grad.flatten() for name, p in net.named_parameters() if p.grad is not None}
    for name, gradient in theirs.items():
        assert float((own[name] - gradient.flatten()).abs().max()) < 1e-5 * largest, name
