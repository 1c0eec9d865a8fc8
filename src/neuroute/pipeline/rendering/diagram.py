"""Drawings of networks: a template (`papers/<key>/drawings/<figure>.yaml`) describes boxes, panels and arrows.

A figure is a tree: a `column` of `row`s of boxes, panels for data and frames around what is repeated.  Each element has
a middle, from which its extent is counted: in a row the middles are level, in a column plumb, so that arrows between
neighbours are straight.  Boxes are as large as their texts.  All sizes are inches, unless a docstring says points.

A template's elements and arrows are calls: `box: [name, title, line]` is `box(name, title, line)`, and further keys are
keyword arguments.  `{name}` in a text stands for a value, and a text that is a name alone for a value of any type; the
items of a list become arguments.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib.resources import as_file, files
from itertools import pairwise
from typing import Any, NamedTuple

from neuroute.core.lazy import mpl
from neuroute.core.yaml_files import read_yaml
from neuroute.evaluation.snapshot import ModuleShapes
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.study import Study

FILLS = {
    "input": "#f3f4f6", "representatives": "#fdecd9", "nodes": "#dcebf7", "feed": "#eef1f4", "output": "#e4f3ec",
}  # fmt: skip
COLOURS = {"blue": "#1c5a9c", "orange": "#b35a12", "dark_red": "#83290a", "grey": style.GREY}  # of arrows
HEADING, TITLE, BODY = 8.0, 6.5, 5.6  # points
LINE = 0.0185  # inches of a line of text for each point
PAD, GAP, RING, EDGE = 0.13, 0.16, 0.075, 0.06  # around texts, between elements, radius of a sign, around all


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


class Element(NamedTuple):
    """How far something reaches from its middle; `draw` takes the sheet, x and y of the middle, and the room across."""

    left: float
    right: float
    up: float
    down: float
    draw: Callable[[Sheet, float, float, float], object] = lambda *_: None
    is_sign: bool = False

    @property
    def width(self) -> float:
        return self.left + self.right


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Of the longest line of a text of so many points."""
    font = mpl.font_manager.FontProperties(size=size, weight="bold" if bold else None)
    measure: Any = mpl.textpath.text_to_path.get_text_width_height_descent
    return max((float(measure(line, font, False)[0]) / 72 for line in text.split("\n") if line), default=0.0)


def box(
    name: str, title: str, *lines: str, fill: str = "input", width: float = 0.0, height: float = 0.0,
    dashed: bool = False, stretch: bool = False,
) -> Element:  # fmt: skip
    """A rounded box, so large at least, with a title and lines below it, but for empty ones; stretch: as its column."""
    body = [line for text in lines if text for line in text.split("\n")]
    texts = [(line, TITLE, "bold") for line in title.split("\n")] + [(line, BODY, "normal") for line in body]
    half = max(width, PAD + max(text_width(text, size, bold=weight == "bold") for text, size, weight in texts)) / 2
    text_height = LINE * sum(size for _, size, _ in texts)
    up = max(height, PAD + text_height) / 2

    def draw(sheet: Sheet, x: float, y: float, room: float) -> None:
        reach = max(half, room / 2) if stretch else half
        place = sheet.places[name] = Place(x - reach, x + reach, y - up, y + up)
        dash: Any = (0, (2, 1.5)) if dashed else "-"
        sheet.draw_frame(place, 0.04, gid=name, facecolor=FILLS[fill], zorder=2, linestyle=dash)
        level = y + text_height / 2
        for text, size, weight in texts:
            sheet.write(x, level - LINE * size / 2, text, fontsize=size, fontweight=weight)
            level -= LINE * size

    return Element(half, half, up, up, draw)


def sign(name: str, text: str = "+") -> Element:
    """A ring with a sign, where arrows meet."""
    ring = {"boxstyle": "circle,pad=0.08", "facecolor": "white", "edgecolor": style.INK, "linewidth": 0.7}

    def draw(sheet: Sheet, x: float, y: float, room: float) -> None:
        sheet.places[name] = Place(x - RING, x + RING, y - RING, y + RING)
        sheet.write(x, y, text, fontsize=6.5, fontweight="bold", bbox=ring)

    return Element(RING, RING, RING, RING, draw, is_sign=True)


def panel(
    name: str, width: float, height: float, title: str = "", *, before: float = 0.0, below: float = 0.0,
    bold: bool = False,
) -> Element:  # fmt: skip
    """Axes for data, with a title in the middle above it; `before` and `below` are for labels of its axes."""
    w, h, wide = width / 2, height / 2, text_width(title, 6, bold=bold) / 2
    above = 0.03 + 6 * LINE * (title.count("\n") + 1) if title else 0.0

    def draw(sheet: Sheet, x: float, y: float, room: float) -> None:
        place = sheet.places[name] = Place(x - w, x + w, y - h, y + h, before)
        sheet.axes[name] = sheet.add_axes(place)
        weight = "bold" if bold else "normal"
        sheet.write(x, place.high + 0.03, title, fontsize=6, va="bottom", linespacing=1.05, fontweight=weight)

    return Element(max(w + before, wide), max(w, wide), h + above, h + below, draw)


def words(
    text: str, size: float = BODY, *, bold: bool = False, colour: str = style.INK, above: bool = False,
    left: bool = False, name: str = "",
) -> Element:  # fmt: skip
    """A bare text around its middle, `above` it, where an arrow passes, or from the `left` end of its room."""
    half, high = text_width(text, size, bold=bold) / 2, size * LINE * (text.count("\n") + 1)
    up, down = (high + 0.06, 0.0) if above else (high / 2, high / 2)
    look = {"color": colour, "fontsize": size, "fontweight": "bold" if bold else "normal"}
    look |= {"ha": "left" if left else "center", "va": "bottom" if above else "center"}

    def draw(sheet: Sheet, x: float, y: float, room: float) -> None:
        sheet.places[name or text] = Place(x - half, x + half, y - down, y + up)
        sheet.write(x - room / 2 if left else x, y + 0.04 * above, text, **look)

    return Element(half, half, up, down, draw)


heading = partial(words, size=HEADING, bold=True, left=True)  # of a part


def space(width: float = 0.0, height: float = 0.0) -> Element:
    """Room that nothing is drawn in."""
    return Element(width / 2, width / 2, height / 2, height / 2)


def legend(marks: Mapping[str, Mapping[str, Any]], *, across: bool = False) -> Element:
    """What marks mean, one below or beside the other: label -> the look of a line or point."""
    widths = [0.4 + text_width(label, 6) for label in marks]
    half, up = (sum(widths) if across else max(widths)) / 2, 0.065 * (1 if across else len(marks))

    def draw(sheet: Sheet, x: float, y: float, room: float) -> None:
        points = {"linestyle": "none", "solid_capstyle": "butt"}
        lines = [style.line(label, **(points if "marker" in mark else {}), **mark) for label, mark in marks.items()]
        at: Any = {"loc": "center", "bbox_to_anchor": (x, y), "bbox_transform": sheet.canvas.transData}
        look: Any = {"fontsize": 6, "ncols": len(marks) if across else 1, "borderpad": 0, "handlelength": 1.8}
        sheet.canvas.add_artist(mpl.legend.Legend(sheet.canvas, lines, list(marks), **at, **look))

    return Element(half, half, up, up, draw)


def row(*items: Element, gap: float = GAP, tight: bool = False) -> Element:
    """Elements from left to right, over all the room there is unless `tight`."""
    close = [0.07 if a.is_sign or b.is_sign else gap for a, b in pairwise(items)]
    wide, half = close.count(gap), (sum(e.width for e in items) + sum(close)) / 2

    def draw(sheet: Sheet, x: float, y: float, room: float) -> None:
        more = 0.0 if tight or not wide else max(0.0, room - 2 * half) / wide
        edge = x - half - more * wide / 2
        for item, space_behind in zip(items, [*close, 0.0], strict=True):
            item.draw(sheet, edge + item.left, y, item.width)
            edge += item.width + space_behind + more * (space_behind == gap)

    return Element(half, half, max(e.up for e in items), max(e.down for e in items), draw)


def column(*items: Element, gap: float = GAP, top: bool = False, width: float = 0.0) -> Element:
    """Elements from top to bottom; with `top`, it hangs from the level where others in a row have their middle."""
    high = sum(e.up + e.down for e in items) + gap * (len(items) - 1)
    up = 0.0 if top else high / 2

    def draw(sheet: Sheet, x: float, y: float, room: float) -> None:
        level = y + up
        for item in items:
            item.draw(sheet, x, level - item.up, room)
            level -= item.up + item.down + gap

    left, right = (max(width / 2, *reaches) for reaches in ([e.left for e in items], [e.right for e in items]))
    return Element(left, right, up, high - up, draw)


def frame(name: str, item: Element, label: str = "", *, head: float = 0.16, foot: float = 0.0) -> Element:
    """A dashed frame around what is repeated, with a label above it; `head` and `foot` are for ways around."""
    half, up, down = max(item.left, item.right) + 0.13, item.up + head + 0.05, item.down + foot + 0.08

    def draw(sheet: Sheet, x: float, y: float, room: float) -> None:
        place = sheet.places[name] = Place(x - half, x + half, y - down, y + up)
        sheet.draw_frame(place, 0.08, facecolor="none", edgecolor=style.GREY, linestyle=(0, (3, 2)))
        sheet.write(place.right - 0.05, place.high + 0.03, label, fontsize=6, va="bottom", ha="right")
        item.draw(sheet, x, y, item.width)

    return Element(half, half, up + (6 * LINE + 0.06 if label else 0.0), down, draw)


def layers(attention: Element, feed: Element, norm: str, label: str) -> Element:
    """Alike layers: two parts, each added to what came in and normalized then."""
    norms = [box(f"norm{k}", "norm", norm, fill="feed") for k in (1, 2)]
    return frame("layers", row(attention, sign("add1"), norms[0], feed, sign("add2"), norms[1], tight=True), label)


def _call(call: Mapping[str, Any], values: Mapping[str, Any], functions: Callable[[str], Callable[..., Any]]) -> Any:
    """Do what a template says: an element, or arrows."""
    (kind, first), *options = call.items()
    arguments: list[Any] = []
    for part in first if isinstance(first, list) else [first]:
        value = _fill(part, values)
        arguments += value if isinstance(value, list) else [value]
    return functions(kind)(*arguments, **{key: _fill(value, values) for key, value in options})


def _fill(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, dict):
        return _call(part, values, globals().__getitem__)
    if not isinstance(part, str):
        return part
    if (name := re.fullmatch(r"\{(\w+)\}", part)) and name[1] in values:
        return values[name[1]]
    text = part.format_map(values)
    return "" if "\0" in text else text


class Sheet:
    """A figure as wide as given, or as its layout needs: where elements are, axes of panels, and arrows."""

    def __init__(self, layout: Element) -> None:
        width, height = max(style.TWO_COLUMNS, layout.width + 2 * EDGE), layout.up + layout.down + 2 * EDGE
        self.figure = style.new_figure(width, height)
        self.figure.set_layout_engine("none")
        self.places: dict[str, Place] = {}
        self.axes: dict[str, mpl.axes.Axes] = {}
        self.canvas = self.add_axes(Place(0, width, 0, height))
        self.canvas.set(xlim=(0, width), ylim=(0, height))
        self.canvas.axis("off")
        self.write, self.draw_line = partial(write, self.canvas), partial(draw_arrow, self.canvas)
        layout.draw(self, width / 2, EDGE + layout.down, width - 2 * EDGE)

    @classmethod
    def of(cls, study: Study, model: ModuleShapes, **values: Any) -> Sheet:
        """The template of an artifact, over a network's shapes."""
        paper, name = study.artifact.paper, study.artifact.name
        with as_file(files(f"neuroute.pipeline.papers.{paper}") / "drawings" / f"{name}.yaml") as path:
            template = read_yaml(path)
        # {shape[embed]} in a text; of a weight that is not there the whole text is left out.
        names = (name.removesuffix(".weight") for name in model.shapes)
        shapes = defaultdict(lambda: "\0", {name: model.shape(name) for name in names})
        values = {"m": model, "shape": shapes, **COLOURS, **values}
        sheet = cls(_fill(template["layout"], values))
        for call in template.get("arrows", ()):
            _call(call, values, partial(getattr, sheet))
        return sheet

    def add_axes(self, p: Place) -> mpl.axes.Axes:
        w, h = self.figure.get_size_inches()
        return self.figure.add_axes((p.left / w, p.low / h, (p.right - p.left) / w, (p.high - p.low) / h))

    def draw_frame(self, p: Place, radius: float, **how: Any) -> None:
        """A rounded rectangle."""
        look = {"boxstyle": f"round,pad=0,rounding_size={radius}", "edgecolor": style.INK, "linewidth": 0.7, **how}
        self.canvas.add_patch(mpl.patches.FancyBboxPatch((p.left, p.low), p.right - p.left, p.high - p.low, **look))

    def arrow(
        self, start: str, end: str, *, leave: float = 0.0, enter: float = 0.0, bend: str = "", label: str = "",
        **how: Any,
    ) -> None:  # fmt: skip
        """From an element to another: straight where one faces the other, else around a corner.

        leave, enter: shift along the side of the start and of the end.  bend: "straight" goes from top to bottom or
        back, "across" from side to side.  label: above the arrow, or right of an upright one.
        """
        points = list(_route(self.places[start], self.places[end], leave, enter, bend))
        self.draw_line(*points, **how)
        (x0, y0), (x1, y1) = points[-2:]
        look = {"color": how.get("colour", style.INK), "ground": bool(label)}
        if bend:
            self.write((x0 + x1) / 2, (y0 + y1) / 2, label, **look)
        elif abs(y1 - y0) < abs(x1 - x0):
            self.write((x0 + x1) / 2, y0 + 0.08, label, **look | {"ground": False})
        else:
            self.write(x1 + 0.04, (y0 + y1) / 2, label, ha="left", **look)

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

    def encode_and_decode(self, *decoder: str) -> None:
        """Arrows of an encoder of `layers` and of a decoder, and from H to what reads it."""
        self.chain("instance", "embed", "attention", "add1", "norm1", "feed", "add2", "norm2", "H")
        self.skip("attention", "add1")
        self.skip("feed", "add2")
        self.chain(*decoder)
        encoded, context, blue = self.places["H"], self.places["context"], {"colour": COLOURS["blue"]}
        readers = {"keys": "keys,\nvalues", "fits": "nodes"}
        level = 0.27 + max(self.places[name].high for name in ("context", *readers))
        self.draw_line((encoded.x, encoded.low), (encoded.x, context.high), **blue)
        look: Any = {"ha": "right", "color": COLOURS["blue"]}
        self.write(encoded.x - 0.05, level + 0.1, "H", fontsize=6.5, fontweight="bold", **look)
        for name, text in readers.items():
            at = self.places[name].x + 0.22
            self.draw_line((encoded.x, level), (at, level), (at, self.places[name].high), **blue)
            self.write(at - 0.05, level - 0.1, text, fontsize=5.2, **look)


def _route(a: Place, b: Place, leave: float, enter: float, bend: str) -> Iterator[tuple[float, float]]:
    """The points of an arrow from a to b."""
    right, up = b.x > a.x, b.y > a.y
    leaves, enters = (a.right, b.left - b.before) if right else (a.left, b.right)
    x = b.x + enter if enter or b.right - b.left <= a.right - a.left else a.x + leave
    if bend == "across":
        yield from ((leaves, a.y + leave), (enters, b.y + enter))
    elif bend == "straight":
        yield from ((a.x + leave, a.high if up else a.low), (b.x + enter, b.low if up else b.high))
    elif max(a.low, b.low) < min(a.high, b.high):
        y = (a.y if a.high - a.low <= b.high - b.low else b.y) + enter
        yield from ((leaves, y), (enters, y))
    elif a.left <= x <= a.right and b.left <= x <= b.right:
        yield from ((x, a.high if up else a.low), (x, b.low if up else b.high))
    else:
        yield from ((leaves, a.y + leave), (b.x + enter, a.y + leave), (b.x + enter, b.low if up else b.high))


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
