"""Maps in drawings of networks: the nodes of an instance, a decision among them, and matrices in colour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuroute.core.lazy import mpl
from neuroute.pipeline.rendering import style

Array = NDArray[Any]
RED = "#d1342f"  # origin and destination, as in paper `pens`
VISITED = "#c3c8d0"
MARKS: dict[str, dict[str, Any]] = {  # of a legend: current node, destination, visited node, candidate
    "current": {"marker": "o", "markersize": 6.5, "markerfacecolor": "none", "color": RED},
    "destination": {"marker": "*", "markersize": 6.5, "color": RED},
    "depot": {"marker": "s", "markersize": 4.5, "color": RED},
    "visited": {"marker": "o", "markersize": 4.5, "color": VISITED, "markeredgecolor": style.INK},
    "candidate": {"marker": "o", "markersize": 4.5, "color": "white", "markeredgecolor": style.INK},
}


def pairwise_distances(coords: Array) -> Array:
    """coords (n, 2) -> distances (n, n)."""
    points = np.asarray(coords, float)
    distances: Array = np.linalg.norm(points[:, None] - points[None], axis=-1)
    return distances


def node_rows(coords: Array, about: Mapping[str, Any], columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a figure's CSV says of nodes: one line each, with a value of each column, empty where it is not finite.

    columns: (n,) arrays, or node -> value of some.
    """
    rows = []
    for node, (x, y) in enumerate(np.asarray(coords, float)):
        values_of = {k: v.get(node) if isinstance(v, Mapping) else _plain(v[node]) for k, v in columns.items()}
        rows.append({**about, "node": node, "x": round(float(x), 6), "y": round(float(y), 6), **values_of})
    return rows


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def frame_square(axes: mpl.axes.Axes, coords: Array | None = None, margin: float = 0.05) -> None:
    """A framed square around the nodes, of the unit square where none are given, without ticks."""
    corners = np.array([[0.0, 0.0], [1.0, 1.0]]) if coords is None else np.asarray(coords, float)
    low, high = corners.min(axis=0), corners.max(axis=0)
    half = (0.5 + margin) * float((high - low).max()) or 0.5
    (x, y) = (low + high) / 2
    axes.set_xlim(x - half, x + half)
    axes.set_ylim(y - half, y + half)
    axes.set_aspect("equal")
    hide_ticks(axes, "#d4d8de")


def hide_ticks(axes: mpl.axes.Axes, edge: str) -> None:
    """A frame of this colour, without ticks and grid."""
    axes.grid(visible=False)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color(edge)


def node_area(axes: mpl.axes.Axes, nodes: int) -> float:
    """Of a node's mark, in square points: as much of the panel is inked whatever the number of nodes."""
    inches = axes.get_position().width * axes.figure.get_figwidth()  # type: ignore[union-attr]
    return float(np.clip((72 * inches) ** 2 * 0.07 / nodes, 0.3, 22))


def draw_nodes(axes: mpl.axes.Axes, coords: Array, nodes: Any, faces: Any, **how: Any) -> None:
    """Some of the nodes as discs."""
    x, y = coords[nodes].T
    thin = 1 if len(coords) <= 60 else 0.75 if len(coords) <= 300 else 0.5
    look = {"edgecolors": style.INK, "linewidths": 0.5 * thin, "zorder": 3, **how}
    axes.scatter(x, y, look.pop("s", node_area(axes, len(coords))), faces, **look)


def draw_mark(axes: mpl.axes.Axes, at: Any, kind: str, size: float = 8) -> None:
    """Mark the current node with a ring, the destination with a star, the depot with a square."""
    looks: dict[str, dict[str, Any]] = {
        "current": {"marker": "o", "markerfacecolor": "none", "markeredgewidth": 1.1, "zorder": 6},
        "destination": {"marker": "*", "markeredgecolor": "white", "markeredgewidth": 0.5, "zorder": 7},
        "depot": {"marker": "s", "markeredgecolor": "white", "markeredgewidth": 0.4, "zorder": 5},
    }
    axes.plot(*at, color=RED, markersize=size / 2 if kind == "depot" else size, **looks[kind])


def write_not_finite(axes: mpl.axes.Axes, size: float = 6) -> None:
    """Say that there is nothing to colour."""
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size, "color": style.GREY}
    axes.text(0.5, 0.5, "not finite", transform=axes.transAxes, **look)


def color_values(palette: str, values: Any) -> Any:
    """RGBA of values from 0 to 1."""
    return mpl.colormaps[palette](values)


@dataclass(frozen=True)
class Decision:
    """A solution under construction, and the probabilities of its next node."""

    coords: Array  # (n, 2)
    path: Array  # (k,) nodes so far, the last is the current one
    available: Array  # nodes that may come next
    probabilities: Array  # (n,), nan where a node may not
    end: int  # where the solution ends
    depot: bool = False  # and may come by in between

    @classmethod
    def of_tour(cls, coords: Array, visited: Array, probabilities: Array, destination: int) -> Decision:
        """All nodes that are not visited are available, but for the destination."""
        available = np.setdiff1d(np.arange(len(coords)), [*visited, destination])
        points, path, chances = np.asarray(coords, float), np.asarray(visited, int), np.asarray(probabilities, float)
        return cls(points, path, available, chances, destination)

    @property
    def current(self) -> int:
        return int(self.path[-1])

    @property
    def choice(self) -> int | None:
        """The likeliest node; none where no probability is a number."""
        chances = self.probabilities[self.available]
        return int(self.available[np.nanargmax(chances)]) if np.isfinite(chances).any() else None

    def nearest_first(self) -> Array:
        """Nodes that may come next, from near to far."""
        distances = np.linalg.norm(self.coords[self.available] - self.coords[self.current], axis=1)
        return self.available[np.argsort(distances, kind="stable")]


def draw_state(axes: mpl.axes.Axes, decision: Decision) -> None:
    """The path so far, its ends, and what is left; crosses where a constraint closes a node."""
    _draw_path(axes, decision)
    draw_nodes(axes, decision.coords, decision.available, "white")
    frame_square(axes, decision.coords)


def draw_probabilities(axes: mpl.axes.Axes, decision: Decision) -> None:
    """What may come next in the colour of its probability, and the choice."""
    _draw_path(axes, decision)
    if decision.choice is None:
        draw_nodes(axes, decision.coords, decision.available, "white")
        write_not_finite(axes)
    else:
        nodes = decision.available[np.argsort(decision.probabilities[decision.available], kind="stable")]
        top = float(decision.probabilities[decision.choice])
        draw_nodes(axes, decision.coords, nodes, color_values("Blues", decision.probabilities[nodes] / top))
        leg = decision.coords[[decision.current, decision.choice]]
        axes.plot(*leg.T, color="#1c5a9c", linewidth=1.1, linestyle=(0, (1.2, 1)), zorder=2)
        axes.text(*_label_place(decision, decision.choice), format_percent(top), fontsize=6, fontweight="bold",
                  ha="center", va="center", color="#0a2749", zorder=8,
                  bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4})  # fmt: skip
    frame_square(axes, decision.coords)


def _draw_path(axes: mpl.axes.Axes, decision: Decision) -> None:
    coords, visited = decision.coords, np.unique(decision.path)
    closed = np.setdiff1d(np.arange(len(coords)), [*visited, *decision.available, decision.end])
    thin = 1 if len(coords) <= 60 else 0.75 if len(coords) <= 300 else 0.5
    axes.plot(*coords[decision.path].T, color=style.INK, linewidth=thin, zorder=1)
    draw_nodes(axes, coords, visited, VISITED)
    if len(closed):
        x, y = coords[closed].T
        axes.scatter(x, y, node_area(axes, len(coords)), style.GREY, marker="x", linewidths=0.7, zorder=3)
    draw_mark(axes, coords[decision.current], "current")
    draw_mark(axes, coords[decision.end], "depot" if decision.depot else "destination")


def _label_place(decision: Decision, choice: int) -> tuple[float, float]:
    """Near the choice, where the label of its probability hides few nodes and stays in the panel."""
    coords = decision.coords
    low, high = coords.min(axis=0), coords.max(axis=0)
    span = float((high - low).max()) or 1.0
    half = span * np.array([0.14, 0.06])  # of the label
    ends = coords[[decision.current, decision.end, choice]]
    legs = coords[np.stack([[*decision.path, choice][:-1], [*decision.path, choice][1:]])]  # (2, legs, 2)
    on_path = (legs[0] + np.linspace(0, 1, 13)[:, None, None] * (legs[1] - legs[0])).reshape(-1, 2)
    best, least = coords[choice], math.inf
    for angle in np.arange(16) * math.pi / 8:
        at = coords[choice] + span * np.array([0.2 * math.cos(angle), 0.125 * math.sin(angle)])
        outside = np.maximum(np.abs(at - (low + high) / 2) - (0.55 * span - half), 0).sum() / span
        hidden = (np.abs(coords - at) < half).all(axis=1).sum()
        hidden_ends = (np.abs(ends - at) < half + 0.05 * span).all(axis=1).sum()
        hidden_path = (np.abs(on_path - at) < half).all(axis=1).sum()
        cost = float(1000 * outside + hidden + 2 * hidden_path + 10 * hidden_ends)
        if cost < least:
            best, least = at, cost
    return float(best[0]), float(best[1])


def format_percent(share: float) -> str:
    """12 %, 3.4 %"""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


SIGNED, POSITIVE, BIAS = "RdBu_r", "Blues", "Oranges_r"  # values of both signs, positive ones, and those up to 0
TAIL = 1  # percent of the values at either end that colours do not tell apart


def draw_matrix(axes: mpl.axes.Axes, values: Array, below: str = "", *, colours: str = "") -> None:
    """Rows from top to bottom; colours of both signs where there are both, else from 0 on; grey what is not finite."""
    values = np.asarray(values, float)
    palette, norm = _scaled(values[np.isfinite(values)])
    axes.imshow(np.ma.masked_invalid(values), cmap=mpl.colormaps[colours or palette].with_extremes(bad="#e6e8ec"),
                norm=norm, aspect="auto", interpolation="nearest")  # fmt: skip
    hide_ticks(axes, "#9aa2ae")
    if below:
        axes.set_xlabel(below, fontsize=5.3, labelpad=1.5)


def _scaled(finite: Array) -> tuple[str, Any]:
    """The palette, and how its colours follow the finite values."""
    if not len(finite):
        return POSITIVE, mpl.colors.Normalize(0, 1)
    low, high = (float(v) for v in np.percentile(finite, (TAIL, 100 - TAIL)))
    if finite.min() < 0 < finite.max():
        reach = max(abs(low), abs(high)) or 1.0
        return SIGNED, mpl.colors.TwoSlopeNorm(0, -reach, reach)
    if finite.max() <= 0:
        return BIAS, mpl.colors.Normalize(min(low, -1e-12), 0)
    return POSITIVE, mpl.colors.Normalize(0, high or 1.0)


def format_range(values: Any) -> str:
    """−1.2 … 3.4, of the finite values; once where both are the same."""
    finite = np.asarray(values, float)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return "not finite"
    return " … ".join(short(float(v)) for v in (finite.min(), finite.max()))


def short(value: float) -> str:
    """Two digits or so, with a real minus."""
    if abs(value) < 5e-5:  # also -0.0
        return "0"
    text = f"{value:.0f}" if abs(value) >= 99.5 else f"{value:.1f}" if abs(value) >= 9.95 else f"{value:.2g}"
    text = f"{value:.1e}" if abs(value) >= 1e5 or abs(value) < 1e-3 else text
    return text.replace("-", "−")


def draw_bars(
    axes: mpl.axes.Axes,
    values: Any,
    labels: Sequence[str] | None = None,
    *,
    x: str = "",
    y: str = "",
    shift: float = 0,
    **how: Any,
) -> None:
    """A bar for each value, from 1 on, with small labels; every few ones of many."""
    places = np.arange(1, len(values) + 1)
    axes.bar(places + shift, values, **{"width": 0.75, **how})
    step = 1 if labels is not None else max(1, round(len(values) / 6))
    axes.set_xticks(places[::step], labels)
    label_small(axes, x, y)


def label_small(axes: mpl.axes.Axes, x: str = "", y: str = "", grid: str = "y") -> None:
    """Small labels, and a grid across one axis alone."""
    axes.set_xlabel(x, fontsize=6, labelpad=1.5)
    axes.set_ylabel(y, fontsize=6, labelpad=1.5)
    axes.tick_params(labelsize=5.5, pad=1.5)
    axes.grid(visible=False, axis="x" if grid == "y" else "y")
