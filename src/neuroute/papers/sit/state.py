"""One decision of the network on a real instance: what it sees, what it prefers, where its representatives look."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from neuroute.rendering import style
from neuroute.rendering.diagram_nodes import RED, bare_square
from neuroute.rendering.style import MEASURED

VISITED = "#c3c8d0"
STRONG = 4  # times the weight that each node had if all had the same: the darkest colour of a look
NEAREST = 10  # % of the nodes that count as near


@dataclass(frozen=True)
class State:
    """A state of greedy decoding, as the evaluation keeps it; nan where the network does not see a node."""

    coords: NDArray[Any]  # (n, 2)
    visited: NDArray[Any]  # (k,)
    destination: int
    probabilities: NDArray[Any]  # (n,)
    attention: NDArray[Any]  # (modules, r + 1, n): the repetitions of the current node, then the destination

    @classmethod
    def read(cls, seen: Mapping[str, NDArray[Any]]) -> "State":
        return cls(
            np.asarray(seen["coords"], float),
            np.asarray(seen["visited"], int),
            int(seen["destination"]),
            np.asarray(seen["probabilities"], float),
            np.asarray(seen["attention"], float),
        )

    @property
    def current(self) -> int:
        return int(self.visited[-1])

    @property
    def candidates(self) -> NDArray[Any]:
        left = np.ones(len(self.coords), bool)
        left[[*self.visited, self.destination]] = False
        return np.flatnonzero(left)

    @property
    def seen(self) -> NDArray[Any]:
        """Nodes that the network sees: the candidates and the two ends."""
        return np.unique([*self.candidates, self.current, self.destination])

    @property
    def representatives(self) -> int:
        return self.attention.shape[1]

    @property
    def tokens(self) -> int:
        """Of the long stream: the representatives and the candidates."""
        return self.representatives + len(self.candidates)

    @property
    def products(self) -> tuple[int, int]:
        """Products of a query with a key, for each head: of self-attention, and of a cross-attention module."""
        return self.tokens**2, 2 * self.representatives * self.tokens

    @property
    def chosen(self) -> int | None:
        """The next node; none where no probability is a number."""
        left = self.probabilities[self.candidates]
        return int(self.candidates[np.nanargmax(left)]) if np.isfinite(left).any() else None

    def look(self, module: int, of: str) -> NDArray[Any]:
        """(n,) the weights of the current node (mean of its repetitions) or of the destination in a module."""
        weights = self.attention[module]
        return weights[:-1].mean(axis=0) if of == "current" else weights[-1]

    def spread(self, module: int, of: str) -> tuple[float, float]:
        """(nodes that as many equal weights would be on, share in % on the nearest tenth of the seen nodes)."""
        weights = self.look(module, of)[self.seen]
        if not np.isfinite(weights).all():
            return math.nan, math.nan
        positive = weights[weights > 0]
        of_node = self.current if of == "current" else self.destination
        apart = np.linalg.norm(self.coords[self.seen] - self.coords[of_node], axis=1)
        near = np.argsort(apart, kind="stable")[: max(1, round(len(apart) * NEAREST / 100))]
        return float(np.exp(-(positive * np.log(positive)).sum())), float(100 * weights[near].sum())

    def rows(self) -> list[dict[str, Any]]:
        place = np.full(len(self.coords), "visited", dtype=object)
        place[self.candidates] = "candidate"
        place[[self.destination, self.current]] = ["destination", "current"]
        stop = {int(node): i for i, node in enumerate(self.visited)}
        looks = {
            f"look_{of}_module{module + 1}": self.look(module, of)
            for module in range(len(self.attention))
            for of in ("current", "destination")
        }
        return [
            {
                "panel": "c",
                "side": MEASURED,
                "node": node,
                "x": round(float(self.coords[node, 0]), 6),
                "y": round(float(self.coords[node, 1]), 6),
                "place": place[node],
                "stop": stop.get(node),
                "probability": _number(self.probabilities[node]),
                **{name: _number(weights[node]) for name, weights in looks.items()},
            }
            for node in range(len(self.coords))
        ]


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


# -- maps -----------------------------------------------------------------------------------------------------------


def draw_state(axes: Axes, state: State) -> None:
    """The path so far, its two ends, and what is left."""
    _path(axes, state)
    _nodes(axes, state, state.candidates, "white")
    _ends(axes, state)
    _frame(axes, state)


def draw_chances(axes: Axes, state: State) -> None:
    """Candidates in the colour of their probability, and the choice."""
    _path(axes, state)
    chances = state.probabilities[state.candidates]
    if state.chosen is None:
        axes.text(
            0.5, 0.5, "not finite", transform=axes.transAxes, ha="center", va="center", fontsize=6, color=style.GREY
        )
    else:
        order = np.argsort(chances, kind="stable")  # the likeliest on top
        top = float(np.nanmax(chances))
        _nodes(axes, state, state.candidates[order], colormaps["Blues"](chances[order] / top))
        leg = state.coords[[state.current, state.chosen]]
        axes.plot(*leg.T, color=to_rgb("#1c5a9c"), linewidth=1.1, linestyle=(0, (1.2, 1)), zorder=2)
        axes.text(
            *_label_place(state), _percent(top), fontsize=6, fontweight="bold", ha="center", va="center",
            color="#0a2749", zorder=8, bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4},
        )  # fmt: skip
    _ends(axes, state)
    _frame(axes, state)


def _label_place(state: State) -> tuple[float, float]:
    """Where the choice's label hides least: around it, inside the map, off the ends and other nodes."""
    assert state.chosen is not None
    low, high = state.coords.min(axis=0), state.coords.max(axis=0)
    span = float((high - low).max()) or 1.0
    half = np.array([0.12, 0.055]) * span  # of the label
    ends = state.coords[[state.current, state.destination, state.chosen]]
    best, least = state.coords[state.chosen], math.inf
    for angle in np.arange(16) * math.pi / 8:
        at = state.coords[state.chosen] + span * np.array([0.17 * math.cos(angle), 0.115 * math.sin(angle)])
        outside = np.maximum(np.abs(at - (low + high) / 2) - (0.55 * span - half), 0).sum() / span
        hidden = (np.abs(state.coords - at) < half).all(axis=1).sum()
        hidden_ends = (np.abs(ends - at) < half + 0.05 * span).all(axis=1).sum()
        cost = float(1000 * outside + hidden + 10 * hidden_ends)
        if cost < least:
            best, least = at, cost
    return float(best[0]), float(best[1])


def draw_likeliest(axes: Axes, state: State, count: int = 5) -> None:
    """The likeliest candidates' probabilities, each named by its rank among the candidates by nearness."""
    left = state.candidates
    chances = state.probabilities[left]
    if state.chosen is None:
        style.empty_axes(axes, "not finite")
        axes.set_xticks([])
        return
    apart = np.linalg.norm(state.coords[left] - state.coords[state.current], axis=1)
    rank = np.argsort(np.argsort(apart, kind="stable"), kind="stable") + 1
    order = np.argsort(-chances, kind="stable")[:count]
    y = [-float(i) for i in range(len(order))]
    axes.barh(y, chances[order], height=0.7, color=colormaps["Blues"](chances[order] / chances.max()),
              edgecolor=style.INK, linewidth=0.4)  # fmt: skip
    for at, i in zip(y, order, strict=True):
        axes.annotate(
            _percent(chances[i]), (chances[i], at), (2.5, 0), textcoords="offset points", fontsize=5.6, va="center"
        )
    axes.set_yticks(y, [f"{ordinal(int(rank[i]))} nearest" for i in order], fontsize=5.6)
    axes.set_ylim(0.5 - count, 0.6)
    axes.set_xlim(0, 1.45 * float(chances.max()))
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, pad=2)
    axes.grid(visible=False)
    for spine in ("bottom", "left"):
        axes.spines[spine].set_visible(False)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 22nd"""
    teens = 10 < number % 100 < 14
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def draw_look(axes: Axes, state: State, module: int, of: str) -> None:
    """Nodes in the colour and size of their weight, the same scale in all maps; the looking end is marked."""
    weights = state.look(module, of)
    x, y = state.coords.T
    axes.scatter(x[state.visited], y[state.visited], 0.4 * _area(axes, state), color="#e6e8ec", linewidths=0, zorder=1)
    seen = state.seen
    if not np.isfinite(weights[seen]).all():
        axes.text(
            0.5, 0.5, "not finite", transform=axes.transAxes, ha="center", va="center", fontsize=5.5, color=style.GREY
        )
    else:
        order = seen[np.argsort(weights[seen], kind="stable")]
        share = np.minimum(weights[order] * len(seen) / STRONG, 1)
        colours = colormaps["Oranges"](0.08 + 0.92 * share)
        size = _area(axes, state) * (0.6 + 1.4 * share)
        axes.scatter(x[order], y[order], size, colours, linewidths=0.3, edgecolors="#b5651d55", zorder=2)
        on_ends = weights[list({state.current, state.destination})].sum()
        axes.set_xlabel(f"{100 * on_ends:.0f} % on the ends", fontsize=5.3, labelpad=1.5)
    node = state.current if of == "current" else state.destination
    _end(axes, tuple(state.coords[node]), of, small=True)
    _frame(axes, state)


def _path(axes: Axes, state: State) -> None:
    axes.plot(*state.coords[state.visited].T, color=style.INK, linewidth=_thin(state, 1.0), zorder=1)
    _nodes(axes, state, state.visited, VISITED)


def _nodes(axes: Axes, state: State, nodes: NDArray[Any], faces: Any) -> None:
    x, y = state.coords[nodes].T
    axes.scatter(x, y, _area(axes, state), faces, edgecolors=style.INK, linewidths=_thin(state, 0.5), zorder=3)


def _ends(axes: Axes, state: State) -> None:
    _end(axes, tuple(state.coords[state.current]), "current")
    _end(axes, tuple(state.coords[state.destination]), "destination")


def _end(axes: Axes, at: tuple[Any, ...], of: str, *, small: bool = False) -> None:
    """A ring around the current node, a star on the destination."""
    factor = 0.75 if small else 1.0
    if of == "current":
        look: dict[str, Any] = {"marker": "o", "markerfacecolor": "none", "markersize": 8 * factor}
        axes.plot(*at, color=RED, markeredgewidth=1.1, zorder=6, **look)
    else:
        axes.plot(*at, "*", color=RED, markersize=8 * factor, markeredgecolor="white", markeredgewidth=0.5, zorder=7)


def _area(axes: Axes, state: State) -> float:
    """Of a node's mark, in square points: as much of the panel is inked whatever the number of nodes."""
    inches = axes.get_position().width * axes.figure.get_figwidth()  # type: ignore[union-attr]
    return float(np.clip((72 * inches) ** 2 * 0.07 / len(state.coords), 0.3, 22))


def _thin(state: State, width: float) -> float:
    return width * (1 if len(state.coords) <= 60 else 0.75 if len(state.coords) <= 300 else 0.5)


def _frame(axes: Axes, state: State) -> None:
    low, high = state.coords.min(axis=0), state.coords.max(axis=0)
    x, y = (low + high) / 2
    bare_square(axes, float(x), float(y), 0.55 * float((high - low).max()) or 0.5)
