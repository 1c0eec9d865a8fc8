"""Curves of the gap with their power laws: fitted on both scales, drawn, and told in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import cycle
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis import power_laws as laws
from neuroute.analysis.intervals import Interval, percentile_interval, resampled_gaps
from neuroute.core.lazy import mpl
from neuroute.evaluation.flops import solution_paper
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.papers.scaling.paper import WIDTHS, Shape, run_id
from neuroute.pipeline.papers.scaling.tables import DecoderOnly
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, tested
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import printed_numbers
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, fixed
from neuroute.specs.objects import Decoding, Labels, beam_search

DEPTH_COLOUR = dict(zip(scaling.DEPTHS, style.ramp("blue", len(scaling.DEPTHS)), strict=True))
WIDTH_COLOUR = dict(zip(WIDTHS, style.ramp("orange", len(WIDTHS)), strict=True))
WIDTH_MARKER = dict(zip(WIDTHS, style.MARKERS, strict=False))
HERE, PAPER = SIDES = (style.MEASURED, style.PUBLISHED)
LEGEND = 0.3  # of a panel's height, added above its points
FAR = 4.0  # a fit that many times beyond all points may leave the frame
SCALES: tuple[laws.Scale, ...] = ("linear", "log-log")


def near(line: Iterable[tuple[float, float]], points: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Keep of a fit's line (x, gap) what lies not far beyond the positive gaps of the points."""
    gaps = [gap for _, gap in points if gap > 0]
    return [(x, y) for x, y in line if gaps and min(gaps) / FAR < y < max(gaps) * FAR]


def colour(shape: Shape) -> str:
    """Grey for the model that both ways of scaling start from, blue for deeper, orange for wider."""
    if shape == scaling.GRID[0]:
        return style.GREY
    return DEPTH_COLOUR[shape.depth] if shape.width == WIDTHS[0] else WIDTH_COLOUR[shape.width]


@dataclass(frozen=True)
class Looks:
    """Colours of depths and of widths, and markers of widths: the paper's, and those that a scale adds."""

    depth: Mapping[int, str]
    width: Mapping[int, str]
    marker: Mapping[int, str]

    @classmethod
    def of(cls, shapes: Iterable[Shape]) -> Looks:
        depths = sorted({shape.depth for shape in shapes} - set(scaling.DEPTHS))
        widths = sorted({shape.width for shape in shapes} - set(WIDTHS))
        shades = style.ramp("cool-warm", max(2, len(depths) + len(widths)))
        return cls(
            DEPTH_COLOUR | dict(zip(depths, shades, strict=False)),
            WIDTH_COLOUR | dict(zip(widths, reversed(shades), strict=False)),
            WIDTH_MARKER | dict(zip(widths, cycle(style.MARKERS[len(WIDTHS) :]), strict=False)),
        )


def face(shape: Shape, colour: str) -> dict[str, Any]:
    """How a model's marker is filled: of one that is not the paper's it is hollow."""
    hollow = {"markerfacecolor": "white", "markeredgecolor": colour}
    return hollow if scaling.is_added(shape) else {"markeredgecolor": "white"}


@dataclass(frozen=True)
class Curve:
    """Gaps (%) over x, which one power law is to describe."""

    side: str  # HERE or PAPER
    panel: str
    name: str
    points: Sequence[tuple[float, float]]  # (x, gap)
    shapes: Sequence[Shape]  # the model of each point
    colour: str = style.INK
    colours: Sequence[str] = ()  # one for each point; empty: the curve's
    markers: Sequence[str] = ()  # one for each point; empty: those of the paper's widths
    samples: NDArray[np.float64] | None = None  # (resamples, points) bootstrap gaps
    extra: dict[str, Sequence[Any]] = field(default_factory=dict)  # further columns of the plotted points

    @property
    def has_added(self) -> bool:
        """Whether it has models that are not the paper's."""
        return any(map(scaling.is_added, self.shapes))

    @property
    def x(self) -> list[float]:
        return [x for x, _ in self.points]

    @property
    def gaps(self) -> list[float]:
        return [gap for _, gap in self.points]

    @cached_property
    def fits(self) -> dict[laws.Scale, laws.PowerLaw | laws.FitError]:
        return {scale: self._fit(scale) for scale in SCALES}

    def _fit(self, scale: laws.Scale) -> laws.PowerLaw | laws.FitError:
        try:
            return laws.fit(self.x, self.gaps, scale)
        except laws.FitError as error:
            return error

    @cached_property
    def intervals(self) -> dict[laws.Scale, Interval]:
        if self.samples is None:
            return {}
        return {scale: percentile_interval(laws.resampled_exponents(self.x, self.samples, scale)) for scale in SCALES}

    def label(self, scale: laws.Scale) -> str:
        """Legend entry: D=6: α 0.35 [0.31, 0.40]"""
        law, interval = self.fits[scale], self.intervals.get(scale)
        if isinstance(law, laws.FitError):
            return f"{self.name}: no fit"
        has_interval = interval is not None and not math.isnan(interval.low)
        text = f"{law.alpha:.2f}" + (f" [{interval.low:.2f}, {interval.high:.2f}]" if interval and has_interval else "")
        return f"{self.name}: α {text.replace('-', '−')}"

    def ends(self, scale: laws.Scale) -> list[tuple[float, float]]:
        """Where the fit's line begins and ends, for axes to hold it."""
        law = self.fits[scale]
        if not isinstance(law, laws.PowerLaw):
            return []
        return near(((x, float(law(x))) for x in (min(self.x), max(self.x))), self.points)

    def draw(self, axes: mpl.axes.Axes, scale: laws.Scale) -> None:
        """The positive points, and the fit on that scale as a dashed line over the points' range."""
        colours = self.colours or [self.colour] * len(self.points)
        every = self.markers or [WIDTH_MARKER[shape.width] for shape in self.shapes]
        for (x, y), shape, marker, colour in zip(self.points, self.shapes, every, colours, strict=True):
            if y > 0:
                axes.plot(x, y, marker, color=colour, zorder=3, **face(shape, colour))
        law, markers, dashes = self.fits[scale], {*every}, ":" if self.has_added else "--"
        if isinstance(law, laws.PowerLaw):
            line = np.geomspace(min(self.x), max(self.x), 60)
            axes.plot(line, law(line), dashes, color=self.colour, linewidth=1.1, zorder=2)
        look: dict[str, Any] = {"linestyle": dashes, "color": self.colour, "markeredgecolor": "white"}
        marker = "" if len(markers) > 1 else next(iter(markers), "o")
        axes.plot([], [], marker=marker, label=self.label(scale), **look)

    def rows(self) -> list[dict[str, Any]]:
        """The points, with what was fitted to them."""
        fitted: dict[str, Any] = {}
        for scale, law in self.fits.items():
            name, interval = scale.replace("-", ""), self.intervals.get(scale)
            fitted |= {f"{key}_{name}": getattr(law, key, None) for key in ("alpha", "x_c", "r2", "mape")}
            fitted |= {f"alpha_{name}_{end}": getattr(interval, end, None) for end in ("low", "high")}
        about = {"panel": self.panel, "side": self.side, "series": self.name}
        return [
            about
            | shape._asdict()
            | {"x": x, "gap_pct": y, **{key: values[i] for key, values in self.extra.items()}}
            | fitted
            for i, (shape, (x, y)) in enumerate(zip(self.shapes, self.points, strict=True))
        ]


def model_curve(side: str, panel: str, shape: Shape, points: Sequence[tuple[float, float]], **more: Any) -> Curve:
    """Join points of one model."""
    return Curve(side, panel, shape.name, points, [shape] * len(points), colour(shape), **more)


def draw_panels(
    panels: Any,
    curves_of: Mapping[str, Callable[[str], list[Curve]]],
    scale: laws.Scale,
    x_label: str,
    title_of: Callable[[str], str],
) -> list[Curve]:
    """Draw a row of panels for each title: the curves of a side, measured and published.  Returns them all."""
    curves = []
    for row, (title, of_side) in zip(panels, curves_of.items(), strict=True):
        for axes, side in zip(row, SIDES, strict=True):
            curves_here = of_side(side)
            for curve in curves_here:
                curve.draw(axes, scale)
            frame(axes, (point for curve in curves_here for point in (*curve.points, *curve.ends(scale))), x_label)
            axes.set_title(f"{title}\n{title_of(side)}")
            if curves_here:
                low, high = axes.get_ylim()
                axes.set_ylim(low, high * (high / low) ** LEGEND if low > 0 else high)
                axes.legend(loc="best", title=quality(curves_here, scale), fontsize=7, title_fontsize=7)
            curves += curves_here
    return curves


def mean_quality(curves: Iterable[Curve], scale: laws.Scale) -> tuple[float, float] | None:
    """R² and the mean absolute percentage error of the paper's curves' fits on a scale, each a mean over the curves."""
    fits = (curve.fits[scale] for curve in curves if not curve.has_added)
    good = [law for law in fits if isinstance(law, laws.PowerLaw)]
    return (float(np.mean([law.r2 for law in good])), float(np.mean([law.mape for law in good]))) if good else None


def quality(curves: Sequence[Curve], scale: laws.Scale) -> str:
    """Say in a panel how good its fits are: R² 0.794, error 34.4 %."""
    values, mean = mean_quality(curves, scale), "mean " if sum(not curve.has_added for curve in curves) > 1 else ""
    if values is None:
        return "no fit"
    return f"{mean}R² {values[0]:.3f}, error {values[1]:.1f} %".replace("-", "−")


def fits_table(title: str, symbol: str, curves: Iterable[Curve], in_print: Mapping[Shape, float]) -> Table:
    """The exponents and qualities of all curves: measured, and beneath the same fit of the paper's printed gaps.

    in_print: the exponents that the paper states, by model.
    """
    curve_of = {(curve.side, curve.name): curve for curve in curves}
    exponents_in_print = {shape.name: value for shape, value in in_print.items()}

    def value(side: str, name: str, scale: laws.Scale, key: str) -> float | None:
        curve = curve_of.get((side, name))
        return getattr(curve.fits[scale], key, None) if curve else None

    def row(name: str) -> Row:
        cells = []
        for scale in SCALES:
            here = curve_of.get((HERE, name))
            interval = here.intervals.get(scale) if here else None
            low, high = (getattr(interval, end, None) for end in ("low", "high"))
            alpha, refitted = (value(side, name, scale, "alpha") for side in SIDES)
            cells.append(Cell(alpha, refitted, low, high))
        cells.append(Cell(published=exponents_in_print.get(name)))
        cells += [Cell(value(HERE, name, "linear", key), value(PAPER, name, "linear", key)) for key in ("r2", "mape")]
        return Row((name,), tuple(cells))

    exponents, quality = f"{symbol} by least squares", "Linear-scale fit"
    columns = (
        Column("alpha_linear", "Linear scale", "", fixed(2), exponents),
        Column("alpha_loglog", "Log-log scale", "", fixed(2), exponents),
        Column("alpha_printed", "As printed", "", fixed(2), exponents),
        Column("r2", "R²", "", fixed(3), quality),
        Column("mape", "Mean error", "%", fixed(1), quality),
    )
    return Table(title, ("Curve",), columns, tuple(row(name) for name in dict.fromkeys(name for _, name in curve_of)))


def trouble_notes(curves: Sequence[Curve]) -> list[str]:
    """What could not be fitted or drawn, and why."""
    notes = []
    for side in SIDES:
        curves_of_side = [curve for curve in curves if curve.side == side]
        gaps = [gap for curve in curves_of_side for gap in curve.gaps]
        if hidden := sum(not gap > 0 for gap in gaps):
            notes.append(
                f"{hidden} of {len(gaps)} {side} gaps are not positive: not drawn on the log axis and left out of the "
                "log-log fits; they are in the CSV."
            )
        failed: dict[str, list[str]] = {}
        lost, exact = [], []
        for curve in curves_of_side:
            law, interval = curve.fits["linear"], curve.intervals.get("log-log")
            if isinstance(law, laws.FitError):
                failed.setdefault(str(law), []).append(curve.name)
            if interval and 0 < interval.failed < interval.resamples:
                lost.append(f"{curve.name} {interval.failed}/{interval.resamples}")
            if sum(gap > 0 for gap in curve.gaps) == 2 and isinstance(curve.fits["log-log"], laws.PowerLaw):
                exact.append(curve.name)
        notes += [f"No {side} fit for {', '.join(names)}: {why}." for why, names in failed.items()]
        if lost:
            notes.append(f"Bootstrap resamples without a log-log fit, left out of the intervals: {', '.join(lost)}.")
        if exact:
            notes.append(f"Two positive {side} points only, which any power law meets exactly: {', '.join(exact)}.")
    return notes


def width_marks(looks: Looks) -> list[Any]:
    """Entries of a legend: which marker means which width."""
    return [style.mark(_name(width, WIDTHS), marker, style.GREY) for width, marker in looks.marker.items()]


def _name(number: int, of_paper: Sequence[int]) -> str:
    return str(number) if number in of_paper else f"{number} (added)"


def added_note(shapes: Sequence[Shape]) -> list[str]:
    """Say which models are not the paper's, and what they are left out of."""
    names = ", ".join(shape.name for shape in shapes)
    return [
        f"Hollow: models that this scale adds to the paper's grid: {names}. What stands beside printed numbers is of "
        "the paper's twelve alone; dotted fits, “with added”, have these models, too."
    ] * bool(shapes)


def shape_legend(axes: mpl.axes.Axes, looks: Looks) -> None:
    """Colour means depth, marker means width."""
    depths = [style.mark(_name(depth, scaling.DEPTHS), "o", shade) for depth, shade in looks.depth.items()]
    widths = width_marks(looks)
    titles = [style.line(title, linestyle="none") for title in ("Depth", "Width")]
    handles = [titles[0], *depths, titles[1], *widths]
    axes.legend(handles=handles, loc="upper right", handletextpad=0.2, handlelength=1.2)


def side_title(study: Study, side: str, name_of_paper: str = "printed, refitted") -> str:
    here = study.scale[scaling.ScalingScale].sizes[100]
    return f"Here: TSP{here}, scale “{study.scale.name}”" if side == HERE else f"Paper: TSP100, {name_of_paper}"


def frame(
    axes: mpl.axes.Axes, points: Iterable[tuple[float, float]], x_label: str, y_label: str = "Optimality gap (%)"
) -> None:
    """Log axes around points (x, gap %)."""
    x, gaps = np.array(list(points), float).reshape(-1, 2).T
    style.log_axis(axes, "x", x)
    style.log_axis(axes, "y", gaps)
    axes.set(xlabel=x_label, ylabel=y_label)
    if not (gaps > 0).any():
        style.empty_axes(axes, "no positive gap to draw" if len(gaps) else style.NOT_MEASURED)


Points = dict[Shape, tuple[float, float]]  # model -> (x, gap %)


def printed_values(study: Study, table: int | str, **where: object) -> dict[Shape, float]:
    """Read the paper's value for each model, of the rows whose columns hold `where`."""
    rows = printed_numbers(study, table, **where)
    columns = zip(rows.depth, rows.width, rows.value, strict=True)
    return {Shape(int(depth), int(width)): float(value) for depth, width, value in columns if depth > 0}


@dataclass(frozen=True)
class Models:
    """The depth x width grid: its models, and the test set of their greedy gaps."""

    shapes: Sequence[Shape]
    test: Labels

    @classmethod
    def tsp(cls, scale: Scale) -> Self:
        """The paper's twelve, and those that the scale adds."""
        return cls(scaling.grid(scale), scaling.reference(scale, 100))

    @property
    def of_paper(self) -> Self:
        """Without those that the scale adds."""
        return replace(self, shapes=[shape for shape in self.shapes if not scaling.is_added(shape)])

    @property
    def added(self) -> list[Shape]:
        """Those that the scale adds."""
        return [shape for shape in self.shapes if scaling.is_added(shape)]

    def lines(self, along: Literal["depth", "width"]) -> list[list[Shape]]:
        """The models of each width with their depths growing, or of each depth with their widths growing."""
        fixed = 1 if along == "depth" else 0
        return [[s for s in self.shapes if s[fixed] == value] for value in sorted({s[fixed] for s in self.shapes})]

    def points(self, study: Study) -> dict[str, Points]:
        """Side -> model -> (parameters in millions; gap in %) of the models that have both."""
        dataset, here = self.test.dataset, {}
        for shape in self.shapes:
            run = run_id(shape)
            x, gap = study.value("parameters", run, dataset), study.gap(run, dataset)
            if x is not None and gap is not None:
                here[shape] = (x / 1e6, gap)
        gaps = printed_values(study, 12, metric="gap_pct")
        x_of = printed_values(study, 1, metric="params_m")
        return {HERE: here, PAPER: {shape: (x_of[shape], gaps[shape]) for shape in self.shapes if shape in gaps}}

    def curve(
        self, study: Study, side: str, panel: str, name: str, points: Points, shapes: Sequence[Shape], **look: Any
    ) -> Curve:
        """Join the points of these models, with bootstrap samples where they are measured."""
        shapes_there = [shape for shape in shapes if shape in points]
        samples = self.samples(study, shapes_there) if side == HERE else None
        look["markers"] = [self.looks.marker[shape.width] for shape in shapes_there]
        return Curve(
            side, panel, name, [points[shape] for shape in shapes_there], shapes_there, samples=samples, **look
        )

    @cached_property
    def looks(self) -> Looks:
        """How they are drawn."""
        return Looks.of(self.shapes)

    def samples(self, study: Study, shapes: Iterable[Shape]) -> NDArray[np.float64] | None:
        """Resample the greedy gaps of these models (resamples, models)."""
        return resample_gaps(study, ((run_id(shape), Decoding()) for shape in shapes), self.test)


def printed_gflops(study: Study) -> dict[Shape, float]:
    """GFLOPs of a greedy TSP100 solution of the paper's models, by its convention."""
    heads = printed_values(study, 1, metric="heads")
    return {s: solution_paper(DecoderOnly(*s, int(heads[s])).decision, 100) / 1e9 for s in heads}


def resample_gaps(study: Study, cells: Iterable[tuple[str, Decoding]], test: Labels) -> NDArray[np.float64] | None:
    """Compute paired bootstrap gaps (resamples, cells) of runs; None when a cell has no lengths."""
    lengths = [study.lengths(run, test.dataset, decoding) for run, decoding in cells]
    pairs = [pair for pair in lengths if pair is not None]
    if not pairs or len(pairs) < len(lengths):
        return None
    return resampled_gaps(np.stack([unrounded for unrounded, _ in pairs]), pairs[0][1])


def beats_larger(points: Points) -> tuple[list[Shape], list[Shape]]:
    """Models with a smaller gap than some model of more parameters; and those that do so by being deeper than it."""

    def wins(a: Shape, b: Shape) -> bool:
        return points[b][0] > points[a][0] and points[b][1] > points[a][1]

    every = [a for a in points if any(wins(a, b) for b in points)]
    return every, [a for a in every if any(wins(a, b) and a.depth > b.depth for b in points)]


def beam_needs(scale: Scale, shapes: Iterable[Shape]) -> Iterator[Need]:
    """Of curves of these models over all beams."""
    beams = map(beam_search, scale[scaling.ScalingScale].beams.values())
    return tested(map(run_id, shapes), scaling.beam_test(scale), *beams)


def measured_beams(study: Study, shape: Shape, metric: str, unit: float = 1) -> Callable[[int], float | None]:
    """Return the cost of a beam width here, as the records have it, in a unit of so many."""

    def cost(beam: int) -> float | None:
        value = study.value(metric, run_id(shape), scaling.beam_test(study.scale).dataset, beam_search(beam))
        return None if value is None else value / unit

    return cost


def beam_curve(
    study: Study, side: str, panel: str, shape: Shape, cost: Callable[[int], float | None], *, resample: bool
) -> Curve:
    """Join the gaps over the `cost` of all beams of Table 18; its argument is the width at that side's size."""
    test, beams, points = scaling.beam_test(study.scale), [], []
    for role, here in study.scale[scaling.ScalingScale].beams.items():
        beam = here if side == HERE else role
        if side == HERE:
            gap = study.gap(run_id(shape), test.dataset, beam_search(beam))
        else:
            gap = printed_values(study, 18, metric="gap_pct", beam=role).get(shape)
        x = cost(beam)
        if gap is not None and x is not None and x > 0:
            beams.append(beam)
            points.append((x, gap))
    cells = ((run_id(shape), beam_search(beam)) for beam in beams)
    samples = resample_gaps(study, cells, test) if resample and side == HERE else None
    return model_curve(side, panel, shape, points, samples=samples, extra={"beam": beams})
