"""The evaluation stage's look at ICAM and POMO at work: modules, attention and a decision on a real instance.

What the paper's Figures 1 to 6 draw by hand.  All of it is the live network's: what its modules compute from what
enters them, and the logits that it decides by.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.datasets.store import load_tours
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.environment import empty_mask, mask_stops
from neuroute.decoding.memory import autocast
from neuroute.decoding.multi_start import multi_start, roll_out
from neuroute.decoding.tsp import TSP, TspBatch
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows, parameter_rows, to_arrays, wrong_network
from neuroute.evaluation.snapshot import describe_modules, tap_inputs
from neuroute.networks.base import MultiStartNetwork
from neuroute.networks.blocks.layers import AafmLayer, aafm, rows_of, slope, weigh
from neuroute.networks.icam import Icam
from neuroute.networks.pomo import Pomo
from neuroute.pipeline.papers.icam.paper import RANKS, SHARE, StructureEvaluation
from neuroute.specs.objects import Labels

LAYER = 0  # whose attention-free module is shown
LEVELS = np.linspace(0, 1, 201)  # of the quantiles that are kept
PAIRS = 1 << 24  # distances that are held at the same time
SOLVED = 64  # instances of each size at most, that the model solves for its own choices


def measure(loaded: LoadedModel, evaluation: StructureEvaluation) -> tuple[Rows, Arrays]:
    """Return records (parameters) and arrays.

    coords (n, 2) float32 of the instance; modules, what `describe_modules` returns; tours (n, n) int64, greedy from
    every node, and their lengths (n,) float64; of the decision on the tour from node 0, what `decision_of_icam` or
    `decision_of_pomo` returns; of ICAM, what `alphas` and `attention_free` return.  With optimal labels, what
    `chosen_nodes` returns.

    Raises NeurouteError if labels are missing, the network is neither POMO for the TSP nor ICAM with all its adaptation
    biases, or there is no such decision.
    """
    net = _drawable(evaluation, loaded)
    coords = dataset_coordinates(evaluation.dataset)[0]
    points = torch.from_numpy(coords)[None].to(loaded.place)
    with torch.inference_mode(), autocast(loaded.place, loaded.run.training.precision):
        prepared = net.prepare(net.encode(points))
        batch = TspBatch(points)
        tours = roll_out(net, prepared, batch, batch.start_nodes(len(coords)))
        visited = tours[:, 0, : evaluation.decision]
        decision = (decision_of_icam if isinstance(net, Icam) else decision_of_pomo)(net, prepared, visited)
        inside = {**alphas(net, len(coords)), **attention_free(net, points)} if isinstance(net, Icam) else {}
        lengths = batch.lengths(tours)[0].double().cpu().numpy()
    arrays = {
        "coords": coords,
        "modules": describe_modules(net, "layers"),
        "tours": tours[0].cpu().numpy(),
        "lengths": lengths,
        **decision,
        **inside,
        **chosen_nodes(evaluation.optimal, loaded),
    }
    return parameter_rows(loaded, evaluation.name, evaluation.dataset), arrays


def _drawable(evaluation: StructureEvaluation, loaded: LoadedModel) -> Any:
    net: MultiStartNetwork = loaded.net  # type: ignore[assignment]
    if isinstance(net, Pomo) and net.problem == "tsp":
        return net
    if isinstance(net, Icam) and net.problem == "tsp" and None not in (net.alpha, net.compatibility_alpha):
        return net
    purpose = "structure is drawn of POMO for the TSP and of ICAM with its adaptation biases"
    raise wrong_network(evaluation.id, purpose, loaded)


def _under_way(prepared: Any, visited: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """visited (1, k) int64 -> first, current (1, 1), closed (1, 1, n): one tour, as `decide` takes it."""
    closed = empty_mask(visited[:, :1], prepared.nodes.shape[1], prepared.nodes.dtype)
    for stop in visited.T:
        closed = mask_stops(closed, stop[None])
    return visited[:, :1], visited[:, -1:], closed


def _outcome(net: MultiStartNetwork, prepared: Any, visited: Tensor) -> dict[str, np.ndarray]:
    """visited (k,) int64; logits, probabilities (n,) float32, nan where a node is visited."""
    logits = net.decide(prepared, *_under_way(prepared, visited))[0, 0].float()
    computed = {"logits": logits, "probabilities": torch.softmax(logits, 0)}
    of_nodes = {name: values.where(logits.isfinite(), torch.nan) for name, values in computed.items()}
    return {"visited": visited[0].cpu().numpy(), **to_arrays(of_nodes)}


def decision_of_icam(net: Icam, prepared: Any, visited: Tensor) -> dict[str, np.ndarray]:
    """visited (1, k) from the first to the current node -> what `_outcome` does and, (n,) float32:

    decoder_weights, softmax of the decoder's module over the nodes (0 where visited); fits, the products with the
    nodes over sqrt(W); bias, what the compatibility adds to them (icam, Eq. 4): clipping * tanh(fits + bias) are the
    logits.  clipping ().
    """
    assert net.alpha is not None
    assert net.compatibility_alpha is not None
    first, current, closed = _under_way(prepared, visited)
    apart = rows_of(prepared.distances, current)
    biased = torch.addcmul(closed, apart, slope(net.alpha, prepared.log_n))
    query = aafm(net.context.query(prepared.of_context, prepared.of_current, first, current), prepared.pairs, biased)
    fits = query @ prepared.nodes.transpose(1, 2) / math.sqrt(net.width)
    values = {
        "decoder_weights": torch.softmax(biased, dim=-1),
        "fits": fits,
        "bias": apart * slope(net.compatibility_alpha, prepared.log_n),
    }
    arrays = to_arrays({key: value[0, 0] for key, value in values.items()})
    return {**_outcome(net, prepared, visited), **arrays, "clipping": np.array(net.clipping)}


def decision_of_pomo(net: Pomo, prepared: Any, visited: Tensor) -> dict[str, np.ndarray]:
    """visited (1, k) from the first to the current node -> what `_outcome` does, and the decoder's attention.

    attention (heads, n) float32: each head's weights sum to 1 over the nodes that are left.  clipping ().
    """
    first, current, closed = _under_way(prepared, visited)
    query = net.context.query(prepared.of_context, prepared.of_current, first, current)
    heads = query.unflatten(2, (net.heads, -1)).transpose(1, 2)
    scores = heads.float() @ prepared.keys.float().transpose(2, 3) / math.sqrt(net.width // net.heads)
    weights = torch.softmax(scores + closed[:, None].float(), dim=-1)[0, :, 0]
    return {**_outcome(net, prepared, visited), "attention": weights.cpu().numpy(), "clipping": np.array(net.clipping)}


def alphas(net: Icam, nodes: int) -> dict[str, np.ndarray]:
    """layer_alphas (depth,), decoder_alpha (), compatibility_alpha () float64 and log_n (), log2 of the nodes."""
    assert net.alpha is not None
    assert net.compatibility_alpha is not None
    layers = [layer.alpha for layer in net.layers if isinstance(layer, AafmLayer)]
    return {
        "layer_alphas": np.array([alpha.item() for alpha in layers if alpha is not None]),
        "decoder_alpha": np.array(net.alpha.item()),
        "compatibility_alpha": np.array(net.compatibility_alpha.item()),
        "log_n": np.array(math.log2(nodes)),
    }


def attention_free(net: Icam, points: Tensor) -> dict[str, np.ndarray]:
    """points (1, n, 2): Eq. 3 term by term in the layer `LAYER`.

    layer (); adaptation (n, n) float32, A; query, key, value (n, W) float32; output (n, W), what the live layer makes
    of them; numerator, exp(A) (exp(K) V), and denominator, exp(A) exp(K), float64.  Of each channel's keys the largest
    is subtracted, which cancels.
    """
    layer = net.layers[LAYER]
    assert isinstance(layer, AafmLayer)
    assert layer.alpha is not None
    with tap_inputs([layer], lambda _, inputs: inputs) as calls:
        net.encode(points)
    x, apart, log_n = calls[0]
    query, key, value = layer.qkv(x).chunk(3, dim=-1)
    bias = slope(layer.alpha, log_n) * apart
    output = aafm(query, weigh(key, value), bias)
    weights, keys = bias[0].double().exp(), key[0].double()
    keys = (keys - keys.amax(dim=0)).exp()
    terms = {"adaptation": bias[0], "query": query[0], "key": key[0], "value": value[0], "output": output[0]}
    return {
        "layer": np.array(LAYER),
        **to_arrays(terms),
        "numerator": (weights @ (keys * value[0].double())).cpu().numpy(),
        "denominator": (weights @ keys).cpu().numpy(),
    }


def chosen_nodes(optimal: tuple[Labels, ...], loaded: LoadedModel) -> dict[str, np.ndarray]:
    """For each size n of labelled instances: what optimal tours choose next, and what the model does.

    sizes (m,); counts and solved (m,): instances, and how many of them the model solves; solvers (m,) of the labels;
    levels (levels,); for each n coords_n (n, 2) and tour_n (n,), the first instance's, and what `selections` names
    <key>_<n>_optimal and <key>_<n>_model.  The model's are greedy tours from node 0.
    """
    net: MultiStartNetwork = loaded.net  # type: ignore[assignment]
    arrays: dict[str, np.ndarray] = {}
    for labels in optimal:
        n = labels.dataset.n
        coords = torch.from_numpy(dataset_coordinates(labels.dataset))
        tours = torch.from_numpy(load_tours(labels, loaded.context.label_dirs).astype(np.int64))
        few, precision = coords[:SOLVED], loaded.run.training.precision
        solutions = multi_start(TSP, net, few, 1, memory_gb=loaded.memory_gb, precision=precision)
        arrays |= {f"coords_{n}": coords[0].numpy(), f"tour_{n}": tours[0].numpy()}
        arrays |= selections(coords, tours, f"{n}_optimal")
        arrays |= selections(few, solutions, f"{n}_model")
    if optimal:
        counts = [labels.dataset.count for labels in optimal]
        arrays |= {"sizes": np.array([labels.dataset.n for labels in optimal]), "counts": np.array(counts)}
        arrays |= {"solved": np.minimum(counts, SOLVED), "levels": LEVELS}
        arrays |= {"solvers": np.array([labels.solver for labels in optimal])}
    return arrays


def selections(coords: Tensor, tours: Tensor, name: str) -> dict[str, np.ndarray]:
    """What all decisions of tours have in common; the last stop and the way back are chosen by no one.

    coords (count, n, 2) and tours (count, n) int64 on the CPU, n >= 3.  Returns, each with _<name>: quantiles (levels,)
    of the distance to the chosen node; ranks (RANKS,) int64, decisions by its rank among the nodes that are left, from
    1, which nodes as far away share; radius (), within which `SHARE` of the chosen nodes lie; within (), the mean
    number of other nodes that lie so near, visited or not.
    """
    count, n = tours.shape
    most = max(n, RANKS) + 1
    ranks, distances = torch.zeros(most, dtype=torch.int64), torch.empty(count, n - 2, dtype=torch.float64)
    at_once = max(1, PAIRS // n**2)
    later = torch.ones(n - 2, n).triu(2).bool()  # what is left at each decision, but for the chosen node
    paths = coords.double().gather(1, tours[..., None].expand(-1, -1, 2))
    for first in range(0, count, at_once):
        apart = _apart(paths[first : first + at_once])
        steps = apart[:, : n - 2].diagonal(1, 1, 2)
        distances[first : first + at_once] = steps
        nearer = (apart[:, : n - 2] < steps[..., None]) & later
        ranks += torch.bincount(nearer.sum(-1).flatten() + 1, minlength=most)
    radius = float(np.quantile(distances.numpy(), SHARE))
    inside = sum(int((_apart(part) <= radius).sum()) - part.shape[0] * n for part in paths.split(at_once))
    values = {
        "quantiles": np.quantile(distances.numpy(), LEVELS).astype(np.float64),
        "ranks": np.append(ranks[1:RANKS].numpy(), ranks[RANKS:].sum().item()),
        "radius": radius,
        "within": inside / (count * n),
    }
    return {f"{key}_{name}": np.asarray(value) for key, value in values.items()}


def _apart(paths: Tensor) -> Tensor:
    """paths (count, n, 2) -> distances (count, n, n), exact on the diagonal."""
    return torch.cdist(paths, paths, compute_mode="donot_use_mm_for_euclid_dist")
