"""What a size will take of time and memory, predicted from smaller ones, so that no measurement ends the process.

Bytes are fitted by a quadratic in the nodes, which holds attention that keeps its scores, attention that does not, and
linear networks alike.  Seconds go with the FLOPs.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls

from neuroute.accounting.counts import Counts
from neuroute.core import device as devices
from neuroute.evaluation.live_memory import measure_memory
from neuroute.evaluation.single_step import Construction, Starts, pose_single_step
from neuroute.networks.base import RoutingNetwork
from neuroute.plan.objects import Dataset

NODES = (250, 500, 1000)
RUNS = 2  # of each decision: one that is weighed and one that is timed


@dataclass
class Forecast:
    """The cost of one network, with attention computed in one way."""

    encoding: np.ndarray  # coefficients of n^2, n and 1: bytes that encoding adds
    deciding: np.ndarray  # and the first decision, with what encoding has kept
    splits: bool  # whether solutions of an instance can be built one after the other
    seconds_per_flop: float

    def peak(self, nodes: int) -> float:
        """Return the bytes at the peak, with all solutions at once."""
        return max(_at(self.encoding, nodes), _at(self.deciding, nodes))

    def tours(self, nodes: int, budget: float) -> int:
        """Return how many solutions of an instance can be built at once in `budget` bytes, 0 if not even one.

        A network that builds only one takes it for all of them.
        """
        if self.peak(nodes) <= budget:
            return nodes
        quadratic, rest = self.deciding[0] * nodes, _at(self.deciding * (0, 1, 1), nodes)
        if not self.splits or _at(self.encoding, nodes) > budget or rest + quadratic > budget:
            return 0
        return int((budget - rest) / quadratic)

    def seconds(self, construction: Construction, counts: Counts, tokens: Sequence[int]) -> float:
        """Return the seconds that measuring the decisions on so many tokens will take."""
        decisions = sum(construction.share * construction.flops(counts, k) for k in tokens)
        return RUNS * self.seconds_per_flop * (decisions + construction.encoder_flops(counts))

    def update_rate(self, construction: Construction, counts: Counts, points: np.ndarray) -> None:
        """Take the rate of the largest decision that was measured; points (decisions, 3): tokens, seconds, MiB."""
        tokens, seconds, _ = points[-1]
        self.seconds_per_flop = seconds / construction.flops(counts, int(tokens))


def predict_cost(net: RoutingNetwork, dataset: Dataset, counts: Counts, place: torch.device) -> Forecast:
    """Return the forecast from the first few hundred nodes of an instance."""
    encoding, deciding = [], []
    with torch.no_grad():
        for nodes in NODES:
            construction = pose_single_step(net, dataset, nodes)
            construction.decide(construction.state(construction.encode(), construction.most))  # warm up
            encoded, peak, resident = measure_memory(construction.encode, place)
            encoding.append(peak)
            _, peak, _ = measure_memory(lambda: _first(construction, encoded), place)  # noqa: B023 (called here)
            deciding.append(resident + peak)
        state = construction.state(encoded, construction.most)
        devices.synchronize(place)
        began = time.perf_counter()
        construction.decide(state)
        devices.synchronize(place)
        seconds = time.perf_counter() - began
    rate = seconds / construction.flops(counts, construction.most)
    return Forecast(_fit(encoding), _fit(deciding), isinstance(construction, Starts), rate)


def _first(construction: Construction, encoded: Any) -> Any:
    return construction.decide(construction.state(encoded, construction.most))


def _fit(bytes_: list[int]) -> np.ndarray:
    """Return the coefficients of n^2, n and 1, none below 0."""
    sizes = np.array(NODES, np.float64) / NODES[-1]
    fitted, _ = nnls(np.stack([sizes**2, sizes, np.ones_like(sizes)], axis=1), np.array(bytes_, np.float64))
    return np.asarray(fitted / (NODES[-1] ** 2, NODES[-1], 1.0))


def _at(coefficients: np.ndarray, nodes: int) -> float:
    return float(coefficients @ (nodes**2, nodes, 1.0))
