"""Boxes, arrows and panels of a drawing that is laid out in inches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from neuroute.core.lazy import mpl
from neuroute.rendering import style
from neuroute.rendering.style import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FILLS = {
    "input": "#f3f4f6", "representatives": "#fdecd9", "nodes": "#dcebf7", "feed": "#eef1f4", "output": "#e4f3ec",
    "training": "#e4f3ec",
}  # fmt: skip
TITLE, BODY = 6.5, 5.6  # points
LINE = 0.105  # inches of a line of text in a box


@dataclass(frozen=True)
class Sheet:
    """A figure of so many inches; places count from its lower left corner."""

    figure: Figure
    width: float
    height: float

    @classmethod
    def new(cls, width: float, height: float) -> Sheet:
        figure = new_figure(width, height)
        figure.set_layout_engine("none")
        return cls(figure, width, height)

    def panel(self, x: float, y: float, width: float, height: float) -> Axes:
        """Axes for data."""
        return self.figure.add_axes((x / self.width, y / self.height, width / self.width, height / self.height))

    def canvas(self, x: float, y: float, width: float, height: float) -> Axes:
        """Bare axes whose units are inches."""
        axes = self.panel(x, y, width, height)
        axes.set_xlim(0, width)
        axes.set_ylim(0, height)
        axes.axis("off")
        return axes

    def heading(self, x: float, y: float, text: str) -> None:
        self.figure.text(x / self.width, y / self.height, text, fontsize=8, fontweight="bold", va="top")


def box(axes: Axes, x: float, y: float, width: float, height: float, fill: str, title: str, *lines: str) -> None:
    """A rounded box around (x, y), its middle, with a title and lines below it; empty lines are left out."""
    axes.add_patch(
        mpl.patches.FancyBboxPatch(
            (x - width / 2, y - height / 2), width, height, boxstyle="round,pad=0,rounding_size=0.04",
            facecolor=FILLS[fill], edgecolor=style.INK, linewidth=0.7, zorder=2,
        )
    )  # fmt: skip
    body = [line for text in lines if text for line in text.split("\n")]
    heading = title.split("\n")
    top = y + LINE * (len(heading) + len(body) - 1 + (0.25 if body else 0)) / 2
    for i, line in enumerate(heading):
        words(axes, x, top - LINE * i, line, fontsize=TITLE, fontweight="bold", zorder=3)
    for i, line in enumerate(body):
        words(axes, x, top - LINE * (len(heading) + 0.25 + i), line, fontsize=BODY, zorder=3)


def words(axes: Axes, x: float, y: float, text: str, **how: Any) -> None:
    """Text around a point; on a white ground where `ground` is given."""
    if how.pop("ground", False):
        how["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.text(x, y, text, **{"ha": "center", "va": "center", "fontsize": BODY, "zorder": 4, **how})


def arrow(axes: Axes, *points: tuple[float, float], colour: str = style.INK, **how: Any) -> None:
    """A line through the points with a head at the last."""
    look = {"color": colour, "linewidth": 0.8, "solid_joinstyle": "round", **how}
    if len(points) > 2:
        axes.plot(*zip(*points[:-1], strict=True), **look)
    tip = {
        "arrowstyle": "-|>,head_width=0.16,head_length=0.3", "color": colour, "linewidth": look["linewidth"],
        "shrinkA": 0, "shrinkB": 0,
    }  # fmt: skip
    axes.annotate("", points[-1], points[-2], arrowprops=tip)


def plus(axes: Axes, x: float, y: float) -> None:
    """Where a way around is added."""
    ring = {"boxstyle": "circle,pad=0.08", "facecolor": "white", "edgecolor": style.INK, "linewidth": 0.7}
    axes.text(x, y, "+", ha="center", va="center", fontsize=6.5, fontweight="bold", bbox=ring, zorder=3)
