"""Greedy decisions of networks of many starts on a CPU, without gradients: `decision.c`; see `library`.

A glimpse is an attention of each tour's query to the nodes; products of what it sees with targets, one a node, say
which node fits best (`blocks.pointer`).  Both halves are one call, or two where a layer stands between them.
"""

import ctypes
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from neuroute.networks.blocks.kernels.library import are_on, lanes, library, threads_for

VERSION = "a023bb4b8976cbc1"  # see `library`
CHANNELS = 64  # of a head, at most
PAIRS = ("pairs", "distances")
_WIDEST = 16  # lanes


class _Instances(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_void_p)
            for name in ("keys", "values", "targets", "offsets", "of_current", "of_first", "of_numbers", *PAIRS)
        ),
        *((name, ctypes.c_int64) for name in ("batch", "nodes", "heads", "channels", "count", "experts")),
        ("scale", ctypes.c_float),
        ("limit", ctypes.c_float),
        ("glimpse_slope", ctypes.c_float),
        ("fit_slope", ctypes.c_float),
    )


class _Decision(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("current", "first", "numbers", "mask", "shares", "seen", "chosen")),
        *((name, ctypes.c_int64) for name in ("tours", "mask_row")),
        *((name, ctypes.c_int) for name in ("glimpses", "points", "threads")),
    )


class Decisions:
    """What the decisions of a batch of instances share, packed."""

    def __init__(
        self,
        keys: Tensor,
        values: Tensor,
        targets: Tensor,
        offsets: Tensor,
        of_current: Tensor,
        of_context: Tensor,
        limit: float,
    ) -> None:
        """keys and values (batch, heads, nodes, d_k), targets (batch, nodes, width), offsets (batch, 1, nodes) or ().

        Of experts, of which `point` is told the shares: targets (batch, experts, nodes, width) and offsets (batch,
        experts, nodes).

        A query is the row of_current (batch, nodes, width) of where a tour is, and that of of_context (the same) of
        where it began, or its numbers times of_context (count, width).  limit: see `pointer.best_of`.
        """
        batch, heads, nodes, channels = keys.shape
        beyond, deep = -nodes % lanes(), -channels % lanes()
        attention = {
            "keys": F.pad(keys.float().transpose(2, 3), (0, beyond)),
            "values": F.pad(values.float(), (0, deep)),
            "offsets": offsets.float().expand(batch, math.prod(targets.shape[1:-2]), nodes),
        }
        shape = {"heads": heads, "channels": channels, "scale": 1 / math.sqrt(channels), "limit": limit}
        self._keep(targets, of_current, of_context, attention, shape)

    def _keep(
        self,
        targets: Tensor,
        of_current: Tensor,
        of_context: Tensor,
        glimpse: dict[str, Tensor],
        numbers: dict[str, float],
    ) -> None:
        """Keep what all decisions read, contiguous and in float32; numbers and what glimpses read by their names."""
        batch, *experts, nodes, self._width = targets.shape
        self._starts = of_context.dim() == 3
        count = 0 if self._starts else of_context.numel() // self._width
        targets = F.pad(targets.transpose(-2, -1), (0, -nodes % lanes()))
        context = {"of_current": of_current, "of_first" if self._starts else "of_numbers": of_context}
        arrays = {"targets": targets, **context, **glimpse}
        self._kept = {name: each.float().contiguous() for name, each in arrays.items()}
        pointers = {name: each.data_ptr() for name, each in self._kept.items()}
        self._shared = _Instances(
            batch=batch, nodes=nodes, count=count, experts=math.prod(experts), **pointers, **numbers
        )

    def best(self, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """The node that fits each tour best: (batch, tours); arguments as of `MultiStartNetwork.decide`."""
        return self._run(context, current, mask, None)[1]

    def glimpse(self, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """What each tour sees: (batch, tours, width)."""
        return self._run(context, current, mask, None, points=False)[0]

    def point(self, glimpsed: Tensor, mask: Tensor, shares: Tensor | None = None) -> Tensor:
        """As `best`, after a glimpse, of what became of it (batch, tours, width); shares (batch, tours, experts): how
        much each expert's targets count.
        """
        return self._run(None, None, mask, glimpsed.float().contiguous(), shares)[1]

    def _run(
        self,
        context: Tensor | None,
        current: Tensor | None,
        mask: Tensor,
        glimpsed: Tensor | None,
        shares: Tensor | None = None,
        *,
        points: bool = True,
    ) -> tuple[Tensor, Tensor]:
        kernel = _compiled()
        assert kernel is not None
        batch, tours, nodes = mask.shape
        glimpses = glimpsed is None
        glimpsed = mask.new_empty(batch, tours, self._width) if glimpsed is None else glimpsed
        best = torch.empty(batch, tours, dtype=torch.int64)
        if mask.stride() != (tours * mask.stride(1), mask.stride(1), 1):
            mask = mask.contiguous()
        context, current, shares = (None if each is None else each.contiguous() for each in (context, current, shares))
        first, numbers = (context, None) if self._starts else (None, context)
        arguments = (current, first, numbers, mask, shares, glimpsed, best)  # which have to live until the call is over
        threads = threads_for(batch * tours * nodes * self._width)
        pointers = (None if each is None else each.data_ptr() for each in arguments)
        decision = _Decision(*pointers, tours, mask.stride(1), glimpses, points, threads)
        if kernel.decision_of(ctypes.byref(self._shared), ctypes.byref(decision)):
            raise MemoryError("decision: no memory for a thread's scores")
        return glimpsed, best


class AttentionFreeDecisions(Decisions):
    """As `Decisions`, where a glimpse is that of an attention-free module (`blocks.aafm`)."""

    def __init__(
        self,
        pairs: Tensor,
        distances: Tensor,
        targets: Tensor,
        of_current: Tensor,
        of_context: Tensor,
        slopes: tuple[float, float],
        limit: float,
    ) -> None:
        """pairs (batch, nodes, 2 width) of `aafm.weigh`, distances (batch, nodes, nodes), the others as of `Decisions`.

        slopes: what distances are multiplied with where they are added to scores, and to how well nodes fit.
        """
        width = targets.shape[2]
        numbers = {"scale": 1 / math.sqrt(width), "limit": limit, "glimpse_slope": slopes[0], "fit_slope": slopes[1]}
        glimpse = {"pairs": pairs, "distances": distances}
        self._keep(targets, of_current, of_context, glimpse, {"heads": 1, "channels": width, **numbers})


def fits_attention_free(pairs: Tensor) -> bool:
    """Whether the kernel takes decisions on such pairs, and is there."""
    return pairs.shape[2] % (2 * _WIDEST) == 0 and fits(pairs[..., :1], pairs)


def fits(keys: Tensor, targets: Tensor) -> bool:
    """Whether the kernel takes decisions on such keys and targets, and is there."""
    return (
        not torch.is_grad_enabled()
        and type(keys) is Tensor
        and keys.device.type == "cpu"
        and keys.shape[-1] <= CHANNELS
        and keys.dtype != torch.float64
        and targets.dtype == torch.float32
        and are_on()
        and _compiled() is not None
    )


def _compiled() -> ctypes.CDLL | None:
    return library("decision", VERSION)
