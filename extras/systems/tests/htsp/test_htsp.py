"""H-TSP's networks: sizes as published, pixels by plain loops, the context of paths, FLOPs, what is refused."""

import math

import pytest
import torch
from torch import Tensor, nn

from networks import awake
from neuroute.evaluation.flops import counts
from neuroute.specs.objects import Network
from neuroute_systems.htsp.network import STATE, Htsp, PathPomo, PixelEncoder, place_of

pytestmark = pytest.mark.usefixtures("one_thread")


def size(*modules: nn.Module) -> int:
    return sum(p.numel() for module in modules for p in module.parameters())


def test_as_many_parameters_as_published() -> None:
    net = Htsp()
    assert size(net.lower) == 2_506_240
    assert size(Htsp(depth=6).lower) == 1_318_912
    upper = net.upper
    assert (size(upper.encoder), size(upper.actor) + 2, size(upper.critic)) == (799_632, 49_796, 591_873)
    assert counts(Network(kind="neuroute_systems.htsp.network:Htsp", arguments={})).parameters == size(net)


def pixels_by_loops(encoder: PixelEncoder, state: Tensor) -> Tensor:
    """The image of one instance, one node after the other; state (n, 8)."""
    cells = encoder.cells
    place = [[min(int(float(c) * cells), cells - 1) for c in node[:2]] for node in state]
    features = []
    for node, cell in zip(state, place, strict=True):
        middle = torch.tensor([(c + 0.5) / cells for c in cell], dtype=torch.float64)
        mean = torch.stack([other[:2] for other, at in zip(state, place, strict=True) if at == cell]).mean(dim=0)
        features.append(torch.cat([node, node[:2] - middle, node[:2] - mean]))
    embedded = torch.stack(features) @ encoder.embed.weight.T
    centred = embedded - embedded.mean(dim=0)
    normed = centred / (embedded.var(dim=0, correction=0) + 1e-3).sqrt() * encoder.norm.weight + encoder.norm.bias
    image = torch.zeros(64, cells, cells, dtype=torch.float64)
    for channels, (column, row) in zip(normed, place, strict=True):
        image[:, row, column] = torch.maximum(image[:, row, column], channels)
    return image


def test_pixels_are_those_of_plain_loops() -> None:
    encoder = awake(PixelEncoder, cells=4, channels=[6, 5], width=7)
    state = torch.rand(2, 30, STATE, dtype=torch.float64)
    state[0, 0, :2] = torch.tensor([1.0, 1.0])  # on the edge
    seen = list[Tensor]()
    encoder.blocks.register_forward_pre_hook(lambda _, images: seen.append(images[0]))
    found = encoder(state)
    assert found.shape == (2, 7)
    for image, each in zip(seen[0], state, strict=True):
        torch.testing.assert_close(image, pixels_by_loops(encoder, each), rtol=1e-10, atol=1e-10)
    order = torch.randperm(30)
    torch.testing.assert_close(encoder(state[:, order]), found)
    torch.testing.assert_close(encoder(state[1:]), found[1:])


def test_a_query_has_five_parts() -> None:
    net = awake(PathPomo, depth=1, width=8, heads=2, feed_forward=12, clipping=10.0, train_nodes=5)
    nodes = torch.rand(1, 5, 8, dtype=torch.float64)
    context = net.context
    of_first, of_current = context(nodes)
    first, current = context.ends.weight.split(8)
    mean, source, target = context.whole.weight.split(8, dim=1)
    wanted = first @ nodes[0, 2] + current @ nodes[0, 3]
    wanted = wanted + mean @ nodes[0].mean(dim=0) + source @ nodes[0, 0] + target @ nodes[0, 4]
    stop = torch.tensor([[2]])
    torch.testing.assert_close(context.query(of_first, of_current, stop, stop + 1)[0, 0], wanted)


def test_actions_become_places() -> None:
    places = place_of(torch.tensor([[0.0, math.atanh(0.5)], [-40.0, 40.0]]))
    torch.testing.assert_close(places, torch.tensor([[0.5, 0.75], [0.0, 1.0]]))


def test_flops_grow_with_the_fragments_of_a_tour() -> None:
    """A node of the largest tours costs what one of small ones does, and its share of the nodes that are seen."""
    c = counts(Network(kind="neuroute_systems.htsp.network:Htsp", arguments={"depth": 2}))
    linear = 2 * c.encoder(1000) - c.encoder(2000)
    assert linear < 0 < c.encoder(1000) < 2000 * c.encoder(1)
    assert c.decision(10) == c.decision(1000) > 0


@pytest.mark.parametrize("added", [0, 9])
def test_fragments_hold_something_old_and_something_new(added: int) -> None:
    with pytest.raises(ValueError, match=f"added {added} of a fragment of 10 nodes"):
        Htsp(fragment=10, added=added)
