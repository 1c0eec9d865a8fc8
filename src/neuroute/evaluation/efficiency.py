"""What greedy construction takes of time and memory, by size (sit, Table 4).

Weights are random: they do not change what is computed.  A whole construction of 100,000 nodes takes an hour, so its
decisions are sampled: at some points between the first and the last, one decision is measured, and the time of all of
them follows from straight lines between the points.  (Of times that grow with the square of what is left, that gives
3 % too much with five points.)
"""

import logging
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from neuroute.core import device as devices
from neuroute.datasets.streams import cvrp_dataset, dataset_coordinates
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.environment import choose_best, empty_mask
from neuroute.decoding.greedy import closed_tour_rows
from neuroute.evaluation.flops import Counts
from neuroute.evaluation.flops import counts as counts_of
from neuroute.evaluation.loaded import Arrays, LoadedModel, Rows, describe_test
from neuroute.networks.base import MultiStartNetwork, PathNetwork, RoutingNetwork
from neuroute.networks.weights import build
from neuroute.specs.objects import Dataset, Decoding, EfficiencyEvaluation


class OneSolution:
    """A tour of the TSP or, with demands, a solution of the CVRP, by a network that reads what is left.

    coords (1, nodes, 2), demand (1, nodes) in shares of the capacity, the depot first.
    """

    share = 1.0  # of the instance's solutions that are built at once; the others take as long again

    def __init__(self, net: PathNetwork, coords: Tensor, *demand: Tensor) -> None:
        self.net, self.features, self.nodes = net, (coords, *demand), coords.shape[1]
        self.most = self.nodes + 1  # tokens of the first decision: what is left, where it is and where it ends
        self.fewest = 3 if demand else 4  # tokens of the last one that is computed
        self.context = [torch.full_like(share[:, 0], 0.5) for share in demand]
        self.scale = net.attention_scale(self.nodes)

    def encode(self) -> Tensor:
        """What is computed once, and kept for all decisions."""
        return closed_tour_rows(self.net.encode(*self.features))

    def state(self, encoded: Tensor, tokens: int) -> Tensor:
        """What is there before a decision on so many tokens."""
        return encoded[:, -tokens:]  # as in construction: a view, which moves on by a row with every decision

    def decide(self, state: Tensor) -> Tensor:
        """The decision; may be repeated on the same state."""
        logits: Tensor = self.net.decide(state, *self.context, self.scale)
        return logits.flatten(1).argmax(dim=1)

    def flops(self, counts: Counts, tokens: int) -> float:
        """Of one decision, for all of the instance's solutions."""
        return counts.decision(tokens)


class Starts:
    """Solutions from every start, `tours` of them at a time; coords (1, nodes, 2), of the CVRP shares (1, nodes) too.

    They do not shrink: every decision is on all nodes, those that were visited left out afterwards.  Of the CVRP the
    decisions that serve a customer are counted, not the ways back to the depot: how many these are, weights decide.
    """

    def __init__(self, net: MultiStartNetwork, coords: Tensor, *demand: Tensor, tours: int | None = None) -> None:
        self.net, self.features, self.nodes = net, (coords, *demand), coords.shape[1]
        self.most = self.nodes + 1
        self.fewest = 3 if demand else 4
        self.starts = self.nodes - len(demand)  # every node, every customer
        self.tours = self.starts if tours is None else min(tours, self.starts)
        self.share = self.tours / self.starts

    def encode(self) -> Any:
        return self.net.prepare(self.net.encode(*self.features))

    def state(self, encoded: Any, tokens: int) -> Any:
        """The same nodes are closed to all tours: a real set of tours would have closed as many, others to each.

        Vehicles are half full.
        """
        cvrp = self.starts < self.nodes
        starts = torch.arange(self.nodes - self.starts, self.nodes, device=encoded.nodes.device)[None, : self.tours]
        mask = empty_mask(starts, self.nodes, encoded.nodes.dtype)
        mask[..., cvrp : self.most - tokens + 1] = -torch.inf
        context = torch.full_like(starts, 0.5, dtype=encoded.nodes.dtype) if cvrp else starts
        return encoded, context, starts, mask

    def decide(self, state: Any) -> Tensor:
        return choose_best(self.net.decide(*state))

    def flops(self, counts: Counts, tokens: int) -> float:
        return self.starts * counts.decision(self.most)


Construction = OneSolution | Starts  # one instance, which a network builds a solution of


def pose_single_step(
    net: RoutingNetwork, dataset: Dataset, nodes: int | None = None, tours: int | None = None
) -> Construction:
    """The first instance of a TSP or CVRP data set, or that of its first so many nodes, on the network's device."""
    one, place = dataset.model_copy(update={"count": 1}), next(net.parameters()).device
    if dataset.problem == "cvrp":
        batch = CvrpBatch.of(cvrp_dataset(one), place)
        features: tuple[Tensor, ...] = (batch.coords[:, :nodes], batch.share[:, :nodes])
    else:
        features = (torch.from_numpy(dataset_coordinates(one)).to(place)[:, :nodes],)
    if net.multi_start:
        return Starts(net, *features, tours=tours)  # type: ignore[arg-type]
    return OneSolution(net, *features)  # type: ignore[arg-type]


# -- how much memory a computation adds at its peak, alike on a GPU and on a CPU -------------------------------------
# On CUDA torch's allocator says it. On a CPU nobody does: the resident size of the process holds torch itself and
# what was freed and not yet given back, which hides a computation of a few MiB. So the tensors that operations
# return are followed from when they appear until nothing refers to them. What a kernel takes for itself and frees
# before it returns is in CUDA's figure and not in the CPU's. That torch's own profiler sees too: of our decisions
# it reports the same bytes, and an eighth more where attention holds its scores, whose softmax makes a mask on its
# way.

Result = TypeVar("Result")


class LiveBytes(TorchDispatchMode):
    """Bytes of all tensors that operations inside the block made and that are still referred to, now and at the peak.

    Tensors that share memory count once, those that were there before never.  Without gradients (no_grad): inside
    inference_mode some operations pass as a whole, and what they make on their way is not seen.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = 0
        self.peak = 0
        self._seen: dict[int, Any] = {}  # address of a storage -> what keeps it, or a reference that ends with it

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        for storage in _storages((args, kwargs)):  # what an operation reads and nobody here has made was there before
            self._seen.setdefault(storage._cdata, storage)
        result = func(*args, **kwargs)
        for storage in _storages(result):
            self._add(storage)
        return result

    def _add(self, storage: torch.UntypedStorage) -> None:
        address, size = storage._cdata, storage.nbytes()
        if address in self._seen:
            return
        self.now += size
        self.peak = max(self.peak, self.now)

        def forget(_: Any) -> None:
            self.now -= size
            del self._seen[address]

        self._seen[address] = weakref.ref(storage, forget)


def _storages(values: Any) -> list[torch.UntypedStorage]:
    return [leaf.untyped_storage() for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def measure_memory(call: Callable[[], Result], place: torch.device) -> tuple[Result, int, int]:
    """What `call` returns, the bytes that it adds at its peak, and those that its result still holds.

    Once before, something like it should have run: a GPU's libraries take their work space at their first call.
    """
    with torch.no_grad():
        if place.type == "cuda":
            torch.cuda.synchronize(place)
            before = torch.cuda.memory_allocated(place)
            torch.cuda.reset_peak_memory_stats(place)
            result = call()
            torch.cuda.synchronize(place)
            peak = torch.cuda.max_memory_allocated(place) - before
            return result, peak, torch.cuda.memory_allocated(place) - before
        with LiveBytes() as live:
            result = call()
        return result, live.peak, live.now


def out_of_memory(error: RuntimeError) -> bool:
    """Whether torch says that there is not enough memory, on either device."""
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


# -- What a size will take of time and memory, predicted from smaller ones, so that no measurement ends the process
# Bytes are fitted by a quadratic in the nodes, which holds attention that keeps its scores, attention that does
# not, and linear networks alike. Seconds go with the FLOPs.

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
        return RUNS * self.seconds_per_flop * (decisions + counts.encoder(construction.nodes))


def predict_cost(net: RoutingNetwork, dataset: Dataset, counts: Counts, place: torch.device) -> Forecast:
    """Return the forecast from the first few hundred nodes of an instance."""
    encoding, deciding = [], []
    with torch.no_grad():
        for nodes in NODES:
            construction = pose_single_step(net, dataset, nodes)

            def decide_first(encoded: Any, construction: Construction = construction) -> Any:
                return construction.decide(construction.state(encoded, construction.most))

            decide_first(construction.encode())  # warm up
            encoded, peak, resident = measure_memory(construction.encode, place)
            encoding.append(peak)
            deciding.append(resident + measure_memory(partial(decide_first, encoded), place)[1])
        state = construction.state(encoded, construction.most)
        devices.synchronize(place)
        began = time.perf_counter()
        construction.decide(state)
        devices.synchronize(place)
        seconds = time.perf_counter() - began
    rate = seconds / construction.flops(counts, construction.most)
    return Forecast(_fit(encoding), _fit(deciding), isinstance(construction, Starts), rate)


def _fit(bytes_: list[int]) -> np.ndarray:
    """Return the coefficients of n^2, n and 1, none below 0."""
    sizes = np.array(NODES, np.float64) / NODES[-1]
    fitted, _ = nnls(np.stack([sizes**2, sizes, np.ones_like(sizes)], axis=1), np.array(bytes_, np.float64))
    return np.asarray(fitted / (NODES[-1] ** 2, NODES[-1], 1.0))


def _at(coefficients: np.ndarray, nodes: int) -> float:
    return float(coefficients @ (nodes**2, nodes, 1.0))


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
    ready = {}
    for name, network in evaluation.networks.items():
        counts = counts_of(network)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            net = build(network).eval().to(place)
        datasets = sorted((d for d in evaluation.datasets if d.problem == net.problem), key=lambda d: d.nodes)
        ready[name] = net, counts, datasets
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
                records = loaded.rows(evaluation.name, about, Decoding(), values, seconds, batch_size=1)
                rows += [row | {"decoding": f"efficiency-{label}"} for row in records]
    return rows, arrays


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
        most, seconds, _ = result.points[-1]  # of the largest decision that was measured
        forecast.seconds_per_flop = seconds / construction.flops(counts, int(most))
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
            state, _, before = measure_memory(partial(construction.state, encoded, k), place)
            decide = partial(construction.decide, state)
            _, added, _ = measure_memory(decide, place)
            seconds, before, added = (_time_call(decide, place) / construction.share, before, added)
            points.append((k, seconds, added / MIB))
            peak = max(peak, resident + before + added)
    array = np.array(points, np.float64)
    return Measurement(array, total + sum_decisions(array[:, 0], array[:, 1]), peak / MIB, construction.share)


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
