"""What the round probe has kept of SIT: a decision, the representatives' attention in it, and an iteration of PRC."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from neuroute.evaluation.snapshot import NetworkSnapshot
from neuroute.pipeline.papers.sit import paper as sit
from neuroute.pipeline.rendering import maps
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED
from neuroute.problems.tsp import tour_length

NEAREST = 10  # % of the nodes that count as near
ENDS = {"current": "current node", "destination": "destination"}


@dataclass(frozen=True)
class Round(NetworkSnapshot):
    """A run, its modules and the arrays of its round evaluation."""

    name, weight = "round", "decoder.layers.0.gather.query.weight"

    @classmethod
    def of_sit(cls, study: Study) -> Round:
        return cls.read(study, sit.run_id("tsp_1k"))

    # -- the decision

    @cached_property
    def decision(self) -> maps.Decision:
        coords, visited, chances = (self.array(name) for name in ("coords", "visited", "probabilities"))
        return maps.Decision.of_tour(coords, visited, chances, int(self.number("destination")))

    @cached_property
    def attention(self) -> maps.Array:
        """(modules, r + 1, n): of the repetitions of the current node, then of the destination."""
        return self.array("attention", float)

    @property
    def tokens_seen(self) -> maps.Array:
        """Nodes that the network sees: the candidates and the two ends."""
        return np.unique([*self.decision.available, self.decision.current, self.decision.end])

    @property
    def representatives(self) -> int:
        return int(self.attention.shape[1])

    @property
    def tokens(self) -> int:
        """Of the long stream: the representatives and the candidates."""
        return self.representatives + len(self.decision.available)

    @property
    def products(self) -> tuple[int, int]:
        """Products of a query with a key, for each head: of self-attention, and of a cross-attention module."""
        return self.tokens**2, 2 * self.representatives * self.tokens

    def look(self, module: int, of: str) -> maps.Array:
        """(n,) the weights of the current node (mean of its repetitions) or of the destination in a module."""
        weights = self.attention[module]
        return np.asarray(weights[:-1].mean(axis=0) if of == "current" else weights[-1])

    def spread(self, module: int, of: str) -> tuple[float, float]:
        """(nodes that as many equal weights would be on, share in % on the nearest tenth of the seen nodes)."""
        nodes, coords = self.tokens_seen, self.decision.coords
        weights = self.look(module, of)[nodes]
        if not np.isfinite(weights).all():
            return math.nan, math.nan
        positive = weights[weights > 0]
        of_node = self.decision.current if of == "current" else self.decision.end
        distances = np.linalg.norm(coords[nodes] - coords[of_node], axis=1)
        near = np.argsort(distances, kind="stable")[: max(1, round(len(nodes) * NEAREST / 100))]
        return float(np.exp(-(positive * np.log(positive)).sum())), float(100 * weights[near].sum())

    def decision_rows(self) -> list[dict[str, Any]]:
        place = np.full(len(self.decision.coords), "visited", dtype=object)
        place[self.decision.available] = "candidate"
        place[[self.decision.end, self.decision.current]] = ["destination", "current"]
        stop = {int(node): i for i, node in enumerate(self.decision.path)}
        looks = {
            f"look_{of}_module{module + 1}": _six_digits(self.look(module, of))
            for module in range(len(self.attention))
            for of in ENDS
        }
        columns = {"place": place, "stop": stop, "probability": _six_digits(self.decision.probabilities), **looks}
        return maps.node_rows(self.decision.coords, {"panel": "c", "side": MEASURED}, columns)

    # -- the iteration

    @cached_property
    def iteration(self) -> Iteration:
        before, after, first = (self.array(name, int) for name in ("before", "after", "first"))
        return Iteration(
            self.array("coords", float), int(self.number("iteration")), before, after, first,
            int(self.number("length")), self.array("improved", bool), self.array("rounds", float), self.text("start"),
        )  # fmt: skip


def _six_digits(values: maps.Array) -> maps.Array:
    return np.array([float(f"{value:.6g}") for value in values])


@dataclass(frozen=True)
class Iteration:
    """A tour before and after one iteration of re-construction, and the blocks that it was cut into."""

    coords: maps.Array  # (n, 2)
    number: int  # of the iteration, from 1; those before it left the tour as it was
    before: maps.Array  # (n,)
    after: maps.Array  # (n,)
    first: maps.Array  # (blocks,) where each begins
    length: int  # of each
    improved: maps.Array  # (blocks,)
    lengths: maps.Array  # (iterations,) of the tour after each
    start: str  # what the tour came from

    @property
    def tail(self) -> int:
        """Stops behind the last block, which stay as they are."""
        return len(self.before) - len(self.first) * self.length

    @property
    def all_lengths(self) -> maps.Array:
        """(1 + iterations,) of the tour, before the first one too."""
        return np.array([tour_length(self.coords, self.before), *self.lengths])

    def gain(self, block: int) -> float:
        """By how much a block has become shorter."""
        inside = slice(self.first[block], self.first[block] + self.length)
        old, new = (
            np.linalg.norm(np.diff(self.coords[t[inside]], axis=0), axis=1).sum() for t in (self.before, self.after)
        )
        return float(old - new)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each stop, with its place before and after; then one for each iteration."""
        place = np.argsort(self.after)
        rows: list[dict[str, Any]] = []
        for i, node in enumerate(self.before):
            block = i // self.length if i < len(self.first) * self.length else None
            x, y = (round(float(v), 6) for v in self.coords[node])
            rows.append({"panel": "a", "side": MEASURED, "node": int(node), "x": x, "y": y, "place_before": i,
                         "place_after": int(place[node]), "block": block,
                         "improved": None if block is None else bool(self.improved[block])})  # fmt: skip
        about = {"panel": "b", "side": MEASURED}
        return rows + [about | {"iteration": k, "length": float(length)} for k, length in enumerate(self.all_lengths)]
