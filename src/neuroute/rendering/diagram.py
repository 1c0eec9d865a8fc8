"""Drawings of networks: a figure describes boxes, panels and arrows; they are measured and placed here.

A figure is a tree: a `Column` of `Row`s of boxes, panels for data and frames around what is repeated.  Each element has
a middle, from which its extent is counted: in a row the middles are level, in a column plumb, so that arrows between
neighbours are straight.  Boxes are as large as their texts.  All sizes are inches, unless a docstring says points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from neuroute.rendering import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neuroute.rendering.style import Drawing
    from neuroute.rendering.table import Table

FILLS = {
    "input": "#f3f4f6", "representatives": "#fdecd9", "nodes": "#dcebf7", "feed": "#eef1f4", "output": "#e4f3ec",
}  # fmt: skip
TITLE, BODY, HEADING = 6.5, 5.6, 8.0  # points
LINE = 0.0185  # inches of a line of text for each point
PAD, GAP, RING = 0.13, 0.16, 0.075  # around texts, between elements, radius of a sign
ZOOMS = (1.0, 0.93, 0.87, 0.81, 0.75, 0.7)  # of the texts in boxes, until a figure is wide enough
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


class Element(Protocol):
    def extent(self, sheet: Sheet) -> Extent: ...

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        """Draw it around (x, y); `width` is what it may take."""


# -- elements -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """A rounded box with a title and lines below it; empty lines are left out."""

    name: str
    title: str
    lines: tuple[str, ...] = ()
    fill: str = "input"
    width: float = 0.0  # at least
    height: float = 0.0
    dashed: bool = False

    @property
    def texts(self) -> tuple[list[str], list[str]]:
        return self.title.split("\n"), [line for text in self.lines if text for line in text.split("\n")]

    def extent(self, sheet: Sheet) -> Extent:
        heading, body = self.texts
        wide = max([sheet.width_of(t, TITLE, bold=True) for t in heading] + [sheet.width_of(t, BODY) for t in body])
        high = sheet.zoom * LINE * (TITLE * len(heading) + BODY * len(body) + (2 if body else 0))
        width, height = max(self.width, wide + PAD), max(self.height, high + PAD)
        return Extent(width / 2, width / 2, height / 2, height / 2)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        e = self.extent(sheet)
        sheet.places[self.name] = Place(x - e.left, x + e.right, y - e.down, y + e.up)
        sheet.canvas.add_patch(
            FancyBboxPatch(
                (x - e.left, y - e.down), e.width, e.up + e.down, boxstyle="round,pad=0,rounding_size=0.04", zorder=2,
                facecolor=FILLS[self.fill], edgecolor=style.INK, linewidth=0.7, gid=self.name,
                linestyle=(0, (2, 1.5)) if self.dashed else "-",
            )
        )  # fmt: skip
        heading, body = self.texts
        lines = [(t, TITLE, "bold") for t in heading] + [(t, BODY, "normal") for t in body]
        total = sum(size for _, size, _ in lines) + (2 if body else 0)
        top = y + sheet.zoom * LINE * total / 2
        for i, (text, size, weight) in enumerate(lines):
            top -= sheet.zoom * LINE * (2 if i == len(heading) else 0)
            size *= sheet.zoom
            sheet.write(x, top - LINE * size / 2, text, fontsize=size, fontweight=weight)
            top -= LINE * size


def box(name: str, title: str, *lines: str, fill: str = "input", **how: Any) -> Box:
    return Box(name, title, lines, fill, **how)


@dataclass(frozen=True)
class Sign:
    """A ring with a sign, where arrows meet."""

    name: str
    sign: str = "+"

    def extent(self, sheet: Sheet) -> Extent:
        return Extent(RING, RING, RING, RING)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        sheet.places[self.name] = Place(x - RING, x + RING, y - RING, y + RING)
        ring = {"boxstyle": "circle,pad=0.08", "facecolor": "white", "edgecolor": style.INK, "linewidth": 0.7}
        sheet.write(x, y, self.sign, fontsize=6.5, fontweight="bold", bbox=ring)


@dataclass(frozen=True)
class Panel:
    """Axes for data, with a title in the middle above it; `before` and `below` are for labels of its axes."""

    name: str
    width: float
    height: float
    title: str = ""
    before: float = 0.0
    below: float = 0.0
    bold: bool = False

    def extent(self, sheet: Sheet) -> Extent:
        half = max(self.width, sheet.width_of(self.title, 6, bold=self.bold)) / 2
        above = 0.03 + 6 * LINE * (self.title.count("\n") + 1) if self.title else 0.0
        return Extent(
            max(half, self.width / 2 + self.before), half, self.height / 2 + above, self.height / 2 + self.below
        )

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        w, h = self.width / 2, self.height / 2
        place = Place(x - w, x + w, y - h, y + h, self.before)
        sheet.places[self.name] = place
        sheet.axes[self.name] = sheet.panel(place)
        if self.title:
            sheet.write(x, place.high + 0.03, self.title, fontsize=6, va="bottom", linespacing=1.05,
                        fontweight="bold" if self.bold else "normal")  # fmt: skip


@dataclass(frozen=True)
class Words:
    """A bare text around its middle or `above` it, where an arrow passes; a `heading` stands at the left."""

    text: str
    size: float = BODY
    bold: bool = False
    colour: str = style.INK
    above: bool = False
    heading: bool = False
    name: str = ""

    def extent(self, sheet: Sheet) -> Extent:
        half = sheet.width_of(self.text, self.size, bold=self.bold) / 2
        high = self.size * LINE * (self.text.count("\n") + 1)
        return Extent(half, half, high + 0.06, 0.0) if self.above else Extent(half, half, high / 2, high / 2)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        e = self.extent(sheet)
        if self.name:
            sheet.places[self.name] = Place(x - e.left, x + e.right, y - e.down, y + e.up)
        look: dict[str, Any] = {"fontsize": self.size, "fontweight": "bold" if self.bold else "normal"}
        if self.heading:
            sheet.write(x - width / 2, y, self.text, ha="left", **look)
        else:
            sheet.write(x, y + (0.04 if self.above else 0), self.text, color=self.colour,
                        va="bottom" if self.above else "center", **look)  # fmt: skip


def heading(text: str) -> Words:
    return Words(text, HEADING, bold=True, heading=True)


@dataclass(frozen=True)
class Space:
    """Room that nothing is drawn in."""

    width: float = 0.0
    height: float = 0.0

    def extent(self, sheet: Sheet) -> Extent:
        return Extent(self.width / 2, self.width / 2, self.height / 2, self.height / 2)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        pass


@dataclass(frozen=True)
class Legend:
    """What marks mean, in so many columns: label -> the look of a line or point."""

    marks: dict[str, dict[str, Any]]
    columns: int = 1

    @property
    def rows(self) -> list[list[str]]:
        names = list(self.marks)
        return [names[i : i + self.columns] for i in range(0, len(names), self.columns)]

    def widths(self, sheet: Sheet) -> list[float]:
        columns = [[row[j] for row in self.rows if j < len(row)] for j in range(self.columns)]
        return [0.3 + max((sheet.width_of(name, 6) for name in column), default=0.0) for column in columns]

    def extent(self, sheet: Sheet) -> Extent:
        half, high = sum(self.widths(sheet)) / 2, 0.125 * len(self.rows)
        return Extent(half, half, high / 2, high / 2)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        e = self.extent(sheet)
        for i, row in enumerate(self.rows):
            left, level = x - e.left, y + e.up - 0.125 * (i + 0.5)
            for name, wide in zip(row, self.widths(sheet), strict=False):
                look = {
                    "linestyle": "none" if "marker" in self.marks[name] else "-",
                    "solid_capstyle": "butt",
                    **self.marks[name],
                }
                ends = [left + 0.08] if "marker" in look else [left, left + 0.16]
                sheet.canvas.plot(ends, [level] * len(ends), **look)
                sheet.write(left + 0.2, level, name, ha="left", fontsize=6)
                left += wide


# -- what holds elements --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """Elements from left to right, over all the room there is unless `tight`."""

    items: Sequence[Element]
    gap: float = GAP
    tight: bool = False

    def gaps(self) -> list[float]:
        return [0.07 if Sign in map(type, pair) else self.gap for pair in pairwise(self.items)]

    def extent(self, sheet: Sheet) -> Extent:
        parts = [item.extent(sheet) for item in self.items]
        half = (sum(e.width for e in parts) + sum(self.gaps())) / 2
        return Extent(half, half, max(e.up for e in parts), max(e.down for e in parts))

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        gaps, parts, half = self.gaps(), [item.extent(sheet) for item in self.items], self.extent(sheet).left
        if not self.tight and width > 2 * half and gaps:
            wide = [gap == self.gap for gap in gaps]
            gaps = [gap + (width - 2 * half) * w / (sum(wide) or 1) for gap, w in zip(gaps, wide, strict=True)]
            half = width / 2 if any(wide) else half
        left = x - half
        for item, e, gap in zip(self.items, parts, [*gaps, 0.0], strict=True):
            item.draw(sheet, left + e.left, y, e.width)
            left += e.width + gap


def row(*items: Element, **how: Any) -> Row:
    return Row(items, **how)


@dataclass(frozen=True)
class Column:
    """Elements from top to bottom; with `top`, the column hangs from the level where others stand in the middle."""

    items: Sequence[Element]
    gap: float = GAP
    top: bool = False
    width: float = 0.0  # at least

    def extent(self, sheet: Sheet) -> Extent:
        parts = [item.extent(sheet) for item in self.items]
        high = sum(e.up + e.down for e in parts) + self.gap * (len(parts) - 1)
        up = 0.0 if self.top else high / 2
        left, right = (max(self.width / 2, *(e[i] for e in parts)) for i in (0, 1))
        return Extent(left, right, up, high - up)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        level = y + self.extent(sheet).up
        for item in self.items:
            e = item.extent(sheet)
            item.draw(sheet, x, level - e.up, width)
            level -= e.up + e.down + self.gap


def column(*items: Element, **how: Any) -> Column:
    return Column(items, **how)


@dataclass(frozen=True)
class Frame:
    """A dashed frame around what is repeated, with a label above it; `head` and `foot` are for ways around."""

    name: str
    item: Element
    label: str = ""
    head: float = 0.16
    foot: float = 0.0

    def extent(self, sheet: Sheet) -> Extent:
        e = self.item.extent(sheet)
        half = max(e.left, e.right) + 0.13
        above = 6 * LINE + 0.06 if self.label else 0.0
        return Extent(half, half, e.up + self.head + 0.05 + above, e.down + self.foot + 0.08)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        from matplotlib.patches import FancyBboxPatch

        e = self.item.extent(sheet)
        half = self.extent(sheet).left
        place = Place(x - half, x + half, y - e.down - self.foot - 0.08, y + e.up + self.head + 0.05)
        sheet.places[self.name] = place
        sheet.canvas.add_patch(
            FancyBboxPatch(
                (place.left, place.low), 2 * half, place.high - place.low, boxstyle="round,pad=0,rounding_size=0.08",
                facecolor="none", edgecolor=style.GREY, linewidth=0.8, linestyle=(0, (3, 2)),
            )
        )  # fmt: skip
        if self.label:
            sheet.write(place.right - 0.05, place.high + 0.03, self.label, fontsize=6, va="bottom", ha="right")
        self.item.draw(sheet, x, y, e.width)


# -- the sheet ------------------------------------------------------------------------------------------------------


class Sheet:
    """A figure as wide as given and as high as its layout: where elements are, axes of panels, and arrows."""

    def __init__(self, layout: Element, width: float = style.TWO_COLUMNS, edge: float = 0.06) -> None:
        self.figure = style.new_figure(width, 1)
        self.figure.set_layout_engine("none")
        self.places: dict[str, Place] = {}
        self.axes: dict[str, Axes] = {}
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
        from matplotlib.font_manager import FontProperties

        font = FontProperties(size=size * (self.zoom if size in (TITLE, BODY) else 1), weight="bold" if bold else None)
        renderer: Any = self.figure.canvas.get_renderer()  # type: ignore[attr-defined]
        widths = [renderer.get_text_width_height_descent(line, font, False)[0] for line in text.split("\n") if line]
        return float(max(widths, default=0.0)) / self.figure.dpi

    def panel(self, p: Place) -> Axes:
        """Axes there."""
        w, h = self.width, self.height
        return self.figure.add_axes((p.left / w, p.low / h, (p.right - p.left) / w, (p.high - p.low) / h))

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

        leave, enter: shift along the side of the start and of the end.  bend: "v" goes up or down first, "straight"
        goes from top to bottom or back, "across" from side to side.  label: above it, or right of an upright one.
        """
        points = list(_route(self.places[start], self.places[end], leave, enter, bend))
        self.draw_line(*points, **how)
        if label:
            (x0, y0), (x1, y1) = points[-2:]
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

    def skip(self, around: str, to: str, *, below: bool = False, reach: float = 0.1) -> None:
        """The way around an element into a sign behind it."""
        p, ring = self.places[around], self.places[to]
        side = -1 if below else 1
        level = (p.low if below else p.high) + side * reach
        start = p.left - 0.07
        self.draw_line((start, p.y), (start, level), (ring.x, level), (ring.x, ring.low if below else ring.high))

    def fork(self, start: str, ends: dict[str, str], colour: str = BLUE, shift: float = 0.22) -> None:
        """From an element down to the first of `ends`, and on the way sideways to the others; values are labels."""
        first, *others = ends
        top = self.places[start]
        x, reach = top.x, max(self.places[end].high for end in ends)
        level = reach + 0.27
        self.draw_line((x, top.low), (x, self.places[first].high), colour=colour)
        self.write(x - 0.05, level + 0.1, ends[first], ha="right", color=colour, fontsize=6.5, fontweight="bold")
        for end in others:
            at = self.places[end].x + shift
            self.draw_line((x, level), (at, level), (at, self.places[end].high), colour=colour)
            self.write(at - 0.05, level - 0.1, ends[end], ha="right", color=colour, fontsize=5.2)


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
    elif level and bend != "v":
        y = (a.y if a.high - a.low <= b.high - b.low else b.y) + enter
        yield (a.right if right else a.left, y)
        yield (b.left - b.before if right else b.right, y)
    elif a.left <= (x := b.x + enter if enter or b.right - b.left <= a.right - a.left else a.x + leave) <= a.right and (
        b.left <= x <= b.right
    ):
        yield (x, a.high if up else a.low)
        yield (x, b.low if up else b.high)
    elif bend == "v":
        yield (a.x + leave, a.high if up else a.low)
        yield (a.x + leave, b.y + enter)
        yield (b.left if right else b.right, b.y + enter)
    else:
        yield (a.right if right else a.left, a.y + leave)
        yield (b.x + enter, a.y + leave)
        yield (b.x + enter, b.low if up else b.high)


def drawing(
    figure: Figure, rows: Sequence[dict[str, Any]], notes: Iterable[str], alt: str, fits: Table | None = None
) -> Drawing:
    """A figure with the lines of its CSV."""
    import pandas as pd

    return style.Drawing(figure, pd.DataFrame(list(rows)), tuple(notes), alt, fits)


def write(axes: Axes, x: float, y: float, text: str, **how: Any) -> None:
    """A text around a point; on a white ground where `ground` is given."""
    if how.pop("ground", False):
        how["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.text(x, y, text, **{"ha": "center", "va": "center", "fontsize": BODY, "zorder": 4, **how})


def draw_arrow(axes: Axes, *points: tuple[float, float], colour: str = style.INK, **how: Any) -> None:
    """A line through the points with a head at the last."""
    look = {"color": colour, "linewidth": 0.8, "solid_joinstyle": "round", **how}
    if len(points) > 2:
        axes.plot(*zip(*points[:-1], strict=True), **look)
    tip = {
        "arrowstyle": "-|>,head_width=0.16,head_length=0.3", "color": colour, "linewidth": look["linewidth"],
        "linestyle": look.get("linestyle", "-"), "shrinkA": 0, "shrinkB": 0,
    }  # fmt: skip
    axes.annotate("", points[-1], points[-2], arrowprops=tip)
