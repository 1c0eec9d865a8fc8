"""The house style of figures: colours, axes, and saving figures and tables with the same bytes every time."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.resources import as_file, files
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from neuroute.core.files import write_text, write_whole
from neuroute.core.lazy import mpl, pd
from neuroute.pipeline.rendering.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ONE_COLUMN, TWO_COLUMNS = 3.25, 6.75  # inches
MEASURED, PUBLISHED = "measured", "published"  # the sides of a figure, as its CSV names them
NOT_MEASURED = "not measured at this scale"
INK, GREY = "#22262e", "#8a919c"
GREEN = "#2a9d6f"
# Light to dark, told apart by lightness alone and, blue against orange, under every common colour blindness.
RAMPS = {
    "blue": ("#8fc3e0", "#3f8fc6", "#1c5a9c", "#0a2749"),
    "orange": ("#f4b266", "#dd6b20", "#83290a"),
    "cool-warm": ("#2bb5c9", "#5b7fc7", "#8a4fb0", "#d6409f"),
}
MARKERS = ("o", "s", "D", "^", "v", "P", "X")


@dataclass(frozen=True)
class Drawing:
    """A figure, the points that it shows and what a reader must know of it.

    A panel in which nothing is drawn says so in words, and one of a single point that it has no line.
    """

    figure: mpl.figure.Figure
    rows: pd.DataFrame | Sequence[Mapping[str, Any]]  # the lines of its CSV
    notes: Sequence[str] = ()
    alt: str = ""  # what the figure shows, for readers who cannot see it
    fits: Table | None = None  # what was fitted to the points; the report shows it below the figure

    def __post_init__(self) -> None:
        for axes in self.figure.axes:
            points = _points(axes) if axes.axison else None
            if points is not None and not points:
                empty_axes(axes, NOT_MEASURED)
            elif points is not None and len(points) == 1:
                say_in(axes, "one point: no line")

    @cached_property
    def points(self) -> pd.DataFrame:
        return pd.DataFrame(self.rows)


def ramp(family: str, count: int) -> list[str]:
    """`count` colours of an ordered quantity, light to dark."""
    if count == 1:
        return [RAMPS[family][len(RAMPS[family]) // 2]]
    stops = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in RAMPS[family]]
    shades = np.minimum(256 * np.arange(count) // (count - 1), 255) / 255  # of 256, as matplotlib's maps have
    parts = [np.interp(shades, np.linspace(0, 1, len(stops)), part) for part in zip(*stops, strict=True)]
    return ["#" + "".join(f"{round(part):02x}" for part in colour) for colour in zip(*parts, strict=True)]


@contextmanager
def house() -> Iterator[None]:
    """Everything drawn inside has the house style; the Agg canvas, whatever the machine's display."""
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of each glyph of a PDF
    with (
        as_file(files("neuroute.pipeline.rendering") / "house.mplstyle") as path,
        mpl.rc_context(fname=path),
        mpl.rc_context({"backend": "agg"}),
    ):
        yield


def new_figure(width: float = TWO_COLUMNS, height: float = 3.0) -> mpl.figure.Figure:
    """An empty figure of that many inches, outside pyplot's state, which notebooks show."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from neuroute.problems.instances.drawing import Drawing as Shown

    figure = Shown(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def log_axis(axes: mpl.axes.Axes, which: str, values: ArrayLike, pad: float = 0.08) -> None:
    """A log axis around the positive values, ticked 1-2-5 or by decades in plain numbers; linear when none is positive.

    which: "x" or "y".  pad: free room at both ends, as a share of the axis.
    """
    numbers = np.asarray(values, float)
    positive = numbers[np.isfinite(numbers) & (numbers > 0)]
    if not len(positive):
        return
    low, high = math.log10(positive.min()), math.log10(positive.max())
    margin = max((high - low) * pad, 0.05, (0.3 - (high - low)) / 2)
    limits = (10 ** (low - margin), 10 ** (high + margin))
    axis: mpl.axis.Axis = getattr(axes, f"{which}axis")
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    (axes.set_xlim if which == "x" else axes.set_ylim)(*limits)
    span = high - low + 2 * margin
    dense = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0) if span < 1.1 else (1.0, 2.0, 5.0)
    fine = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
    subs = fine if span < 0.5 else dense if span < 2.2 else (1.0,)
    axis.set_major_locator(mpl.ticker.LogLocator(10, subs=subs, numticks=12))
    axis.set_minor_locator(mpl.ticker.NullLocator())
    axis.set_major_formatter(mpl.ticker.FuncFormatter(plain_number))


def plain_number(value: float, _: Any = None) -> str:
    """0.001, 0.2, 50, 2k, 10M"""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit * 0.9999:
            return f"{value / unit:g}{letter}"
    return f"{value:.10f}".rstrip("0").rstrip(".") if abs(value) >= 1e-4 else f"{value:g}"


def empty_axes(axes: mpl.axes.Axes, reason: str) -> None:
    """Say on the panel itself why it is empty.  Its ticks go; of axes that it shares, they stay on other panels."""
    axes.tick_params(which="both", left=False, bottom=False, labelleft=False, labelbottom=False)
    axes.grid(visible=False)
    axes.text(0.5, 0.5, reason, transform=axes.transAxes, ha="center", va="center", color=GREY, wrap=True)


def say_in(axes: mpl.axes.Axes, words: str) -> None:
    """Write on the panel, below its points, what they do not show."""
    axes.text(0.5, 0.02, words, transform=axes.transAxes, ha="center", va="bottom", color=GREY, fontsize=6.5)


def _points(axes: mpl.axes.Axes) -> set[tuple[float, float]] | None:
    """The finite points (x, y) of lines and markers on the panel; None where it has anything else: bars, words."""
    if axes.patches or axes.images or axes.collections or axes.texts or axes.tables:
        return None
    # Not of a line across the panel.
    lines = (each for each in axes.lines if all(each.get_transform().contains_branch_seperately(axes.transData)))
    data = np.concatenate([np.empty((0, 2)), *(np.column_stack(line.get_data(orig=False)) for line in lines)])
    return set(map(tuple, data[np.isfinite(data).all(1)].tolist()))


def save_figure(figure: mpl.figure.Figure, stem: Path) -> None:
    """Write <stem>.pdf, .svg and .png; the same figure gives the same bytes.  Each file appears whole or not at all."""
    undated: dict[str, dict[str, Any]] = {
        "pdf": {"CreationDate": None, "ModDate": None},
        "svg": {"Date": None},
        "png": {"Software": None},
    }
    with house():
        figure.draw_without_rendering()  # lay out once, the same for all formats
        figure.set_layout_engine("none")
        for kind, metadata in undated.items():
            write_whole(with_suffix(stem, kind), partial(figure.savefig, format=kind, metadata=metadata))


def save_table(table: Table, stem: Path, extra: Mapping[str, Any] | None = None) -> None:
    """Write <stem>.csv, with the columns of `extra` (`Table.frame`), .md, .tex and .html."""
    texts = {"csv": table.csv(extra), "md": table.markdown(), "tex": table.latex(), "html": table.html()}
    for kind, text in texts.items():
        write_text(with_suffix(stem, kind), text)


def with_suffix(stem: Path, kind: str) -> Path:
    """<stem>.<kind>; the stem's own dots stay."""
    return stem.with_name(f"{stem.name}.{kind}")


def drawable(gap: float) -> float:
    """Return the gap (%) where it has a place on a log axis, else nan.  Below 1e-6 % it is rounding of means."""
    return gap if gap > 1e-6 else math.nan


def hidden_note(gaps: Iterable[float], what: str = "") -> list[str]:
    """Say how many of the gaps (%) have no place on a log axis; `what` they are: "validation"."""
    values = list(gaps)
    hidden = sum(math.isnan(drawable(gap)) for gap in values)
    kind = f"{what} gaps" if what else "gaps"
    return [f"{hidden} of {len(values)} {kind} are not positive: not drawn; they are in the CSV."] if hidden else []


def mark(label: str, marker: str, color: str, **look: Any) -> mpl.lines.Line2D:
    """Return a legend's entry of a marker without a line."""
    return line(label, linestyle="none", marker=marker, color=color, **look)


def line(label: str, **look: Any) -> mpl.lines.Line2D:
    """Return an entry of a legend."""
    return mpl.lines.Line2D([], [], label=label, **look)


def running_mean(values: Sequence[float], window: int) -> list[float]:
    """Means over up to so many neighbours of each value, itself in the middle; fewer at the ends."""
    half = window // 2
    around = (values[max(0, i - half) : i + half + 1] for i in range(len(values)))
    return [fmean(near) for near in around]


def batches_axis(axes: Axes, last: int) -> None:
    """Tick a training's batches, from none to the last."""
    axes.set_xlim(0, last * 1.02)
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(plain_number))
