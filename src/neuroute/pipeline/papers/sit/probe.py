"""The evaluation stage's look at SIT at work: one of its decisions, and one iteration of re-construction.

What Figures 1 and 2 of the paper draw by hand, on a real instance.  All of it is the live network's: the attention
weights are computed by its modules from what enters them, the blocks are those that PRC cuts with the same seed.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.greedy import Decide, greedy_tours
from neuroute.decoding.memory import autocast
from neuroute.decoding.tsp import prc
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows, parameter_rows, to_arrays, wrong_network
from neuroute.evaluation.snapshot import describe_modules, tap_inputs
from neuroute.networks.blocks.linear_cross_attention import CrossLayer, CrossModule
from neuroute.networks.sit import Sit
from neuroute.pipeline.papers.sit import paper as sit
from neuroute.problems.longest import longest_sub_path
from neuroute.problems.sub_paths import draw_within, path_lengths
from neuroute.solvers.registry import get
from neuroute.specs.objects import Decoding

SEED = 0  # of PRC's draws, and of the solver that makes the first tour


def measure(loaded: LoadedModel, evaluation: sit.RoundEvaluation) -> tuple[Rows, Arrays]:
    """Return records (parameters) and arrays.

    Of the first instance: coords (n, 2) float32.  Of the decision, what `decision_state` returns; of the network,
    modules, what `describe_modules` returns; of the iteration, what `one_iteration` returns, and start, what its tour
    came from.  Raises NeurouteError if the network is not SIT's with cross-attention.
    """
    net = loaded.net
    if not isinstance(net, Sit) or not any(isinstance(layer, CrossModule) for layer in net.decoder.layers):
        raise wrong_network(evaluation.id, "rounds are drawn of SIT for the TSP with cross-attention", loaded)
    coords = dataset_coordinates(evaluation.dataset)[0]
    points = torch.from_numpy(coords)[None].to(loaded.place)
    with torch.inference_mode(), autocast(loaded.place, loaded.run.training.precision):
        greedy = greedy_tours(_decide(net, len(coords)), net.encode(points))
        state = decision_state(net, points, greedy[:, : evaluation.decision])
        tours = greedy if evaluation.decoding.start == "greedy" else _solved(evaluation.decoding.start, points)
        iteration = one_iteration(net, points, tours, evaluation.decoding)
    about = {"modules": describe_modules(net, "decoder.layers"), "start": np.array(evaluation.decoding.start)}
    rows = parameter_rows(loaded, evaluation.name, evaluation.dataset)
    return rows, {"coords": coords, **state, **iteration, **about}


def _decide(net: Sit, nodes: int) -> Decide:
    return partial(net.decide, attention_scale=net.attention_scale(nodes))


def _solved(solver: str, points: Tensor) -> Tensor:
    """The tour (1, n) of a solver."""
    tour = get(solver).solve(points[0].cpu().numpy(), SEED)
    return torch.from_numpy(tour.astype(np.int64))[None].to(points.device)


def decision_state(net: Sit, points: Tensor, visited: Tensor) -> dict[str, np.ndarray]:
    """points (1, n, 2), visited (1, k) from node 0, which is the destination, to the current node.

    Returns visited (k,) int64, destination (), probabilities (n,) float32 of the next node, and attention
    (modules, r + 1, n) float32: what each representative, the r repetitions of the current node and then the
    destination, sees of each node in each module's first half (sit, Eq. 3), means over heads.  A token's weights sum to
    1 over the nodes: what falls on the r tokens of the current node is added up.  Both hold nan for nodes that the
    network does not see.
    """
    n, destination = points.shape[1], 0
    visited_nodes = visited[0]
    unvisited = torch.ones(n, dtype=torch.bool, device=points.device)
    unvisited[visited_nodes] = False
    unvisited[destination] = False
    order = torch.cat([visited_nodes[-1:], unvisited.nonzero()[:, 0], visited_nodes.new_tensor([destination])])
    rows, scale = net.encode(points)[:, order], net.attention_scale(n)
    gathering = [layer.gather for layer in net.decoder.layers if isinstance(layer, CrossModule)]
    with tap_inputs(gathering, _mean_weights) as looks:
        logits = net.decide(rows, scale)[0]
    r = net.decoder.repetitions
    token = torch.cat([order[:1].expand(r - 1), order])  # the node of each token
    weights = torch.stack(looks).float()  # (modules, r + 1, tokens)
    attention = torch.full((*weights.shape[:2], n), torch.nan, device=points.device)
    attention[..., order] = 0.0
    attention.index_add_(2, token, weights)
    probabilities = torch.full((n,), torch.nan, device=points.device)
    probabilities[order[1:-1]] = torch.softmax(logits.float(), 0)
    of_nodes = to_arrays({"probabilities": probabilities, "attention": attention})
    return {"visited": visited_nodes.cpu().numpy(), "destination": np.array(destination), **of_nodes}


def _mean_weights(module: nn.Module, inputs: tuple[Any, ...]) -> Tensor:
    """(representatives, tokens) of one instance."""
    assert isinstance(module, CrossLayer)
    weights: Tensor = module.weights(*inputs)
    return weights[0].mean(0)


def one_iteration(net: Sit, points: Tensor, tours: Tensor, decoding: Decoding) -> dict[str, np.ndarray]:
    """points (1, n, 2), tours (1, n): an iteration of PRC block by block, and how the tour's length goes on.

    It is the first one that finds a shorter block; where none does, the first of all.  Returns iteration (), its number
    from 1; before (n,), the tour as it was turned when it was cut, after (n,), the same stops after it; first
    (blocks,), where blocks begin, length () of each and improved (blocks,) bool; rounds (iterations,), the tour's
    length after each iteration.
    """
    n = tours.shape[1]
    longest = longest_sub_path(decoding.longest, n)
    generator = torch.Generator().manual_seed(SEED)  # as PRC's own, to know what it drew
    improving = prc(
        lambda m: _decide(net, m), net.encode, points, tours, decoding.iterations, longest=longest,
        most_blocks=decoding.most_blocks, seed=SEED,
    )  # fmt: skip
    lengths, cuts = [], []
    for number, after in enumerate(improving, 1):
        start, length, backwards = draw_within(generator, n, longest)
        before = (tours.flip(1) if backwards else tours).roll(-start, dims=1)
        blocks = min(n // length, decoding.most_blocks or n)
        changed: np.ndarray = (after != before)[0].cpu().numpy()
        cut = changed[: blocks * length].reshape(blocks, length)
        if changed[blocks * length :].any() or cut[:, [0, -1]].any():
            raise RuntimeError("PRC has cut other blocks than its draws say")
        cuts.append((number, before, after, length, np.asarray(cut.any(1))))
        lengths.append(path_lengths(points[:, after[0]][:, [*range(n), 0]].double()))
        tours = after
    number, before, after, length, improved = next((cut for cut in cuts if cut[-1].any()), cuts[0])
    return {
        "iteration": np.array(number),
        "before": before[0].cpu().numpy(),
        "after": after[0].cpu().numpy(),
        "first": np.arange(len(improved)) * length,
        "length": np.array(length),
        "improved": improved,
        "rounds": torch.cat(lengths).cpu().numpy(),
    }
