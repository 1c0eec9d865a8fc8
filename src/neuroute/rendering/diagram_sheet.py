"""The sheet that a drawing of a network is placed on: where elements are, axes of panels, texts and arrows.

All sizes are inches, unless a docstring says points.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from neuroute.core.lazy import mpl
from neuroute.rendering import style

if TYPE_CHECKING:
    from neuroute.rendering.diagram import Box, Element, Sign, Words

TITLE, BODY = 6.5, 5.6  # points, of texts in boxes
ZOOMS = (1.0, 0.93, 0.87, 0.81, 0.75, 0.7)  # of these texts, until a figure is wide enough
BLUE, ORANGE = "#1c5a9c", "#b35a12"  # of arrows


class Extent(NamedTuple):
    """How far an element reaches from its middle."""

    left: float
    right: float
    up: float
    down: float

    @property
    def width(self) -> float:
        return self.left + self.right


class Place(NamedTuple):
    """Where an element is."""

    left: float
    right: float
    low: float
    high: float
    before: float = 0.0  # room at its left, where arrows from there end

    @property
    def x(self) -> float:
        return (self.left + self.right) / 2

    @property
    def y(self) -> float:
        return (self.low + self.high) / 2


class Sheet:
    """A figure as wide as given and as high as its layout: where elements are, axes of panels, and arrows."""

    def __init__(self, layout: Element, width: float = style.TWO_COLUMNS, edge: float = 0.06) -> None:
        self.figure = style.new_figure(width, 1)
        self.figure.set_layout_engine("none")
        self.places: dict[str, Place] = {}
        self.axes: dict[str, mpl.axes.Axes] = {}
        self.width = width
        for self.zoom in ZOOMS:
            extent = layout.extent(self)
            if extent.width <= width - 2 * edge:
                break
        self.height = extent.up + extent.down + 2 * edge
        self.figure.set_size_inches(width, self.height)
        self.canvas = self.panel(Place(0, width, 0, self.height))
        self.canvas.set_xlim(0, width)
        self.canvas.set_ylim(0, self.height)
        self.canvas.axis("off")
        layout.draw(self, width / 2, edge + extent.down, width - 2 * edge)

    def width_of(self, text: str, size: float, *, bold: bool = False) -> float:
        """Of the longest line of a text of so many points; those of boxes are zoomed."""
        font = mpl.font_manager.FontProperties(
            size=size * (self.zoom if size in (TITLE, BODY) else 1), weight="bold" if bold else None
        )
        renderer: Any = self.figure.canvas.get_renderer()  # type: ignore[attr-defined]
        widths = [renderer.get_text_width_height_descent(line, font, False)[0] for line in text.split("\n") if line]
        return float(max(widths, default=0.0)) / self.figure.dpi

    def panel(self, p: Place) -> mpl.axes.Axes:
        """Axes there."""
        w, h = self.width, self.height
        return self.figure.add_axes((p.left / w, p.low / h, (p.right - p.left) / w, (p.high - p.low) / h))

    def add_place(self, element: Box | Sign | Words, x: float, y: float) -> Place:
        """Where an element around (x, y) is."""
        e = element.extent(self)
        place = Place(x - e.left, x + e.right, y - e.down, y + e.up)
        if element.name:
            self.places[element.name] = place
        return place

    def draw_frame(self, p: Place, radius: float, **how: Any) -> None:
        """A rounded rectangle."""
        look = {"boxstyle": f"round,pad=0,rounding_size={radius}", "edgecolor": style.INK, "linewidth": 0.7, **how}
        self.canvas.add_patch(mpl.patches.FancyBboxPatch((p.left, p.low), p.right - p.left, p.high - p.low, **look))

    def write(self, x: float, y: float, text: str, **how: Any) -> None:
        """A text around a point; on a white ground where `ground` is given."""
        write(self.canvas, x, y, text, **how)

    def draw_line(self, *points: tuple[float, float], **how: Any) -> None:
        """A line through the points, with a head at the last."""
        draw_arrow(self.canvas, *points, **how)

    def arrow(
        self,
        start: str,
        end: str,
        *,
        leave: float = 0.0,
        enter: float = 0.0,
        bend: str = "",
        label: str = "",
        **how: Any,
    ) -> None:
        """From an element to another: straight where one faces the other, else around a corner.

        leave, enter: shift along the side of the start and of the end.  bend: "straight" goes from top to bottom or
        back, "across" from side to side, "down" leaves below where it has to turn.  label: above the arrow, or right
        of an upright one.
        """
        points = list(_route(self.places[start], self.places[end], leave, enter, bend))
        self.draw_line(*points, **how)
        if label:
            (x0, y0), (x1, y1) = points[:2] if bend == "down" else points[-2:]
            colour = {"color": how.get("colour", style.INK)}
            if bend in ("straight", "across"):
                self.write((x0 + x1) / 2, (y0 + y1) / 2, label, ground=True, **colour)
            elif abs(y1 - y0) < abs(x1 - x0):
                self.write((x0 + x1) / 2, y0 + 0.08, label, **colour)
            else:
                self.write(x1 + 0.04, (y0 + y1) / 2, label, ha="left", ground=True, **colour)

    def chain(self, *names: str, **how: Any) -> None:
        """Arrows from each to the next."""
        for start, end in pairwise(names):
            self.arrow(start, end, **how)

    def skip(self, around: str, to: str, *, below: bool = False) -> None:
        """The way around an element, and what stands between them, into a sign behind it."""
        p, ring = self.places[around], self.places[to]
        start = p.left - 0.07
        between = [q for q in self.places.values() if start < q.left and q.right <= ring.right and q.low < p.y < q.high]
        level = min(q.low for q in between) - 0.1 if below else max(q.high for q in between) + 0.1
        self.draw_line((start, p.y), (start, level), (ring.x, level), (ring.x, ring.low if below else ring.high))

    def fork(self, start: str, ends: dict[str, str]) -> None:
        """From an element down to the first of `ends`, and on the way sideways to the others; values are labels."""
        first, *others = ends
        top = self.places[start]
        x, reach = top.x, max(self.places[end].high for end in ends)
        level = reach + 0.27
        self.draw_line((x, top.low), (x, self.places[first].high), colour=BLUE)
        self.write(x - 0.05, level + 0.1, ends[first], ha="right", color=BLUE, fontsize=6.5, fontweight="bold")
        for end in others:
            at = self.places[end].x + 0.22
            self.draw_line((x, level), (at, level), (at, self.places[end].high), colour=BLUE)
            self.write(at - 0.05, level - 0.1, ends[end], ha="right", color=BLUE, fontsize=5.2)


def _route(a: Place, b: Place, leave: float, enter: float, bend: str) -> Iterator[tuple[float, float]]:
    """The points of an arrow from a to b."""
    right, up = b.x > a.x, b.y > a.y
    level = max(a.low, b.low) < min(a.high, b.high)
    if bend == "across":
        yield (a.right if right else a.left, a.y + leave)
        yield (b.left - b.before if right else b.right, b.y + enter)
    elif bend == "straight":
        yield (a.x + leave, a.high if up else a.low)
        yield (b.x + enter, b.low if up else b.high)
    elif level:
        y = (a.y if a.high - a.low <= b.high - b.low else b.y) + enter
        yield (a.right if right else a.left, y)
        yield (b.left - b.before if right else b.right, y)
    elif a.left <= (x := b.x + enter if enter or b.right - b.left <= a.right - a.left else a.x + leave) <= a.right and (
        b.left <= x <= b.right
    ):
        yield (x, a.high if up else a.low)
        yield (x, b.low if up else b.high)
    elif bend == "down":
        turn = b.high + 0.14
        yield from ((a.x + leave, a.low), (a.x + leave, turn), (b.x + enter, turn), (b.x + enter, b.high))
    else:
        yield (a.right if right else a.left, a.y + leave)
        yield (b.x + enter, a.y + leave)
        yield (b.x + enter, b.low if up else b.high)


def write(axes: mpl.axes.Axes, x: float, y: float, text: str, **how: Any) -> None:
    """A text around a point; on a white ground where `ground` is given."""
    if how.pop("ground", False):
        how["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.text(x, y, text, **{"ha": "center", "va": "center", "fontsize": BODY, "zorder": 4, **how})


def draw_arrow(axes: mpl.axes.Axes, *points: tuple[float, float], colour: str = style.INK, **how: Any) -> None:
    """A line through the points with a head at the last."""
    look = {"color": colour, "linewidth": 0.8, "solid_joinstyle": "round", **how}
    if len(points) > 2:
        axes.plot(*zip(*points[:-1], strict=True), **look)
    tip = {
        "arrowstyle": "-|>,head_width=0.16,head_length=0.3", "color": colour, "linewidth": look["linewidth"],
        "linestyle": look.get("linestyle", "-"), "shrinkA": 0, "shrinkB": 0,
    }  # fmt: skip
    axes.annotate("", points[-1], points[-2], arrowprops=tip)
