"""What a size will take of time and memory, seen from smaller ones: a measurement must not end the process, or the day.

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

from neuroute.accounting.cost import Counts
from neuroute.core import device as devices
from neuroute.evaluation.live_memory import peak_and_kept
from neuroute.evaluation.one_decision import Construction, Starts, posed
from neuroute.plan.objects import Dataset

NODES = (250, 500, 1000)
RUNS = 2  # of each decision: one that is weighed and one that is timed


@dataclass
class Outlook:
    """Of one network and one way to compute attention."""

    encoding: np.ndarray  # coefficients of n^2, n and 1: bytes that encoding adds
    deciding: np.ndarray  # and the first decision, with what encoding has kept
    splits: bool  # whether solutions of an instance can be built one after the other
    seconds_per_flop: float

    def peak(self, nodes: int) -> float:
        """Bytes at the peak, with everything at once."""
        return max(_at(self.encoding, nodes), _at(self.deciding, nodes))

    def tours(self, nodes: int, budget: float) -> int:
        """Solutions of an instance that can be built at once in so many bytes: 0 where not even one.

        A network that builds one only takes it for all of them.
        """
        if self.peak(nodes) <= budget:
            return nodes
        quadratic, rest = self.deciding[0] * nodes, _at(self.deciding * (0, 1, 1), nodes)
        if not self.splits or _at(self.encoding, nodes) > budget or rest + quadratic > budget:
            return 0
        return int((budget - rest) / quadratic)

    def seconds(self, construction: Construction, counts: Counts, tokens: Sequence[int]) -> float:
        """That measuring at these points will take."""
        decisions = sum(construction.share * construction.flops(counts, k) for k in tokens)
        return RUNS * self.seconds_per_flop * (decisions + construction.encoder_flops(counts))

    def learn(self, construction: Construction, counts: Counts, points: np.ndarray) -> None:
        """The rate of the largest decision that was measured."""
        tokens, seconds, _ = points[-1]
        self.seconds_per_flop = seconds / construction.flops(counts, int(tokens))


def look_ahead(net: Any, dataset: Dataset, counts: Counts, place: torch.device) -> Outlook:
    """From the first few hundred nodes of an instance."""
    encoding, deciding = [], []
    with torch.no_grad():
        for nodes in NODES:
            construction = posed(net, dataset, nodes)
            construction.decide(construction.state(construction.encode(), construction.most))  # warm up
            kept, peak, held = peak_and_kept(construction.encode, place)
            encoding.append(peak)
            _, peak, _ = peak_and_kept(lambda: _first(construction, kept), place)  # noqa: B023 (called here)
            deciding.append(held + peak)
        state = construction.state(kept, construction.most)
        devices.synchronize(place)
        began = time.perf_counter()
        construction.decide(state)
        devices.synchronize(place)
        seconds = time.perf_counter() - began
    rate = seconds / construction.flops(counts, construction.most)
    return Outlook(_fit(encoding), _fit(deciding), isinstance(construction, Starts), rate)


def _first(construction: Construction, kept: Any) -> Any:
    return construction.decide(construction.state(kept, construction.most))


def _fit(bytes_: list[int]) -> np.ndarray:
    """Coefficients of n^2, n and 1, none below 0."""
    sizes = np.array(NODES, np.float64) / NODES[-1]
    found, _ = nnls(np.stack([sizes**2, sizes, np.ones_like(sizes)], axis=1), np.array(bytes_, np.float64))
    return np.asarray(found / (NODES[-1] ** 2, NODES[-1], 1.0))


def _at(coefficients: np.ndarray, nodes: int) -> float:
    return float(coefficients @ (nodes**2, nodes, 1.0))
