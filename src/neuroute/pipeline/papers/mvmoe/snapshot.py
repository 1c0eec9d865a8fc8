"""What the routing probe has kept of an MVMoE, as the figures read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from neuroute.evaluation.snapshot import NetworkSnapshot
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.rendering import maps
from neuroute.pipeline.rendering.study import Study
from neuroute.problems.vrp import SWITCHES, Switches


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
class Solution:
    """An instance of a variant and the network's solution of it; row 0 of arrays over nodes is the depot."""

    variant: str
    coords: maps.Array  # (N, 2)
    demand: maps.Array  # (N,)
    capacity: int
    order: maps.Array  # (V,)
    flags: maps.Array  # (V,)
    length: float
    windows: maps.Array | None  # (N, 2)
    service: maps.Array | None  # (N,)
    limit: float | None

    @property
    def on(self) -> Switches:
        return SWITCHES[self.variant]

    @cached_property
    def routes(self) -> list[maps.Array]:
        """Customers of each route, in visiting order."""
        return np.split(self.order, np.flatnonzero(self.flags == 1)[1:])

    @cached_property
    def distances(self) -> maps.Array:
        """(N, N)"""
        return maps.pairwise_distances(self.coords)

    def stops(self, route: maps.Array) -> list[Stop]:
        return list(self._drive(route))

    def _drive(self, route: maps.Array) -> Iterator[Stop]:
        # A vehicle that first picks up has left empty; all others leave full.
        load = 0 if self.demand[route[0]] < 0 else self.capacity
        before, length, time = 0, 0.0, 0.0
        for node in route:
            leg = float(self.distances[before, node])
            arrives = time + leg
            begins = arrives if self.windows is None else max(arrives, float(self.windows[node, 0]))
            time = begins + (0.0 if self.service is None else float(self.service[node]))
            load, length, before = load - int(self.demand[node]), length + leg, node
            yield Stop(int(node), load, length, arrives, begins, time)

    def route_length(self, route: maps.Array) -> float:
        """With the way home where that is part of it."""
        return self.stops(route)[-1].length + (0.0 if self.on.open else self.way_home(route))

    def way_home(self, route: maps.Array) -> float:
        """From its last customer to the depot."""
        return float(self.distances[route[-1], 0])

    @cached_property
    def followed(self) -> maps.Array:
        """The route that is followed: with backhauls one that has linehauls, too, with windows that of most stops, else
        the longest.
        """

        def mixed(route: maps.Array) -> tuple[bool, int, int]:
            backhauls = int((self.demand[route] < 0).sum())
            return 0 < backhauls < len(route), backhauls, len(route)

        if self.on.backhaul:
            return max(self.routes, key=mixed)
        return max(self.routes, key=len if self.on.windows else self.route_length)


@dataclass(frozen=True)
class Routing(NetworkSnapshot):
    """A run, its modules and the arrays of its routing evaluation."""

    name, weight = "routing", "layers.0.qkv.weight"

    @classmethod
    def of_model(cls, study: Study, method: str = "MVMoE/4E") -> Routing:
        """Of a model for 50 customers."""
        return cls.read(study, mvmoe.run_id(mvmoe.multi(study.scale, method, mvmoe.SIZES[0])))

    @property
    def mixture(self) -> str:
        """Where the decoder's experts are: of a light decoder they stand beside a dense layer."""
        return "combine.sparse" if "combine.dense.weight" in self.model.shapes else "combine"

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

    @property
    def tours(self) -> int:
        """Of the decision that is shown."""
        return len(self.array("decoder_scores"))

    def solution(self, variant: str) -> Solution:
        """Raises NeurouteError when no instance of the variant was solved."""

        def optional(name: str) -> maps.Array | None:
            return np.asarray(self.arrays[key], float) if (key := f"{name}_{variant}") in self.arrays else None

        limit = optional("limit")
        return Solution(
            variant,
            self.array(f"coords_{variant}", float),
            self.array(f"demand_{variant}", int),
            int(self.number(f"capacity_{variant}")),
            self.array(f"order_{variant}", int),
            self.array(f"flags_{variant}", int),
            self.number(f"length_{variant}"),
            optional("windows"),
            optional("service"),
            None if limit is None else float(limit),
        )

    @property
    def example(self) -> Solution:
        """The instance that is shown in detail."""
        return self.solution(self.text("shown"))

    @property
    def decision(self) -> maps.Decision:
        chances = self.array("probabilities", float)
        open_nodes = np.flatnonzero(np.isfinite(chances))
        return maps.Decision(self.example.coords, self.array("prefix", int), open_nodes, chances, end=0, depot=True)

    @property
    def layer_number(self) -> int:
        """Of the encoder layer whose gate is shown, counted from 1."""
        return int(self.text("layer").removeprefix("enc")) + 1


def shares(load: maps.Array) -> maps.Array:
    """load (..., m) -> percent of the tokens' choices on each expert; nan where nothing was routed."""
    load = np.asarray(load, float)
    total = load.sum(axis=-1, keepdims=True)
    parts: maps.Array = np.divide(load, total, out=np.full_like(load, np.nan), where=total > 0)
    return 100 * parts


def chosen_weights(scores: maps.Array, indices: maps.Array, weights: maps.Array, axis: int) -> maps.Array:
    """Weights in the shape of the scores, 0 where nothing was chosen."""
    every = np.zeros_like(np.asarray(scores, float))
    np.put_along_axis(every, np.asarray(indices, int), np.asarray(weights, float), axis)
    return every
