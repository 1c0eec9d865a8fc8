"""Drawings of networks: a figure describes boxes, panels and arrows; they are measured and placed here.

A figure is a tree: a `Column` of `Row`s of boxes, panels for data and frames around what is repeated.  Each element has
a middle, from which its extent is counted: in a row the middles are level, in a column plumb, so that arrows between
neighbours are straight.  Boxes are as large as their texts.  All sizes are inches, unless a docstring says points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from neuroute.rendering import style
from neuroute.rendering.diagram_sheet import BLUE as BLUE
from neuroute.rendering.diagram_sheet import BODY, TITLE, Extent, Place
from neuroute.rendering.diagram_sheet import ORANGE as ORANGE
from neuroute.rendering.diagram_sheet import Sheet as Sheet
from neuroute.rendering.diagram_sheet import draw_arrow as draw_arrow
from neuroute.rendering.diagram_sheet import write as write
from neuroute.rendering.maps import Decision, draw_probabilities, draw_state

FILLS = {
    "input": "#f3f4f6", "representatives": "#fdecd9", "nodes": "#dcebf7", "feed": "#eef1f4", "output": "#e4f3ec",
}  # fmt: skip
HEADING = 8.0  # points
LINE = 0.0185  # inches of a line of text for each point
PAD, GAP, RING = 0.13, 0.16, 0.075  # around texts, between elements, radius of a sign


@dataclass(frozen=True)
class Element(ABC):
    """What a figure is made of; those with a name are where arrows begin and end."""

    @abstractmethod
    def extent(self, sheet: Sheet) -> Extent:
        """Measure how much of the sheet it takes."""

    @abstractmethod
    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        """Draw it around (x, y); `width` is what it may take."""


@dataclass(frozen=True)
class Box(Element):
    """A rounded box with a title and lines below it; empty lines are left out."""

    name: str
    title: str
    lines: tuple[str, ...] = ()
    fill: str = "input"
    width: float = 0.0  # at least
    height: float = 0.0
    dashed: bool = False
    stretch: bool = False  # as wide as its column

    @property
    def texts(self) -> list[tuple[str, float]]:
        """Lines from top to bottom, with their size in points."""
        body = [line for text in self.lines if text for line in text.split("\n")]
        return [(line, TITLE) for line in self.title.split("\n")] + [(line, BODY) for line in body]

    def extent(self, sheet: Sheet) -> Extent:
        wide = max(sheet.width_of(text, size, bold=size == TITLE) for text, size in self.texts)
        high = sheet.zoom * LINE * sum(size for _, size in self.texts)
        width, height = max(self.width, wide + PAD), max(self.height, high + PAD)
        return Extent(width / 2, width / 2, height / 2, height / 2)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        place = sheet.add_place(self, x, y)
        if self.stretch and width > place.right - place.left:
            place = sheet.places[self.name] = place._replace(left=x - width / 2, right=x + width / 2)
        dash: Any = (0, (2, 1.5)) if self.dashed else "-"
        sheet.draw_frame(place, 0.04, gid=self.name, facecolor=FILLS[self.fill], zorder=2, linestyle=dash)
        level = y + sheet.zoom * LINE * sum(size for _, size in self.texts) / 2
        for text, size in self.texts:
            level -= sheet.zoom * LINE * size
            weight = "bold" if size == TITLE else "normal"
            sheet.write(x, level + LINE * size / 2, text, fontsize=sheet.zoom * size, fontweight=weight)


def box(name: str, title: str, *lines: str, fill: str = "input", **how: Any) -> Box:
    return Box(name, title, lines, fill, **how)


@dataclass(frozen=True)
class Sign(Element):
    """A ring with a sign, where arrows meet."""

    name: str
    sign: str = "+"

    def extent(self, sheet: Sheet) -> Extent:
        return Extent(RING, RING, RING, RING)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        sheet.add_place(self, x, y)
        ring = {"boxstyle": "circle,pad=0.08", "facecolor": "white", "edgecolor": style.INK, "linewidth": 0.7}
        sheet.write(x, y, self.sign, fontsize=6.5, fontweight="bold", bbox=ring)


@dataclass(frozen=True)
class Panel(Element):
    """Axes for data, with a title in the middle above it; `before` and `below` are for labels of its axes."""

    name: str
    width: float
    height: float
    title: str = ""
    before: float = 0.0
    below: float = 0.0
    bold: bool = False

    def extent(self, sheet: Sheet) -> Extent:
        w, h, wide = self.width / 2, self.height / 2, sheet.width_of(self.title, 6, bold=self.bold) / 2
        above = 0.03 + 6 * LINE * (self.title.count("\n") + 1) if self.title else 0.0
        return Extent(max(w + self.before, wide), max(w, wide), h + above, h + self.below)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        w, h = self.width / 2, self.height / 2
        place = sheet.places[self.name] = Place(x - w, x + w, y - h, y + h, self.before)
        sheet.axes[self.name] = sheet.panel(place)
        weight = "bold" if self.bold else "normal"
        sheet.write(x, place.high + 0.03, self.title, fontsize=6, va="bottom", linespacing=1.05, fontweight=weight)


@dataclass(frozen=True)
class Words(Element):
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
        sheet.add_place(self, x, y)
        look = {"ha": "left" if self.heading else "center", "va": "bottom" if self.above else "center"}
        start, up = x - width / 2 if self.heading else x, 0.04 if self.above else 0.0
        weight = "bold" if self.bold else "normal"
        sheet.write(start, y + up, self.text, color=self.colour, fontsize=self.size, fontweight=weight, **look)


def heading(text: str) -> Words:
    return Words(text, HEADING, bold=True, heading=True)


@dataclass(frozen=True)
class Space(Element):
    """Room that nothing is drawn in."""

    width: float = 0.0
    height: float = 0.0

    def extent(self, sheet: Sheet) -> Extent:
        return Extent(self.width / 2, self.width / 2, self.height / 2, self.height / 2)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        pass


@dataclass(frozen=True)
class Legend(Element):
    """What marks mean, one below or beside the other: label -> the look of a line or point."""

    marks: dict[str, dict[str, Any]]
    across: bool = False

    def extent(self, sheet: Sheet) -> Extent:
        widths = [0.3 + sheet.width_of(label, 6) for label in self.marks]
        half, high = (sum(widths), 0.125) if self.across else (max(widths), 0.125 * len(widths))
        return Extent(half / 2, half / 2, high / 2, high / 2)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        e = self.extent(sheet)
        edge, level = x - e.left, y + e.up - 0.0625
        for label, mark in self.marks.items():
            ends = [edge + 0.08] if "marker" in mark else [edge, edge + 0.16]
            shape = {"linestyle": "none" if "marker" in mark else "-", "solid_capstyle": "butt"}
            sheet.canvas.plot(ends, [level] * len(ends), **{**shape, **mark})
            sheet.write(edge + 0.2, level, label, ha="left", fontsize=6)
            edge, level = (edge + 0.3 + sheet.width_of(label, 6), level) if self.across else (edge, level - 0.125)


@dataclass(frozen=True)
class Row(Element):
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
        edge = x - half
        for item, e, gap in zip(self.items, parts, [*gaps, 0.0], strict=True):
            item.draw(sheet, edge + e.left, y, e.width)
            edge += e.width + gap


def row(*items: Element, **how: Any) -> Row:
    return Row(items, **how)


@dataclass(frozen=True)
class Column(Element):
    """Elements from top to bottom; with `top`, the column hangs from the level where others stand in the middle."""

    items: Sequence[Element]
    gap: float = GAP
    top: bool = False
    width: float = 0.0  # at least

    def extent(self, sheet: Sheet) -> Extent:
        parts = [item.extent(sheet) for item in self.items]
        high = sum(e.up + e.down for e in parts) + self.gap * (len(parts) - 1)
        up = 0.0 if self.top else high / 2
        half_left, half_right = (max(self.width / 2, *(e[i] for e in parts)) for i in (0, 1))
        return Extent(half_left, half_right, up, high - up)

    def draw(self, sheet: Sheet, x: float, y: float, width: float) -> None:
        level = y + self.extent(sheet).up
        for item in self.items:
            e = item.extent(sheet)
            item.draw(sheet, x, level - e.up, width)
            level -= e.up + e.down + self.gap


def column(*items: Element, **how: Any) -> Column:
    return Column(items, **how)


@dataclass(frozen=True)
class Frame(Element):
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
        inner, half = self.item.extent(sheet), self.extent(sheet).left
        low, high = y - inner.down - self.foot - 0.08, y + inner.up + self.head + 0.05
        place = sheet.places[self.name] = Place(x - half, x + half, low, high)
        sheet.draw_frame(place, 0.08, facecolor="none", edgecolor=style.GREY, linestyle=(0, (3, 2)))
        sheet.write(place.right - 0.05, high + 0.03, self.label, fontsize=6, va="bottom", ha="right")
        self.item.draw(sheet, x, y, inner.width)


# -- the encoder and the decoder of a network of many starts: a row each, joined by the encoded nodes ----------------

SIDE = 1.12  # of the maps at the left, in inches


def encoder_row(title: str, embed: Box, attention: Box, feed: Box, norm: str, label: str, nodes: str) -> Row:
    """From a map of the instance to encoded nodes, by way of layers of two residual blocks with norms behind them.

    The boxes are to be named "embed", "attention" and "feed".
    """
    first, second = (box(f"norm{i}", "norm", norm, fill="feed") for i in (1, 2))
    layer = row(attention, Sign("add1"), first, feed, Sign("add2"), second, tight=True)
    return row(Panel("instance", SIDE, SIDE, title), embed, Frame("layers", layer, label), box("H", "H", nodes))


def decoder_row(title: str, *boxes: Element) -> Row:
    """From the context at the right to a map of probabilities; boxes "softmax", "fits", ..., "keys", "context"."""
    return row(Panel("probabilities", SIDE, SIDE, title), *boxes)


def draw_network(sheet: Sheet, decision: Decision, *mixing: str) -> None:
    """Both maps, and all arrows; mixing: names of what stands between context and compatibility, from right to left."""
    draw_state(sheet.axes["instance"], decision)
    draw_probabilities(sheet.axes["probabilities"], decision)
    sheet.chain("instance", "embed", "attention", "add1", "norm1", "feed", "add2", "norm2", "H")
    sheet.skip("attention", "add1")
    sheet.skip("feed", "add2")
    sheet.chain("context", *mixing, "fits", "softmax", "probabilities")
    sheet.fork("H", {"context": "H", mixing[0]: "keys,\nvalues", "fits": "nodes"})
