"""One iteration of parallel local re-construction on a real instance, as maps (sit, Figure 2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from numpy.typing import NDArray

from neuroute.rendering import style
from neuroute.rendering.diagram_nodes import bare_square
from neuroute.rendering.style import MEASURED

FAINT = "#b9bfc8"
IMPROVED = "#dd6b20"
CUT = ("#1c5a9c", "#5fa8d6")  # blocks in turn, so that neighbours are told apart


@dataclass(frozen=True)
class Iteration:
    """A tour before and after one iteration, and the blocks that it was cut into, as the evaluation keeps them."""

    coords: NDArray[Any]  # (n, 2)
    number: int  # of the iteration, from 1; those before it left the tour as it was
    before: NDArray[Any]  # (n,)
    after: NDArray[Any]  # (n,)
    first: NDArray[Any]  # (blocks,) where each begins
    length: int  # of each
    improved: NDArray[Any]  # (blocks,)
    lengths: NDArray[Any]  # (iterations,) of the tour after each
    start: str  # what the tour came from

    @classmethod
    def read(cls, seen: Mapping[str, NDArray[Any]]) -> "Iteration":
        return cls(
            np.asarray(seen["coords"], float),
            int(seen["iteration"]),
            np.asarray(seen["before"], int),
            np.asarray(seen["after"], int),
            np.asarray(seen["first"], int),
            int(seen["length"]),
            np.asarray(seen["improved"], bool),
            np.asarray(seen["rounds"], float),
            str(seen["start"]),
        )

    @property
    def tail(self) -> int:
        """Stops behind the last block, which stay as they are."""
        return len(self.before) - len(self.first) * self.length

    def length_of(self, tour: NDArray[Any]) -> float:
        stops = self.coords[[*tour, tour[0]]]
        return float(np.linalg.norm(np.diff(stops, axis=0), axis=1).sum())

    def gain(self, block: int) -> float:
        """By how much a block has become shorter."""
        inside = slice(self.first[block], self.first[block] + self.length)
        old, new = (self.coords[tour[inside]] for tour in (self.before, self.after))
        return float(sum(sign * np.linalg.norm(np.diff(p, axis=0), axis=1).sum() for sign, p in ((1, old), (-1, new))))

    def rows(self) -> list[dict[str, Any]]:
        """A row for each stop, with its place before and after; then one for each iteration."""
        place = {int(node): i for i, node in enumerate(self.after)}
        stops: list[dict[str, Any]] = []
        for i, node in enumerate(self.before):
            block = i // self.length if i < len(self.first) * self.length else None
            stops.append(
                {
                    "panel": "a",
                    "side": MEASURED,
                    "node": int(node),
                    "x": round(float(self.coords[node, 0]), 6),
                    "y": round(float(self.coords[node, 1]), 6),
                    "place_before": i,
                    "place_after": place[int(node)],
                    "block": block,
                    "improved": None if block is None else bool(self.improved[block]),
                }
            )
        lengths = [self.length_of(self.before), *self.lengths]
        about = {"panel": "b", "side": MEASURED}
        return stops + [about | {"iteration": k, "length": float(length)} for k, length in enumerate(lengths)]


def draw_tour(axes: Axes, it: Iteration) -> None:
    """The tour that is to be improved."""
    _edges(axes, it, it.before, range(len(it.before)), style.INK, 0.9)
    _nodes(axes, it)
    _frame(axes, it)


def draw_cut(axes: Axes, it: Iteration) -> None:
    """Blocks in two blues in turn, between them the edges that stay; the ends of a block are filled."""
    blocks = len(it.first) * it.length
    between = [i for i in range(len(it.before)) if i >= blocks - 1 or i % it.length == it.length - 1]
    _edges(axes, it, it.before, between, FAINT, 0.7)
    for block, first in enumerate(it.first):
        _edges(axes, it, it.before, range(first, first + it.length - 1), CUT[block % 2], 1.1)
    _nodes(axes, it)
    x, y = it.coords[it.before[np.concatenate([it.first, it.first + it.length - 1])]].T
    axes.scatter(x, y, 1.3 * _area(it), style.INK, linewidths=0, zorder=4)
    _frame(axes, it)


def draw_rebuilt(axes: Axes, it: Iteration) -> None:
    """Blocks that became shorter in colour, over what they were; the rest in grey."""
    better = [range(first, first + it.length - 1) for first, yes in zip(it.first, it.improved, strict=True) if yes]
    inside = {i for block in better for i in block}
    _edges(axes, it, it.after, [i for i in range(len(it.after)) if i not in inside], FAINT, 0.8)
    for block in better:
        _edges(axes, it, it.before, block, "#f0b98a", 0.6, linestyle=(0, (1.5, 1.2)))
        _edges(axes, it, it.after, block, IMPROVED, 1.2, zorder=3)
    _nodes(axes, it)
    _frame(axes, it)


def _edges(
    axes: Axes, it: Iteration, tour: NDArray[Any], places: Any, colour: str, width: float, **how: Any
) -> None:  # fmt: skip
    """The edges from these places of a tour to the next ones."""
    here = np.asarray(list(places), int)
    legs = it.coords[np.stack([tour[here], tour[(here + 1) % len(tour)]], axis=1)]
    thin = 1 if len(tour) <= 300 else 0.7
    axes.add_collection(LineCollection(list(legs), colors=colour, linewidths=width * thin, **{"zorder": 2, **how}))


def _nodes(axes: Axes, it: Iteration) -> None:
    if len(it.coords) > 300:  # the edges say where they are
        return
    x, y = it.coords.T
    axes.scatter(x, y, _area(it), "white", edgecolors=style.INK, linewidths=0.4, zorder=3.5)


def _area(it: Iteration) -> float:
    """Of a node's mark, in square points."""
    return float(np.clip(400 / len(it.coords), 0.4, 9))


def _frame(axes: Axes, it: Iteration) -> None:
    low, high = it.coords.min(axis=0), it.coords.max(axis=0)
    x, y = (low + high) / 2
    bare_square(axes, float(x), float(y), 0.54 * float((high - low).max()) or 0.5)
