"""What greedy construction takes of time and memory, by size (sit, Table 4).

Weights are random: they do not change what is computed.  A whole construction of 100,000 nodes takes an hour, so its
decisions are sampled: at some points between the first and the last, one decision is measured, and the time of all of
them follows from straight lines between the points.  (Of times that grow with the square of what is left, that gives
3 % too much with five points.)
"""

import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from neuroute.accounting.counts import Counts
from neuroute.accounting.counts import counts as counts_of
from neuroute.core import device as devices
from neuroute.core.errors import NeurouteError
from neuroute.evaluation.extrapolation import Forecast, predict_cost
from neuroute.evaluation.live_memory import measure_memory, out_of_memory
from neuroute.evaluation.loaded import LoadedModel
from neuroute.evaluation.records import Arrays, Rows, describe_test
from neuroute.evaluation.single_step import Construction, pose_single_step
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.weights import build
from neuroute.plan.objects import Dataset, Decoding, EfficiencyEvaluation, Network

log = logging.getLogger(__name__)

LIMIT = 60.0  # seconds that one network may take for one size, as predicted; twice as many where that was wrong
SMALL = 1000  # nodes up to which nothing is predicted first
REPEATS, ENOUGH = 5, 0.5  # a decision is timed so often, or for so many seconds
MIB = 2**20

hold_scores = partial(sdpa_kernel, SDPBackend.MATH)  # attention by two products and a softmax between them


@dataclass(frozen=True)
class Measurement:
    """One network on one instance."""

    points: np.ndarray  # (decisions, 3): tokens, seconds, MiB that the decision adds
    seconds: float  # of the whole construction
    peak_mb: float  # of what encoding keeps and adds, and of what the largest decision adds to it
    share: float = 1.0  # of the instance's solutions that are built at once


def measure(loaded: LoadedModel, evaluation: EfficiencyEvaluation) -> tuple[Rows, Arrays]:
    """Return records and "<network>[-math]|<dataset id>" (decisions, 3): tokens, seconds, MiB.

    Records of decoding "efficiency-<network>", and "efficiency-<network>-math" for attention that holds its scores, as
    in the papers' implementations, instead of the fused kernel: time_s (seconds of one instance), peak_memory_mb (that
    it adds), or out_of_memory (1) where it needs more than the memory budget.  A size that would take longer than a
    minute is left out, with a warning.
    The loaded network is not measured.  Raises NeurouteError if a network cannot be built, its FLOPs are not known, or
    there is no data set of its problem.
    """
    loaded = replace(loaded, weights=None)  # of these networks they are random
    place, budget = loaded.place, loaded.memory_gb * 1e9
    ready = {name: build_network(name, network, evaluation, place) for name, network in evaluation.networks.items()}
    rows, arrays = Rows(), Arrays()
    for name, (net, counts, datasets) in ready.items():
        for label, kernel in ((name, nullcontext), (f"{name}-math", hold_scores)):
            forecast = None
            for dataset in datasets:
                began, what = time.perf_counter(), f"{evaluation.id}: {label}: {dataset.id}"
                with kernel():
                    if dataset.nodes > SMALL and forecast is None:
                        forecast = predict_cost(net, dataset, counts, place)
                    result = _measure_size(net, dataset, evaluation.decisions, counts, forecast, budget, what)
                values = {"out_of_memory": 1.0} if result == "memory" else {}
                if isinstance(result, Measurement):
                    arrays[f"{label}|{dataset.id}"] = result.points
                    values = {"time_s": result.seconds, "peak_memory_mb": result.peak_mb}
                    values |= {"share_at_once": result.share} if result.share < 1 else {}
                seconds, about = time.perf_counter() - began, describe_test(dataset, instances=1)
                records = loaded.rows(evaluation.group, about, Decoding(), values, seconds, batch_size=1)
                rows += [row | {"decoding": f"efficiency-{label}"} for row in records]
    return rows, arrays


def build_network(
    name: str, network: Network, evaluation: EfficiencyEvaluation, place: torch.device
) -> tuple[RoutingNetwork, Counts, list[Dataset]]:
    """Return the network with random weights, its counts and the data sets of its problem, the smallest first."""
    counts = counts_of(network)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = build(network).eval().to(place)
    datasets = sorted((d for d in evaluation.datasets if d.problem == net.problem), key=lambda d: d.nodes)
    if not datasets:
        raise NeurouteError(
            f"{evaluation.id}: network '{name}' is for {net.problem}, of which there is no data set; add one"
        )
    return net, counts, datasets


def _measure_size(
    net: RoutingNetwork,
    dataset: Dataset,
    decisions: int,
    counts: Counts,
    forecast: Forecast | None,
    budget: float,
    what: str,
) -> Measurement | str:
    """Return the measurement, or why there is none: "memory" or "time".  budget: bytes."""
    construction = pose_single_step(net, dataset)
    tokens = sample_tokens(construction, decisions)
    if forecast is not None:
        tours = forecast.tours(dataset.nodes, budget)
        if tours < 1:
            log.info("%s: would need %.3g GB", what, forecast.peak(dataset.nodes) / 1e9)
            return "memory"
        construction = pose_single_step(net, dataset, tours=tours)
        seconds = forecast.seconds(construction, counts, tokens)
        if seconds > LIMIT:
            log.warning("%s: left out, would take about %.0f s to measure (at most %.0f)", what, seconds, LIMIT)
            return "time"
    try:
        result = measure_construction(construction, tokens, next(net.parameters()).device)
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        return "memory"
    if result is None:
        log.warning("%s: given up after %.0f s", what, 2 * LIMIT)
        return "time"
    log.info("%s: %.3g s, %.1f MiB", what, result.seconds, result.peak_mb)
    if forecast is not None:
        forecast.update_rate(construction, counts, result.points)
    return result if result.peak_mb * MIB <= budget else "memory"


def sample_tokens(construction: Construction, decisions: int) -> list[int]:
    """Return the tokens of the decisions to measure, from the last to the first; fewer where there are not so many."""
    fewest = min(construction.fewest, construction.most)
    spread = np.linspace(fewest, construction.most, decisions).round().astype(int)
    return [int(tokens) for tokens in np.unique(spread)]


def measure_construction(construction: Construction, tokens: list[int], place: torch.device) -> Measurement | None:
    """Measure the decisions on so many tokens.  Returns None if it takes too long."""
    began = time.perf_counter()
    with torch.no_grad():
        encoded = construction.encode()  # warm up
        construction.decide(construction.state(encoded, tokens[0]))
        del encoded
        encoded, encoding, resident = measure_memory(construction.encode, place)
        total = _time_call(construction.encode, place) if encoding else 0.0
        points, peak = [], float(encoding)
        for k in tokens:
            if time.perf_counter() - began > 2 * LIMIT:
                return None
            seconds, before, added = _measure_decision(construction, encoded, k, place)
            points.append((k, seconds, added / MIB))
            peak = max(peak, resident + before + added)
    array = np.array(points, np.float64)
    return Measurement(array, total + sum_decisions(array[:, 0], array[:, 1]), peak / MIB, construction.share)


def _measure_decision(
    construction: Construction, encoded: Any, tokens: int, place: torch.device
) -> tuple[float, int, int]:
    """Return seconds of a decision for all solutions of the instance, bytes held before it, bytes that it adds."""
    state, _, before = measure_memory(lambda: construction.state(encoded, tokens), place)
    _, added, _ = measure_memory(lambda: construction.decide(state), place)
    return _time_call(lambda: construction.decide(state), place) / construction.share, before, added


def sum_decisions(tokens: np.ndarray, seconds: np.ndarray) -> float:
    """Sum over all decisions, from the fewest tokens to the most, on straight lines between the measured points."""
    return float(np.interp(np.arange(tokens[0], tokens[-1] + 1), tokens, seconds).sum())


def _time_call(call: Callable[[], Any], place: torch.device) -> float:
    """Return the median seconds of a few calls, of one where it takes long."""
    seconds: list[float] = []
    while len(seconds) < REPEATS and sum(seconds) < ENOUGH:
        devices.synchronize(place)
        began = time.perf_counter()
        call()
        devices.synchronize(place)
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))
