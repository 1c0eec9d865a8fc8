"""The evaluation stage's look inside PENS: the origin's attention logits, and what a drawing of the model needs.

The logits are what the softmax of attention gets, SSMax's factor and ALiBi's bias included, averaged over layers and
heads (pens, Figure 6).  They are those of the live network: the tensors that enter its layers are caught on their way.
Of all queries only the origin's is scored, so a layer adds memory in proportion to the nodes.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.greedy import closed_tour_rows
from neuroute.decoding.memory import autocast
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows, parameter_rows, wrong_network
from neuroute.evaluation.snapshot import describe_modules, tap_inputs
from neuroute.networks.blocks.attention import pairwise_distances
from neuroute.networks.pens import Pens, PreNormLayer
from neuroute.pipeline.papers.pens import paper as pens
from neuroute.specs.objects import Decoding

ORIGIN, DESTINATION = (0.3, 0.3), (0.7, 0.7)  # of the unit square


def measure(loaded: LoadedModel, evaluation: pens.AttentionEvaluation) -> tuple[Rows, Arrays]:
    """Return records (parameters) and arrays.

    Of the path: coords (n, 2) float32, origin, destination, factors (k,), logits (k, n) float32 in node order.  Of the
    small instance: small_coords (m, 2), small_tour (m,), small_probabilities (m - 1, m) float32.  Of the network:
    modules, what `describe_modules` returns.
    Raises NeurouteError if the network is none of PENS, or the best factor has not been measured.
    """
    net = loaded.net
    if not isinstance(net, Pens):
        raise wrong_network(evaluation.id, "attention is mapped of networks of paper pens", loaded)
    coords = dataset_coordinates(evaluation.dataset)[evaluation.instance]
    origin, destination = path_ends(coords)
    factors = [
        float(loaded.resolve_decoding(Decoding(rescale=factor), len(coords)).rescale) for factor in evaluation.factors
    ]
    small = dataset_coordinates(evaluation.small)[0]
    with torch.inference_mode(), autocast(loaded.place, loaded.run.training.precision):
        points = torch.from_numpy(coords).to(loaded.place)
        logits = [origin_logits(net, points * f, origin, destination).cpu().numpy() for f in factors]
        tour, probabilities = walk(net, torch.from_numpy(small).to(loaded.place))
    arrays = {
        "coords": coords,
        "origin": np.array(origin),
        "destination": np.array(destination),
        "factors": np.array(factors, np.float64),
        "logits": np.stack(logits),
        "small_coords": small,
        "small_tour": tour,
        "small_probabilities": probabilities,
        "modules": describe_modules(net, "layers"),
    }
    return parameter_rows(loaded, evaluation.name, evaluation.dataset), arrays


def path_ends(coords: np.ndarray) -> tuple[int, int]:
    """Origin and destination of the path: the nodes of coords (n, 2) nearest to two points far apart.

    The paper does not say which.  Far apart, so that looking at the destination is more than looking at what is near.
    """
    origin = int(np.square(coords - ORIGIN).sum(-1).argmin())
    away = np.square(coords - DESTINATION).sum(-1)
    away[origin] = np.inf
    return origin, int(away.argmin())


def origin_logits(net: Pens, coords: Tensor, origin: int, destination: int) -> Tensor:
    """coords (n, 2), as the network sees them -> the origin's logits (n,) on every node, itself included.

    The path is a first decision: all nodes but its ends are available.  Means over layers and heads.
    """
    n = len(coords)
    order = torch.arange(n, device=coords.device)
    order = torch.cat([order[[origin]], order[(order != origin) & (order != destination)], order[[destination]]])
    net.draw = 0
    rows = net.encode(coords[None])[:, order]
    bias = (
        0.0
        if net.slopes is None
        else -net.slopes.to(rows)[:, None] * pairwise_distances(rows[:, :1, :2], rows[..., :2])[0]
    )

    def score(layer: nn.Module, inputs: tuple[Any, ...]) -> Tensor:
        """(tokens,)"""
        assert isinstance(layer, PreNormLayer)
        h, _, scale, sharpness, rotation = inputs
        q, k, _ = layer.queries_keys_values(h, sharpness, rotation)
        products: Tensor = (k[0].to(rows) * q[0, :, :1].to(rows)).sum(-1)  # (heads, tokens), never in bf16
        scores: Tensor = (products * (scale * layer.scale) + bias).mean(0)
        return scores

    with tap_inputs(net.layers, score) as scores:
        net.hidden(rows, net.attention_scale(n))
    logits = torch.empty_like(rows[0, :, 0])
    logits[order] = torch.stack(scores).mean(0)
    return logits


def walk(net: Pens, coords: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """coords (m, 2) -> the greedy tour (m,) int64 from node 0, and each decision's probabilities (m - 1, m) float32.

    0 where a node is not available.  Decision d chooses stop d + 1; the last has one candidate.
    """
    m = len(coords)
    net.draw = 0
    rows = closed_tour_rows(net.encode(coords[None]))
    tour, unvisited = [0], list(range(1, m))
    probabilities = np.zeros((m - 1, m), np.float32)
    for decision in range(m - 1):
        logits = net.decide(rows[:, [tour[-1], *unvisited, m]], net.attention_scale(m))[0]
        probabilities[decision, unvisited] = torch.softmax(logits.float(), 0).cpu().numpy()
        tour.append(unvisited.pop(int(logits.argmax())))
    return np.array(tour, np.int64), probabilities
