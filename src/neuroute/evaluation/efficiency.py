"""The evaluation stage's clock and scales: what greedy construction takes of time and memory, by size (sit, Table 4).

Weights are random: they do not change what is computed.  A whole construction of 100,000 nodes takes an hour, so its
decisions are sampled: at some points between the first and the last, one decision is measured, and the time of all of
them follows by drawing straight lines between the points.  (Of times that grow with the square of what is left, that
gives 3 % too much with five points.)
"""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from neuroute.accounting.cost import Counts, counts
from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.evaluation.extrapolation import Outlook, look_ahead
from neuroute.evaluation.live_memory import out_of_memory, peak_and_kept
from neuroute.evaluation.one_decision import Construction, posed
from neuroute.evaluation.records import Where, write_records
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.weights import build
from neuroute.plan.objects import Dataset, EfficiencyEvaluation, Network, Run

log = logging.getLogger(__name__)

LIMIT = 60.0  # seconds that one network may take for one size, as foreseen; twice as many where that was wrong
SMALL = 1000  # nodes up to which it is measured without looking ahead
REPEATS, ENOUGH = 5, 0.5  # a decision is timed so often, or for so many seconds
MIB = 2**20


@dataclass(frozen=True)
class Measured:
    """Of one network on one instance."""

    points: np.ndarray  # (decisions, 3): tokens, seconds, MiB that the decision adds
    seconds: float  # of the whole construction
    peak_mb: float  # of what encoding keeps and adds, and of what the largest decision adds to it
    share: float = 1.0  # of the instance's solutions that are built at once


def measure(
    evaluation: EfficiencyEvaluation, run: Run, checkpoint: Path, out: Path, label_dirs: list[Path], where: Where
) -> None:
    """Write `out` (.csv) and its .npz twin, "<network>[-math]|<dataset id>" -> (decisions, 3): tokens, seconds, MiB.

    Records of decoding "efficiency-<network>", and "efficiency-<network>-math" for attention that holds its scores, as
    in the papers' implementations, instead of the fused kernel: time_s (seconds of one instance), peak_memory_mb (that
    it adds), or out_of_memory (1) where it needs more than the memory budget.  A size that would take longer than a
    minute is left out, with a warning.
    `checkpoint` and `label_dirs` are not read.  Raises NeurouteError when a network cannot be built, its FLOPs are not
    known, or there is no data set of its problem.
    """
    place = devices.choose(where.device)
    if where.threads:
        torch.set_num_threads(where.threads)
    budget = devices.memory_budget_gb(place, where.memory_gb) * 1e9
    ready = {name: _built(name, network, evaluation, place) for name, network in evaluation.networks.items()}
    rows: list[dict[str, Any]] = []
    arrays: dict[str, np.ndarray] = {}
    for name, (net, count, datasets) in ready.items():
        for label, kernel in ((name, nullcontext), (f"{name}-math", _holding_scores)):
            outlook = None
            for dataset in datasets:
                began = time.perf_counter()
                with kernel():
                    if dataset.nodes > SMALL and outlook is None:
                        outlook = look_ahead(net, dataset, count, place)
                    found = _one_size(net, dataset, evaluation, count, outlook, budget, f"{evaluation.id}: {label}")
                if isinstance(found, Measured):
                    arrays[f"{label}|{dataset.id}"] = found.points
                    values = {"time_s": found.seconds, "peak_memory_mb": found.peak_mb}
                    values |= {"share_at_once": found.share} if found.share < 1 else {}
                else:
                    values = {"out_of_memory": 1.0} if found == "memory" else {}
                taken = time.perf_counter() - began
                rows += _rows(evaluation, run, where, place, dataset, f"efficiency-{label}", values, taken)
    write_records(out, rows, arrays)


def _holding_scores() -> AbstractContextManager[None]:
    """Attention by two products and a softmax between them."""
    return sdpa_kernel(SDPBackend.MATH)


def _built(
    name: str, network: Network, evaluation: EfficiencyEvaluation, place: torch.device
) -> tuple[RoutingNetwork, Counts, list[Dataset]]:
    """The network with random weights, its counts and the data sets of its problem, the smallest first."""
    count = counts(network)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = build(network).eval().to(place)
    datasets = sorted((d for d in evaluation.datasets if d.problem == net.problem), key=lambda d: d.nodes)
    if not datasets:
        raise NeurouteError(
            f"{evaluation.id}: network '{name}' is for {net.problem}, of which there is no data set; add one"
        )
    return net, count, datasets


def _one_size(
    net: Any,
    dataset: Dataset,
    evaluation: EfficiencyEvaluation,
    count: Counts,
    outlook: Outlook | None,
    budget: float,
    what: str,
) -> Measured | str:
    """What was measured, or why nothing was: "memory" or "time"."""
    construction = posed(net, dataset)
    tokens = points(construction, evaluation.decisions)
    if outlook is not None:
        tours = outlook.tours(dataset.nodes, budget)
        if tours < 1:
            log.info("%s: %s: would need %.3g GB", what, dataset.id, outlook.peak(dataset.nodes) / 1e9)
            return "memory"
        construction = posed(net, dataset, tours=tours)
        seconds = outlook.seconds(construction, count, tokens)
        if seconds > LIMIT:
            log.warning(
                "%s: %s: left out, would take about %.0f s to measure (at most %.0f)", what, dataset.id, seconds, LIMIT
            )
            return "time"
    try:
        found = _measured(construction, tokens, next(net.parameters()).device)
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        return "memory"
    if found is None:
        log.warning("%s: %s: given up after %.0f s", what, dataset.id, 2 * LIMIT)
        return "time"
    log.info("%s: %s: %.3g s, %.1f MiB", what, dataset.id, found.seconds, found.peak_mb)
    if outlook is not None:
        outlook.learn(construction, count, found.points)
    return found if found.peak_mb * MIB <= budget else "memory"


def points(construction: Construction, decisions: int) -> list[int]:
    """Tokens of the decisions that are measured, from the last to the first; fewer where there are not so many."""
    fewest = min(construction.fewest, construction.most)
    return np.unique(np.linspace(fewest, construction.most, decisions).round().astype(int)).tolist()


def _measured(construction: Construction, tokens: list[int], place: torch.device) -> Measured | None:
    """None when it takes too long."""
    began = time.perf_counter()
    with torch.no_grad():
        kept = construction.encode()  # warm up
        construction.decide(construction.state(kept, tokens[0]))
        del kept
        kept, encoding, held = peak_and_kept(construction.encode, place)
        total = _timed(construction.encode, place) if encoding else 0.0
        found, peak = [], float(encoding)
        for k in tokens:
            if time.perf_counter() - began > 2 * LIMIT:
                return None
            seconds, standing, adds = _one_decision(construction, kept, k, place)
            found.append((k, seconds, adds / MIB))
            peak = max(peak, held + standing + adds)
    array = np.array(found, np.float64)
    return Measured(array, total + in_all(array[:, 0], array[:, 1]), peak / MIB, construction.share)


def _one_decision(construction: Construction, kept: Any, tokens: int, place: torch.device) -> tuple[float, int, int]:
    """Seconds of a decision for all solutions of the instance, bytes that stand before it, bytes that it adds."""
    state, _, standing = peak_and_kept(lambda: construction.state(kept, tokens), place)
    _, adds, _ = peak_and_kept(lambda: construction.decide(state), place)
    return _timed(lambda: construction.decide(state), place) / construction.share, standing, adds


def in_all(tokens: np.ndarray, seconds: np.ndarray) -> float:
    """The sum over all decisions, from the fewest tokens to the most, on straight lines between what was measured."""
    return float(np.interp(np.arange(tokens[0], tokens[-1] + 1), tokens, seconds).sum())


def _timed(call: Callable[[], Any], place: torch.device) -> float:
    """The median of a few repetitions, of one where it takes long."""
    taken: list[float] = []
    while len(taken) < REPEATS and sum(taken) < ENOUGH:
        devices.synchronize(place)
        began = time.perf_counter()
        call()
        devices.synchronize(place)
        taken.append(time.perf_counter() - began)
    return float(np.median(taken))


def _rows(
    evaluation: EfficiencyEvaluation,
    run: Run,
    where: Where,
    place: torch.device,
    dataset: Dataset,
    decoding: str,
    values: dict[str, float],
    wall_time_s: float,
) -> list[dict[str, Any]]:
    """One record per value.  Not `Loaded.rows`: there is no trained model, and no batch that has to fit the memory."""
    units = {"time_s": "s", "peak_memory_mb": "MiB", "out_of_memory": "", "share_at_once": ""}
    shared = {
        "paper": run.paper,
        "run": run.id,
        "group": evaluation.group,
        "seed": run.seed,
        "test": dataset.id,
        "distribution": dataset.distribution,
        "n": dataset.n,
        "n_instances": 1,
        "reference": "none",
        "decoding": decoding,
        "method": "greedy",
        "beam": 1,
        "log_n": True,
        "batch_size": 1,
    }
    on = {
        "device": devices.name(place),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "scale": where.scale,
        "code": where.code,
        "wall_time_s": round(wall_time_s, 4),
    }
    return [{**shared, "metric": m, "value": v, "unit": units[m], **on} for m, v in values.items()]
