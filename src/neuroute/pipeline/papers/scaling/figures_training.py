"""Figures 7, 8 and 9 of paper `scaling`: convergence while training, and where it ends here and in the paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.papers.scaling.curves import DEPTH_COLOUR, HERE, PAPER
from neuroute.pipeline.papers.scaling.paper import run_id
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import printed_gap, printed_numbers
from neuroute.pipeline.rendering.render import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import Drawing
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, described, fixed

Points = list[tuple[int, float]]  # (batch, loss or gap)


@dataclass(frozen=True)
class Trace:
    """One seed's log; its curves end where the loss stops being finite, as what follows is a broken network."""

    run: str
    seed: int
    train: list[dict[str, Any]]
    validation: list[dict[str, Any]]

    @classmethod
    def read(cls, study: Study, run: str) -> Trace:
        train, validation = (study.log(run, kind).to_dict("records") for kind in ("train", "validation"))
        return cls(run, study.runs[run].seed, train, validation)  # type: ignore[arg-type]

    @property
    def losses(self) -> list[float]:
        return [float(line["loss"]) for line in self.train]

    @property
    def peaks(self) -> list[float]:
        """Largest loss of a batch since the line before; of logs without it the line's mean."""
        return [float(line.get("loss_max", line["loss"])) for line in self.train]

    @property
    def failure(self) -> int | None:
        """Batch at which the logged loss was not finite for the first time."""
        return next((int(line["batch"]) for line in self.train if not math.isfinite(line["loss"])), None)

    def points(self, panel: str) -> Points:
        """(batch, loss), (batch, peak) or (batch, gap in %) that are drawn: from batch 1 on, until the failure."""
        lines = self.validation if panel == "gap" else self.train
        values = {"loss": self.losses, "peak": self.peaks}.get(panel) or [float(x["gap_pct"]) for x in lines]
        end = self.failure
        return [
            (int(x["batch"]), value)
            for x, value in zip(lines, values, strict=True)
            if x["batch"] > 0 and (end is None or x["batch"] < end)
        ]

    def end(self, panel: str) -> float | None:
        """The last loss or gap (%); None for a broken network."""
        points = self.points(panel)
        return points[-1][1] if points and self.failure is None else None


@dataclass(frozen=True)
class Variant:
    """One of the trainings that a figure compares."""

    label: str
    printed: float | None  # the paper's TSP100 gap of the trained model, %
    seeds: list[Trace]
    colour: str
    marker: str

    def rows(self) -> list[dict[str, Any]]:
        """Every line of the logs, with those that are not drawn."""
        keys = ("batch", "updates", "samples", "loss", "loss_max", "gap_pct")
        return [
            {"panel": panel, "side": HERE, "series": self.label, "run": trace.run, "seed": trace.seed}
            | {key: line.get(key) for key in keys}
            for trace in self.seeds
            for panel, lines in (("loss", trace.train), ("gap", trace.validation))
            for line in lines
        ]

    def mean(self, panel: str) -> Points:
        """The mean over the seeds at each batch that every curve reaches."""
        curves = [dict(trace.points(panel)) for trace in self.seeds]
        shared = sorted(set.intersection(*map(set, curves)))
        return [(x, float(np.mean([curve[x] for curve in curves]))) for x in shared]


LOOKS = ((DEPTH_COLOUR[42], "o"), (style.RAMPS["orange"][1], "s"))  # of the first training and of the second
GATED = (run_id(scaling.DEEPEST), run_id(scaling.DEEPEST, "nogate"))
REZERO = (run_id(scaling.DEEPEST), run_id(scaling.DEEPEST, "norezero"))
SAMPLES = (run_id(scaling.DATA, "data1M"), run_id(scaling.DATA, "data10M"))


def _logs_of(runs: Iterable[str]) -> Callable[[Scale], list[Need]]:
    return lambda scale: [Log(run, all_seeds=True) for run in runs]


@artifact("Convergence with and without gated attention", needs=_logs_of(GATED), printed_files=("table7",))
def figure7(study: Study) -> Drawing:
    gated = {"with gate": "yes", "without gate": "no"}
    labels = {name: printed_gap(printed_numbers(study, 7, gated_attention=gate), 100) for name, gate in gated.items()}
    return _draw_convergence(study, GATED, labels, "with and without gated attention")


@artifact("Convergence with and without ReZero", needs=_logs_of(REZERO), printed_files=("table12",))
def figure8(study: Study) -> Drawing:
    in_print = printed_gap(printed_numbers(study, 12, **scaling.DEEPEST._asdict()), 100)
    labels = {"with ReZero": in_print, "without ReZero": None}
    base, without = (study.runs[run].training for run in REZERO)
    return _draw_convergence(study, REZERO, labels, "with and without ReZero", base=base, without=without)


@artifact("Convergence with few and with many training samples", needs=_logs_of(SAMPLES), printed_files=("table11",))
def figure9(study: Study) -> Drawing:
    trainings = [study.runs[run].training for run in SAMPLES]
    names = [f"{t.samples:,} samples (paper: {m}M)" for m, t in zip((1, 10), trainings, strict=True)]
    gaps = [printed_gap(printed_numbers(study, 11, train_size=m * 1_000_000), 100) for m in (1, 10)]
    labels = dict(zip(names, gaps, strict=True))
    amounts = "; ".join(f"{t.samples:,} samples × {t.epochs} epoch{'s' * (t.epochs > 1)}" for t in trainings)
    return _draw_convergence(study, SAMPLES, labels, "with one and ten million training samples", amounts=amounts)


def _draw_convergence(
    study: Study, runs: Sequence[str], labels: dict[str, float | None], what: str, **values: object
) -> Drawing:
    """Loss and validation gap over batches, and the last gap beside the paper's.

    labels: the name of each run with the paper's last gap.
    """
    seeds = ([Trace.read(study, each) for each in study.trainings(run)] for run in runs)
    variants = [Variant(*each, traces, *look) for each, traces, look in zip(labels.items(), seeds, LOOKS, strict=True)]
    figure = style.new_figure(height=2.9)
    loss_axes, gap_axes, end_axes = figure.subplots(1, 3, width_ratios=(1.3, 1.3, 0.7))
    here = scaling.validation(study.scale).dataset.n
    last = max([1, *(int(line["batch"]) for v in variants for t in v.seeds for line in t.train)])
    for axes, panel, title, label in (
        (loss_axes, "loss", "(a) Training loss", "Cross-entropy"),
        (gap_axes, "gap", f"(b) Validation gap, TSP{here}", "Optimality gap (%)"),
    ):
        for variant in variants:
            _draw(axes, panel, variant)
        lines = (panel, "peak") if panel == "loss" else (panel,)
        _log_y(axes, [y for v in variants for t in v.seeds for each in lines for _, y in t.points(each)])
        style.batches_axis(axes, last)
        axes.set(xlabel="Batches", ylabel=label, title=title)
    handles, _ = loss_axes.get_legend_handles_labels()
    if any(len(variant.seeds) > 1 for variant in variants):
        handles.append(style.line("thin: each seed", color=style.GREY, linewidth=0.6))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    _draw_ends(end_axes, variants, here)
    rows = [row for v in variants for row in v.rows()]
    rows += [
        {"panel": panel, "side": HERE, "series": v.label, "seed": "mean", "batch": x, key: y}
        for v in variants
        for panel, key in (("loss", "loss"), ("gap", "gap_pct"))
        for x, y in (v.mean(panel) if len(v.seeds) > 1 else ())
    ]
    in_print = {name: gap for name, gap in labels.items() if gap is not None}
    rows += [{"panel": "end", "side": PAPER, "series": name, "gap_pct": gap} for name, gap in in_print.items()]
    alt = f"Training loss and validation gap over batches {what}, and the last gap here and as published."
    return Drawing(figure, rows, _notes(study, variants, **values), alt, _table(study, variants))


def _log_y(axes: mpl.axes.Axes, values: Sequence[float]) -> None:
    style.log_axis(axes, "y", values)
    if not any(y > 0 for y in values):
        style.empty_axes(axes, "nothing positive")


def _draw(axes: mpl.axes.Axes, panel: str, variant: Variant) -> None:
    """Each seed's curve and, where all are there, their mean; of losses the running mean, and pale their peaks.

    A cross stands where a failed one ends.
    """

    def plot(points: Points, **look: Any) -> None:
        axes.plot([x for x, _ in points], [style.drawable(y) for _, y in points], color=variant.colour, **look)

    curves = [trace.points(panel) for trace in variant.seeds]
    marks = {"marker": variant.marker, "markersize": 3.5, "markeredgecolor": "white"} if panel == "gap" else {}
    mean, label = variant.mean(panel), variant.label
    if len(curves) > 1:
        label += f", mean of {len(curves)} seeds"
    if len(curves) > 1 or panel == "loss":
        for points in [trace.points("peak") for trace in variant.seeds] if panel == "loss" else curves:
            plot(points, linewidth=0.6, alpha=0.25 if panel == "loss" else 0.5)
    if panel == "loss":
        smooth = style.running_mean([y for _, y in mean], _window(len(mean)))
        mean = [(x, y) for (x, _), y in zip(mean, smooth, strict=True)]
    plot(mean, linewidth=1.2, label=label, **marks)
    for trace, points in zip(variant.seeds, curves, strict=True):
        if trace.failure is not None and points:
            axes.plot(*points[-1], "x", color=variant.colour, markersize=7, markeredgewidth=1.6, zorder=4)


def _window(count: int) -> int:
    """How many of so many logged losses a running mean is over: a twentieth."""
    return 1 + 2 * (count // 40)


def _draw_ends(axes: mpl.axes.Axes, variants: Sequence[Variant], here: int) -> None:
    """The gap at the end of training: here, on so many nodes, with the range over seeds, and as printed."""
    values: list[float] = []
    for v, shift in zip(variants, (-0.12, 0.12), strict=True):
        ends = [end for trace in v.seeds if (end := trace.end("gap")) is not None]
        look: dict[str, Any] = {"color": v.colour, "marker": v.marker, "markersize": 5.5, "markeredgecolor": "white"}
        if ends and (middle := float(np.mean(ends))) > 0:
            if (low := min(ends)) > 0:
                axes.plot([shift, shift], [low, max(ends)], color=v.colour, linewidth=1)
            axes.plot(shift, middle, linestyle="none", **look)
            values += [*ends, middle]
        if v.printed is not None:
            axes.plot(1 + shift, v.printed, linestyle="none", **look)
            values.append(v.printed)
    _log_y(axes, values)
    axes.set_xlim(-0.5, 1.5)
    axes.set_xticks([0, 1], [f"here,\nTSP{here}", "paper,\nTSP100"])
    axes.grid(visible=False, axis="x")
    axes.set(ylabel="Optimality gap (%)", title="(c) Last gap")


def _notes(study: Study, variants: Sequence[Variant], **values: object) -> tuple[str, ...]:
    traces = [(v.label, trace) for v in variants for trace in v.seeds]
    gaps = [y for _, trace in traces for _, y in trace.points("gap")]
    rises = {v.label: max(0.0, *(largest_rise(trace.losses, trace.peaks) for trace in v.seeds)) for v in variants}
    words = {name: f"{rise:.2f} times" if np.isfinite(rise) else "to no finite value" for name, rise in rises.items()}
    every = max((int(trace.train[0]["batch"]) for _, trace in traces if trace.train), default=0)
    over = f"up to {every:,} batches" if every > 1 else "a single batch"
    window = _window(max((len(trace.train) for _, trace in traces), default=0))
    smooth = f" over {window} of them" if window > 1 else ""
    has_maxima = all("loss_max" in line for _, trace in traces for line in trace.train)
    failures = [
        f"Seed {trace.seed} {label}: the loss is not finite from batch {trace.failure:,} on "
        "(cross: where its curves end); later gaps, of a broken network, are in the CSV only."
        for label, trace in traces
        if trace.failure is not None
    ]
    pale = "the largest mean loss of one batch among these" if has_maxima else "the losses; these logs keep no maxima"
    return notes(
        study,
        scale=study.scale,
        validation=described(scaling.validation(study.scale).dataset),
        hidden=style.hidden_note(gaps, "validation"),
        failures=failures,
        smooth=smooth,
        over=over,
        pale=pale,
        kind="maximum" if has_maxima else "loss",
        rises=", ".join(map(" ".join, words.items())),
        **values,
    )


def _table(study: Study, variants: Sequence[Variant]) -> Table:
    """Where the curves end; means over the seeds, with their range where there are several."""

    def over(values: Sequence[float | None], published: float | None = None) -> Cell:
        finite = [value for value in values if value is not None and np.isfinite(value)]
        if len(finite) < len(values):
            return Cell("not finite", published)
        bounds = (min(finite), max(finite)) if len(finite) > 1 else ()
        return Cell(float(np.mean(finite)), published, *bounds)

    rows = []
    for v in variants:
        losses, gaps = ([trace.end(panel) for trace in v.seeds] for panel in ("loss", "gap"))
        rises = [largest_rise(trace.losses, trace.peaks) for trace in v.seeds]
        rows.append(Row((v.label, len(v.seeds)), (over(losses), over(rises), over(gaps, v.printed))))
    columns = (
        Column("loss_last", "Last loss", format=fixed(4)),
        Column("loss_rise", "Largest rise of the loss", "times", fixed(2)),
        Column("gap_last_pct", "Last gap", "%", at=described(scaling.validation(study.scale).dataset)),
    )
    return Table("Ends of the curves", ("Training", "Seeds"), columns, tuple(rows))


def largest_rise(losses: Sequence[float], peaks: Sequence[float] | None = None) -> float:
    """The largest ratio of a loss to the least before it; 1 when none rises.  Infinite when a loss is not finite.

    peaks: what rises instead, such as the largest of the losses that each is the mean of.
    """
    least, rise = math.inf, 1.0
    for loss, peak in zip(losses, peaks or losses, strict=True):
        if not (math.isfinite(loss) and math.isfinite(peak)):
            return math.inf
        if 0 < least < math.inf:
            rise = max(rise, peak / least)
        least = min(least, loss)
    return rise
