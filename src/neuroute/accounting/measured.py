"""Parameters and FLOPs of a network that has no formulas in `counts`: those of the network itself, on shapes alone."""

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from neuroute.accounting.counts import Counts
from neuroute.core.errors import NeurouteError
from neuroute.networks.base import MultiStartNetwork, RoutingNetwork
from neuroute.networks.weights import build
from neuroute.plan.objects import Network

log = logging.getLogger(__name__)
SMALLEST = 12  # tokens; larger sizes are measured at its doubles, smaller ones as they are
LARGEST_ON_CPU = 1536  # there a size takes memory; beyond it the last quadratic goes on

aten = torch.ops.aten


def _one_per_entry(shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return math.prod(shape)


def _product(added_to: Any, a: Any, b: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return 2 * int(math.prod(a)) * int(b[-1])


# Besides the products that torch counts: those that are added in place, and one FLOP for each entry of a softmax, and
# for each output of these functions.
SOFTMAX = (aten._softmax, aten._safe_softmax)
OUTPUTS = (*SOFTMAX, aten.relu, aten.relu_, aten.silu, aten.gelu, aten.tanh, aten.tanh_)
COUNTED: dict[Any, Callable[..., int]] = {aten.addmm_: _product} | dict.fromkeys(OUTPUTS, _one_per_entry)


class MeasuredCounts(Counts):
    """FLOPs of a network as it is run, once for each doubling of the size; between these a quadratic.

    Exact where they grow with the square of the size, as of attention and linear layers, also where only the k nearest
    nodes are read, but between the two sizes around k.
    """

    def __init__(self, net: RoutingNetwork, place: str) -> None:
        self._net, self._place = net, place
        self._at: dict[int, tuple[int, int]] = {}  # (encoder, decision) by size
        for size in (SMALLEST, 2 * SMALLEST, 4 * SMALLEST):  # what cannot be run fails here
            self._run_at(size)

    @property
    def parameters(self) -> int:
        return _parameters(self._net)

    def decision(self, tokens: int) -> int:
        return self._count(tokens, 1)

    def encoder(self, nodes: int) -> int:
        return self._count(nodes, 0)

    def _count(self, size: int, part: int) -> int:
        if size < SMALLEST:
            try:
                return self._run_at(size)[part]
            except Exception as error:  # a network that needs more nodes than that
                log.warning("FLOPs on %d tokens are taken to be those on %d (%s)", size, SMALLEST, error)
                return self._run_at(SMALLEST)[part]
        first = SMALLEST
        while 2 * first <= size and (self._place == "meta" or 8 * first <= LARGEST_ON_CPU):
            first *= 2
        points = [(k, self._run_at(k)[part]) for k in (first, 2 * first, 4 * first)]
        return round(_quadratic(points, size))

    def _run_at(self, size: int) -> tuple[int, int]:
        if size not in self._at:
            steps = _many_starts if isinstance(self._net, MultiStartNetwork) else _one_path
            with torch.device(self._place), torch.random.fork_rng(devices=[]):
                self._at[size] = steps(self._net, size)
        return self._at[size]


@dataclass(frozen=True)
class Unknown(Counts):
    """Of a network whose decisions could not be run: FLOPs are no number."""

    total: int

    @property
    def parameters(self) -> int:
        return self.total

    def decision(self, tokens: int) -> int:
        return math.nan  # type: ignore[return-value]

    def encoder(self, nodes: int) -> int:
        return self.decision(nodes)


def measure(network: Network) -> Counts:
    """Measure a network on the meta device or, where its decisions read values, on a CPU.

    Raises NeurouteError if the network cannot be built.
    """
    reason = ""
    for place in ("meta", "cpu"):
        try:
            with torch.device(place), torch.random.fork_rng(devices=[]):
                net = build(network).eval()
            return MeasuredCounts(net, place)
        except NeurouteError:
            raise
        except Exception as error:  # whatever a network does to shapes that it was not made for
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    log.warning("%s: its FLOPs cannot be measured (%s)", network.kind, reason)
    return Unknown(_parameters(net))


def _parameters(net: RoutingNetwork) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


def _one_path(net: RoutingNetwork, tokens: int) -> tuple[int, int]:
    """FLOPs of encoding so many nodes, and of a decision on as many tokens."""
    coords, *demand = _features(net.problem, tokens)
    rows, encoder = _flops(lambda: net.encode(coords, *demand))
    remaining = (torch.full((1,), 0.5),) if demand else ()
    _, decision = _flops(lambda: net.decide(rows, *remaining))
    return encoder, decision


def _many_starts(net: RoutingNetwork, tokens: int) -> tuple[int, int]:
    """FLOPs of encoding so many nodes with what all decisions share, and of one tour's decision on one node fewer."""
    assert isinstance(net, MultiStartNetwork)
    nodes = tokens - 1
    _, encoder = _flops(lambda: net.prepare(net.encode(*_features(net.problem, tokens))))
    prepared = net.prepare(net.encode(*_features(net.problem, nodes)))
    current = torch.ones(1, 1, dtype=torch.int64)
    # What is left, and of some networks what has been served.
    context_of_cvrp = torch.zeros(1, 1, 1 + nodes) if net.sees_served else torch.ones(1, 1)
    context = {"tsp": current, "cvrp": context_of_cvrp, "vrp": torch.ones(1, 1, 4)}[net.problem]
    _, decision = _flops(lambda: net.decide(prepared, context, current, torch.zeros(1, 1, nodes)))
    return encoder, decision


def _features(problem: str, nodes: int) -> list[Tensor]:
    demand = [] if problem == "tsp" else [torch.full((1, nodes), 0.01)]
    windows = [torch.zeros(1, nodes, 2)] if problem == "vrp" else []
    return [torch.rand(1, nodes, 2), *demand, *windows]


def _flops(call: Callable[[], Any]) -> tuple[Any, int]:
    """What a call returns, and its FLOPs."""
    with torch.no_grad(), _all_products(), FlopCounterMode(display=False, custom_mapping=COUNTED) as counter:
        result = call()
    return result, int(counter.get_total_flops())


@contextmanager
def _all_products() -> Iterator[None]:
    """Attention as products and a softmax: a fused kernel's are not counted on every device."""
    with sdpa_kernel(SDPBackend.MATH):
        yield


def _quadratic(points: list[tuple[int, int]], size: int) -> float:
    """The quadratic through three points (size, amount), at a size."""
    (a, x), (b, y), (c, z) = points
    first, second = (y - x) / (b - a), (z - y) / (c - b)
    return x + (size - a) * (first + (size - b) * (second - first) / (c - a))
