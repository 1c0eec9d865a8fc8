"""A move of rollouts of routing problems on a CPU, without gradients: `routes.c`; see `library`."""

import ctypes

import torch
from torch import Tensor

from neuroute.networks.blocks.kernels.library import are_on, library

VERSION = "6d54fd05a7b432c6"  # see `library`
STATE = ("current", "served", "load", "deliveries", "time", "length")


class _Problem(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_void_p)
            for name in ("demand", "capacity", "distances", "service", "opens", "closes", "limit")
        ),
        *((name, ctypes.c_int64) for name in ("batch", "nodes", "tours")),
        *((name, ctypes.c_int) for name in ("open", "backhaul", "limited", "windows")),
    )


class _State(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_void_p) for name in STATE)


class _Move(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("stops", "order", "via", "visited", "mask", "context")),
        ("mask_row", ctypes.c_int64),
        ("before", _State),
        ("after", _State),
    )


class Routes:
    """What the moves of a batch share."""

    def __init__(self, demand: Tensor, capacity: Tensor, more: tuple[Tensor, ...] = (), **switches: bool) -> None:
        """demand (batch, nodes) and capacity (batch,) int64; more, float64, of the 16 VRPs: distances (batch, nodes,
        nodes), service, opens and closes (batch, nodes) and limit (batch,), the last two with their slack.
        """
        self._kept = [each.contiguous() for each in (demand, capacity, *more)]
        self._pointers = [each.data_ptr() for each in self._kept] + [None] * (5 - len(more))
        self._switches, self._numbers = switches, 4 if more else 0

    def go(
        self, stops: Tensor, order: Tensor, via: Tensor, visited: Tensor, mask: Tensor, before: dict[str, Tensor]
    ) -> tuple[dict[str, Tensor], Tensor]:
        """What `before` becomes of STATE, and the context; order, via, visited and mask are overwritten."""
        kernel = _compiled()
        assert kernel is not None
        (batch, tours), nodes = stops.shape, mask.shape[2]
        before = {name: each.contiguous() for name, each in before.items()}
        after = {name: torch.empty_like(each) for name, each in before.items() if name != "current"}
        context = mask.new_empty(batch, tours, *([self._numbers] if self._numbers else []))
        after["current"] = stops = stops.contiguous()
        problem = _Problem(*self._pointers, batch, nodes, tours, **self._switches)
        arrays = (each.data_ptr() for each in (stops, order, via, visited, mask, context))
        states = (_State(**{name: each.data_ptr() for name, each in of.items()}) for of in (before, after))
        if kernel.go(ctypes.byref(problem), ctypes.byref(_Move(*arrays, mask.stride(1), *states))):
            raise IndexError(f"a stop is none of 0 to {nodes - 1}, or a customer is served twice")
        return after, context


def fits(stops: Tensor, mask: Tensor) -> bool:
    """Whether the kernel takes such a move, and is there."""
    return (
        not torch.is_grad_enabled()
        and type(stops) is type(mask) is Tensor
        and mask.device.type == "cpu"
        and mask.dtype == torch.float32
        and mask.stride(0) == mask.shape[1] * mask.stride(1)
        and are_on()
        and _compiled() is not None
    )


def _compiled() -> ctypes.CDLL | None:
    return library("routes", VERSION)
