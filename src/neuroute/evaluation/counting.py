"""Counts of a network while it runs, on shapes alone where its decisions read no values."""

import logging
from bisect import bisect_left
from collections.abc import Callable
from copy import deepcopy
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from neuroute.core.errors import NeurouteError
from neuroute.evaluation.flops import UNKNOWN, Amount, Counts, Piece
from neuroute.networks.base import MultiStartNetwork, RoutingNetwork
from neuroute.networks.weights import build, parameters
from neuroute.specs.objects import Network

log = logging.getLogger(__name__)
FIRST = (3, 4, 5, 6, 8, 12, 24)  # nodes: some networks need so many
LAST = {"meta": 1 << 13, "cpu": 192}  # beyond, the last quadratic goes on
MOST_PIECES = 8
SMALL = 64  # nodes up to which a CPU computes sooner than torch reckons shapes
STEP = 48  # where amounts are in steps, of as many nodes as divide this

aten = torch.ops.aten


# Besides the products that torch counts: those that are added in place, and one FLOP for each entry of a softmax, and
# for each output of these functions.
SOFTMAX = (aten._softmax, aten._safe_softmax)
OUTPUTS = (*SOFTMAX, aten.relu, aten.relu_, aten.silu, aten.gelu, aten.tanh, aten.tanh_)
COUNTED: dict[Any, Callable[..., int]] = {
    aten.addmm_: lambda added_to, a, b, *args, **kwargs: 2 * a.numel() * b.shape[-1],
    **dict.fromkeys(OUTPUTS, lambda x, *args, **kwargs: x.numel()),
}


def measure(network: Network) -> Counts:
    """Count a network on the meta device or, where its decisions read values, on a CPU.

    Exact wherever amounts are quadratics of the size, one after the other: of attention and linear layers, also where
    only the k nearest nodes are read.  Amounts that go up in steps lie between them.
    Raises NeurouteError if the network cannot be built.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # of so few numbers several would mostly wait for each other
    try:
        with torch.inference_mode(False):  # in which a layer is one operator that has no formula
            return _measure(network)
    finally:
        torch.set_num_threads(threads)


def _measure(network: Network) -> Counts:
    reason = ""
    for place in LAST:
        try:
            with torch.random.fork_rng(devices=[]):
                with torch.device(place):
                    net = build(network).eval()
                count = _counter(net, place)
                first = _smallest(count)
                pieces = (_pieces(lambda size: count(size)[part], first, LAST[place]) for part in (0, 1))  # noqa: B023
                encoder, decision = map(Amount, pieces)
            return Counts(parameters(net), encoder, decision)
        except NeurouteError:
            raise
        except Exception as error:  # whatever a network does to shapes that it was not made for
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    log.warning("%s: its FLOPs cannot be measured (%s)", network.kind, reason)
    return Counts(parameters(net), UNKNOWN, UNKNOWN)


def _counter(net: RoutingNetwork, place: str) -> Callable[[int], tuple[int, int]]:
    """`count_at` of a network by size, each counted once; on shapes alone where the network is, and the size no small
    one: there any numbers do.
    """
    in_memory = net if place == "cpu" else deepcopy(net).to_empty(device="cpu")

    @cache
    def count(size: int) -> tuple[int, int]:
        if size <= SMALL or place == "cpu":
            try:
                return count_at(in_memory, size)
            except Exception:  # too few nodes, or tensors that were left where they are
                if place == "cpu":
                    raise
        with torch.device(place):
            return count_at(net, size)

    return count


def _smallest(at: Callable[[int], Any]) -> int:
    """The first size that the network takes.  Raises what it raises of the last one, if it takes none."""
    for size in FIRST[:-1]:
        try:
            at(size)
        except Exception as error:  # whatever a network says of too few nodes
            log.debug("%d nodes: %s", size, error)
        else:
            return size
    at(FIRST[-1])
    return FIRST[-1]


def _pieces(amount: Callable[[int], int], first: int, last: int) -> tuple[Piece, ...]:
    """Quadratics, each through three sizes that follow each other, as far as it holds: there is where it ends."""
    pieces: list[Piece] = []
    start = first
    while start < last:
        if len(pieces) == MOST_PIECES:
            return (_through(partial(_between_steps, amount), first),)
        piece = _through(amount, start)
        pieces.append(piece)
        start = _end(amount, Amount((piece,)), start + 2, last)
    return tuple(pieces)


def _end(amount: Callable[[int], int], fitted: Amount, holds: int, last: int) -> int:
    """The first size beyond `holds` that is not as fitted; beyond the last one if there is none."""
    if amount(last) == fitted(last):
        return last + 1
    ahead = 1
    while holds + ahead < last and amount(holds + ahead) == fitted(holds + ahead):
        holds, ahead = holds + ahead, 2 * ahead
    fails = min(holds + ahead, last)
    return bisect_left(range(fails), True, lo=holds + 1, key=lambda size: amount(size) != fitted(size))


def _through(amount: Callable[[int], float], start: int) -> Piece:
    """The quadratic of three sizes that follow each other."""
    here, one, two = (amount(start + number) for number in range(3))
    return start, here, one - here, two - 2 * one + here


def _between_steps(amount: Callable[[int], int], size: int) -> float:
    """At a size, the quadratic through multiples of STEP."""
    here, one, two = (amount(STEP * number) for number in (1, 2, 3))
    steps = size / STEP - 1
    return here + steps * (one - here) + steps * (steps - 1) / 2 * (two - 2 * one + here)


def count_at(net: RoutingNetwork, size: int) -> tuple[int, int]:
    """FLOPs of encoding so many nodes, and of a decision on as many tokens (`Counts`)."""
    coords, *demand = features = _features(net.problem, size)
    if count := getattr(net, "count_flops", None):
        encoder, decision = count(flops_of, *features)
        return encoder, decision
    if isinstance(net, MultiStartNetwork):
        return _many_starts(net, size)
    rows, encoder = flops_of(lambda: net.encode(coords, *demand))
    remaining = (torch.full((1,), 0.5),) if demand else ()
    return encoder, flops_of(lambda: net.decide(rows, *remaining))[1]


def _many_starts(net: MultiStartNetwork, tokens: int) -> tuple[int, int]:
    """Encoding is with what all decisions share."""
    nodes = tokens - 1
    _, encoder = flops_of(lambda: net.prepare(net.encode(*_features(net.problem, tokens))))
    prepared, _ = flops_of(lambda: net.prepare(net.encode(*_features(net.problem, nodes))))
    current = torch.ones(1, 1, dtype=torch.int64)
    # What is left, and of some networks what has been served.
    context_of_cvrp = torch.zeros(1, 1, 1 + nodes) if net.sees_served else torch.ones(1, 1)
    context = {"tsp": current, "cvrp": context_of_cvrp, "vrp": torch.ones(1, 1, 4)}[net.problem]
    mask = torch.zeros(1, 1, nodes)
    if net.problem == "tsp":
        mask[..., 1] = -torch.inf  # where the tour is
    return encoder, flops_of(lambda: net.decide(prepared, context, current, mask))[1]


def _features(problem: str, nodes: int) -> list[Tensor]:
    demand = [] if problem == "tsp" else [torch.full((1, nodes), 0.01)]
    windows = [torch.zeros(1, nodes, 2)] if problem == "vrp" else []
    return [torch.rand(1, nodes, 2), *demand, *windows]


def flops_of(call: Callable[[], Any]) -> tuple[Any, int]:
    """What a call returns, and its FLOPs: attention as products and a softmax, not as some device's fused kernel."""
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), _Counter() as counter:
        return call(), counter.total


class _Counter(TorchDispatchMode):
    """Adds up FLOPs by torch's formulas: `FlopCounterMode` adds up each module's, too, which takes half as long again.

    Draws are 0: a gate that draws whether it runs its experts runs them.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.total = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = function(*args, **(kwargs or {}))
        operator = function._overloadpacket
        if formula := COUNTED.get(operator) or flop_registry.get(operator):
            self.total += formula(*args, **(kwargs or {}), out_val=out)
        return out.zero_() if operator is aten.rand else out
