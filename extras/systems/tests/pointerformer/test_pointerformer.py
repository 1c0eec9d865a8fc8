"""Pointerformer: features at the edges of the square, and whose statistics norms use."""

import math

import pytest
import torch

from networks import features, make, midway
from neuroute_systems.pointerformer.network import FEATURES, features_of
from pointerformer_by_the_book import features as by_the_book

pytestmark = pytest.mark.usefixtures("one_thread")


def test_features_are_numbers_at_all_corners() -> None:
    """There some angles are of no direction: 0 here, no number in the published code."""
    edge = [0.0, 0.25, 1.0]
    points = [(x, y) for x in edge for y in edge]
    found = features_of(torch.tensor([points], dtype=torch.float64))
    assert found.shape == (1, 9, FEATURES)
    torch.testing.assert_close(found[0], torch.tensor([by_the_book(*p) for p in points], dtype=torch.float64))
    assert found[0, 0, 0] == 0
    assert found[0, 2, 0] == math.pi / 2


def test_coincident_nodes_and_corners_give_scores() -> None:
    net = make("pointerformer")
    coords = torch.tensor([[[0.0, 0], [1, 1], [1, 1], [1, 0], [0, 1], [0.5, 0.5], [0.5, 0.5], [0, 0], [1, 0]]]).double()
    known, current, mask = (part[:1] for part in midway(net, 1))
    logits = net.decide(net.prepare(net.encode(coords)), known, current, mask)
    assert torch.equal(logits.isfinite(), mask == 0)


def test_norms_learn_from_the_batch_and_remember() -> None:
    net = make("pointerformer").train()
    norm = net.layers[0].attention_norm.norm
    assert not norm.running_mean.any()
    (coords,) = features(net, 4)
    together = net.encode(coords).nodes
    assert norm.running_mean.any()
    assert not torch.allclose(together[:1], net.encode(coords[:1]).nodes, atol=1e-3)
    net.eval()
    torch.testing.assert_close(net.encode(coords).nodes[:1], net.encode(coords[:1]).nodes, rtol=1e-12, atol=1e-12)
