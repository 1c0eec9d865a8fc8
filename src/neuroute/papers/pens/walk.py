"""A small path-TSP, drawn decision by decision as the live network took it (pens, Figure 2a)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.rendering import style
from neuroute.rendering.diagram_nodes import RED, bare_square
from neuroute.rendering.style import MEASURED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

VISITED = "#c3c8d0"


@dataclass(frozen=True)
class Walk:
    """A small instance that was solved greedily."""

    coords: NDArray[Any]  # (m, 2)
    tour: NDArray[Any]  # (m,) from node 0
    probabilities: NDArray[Any]  # (decisions, m)

    @property
    def closed(self) -> NDArray[Any]:
        """The tour's coordinates, back to its start: (m + 1, 2)."""
        return self.coords[[*self.tour, self.tour[0]]]

    @property
    def length(self) -> float:
        return float(np.linalg.norm(np.diff(self.closed.astype(float), axis=0), axis=1).sum())

    def name(self, node: int) -> str:
        return chr(ord("A") + node) if len(self.coords) <= 26 else str(node)

    def rows(self) -> list[dict[str, Any]]:
        place = {int(node): i for i, node in enumerate(self.tour)}  # stop of the tour
        return [
            {
                "panel": "a",
                "side": MEASURED,
                "decision": k + 1,
                "node": self.name(node),
                "x": float(self.coords[node, 0]),
                "y": float(self.coords[node, 1]),
                "place": "visited" if place[node] < k else "origin" if place[node] == k else "candidate",
                "probability": float(chances[node]) if place[node] > k else None,
                "chosen": place[node] == k + 1,
            }
            for k, chances in enumerate(self.probabilities)
            for node in range(len(self.coords))
        ]


def draw_step(axes: Axes, walk: Walk, step: int) -> None:
    """The state before a decision, its candidates coloured by their probability; last the closed tour."""
    done = step == len(walk.probabilities)
    visited, left = walk.tour[: step + 1], walk.tour[step + 1 :]
    axes.plot(*(walk.closed if done else walk.coords[visited]).T, color=style.INK, linewidth=1.3, zorder=2)
    faces = dict.fromkeys(map(int, visited), VISITED)
    if not done:
        axes.plot(*walk.coords[walk.tour[step : step + 2]].T, color=style.INK, linewidth=0.9, linestyle=":", zorder=1)
        faces |= {int(node): _shade(walk.probabilities[step][node]) for node in left}
    for node, face in faces.items():
        edge = RED if node in (walk.tour[0], walk.tour[step]) and not done else style.INK
        at = tuple(walk.coords[node])
        axes.plot(*at, "o", color=face, markersize=7, markeredgecolor=edge, markeredgewidth=0.7, zorder=3)
        ink = "white" if _dark(face) else style.INK
        axes.annotate(walk.name(node), at, ha="center", va="center_baseline", fontsize=5, color=ink, zorder=4)
    if not done:
        origin, destination = tuple(walk.coords[walk.tour[step]]), tuple(walk.coords[walk.tour[0]])
        axes.plot(*origin, "o", markerfacecolor="none", color=RED, markersize=10.5, markeredgewidth=1.1, zorder=5)
        _star(axes, destination)
    axes.set_title(
        "the tour" if done else f"decision {step + 1}", loc="center", fontsize=6.5, fontweight="normal", pad=2
    )
    low, high = walk.coords.min(axis=0), walk.coords.max(axis=0)
    half = 0.72 * float((high - low).max())
    x, y = (low + high) / 2
    bare_square(axes, float(x), float(y), half)


def _star(axes: Axes, at: tuple[Any, ...]) -> None:
    """The destination's mark, at the shoulder of its node so that both are seen."""
    axes.annotate(
        "★", at, (4.4, 4.4), textcoords="offset points", ha="center", va="center", fontsize=7, color=RED, zorder=6
    )


def _shade(chance: float) -> str:
    return mpl.colors.to_hex(mpl.colormaps["Blues"](chance)) if np.isfinite(chance) else "#ffffff"


def _dark(face: str) -> bool:
    return sum(mpl.colors.to_rgb(face)) < 1.5


def draw_chances(axes: Axes, walk: Walk, step: int) -> None:
    """A bar for each candidate, in the colour that it has on the map."""
    chances, left = walk.probabilities[step], [int(node) for node in walk.tour[step + 1 :]]
    if not np.isfinite(chances[left]).all():
        axes.text(
            0.5, 0.5, "not finite", transform=axes.transAxes, ha="center", va="center", fontsize=6, color=style.GREY
        )
    else:
        axes.bar(
            left, chances[left], width=0.7, color=[_shade(c) for c in chances[left]], edgecolor=style.INK, linewidth=0.5
        )
    axes.set_xticks(sorted(left), [walk.name(node) for node in sorted(left)])
    axes.set_xlim(-0.6, len(walk.coords) - 0.4)
    axes.set_ylim(0, 1.05)
    axes.set_yticks([])
    axes.tick_params(labelsize=5.5, length=0, pad=1.5)
    axes.grid(visible=False)


def step_legend(axes: Axes) -> None:
    """What the marks mean, below the finished tour."""
    axes.axis("off")
    ring = mpl.lines.Line2D(
        [], [], linestyle="none", marker="o", markerfacecolor="none", color=RED, markersize=7, label="origin"
    )
    star = mpl.lines.Line2D([], [], linestyle="none", marker="*", color=RED, markersize=6, label="destination")
    grey = mpl.lines.Line2D(
        [], [], linestyle="none", marker="o", color=VISITED, markeredgecolor=style.INK, label="visited"
    )
    axes.legend(handles=[ring, star, grey], loc="center left", fontsize=5.5, handletextpad=0.3, borderpad=0)
