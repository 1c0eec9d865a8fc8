"""Curves of the gap with their power laws: fitted on both scales, drawn, and told in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.analysis import power_laws as laws
from neuroute.core.lazy import mpl
from neuroute.papers.scaling.grid import DEPTHS, WIDTHS, Shape
from neuroute.rendering import style
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from neuroute.rendering.study import Study

DEPTH_COLOUR = dict(zip(DEPTHS, style.ramp("blue", len(DEPTHS)), strict=True))
WIDTH_COLOUR = dict(zip(WIDTHS, style.ramp("orange", len(WIDTHS)), strict=True))
WIDTH_MARKER = dict(zip(WIDTHS, style.MARKERS, strict=False))
HERE, PAPER = style.MEASURED, style.PUBLISHED
SCALES: tuple[laws.Scale, ...] = ("linear", "log-log")
BOOTSTRAP = (
    f"Brackets: 95 % bootstrap intervals over test instances, the same resamples for every model ({laws.RESAMPLES:,}); "
    "they do not cover the spread between training seeds."
)


def colour(shape: Shape) -> str:
    """Grey for the model that both ways of scaling start from, blue for deeper, orange for wider."""
    depth, width = shape
    if shape == (DEPTHS[0], WIDTHS[0]):
        return style.GREY
    return DEPTH_COLOUR[depth] if width == WIDTHS[0] else WIDTH_COLOUR[width]


def shape_name(shape: Shape) -> str:
    return f"({shape[0]}, {shape[1]})"


@dataclass(frozen=True)
class Curve:
    """Gaps (%) over x, which one power law is to describe."""

    side: str  # HERE or PAPER
    panel: str
    name: str
    x: Sequence[float]
    gaps: Sequence[float]
    colour: str = style.INK
    markers: Sequence[str] = ()  # one for each point; empty: circles
    shapes: Sequence[Shape] = ()  # the model of each point
    samples: NDArray[np.float64] | None = None  # (resamples, points) bootstrap gaps
    colours: Sequence[str] = ()  # one for each point; empty: the curve's
    extra: dict[str, Sequence[Any]] = field(default_factory=dict)  # further columns of the plotted points

    @cached_property
    def fits(self) -> dict[laws.Scale, laws.PowerLaw | laws.FitError]:
        found: dict[laws.Scale, laws.PowerLaw | laws.FitError] = {}
        for scale in SCALES:
            try:
                found[scale] = laws.fit(self.x, self.gaps, scale)
            except laws.FitError as error:
                found[scale] = error
        return found

    @cached_property
    def intervals(self) -> dict[laws.Scale, laws.Interval]:
        if self.samples is None:
            return {}
        return {scale: laws.bootstrap_exponent(self.x, self.samples, scale) for scale in self.fits}

    def exponent(self, scale: laws.Scale) -> str:
        """0.35 [0.31, 0.40], or "no fit"."""
        law = self.fits[scale]
        if isinstance(law, laws.FitError):
            return "no fit"
        interval = self.intervals.get(scale)
        known = interval is not None and not math.isnan(interval.low)
        text = f"{law.alpha:.2f}" + (f" [{interval.low:.2f}, {interval.high:.2f}]" if interval and known else "")
        return text.replace("-", "−")

    def label(self, symbol: str, scale: laws.Scale) -> str:
        """Legend entry: D=6: α 0.35 [0.31, 0.40]"""
        text = self.exponent(scale)
        return f"{self.name}: {text}" if text == "no fit" else f"{self.name}: {symbol} {text}"

    def draw(self, axes: Axes, scale: laws.Scale, label: str | None = None) -> None:
        """The positive points, and the fit on that scale as a dashed line over the points' range."""
        for i, (x, y) in enumerate(zip(self.x, self.gaps, strict=True)):
            if y > 0:
                marker = self.markers[i] if self.markers else "o"
                face = self.colours[i] if self.colours else self.colour
                axes.plot(x, y, marker, color=face, markeredgecolor="white", zorder=3)
        law = self.fits[scale]
        marker = self.markers[0] if len(set(self.markers)) == 1 else "o" if not self.markers else ""
        if isinstance(law, laws.PowerLaw):
            line = np.geomspace(min(self.x), max(self.x), 60)
            axes.plot(line, law(line), "--", color=self.colour, linewidth=1.1, zorder=2)
        if label:
            axes.plot([], [], linestyle="--", marker=marker, color=self.colour, markeredgecolor="white", label=label)

    def rows(self) -> list[dict[str, Any]]:
        """The points, with what was fitted to them."""
        fitted: dict[str, Any] = {}
        for scale, law in self.fits.items():
            name = scale.replace("-", "")
            good = isinstance(law, laws.PowerLaw)
            fitted |= {f"{key}_{name}": getattr(law, key) if good else None for key in ("alpha", "x_c", "r2", "mape")}
            interval = self.intervals.get(scale)
            fitted |= {f"alpha_{name}_low": interval.low if interval else None}
            fitted |= {f"alpha_{name}_high": interval.high if interval else None}
        return [
            {
                "panel": self.panel,
                "side": self.side,
                "series": self.name,
                "depth": self.shapes[i][0] if self.shapes else None,
                "width": self.shapes[i][1] if self.shapes else None,
                "x": x,
                "gap_pct": y,
                **{key: values[i] for key, values in self.extra.items()},
                **fitted,
            }
            for i, (x, y) in enumerate(zip(self.x, self.gaps, strict=True))
        ]


def fits_table(title: str, symbol: str, curves: Sequence[Curve], printed: Mapping[str, float]) -> Table:
    """The exponents and qualities of all curves: measured, and beneath the same fit of the paper's printed gaps.

    printed: the exponents that the paper states, by curve.
    """
    found = {(c.side, c.name): c for c in curves}
    names = list(dict.fromkeys(c.name for c in curves))

    def value(side: str, name: str, scale: laws.Scale, key: str) -> float | None:
        law = found[side, name].fits[scale] if (side, name) in found else None
        return getattr(law, key) if isinstance(law, laws.PowerLaw) else None

    def row(name: str) -> Row:
        cells = []
        for scale in SCALES:
            curve = found.get((HERE, name))
            interval = curve.intervals.get(scale) if curve else None
            low, high = (interval.low, interval.high) if interval else (None, None)
            cells.append(Cell(value(HERE, name, scale, "alpha"), value(PAPER, name, scale, "alpha"), low, high))
        cells.append(Cell(published=printed.get(name)))
        cells += [Cell(value(HERE, name, "linear", k), value(PAPER, name, "linear", k)) for k in ("r2", "mape")]
        return Row((name,), tuple(cells))

    two, one = fixed(2), fixed(1)
    columns = (
        Column("alpha_linear", "Linear scale", "", two, f"{symbol} by least squares"),
        Column("alpha_loglog", "Log-log scale", "", two, f"{symbol} by least squares"),
        Column("alpha_printed", "As printed", "", two, f"{symbol} by least squares"),
        Column("r2", "R²", "", fixed(3), "Linear-scale fit"),
        Column("mape", "Mean error", "%", one, "Linear-scale fit"),
    )
    return Table(title, ("Curve",), columns, tuple(row(name) for name in names))


def trouble_notes(curves: Sequence[Curve]) -> list[str]:
    """What could not be fitted or drawn, and why."""
    notes = []
    for side in (HERE, PAPER):
        chosen = [c for c in curves if c.side == side]
        hidden = sum(1 for c in chosen for y in c.gaps if not y > 0)
        total = sum(len(c.gaps) for c in chosen)
        if hidden:
            notes.append(
                f"{hidden} of {total} {side} gaps are not positive: not drawn on the log axis and left out of the "
                "log-log fits; they are in the CSV."
            )
        failed: dict[str, list[str]] = {}
        for c in chosen:
            if isinstance(c.fits["linear"], laws.FitError):
                failed.setdefault(str(c.fits["linear"]), []).append(c.name)
        notes += [f"No {side} fit for {', '.join(names)}: {why}." for why, names in failed.items()]
        lost = []
        for c in chosen:
            interval = c.intervals.get("log-log")
            if interval and 0 < interval.failed < interval.resamples:
                lost.append(f"{c.name} {interval.failed}/{interval.resamples}")
        if lost:
            notes.append(f"Bootstrap resamples without a log-log fit, left out of the intervals: {', '.join(lost)}.")
        two = [
            c.name for c in chosen if sum(y > 0 for y in c.gaps) == 2 and isinstance(c.fits["log-log"], laws.PowerLaw)
        ]
        if two:
            notes.append(f"Two positive {side} points only, which any power law meets exactly: {', '.join(two)}.")
    return notes


def shape_legend(axes: Axes) -> None:
    """Colour means depth, marker means width."""
    blank = mpl.lines.Line2D([], [], linestyle="none", label="Depth")
    depths = [
        mpl.lines.Line2D([], [], linestyle="none", marker="o", color=c, label=str(d)) for d, c in DEPTH_COLOUR.items()
    ]
    wide = mpl.lines.Line2D([], [], linestyle="none", label="Width")
    widths = [
        mpl.lines.Line2D([], [], linestyle="none", marker=m, color=style.GREY, label=str(w))
        for w, m in WIDTH_MARKER.items()
    ]
    axes.legend(handles=[blank, *depths, wide, *widths], loc="upper right", handletextpad=0.2, handlelength=1.2)


def side_title(study: Study, side: str, printed: str = "printed numbers, refitted") -> str:
    return f"Here: scale “{study.scale.name}”" if side == HERE else f"Paper: {printed}"


def frame(axes: Axes, curves: Sequence[Curve], x_label: str, y_label: str = "Optimality gap (%)") -> None:
    """Log axes around the points of these curves."""
    style.log_axis(axes, "x", [x for c in curves for x in c.x])
    gaps = [y for c in curves for y in c.gaps]
    style.log_axis(axes, "y", gaps)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if not any(y > 0 for y in gaps):
        style.empty_axes(axes, "no positive gap to draw")
