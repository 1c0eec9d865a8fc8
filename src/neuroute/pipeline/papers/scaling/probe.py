"""The evaluation stage's probes: how a model chooses when it is led along optimal tours (scaling, Appendix H).

A tour is walked as greedy decoding would: from node 0, which is also the destination, in the stored direction.  Two
decisions of each tour say nothing and are not counted: the last has one candidate, and on the first both neighbours of
node 0 are right, as a tour may be walked either way.  So an instance of n nodes gives n - 3.

"The k-th Euclidean neighbour of the current node" (H.4) can be read in two ways, and both are counted: among the nodes
that are still available, or among all nodes of the instance.
"""

import time
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from neuroute.analysis.representations import separation
from neuroute.datasets.store import load_tours
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.memory import autocast, batch_size_for
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows, describe_test
from neuroute.networks.base import PathNetwork
from neuroute.networks.weights import parameters
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.specs.objects import Decoding

AT_ONCE = 256  # instances whose last-layer states are held at the same time


def measure(loaded: LoadedModel, evaluation: scaling.ProbeEvaluation) -> tuple[Rows, Arrays]:
    """Return records (success_pct, decisions, parameters) and arrays.

    By rank, k at place k - 1, (n - 1,): decisions_available, hits_available, decisions_all, hits_all.  At the decision
    of the probe, over the available nodes in the order of the optimal tour: states (available, width) and coords
    (available, 2) of one instance, separation (count,) of all.  instance, decision: which.

    Raises NeurouteError if labels are missing.
    """
    dataset = evaluation.optimal.dataset
    net, precision, memory_gb = loaded.net, loaded.run.training.precision, loaded.memory_gb
    coords = torch.from_numpy(dataset_coordinates(dataset))
    tours = torch.from_numpy(load_tours(evaluation.optimal, loaded.context.label_dirs).astype(np.int64))
    began = time.perf_counter()
    arrays = success_by_rank(net, coords, tours, memory_gb, precision)  # type: ignore[arg-type]
    separations = []
    for first, states in last_layer(net, coords, tours, evaluation.decision, memory_gb, precision):  # type: ignore[arg-type]
        separations.append(separation(states))
        if first <= evaluation.instance < first + len(states):
            arrays["states"] = states[evaluation.instance - first]
    seconds = time.perf_counter() - began
    hits, decisions = int(arrays["hits_all"].sum()), int(arrays["decisions_all"].sum())
    available = tours[evaluation.instance, evaluation.decision + 1 :]
    arrays |= {
        "coords": coords[evaluation.instance, available].numpy(),
        "separation": np.concatenate(separations),
        "instance": np.array(evaluation.instance),
        "decision": np.array(evaluation.decision),
    }
    about = describe_test(dataset, evaluation.optimal.solver)
    values = {"success_pct": 100 * hits / decisions, "decisions": decisions, "parameters": parameters(net)}
    return loaded.rows(evaluation.name, about, Decoding(), values, seconds), arrays


@torch.inference_mode()
def success_by_rank(
    net: PathNetwork, coords: Tensor, tours: Tensor, memory_gb: float = 4.0, precision: str = "fp32"
) -> dict[str, np.ndarray]:
    """The counts of `measure`'s .npz.  coords (count, n, 2) and tours (count, n) int64 on the CPU, n >= 4."""
    device, n = next(net.parameters()).device, coords.shape[1]
    limit = batch_size_for(net, n, Decoding(), memory_gb)
    parts: dict[str, list[Tensor]] = {"hit": [], "available": [], "all": []}
    for points, order in zip(coords.split(limit), tours.split(limit), strict=True):
        points, order = points.to(device), order.to(device)
        with autocast(device, precision):
            nodes = net.encode(points)
        path = _along(points, order).double()
        for step in range(1, n - 2):
            with autocast(device, precision):
                parts["hit"].append(_chooses_optimal(net, nodes, order, step).cpu())
            squared = (path - path[:, step : step + 1]).square().sum(-1)
            closer = squared < squared[:, step + 1 : step + 2]
            closer[:, step] = False  # the current node is no neighbour of its own
            ranks = (closer[:, step + 2 :].sum(1) + 1, closer.sum(1) + 1)
            for name, rank in zip(("available", "all"), ranks, strict=True):
                parts[name].append(rank.cpu())
    hit = torch.cat(parts["hit"])
    counts = {}
    for name in ("available", "all"):
        rank = torch.cat(parts[name]) - 1
        counts[f"decisions_{name}"] = torch.bincount(rank, minlength=n - 1).numpy()
        counts[f"hits_{name}"] = torch.bincount(rank[hit], minlength=n - 1).numpy()
    return counts


@torch.inference_mode()
def last_layer(
    net: PathNetwork, coords: Tensor, tours: Tensor, decision: int, memory_gb: float = 4.0, precision: str = "fp32"
) -> Iterator[tuple[int, np.ndarray]]:
    """(first instance, float32 states (instances, available, width)) of one decision, a part at a time.

    Available nodes come in the order of the tour: the optimal next one first.  States are those after the last layer.
    """
    device, n = next(net.parameters()).device, coords.shape[1]
    limit, first = min(AT_ONCE, batch_size_for(net, n, Decoding(), memory_gb)), 0
    for points, order in zip(coords.split(limit), tours.split(limit), strict=True):
        with autocast(device, precision):
            path = _along(net.encode(points.to(device)), order.to(device))
            rows = torch.cat([path[:, decision:], path[:, :1]], dim=1)
            states = net.hidden(rows, net.attention_scale(n))[:, 1:-1]
        yield first, states.float().cpu().numpy()
        first += len(points)


def _along(nodes: Tensor, tours: Tensor) -> Tensor:
    """nodes (batch, n, E) in the order of tours (batch, m): (batch, m, E)."""
    return nodes.gather(1, tours[..., None].expand(-1, -1, nodes.shape[-1]))


def _chooses_optimal(net: PathNetwork, nodes: Tensor, tours: Tensor, step: int) -> Tensor:
    """Whether the model, on stop `step`, prefers stop `step + 1`: bool (batch,).

    Candidates come by node number, never the optimal one first: where logits are equal, or none is a number, the
    first of them is taken, as in greedy decoding, and that must not be the right one by construction.
    """
    available = tours[:, step + 1 :]
    optimal = (available[:, 1:] < available[:, :1]).sum(1)
    order = torch.cat([tours[:, step : step + 1], available.sort(1).values, tours[:, :1]], dim=1)
    logits: Tensor = net.decide(_along(nodes, order), net.attention_scale(nodes.shape[1]))
    return logits.argmax(1) == optimal
