"""What the routing evaluation has kept of an MVMoE, as the figures read it."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuroute.problems.vrp_variants import SWITCHES, Switches
from neuroute.rendering import seen
from neuroute.rendering.modules import Modules

Array = NDArray[Any]


class Model(Modules):
    """MVMoE by the shapes of its parameters."""

    layers, needed = "layers", "qkv.weight"
    lacking = "the modules of the network name no layers.0.qkv; evaluate its routing again"

    @property
    def mixture(self) -> str:
        """Where the decoder's experts are: of a light decoder they stand beside a dense layer."""
        return "combine.sparse" if "combine.dense.weight" in self.shapes else "combine"


@dataclass(frozen=True)
class Stop:
    """A customer of a route, and how the vehicle is there."""

    node: int
    load: int  # on board when it leaves
    length: float  # of the route so far
    arrives: float
    begins: float  # service; after waiting where it arrives early
    leaves: float


@dataclass(frozen=True)
class Solved:
    """An instance of a variant and the network's solution of it; row 0 of arrays over nodes is the depot."""

    variant: str
    coords: Array  # (N, 2)
    demand: Array  # (N,)
    capacity: int
    order: Array  # (V,)
    flags: Array  # (V,)
    length: float
    windows: Array | None  # (N, 2)
    service: Array | None  # (N,)
    limit: float | None

    @property
    def on(self) -> Switches:
        return SWITCHES[self.variant]

    @cached_property
    def routes(self) -> list[Array]:
        """Customers of each route, in visiting order."""
        starts = np.flatnonzero(self.flags == 1)
        return np.split(self.order, starts[1:])

    @cached_property
    def apart(self) -> Array:
        """(N, N) distances."""
        return np.linalg.norm(self.coords[:, None] - self.coords[None], axis=-1)

    def stops(self, route: Array) -> list[Stop]:
        return list(self._drive(route))

    def _drive(self, route: Array) -> Iterator[Stop]:
        # A vehicle that first picks up has left empty; all others leave full.
        load = 0 if self.demand[route[0]] < 0 else self.capacity
        before, length, time = 0, 0.0, 0.0
        for node in route:
            way = float(self.apart[before, node])
            arrives = time + way
            begins = arrives if self.windows is None else max(arrives, float(self.windows[node, 0]))
            time = begins + (0.0 if self.service is None else float(self.service[node]))
            load, length, before = load - int(self.demand[node]), length + way, node
            yield Stop(int(node), load, length, arrives, begins, time)

    def driven(self, route: Array) -> float:
        """The length of a route, with the way home where that is part of it."""
        return self.stops(route)[-1].length + (0.0 if self.on.open else self.home(route))

    def home(self, route: Array) -> float:
        """The way from its last customer to the depot."""
        return float(self.apart[route[-1], 0])


@dataclass(frozen=True)
class Seen(seen.Seen):
    """A run, its modules and the arrays of its routing evaluation."""

    group, modules = "routing", Model

    model: Model

    def text(self, name: str) -> str:
        return str(self.array(name)[()])

    @property
    def variants(self) -> list[str]:
        return [str(name) for name in self.array("variants")]

    @property
    def customers(self) -> int:
        return int(self.number("customers"))

    @property
    def top(self) -> int:
        return int(self.number("top"))

    @property
    def experts(self) -> int:
        return int(self.array("encoder_load").shape[-1])

    def solved(self, variant: str) -> Solved:
        """Raises NeurouteError when no instance of the variant was solved."""

        def given(name: str) -> Array | None:
            key = f"{name}_{variant}"
            return np.asarray(self.arrays[key], float) if key in self.arrays else None

        limit = given("limit")
        return Solved(
            variant,
            np.asarray(self.array(f"coords_{variant}"), float),
            np.asarray(self.array(f"demand_{variant}"), int),
            int(self.number(f"capacity_{variant}")),
            np.asarray(self.array(f"order_{variant}"), int),
            np.asarray(self.array(f"flags_{variant}"), int),
            self.number(f"length_{variant}"),
            given("windows"),
            given("service"),
            None if limit is None else float(limit),
        )

    @property
    def shown(self) -> Solved:
        """The instance that is shown in detail."""
        return self.solved(self.text("shown"))

    @property
    def layer_number(self) -> int:
        """Of the encoder layer whose gate is shown, counted from 1."""
        return int(self.text("layer").removeprefix("enc")) + 1


def shares(load: Array) -> Array:
    """load (..., m) -> percent of the tokens' choices on each expert; nan where nothing was routed."""
    load = np.asarray(load, float)
    total = load.sum(axis=-1, keepdims=True)
    return 100 * np.divide(load, total, out=np.full_like(load, np.nan), where=total > 0)
