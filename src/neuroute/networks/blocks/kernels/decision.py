"""Greedy decisions of networks of many starts on a CPU, without gradients: `decision.c`; see `library`.

A glimpse is an attention of each tour's query to the nodes; products of what it sees with targets, one a node, say
which node fits best (`blocks.pointer`).  Both halves are one call, or two where a layer stands between them.
"""

import ctypes
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from neuroute.networks.blocks.kernels.library import TARGETS, are_on, library, threads_for

VERSION = "f6022723da1a0a48"  # see `library`
CHANNELS = 64  # of a head, at most


class _Instances(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_void_p)
            for name in ("keys", "values", "targets", "offsets", "of_current", "of_first", "of_numbers")
        ),
        *((name, ctypes.c_int64) for name in ("batch", "nodes", "heads", "channels", "count")),
        ("scale", ctypes.c_float),
        ("limit", ctypes.c_float),
    )


class _Decision(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("current", "first", "numbers", "mask", "seen", "chosen")),
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

        A query is the row of_current (batch, nodes, width) of where a tour is, and that of of_context (the same) of
        where it began, or its numbers times of_context (count, width).  limit: see `pointer.best_of`.
        """
        batch, heads, nodes, channels = keys.shape
        self._starts, self._width = of_context.dim() == 3, heads * channels
        of_first, of_numbers = (of_context, None) if self._starts else (None, of_context.view(-1, self._width))
        lanes = TARGETS[torch.backends.cpu.get_cpu_capability()][1]
        beyond, deep = -nodes % lanes, -channels % lanes
        self._kept = [
            F.pad(keys.float().transpose(2, 3), (0, beyond)),
            F.pad(values.float(), (0, deep)).contiguous(),
            F.pad(targets.float().transpose(1, 2), (0, beyond)),
            offsets.float().expand(batch, 1, nodes),
            of_current.float(),
            *(None if each is None else each.float() for each in (of_first, of_numbers)),
        ]
        self._kept = [None if each is None else each.contiguous() for each in self._kept]
        count = 0 if of_numbers is None else len(of_numbers)
        pointers = (None if each is None else each.data_ptr() for each in self._kept)
        self._shared = _Instances(*pointers, batch, nodes, heads, channels, count, 1 / math.sqrt(channels), limit)

    def best(self, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """The node that fits each tour best: (batch, tours); arguments as of `MultiStartNetwork.decide`."""
        return self._run(context, current, mask, None)[1]

    def glimpse(self, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        """What each tour sees: (batch, tours, width)."""
        return self._run(context, current, mask, None, points=False)[0]

    def point(self, glimpsed: Tensor, mask: Tensor) -> Tensor:
        """As `best`, after a glimpse, of what became of it (batch, tours, width)."""
        return self._run(None, None, mask, glimpsed.float().contiguous())[1]

    def _run(
        self,
        context: Tensor | None,
        current: Tensor | None,
        mask: Tensor,
        glimpsed: Tensor | None,
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
        context, current = (None if each is None else each.contiguous() for each in (context, current))
        first, numbers = (context, None) if self._starts else (None, context)
        arguments = (current, first, numbers, mask, glimpsed, best)  # which have to live until the call is over
        threads = threads_for(batch * tours * nodes * self._width)
        pointers = (None if each is None else each.data_ptr() for each in arguments)
        decision = _Decision(*pointers, tours, mask.stride(1), glimpses, points, threads)
        if kernel.decision_of(ctypes.byref(self._shared), ctypes.byref(decision)):
            raise MemoryError("decision: no memory for a thread's scores")
        return glimpsed, best


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
