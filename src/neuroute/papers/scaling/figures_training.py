"""Figures 7, 8 and 9 of paper `scaling`: convergence while training, and where it ends here and in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.analysis.convergence import first_failure, largest_rise
from neuroute.core.lazy import pd
from neuroute.papers.scaling import grid, roles
from neuroute.papers.scaling.cells import trainings
from neuroute.papers.scaling.curves import DEPTH_COLOUR, HERE, PAPER
from neuroute.plan.needs import Log, Need, artifact
from neuroute.rendering import style
from neuroute.rendering.columns import described
from neuroute.rendering.plots import batches_axis
from neuroute.rendering.style import Drawing, new_figure
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study

BLUE, ORANGE = DEPTH_COLOUR[42], style.RAMPS["orange"][1]


@dataclass(frozen=True)
class Variant:
    """One of the trainings that a figure compares."""

    run: str  # id, of the first seed
    label: str
    colour: str
    marker: str
    printed: float | None  # the paper's TSP100 gap of the trained model, %


@dataclass(frozen=True)
class Trace:
    """One seed's log; its curves end where the loss stops being finite, as what follows is a broken network."""

    variant: Variant
    run: str
    seed: int
    train: list[dict[str, Any]]
    validation: list[dict[str, Any]]

    @property
    def failure(self) -> int | None:
        """Batch at which the logged loss was not finite for the first time."""
        at = first_failure([float(line["loss"]) for line in self.train])
        return None if at is None else int(self.train[at]["batch"])

    def points(self, panel: str) -> list[tuple[int, float]]:
        """(batch, loss) or (batch, gap in %) that are drawn: from the first batch on, until the failure."""
        lines, key = (self.train, "loss") if panel == "loss" else (self.validation, "gap_pct")
        end = self.failure
        return [(int(x["batch"]), float(x[key])) for x in lines if x["batch"] > 0 and (end is None or x["batch"] < end)]

    @property
    def end(self) -> float | None:
        """The last gap (%); None for a broken network."""
        gaps = self.points("gap")
        return gaps[-1][1] if gaps and self.failure is None else None

    def rows(self) -> list[dict[str, Any]]:
        """Every line of the log, with those that are not drawn."""
        shared = {"side": HERE, "series": self.variant.label, "run": self.run, "seed": self.seed}
        keys = ("batch", "updates", "samples", "loss", "gap_pct")
        return [
            {"panel": panel, **shared, **{key: line.get(key) for key in keys}}
            for panel, lines in (("loss", self.train), ("gap", self.validation))
            for line in lines
        ]


def _logs(scale: Scale, names: tuple[str, ...]) -> list[Need]:
    """Of all trainings of these runs."""
    return [Log(f"{roles.PAPER}/{each}") for name in names for each in roles.seeds(scale, name)]


def _figure7_needs(scale: Scale) -> list[Need]:
    return _logs(scale, ("base_42x128", "nogate_42x128"))


@artifact("Convergence with and without gated attention", needs=_figure7_needs)
def figure7(study: Study) -> Drawing:
    """Convergence with and without gated attention."""
    variants = [
        _variant("base_42x128", "with gate", BLUE, "o", _printed(study, 7, gated_attention="yes")),
        _variant("nogate_42x128", "without gate", ORANGE, "s", _printed(study, 7, gated_attention="no")),
    ]
    notes = ["The paper draws this for (42, 128) and prints only where it ends: Table 7, TSP100, 10,000 instances."]
    return _convergence(study, variants, notes, "with and without gated attention")


def _figure8_needs(scale: Scale) -> list[Need]:
    return _logs(scale, ("base_42x128", "norezero_42x128"))


@artifact("Convergence with and without ReZero", needs=_figure8_needs)
def figure8(study: Study) -> Drawing:
    """Training with and without ReZero."""
    ends = grid.printed(study, 12, "gap_pct", [(42, 128)]).get((42, 128))
    variants = [
        _variant("base_42x128", "with ReZero", BLUE, "o", ends),
        _variant("norezero_42x128", "without ReZero", ORANGE, "s", None),
    ]
    training = grid.labelled_training(study.runs[variants[1].run])
    notes = [
        f"Without ReZero the learning rate warms up over {training.warmup_batches} batches from a factor "
        f"{training.warmup_factor:g} (Appendix B.5).",
        "The paper says that without ReZero training spikes often and finally diverges, and prints no number of it; "
        "with ReZero its (42, 128) ends at the gap of Table 12.",
    ]
    return _convergence(study, variants, notes, "with and without ReZero")


def _figure9_needs(scale: Scale) -> list[Need]:
    return _logs(scale, ("data1M_12x128", "data10M_12x128"))


@artifact("Convergence with one and ten million training samples", needs=_figure9_needs)
def figure9(study: Study) -> Drawing:
    """Convergence with one and ten million training samples."""
    variants = [
        _variant(f"data{name}_12x128", f"{name} samples", colour, marker, _printed(study, 11, train_size=size))
        for name, size, colour, marker in (("1M", 1e6, BLUE, "o"), ("10M", 1e7, ORANGE, "s"))
    ]
    seen = [
        f"{v.label}: {t.samples:,} samples × {t.epochs} epoch{'s' * (t.epochs > 1)}"
        for v in variants
        for t in [study.runs[v.run].training]
    ]
    notes = [
        f"Here, {'; '.join(seen)}. The paper gives neither steps nor epochs of these two trainings of (12, 128), and "
        "prints only where they end: Table 11, TSP100.",
    ]
    return _convergence(study, variants, notes, "with one and ten million training samples")


def _variant(name: str, label: str, colour: str, marker: str, printed: float | None) -> Variant:
    return Variant(f"{roles.PAPER}/{name}", label, colour, marker, printed)


def _printed(study: Study, table: int, **where: object) -> float | None:
    """The paper's TSP100 gap (%) of the row of a table with these parameters."""
    rows = study.published(table)
    rows = rows[(rows.metric == "gap_pct") & (rows.n == 100)]
    for key, value in where.items():
        rows = rows[rows[key] == value]
    return float(rows.value.iloc[0]) if len(rows) else None


def _convergence(study: Study, variants: Sequence[Variant], notes: Sequence[str], what: str) -> Drawing:
    """Loss and validation gap over batches, and the last gap beside the paper's."""
    seeds = [[_trace(study, v, run) for run in trainings(study, v.run)] for v in variants]
    traces = [t for group in seeds for t in group]
    figure = new_figure(height=2.9)
    loss_axes, gap_axes, end_axes = figure.subplots(1, 3, width_ratios=(1.3, 1.3, 0.7))
    last = max([1, *(int(line["batch"]) for t in traces for line in t.train)])
    for axes, panel, title, label in (
        (loss_axes, "loss", "(a) Training loss", "Cross-entropy"),
        (gap_axes, "gap", "(b) Validation gap", "Optimality gap (%)"),
    ):
        for group in seeds:
            _draw(axes, panel, group)
        _log_y(axes, [y for t in traces for _, y in t.points(panel)])
        batches_axis(axes, last)
        axes.set_xlabel("Batches")
        axes.set_ylabel(label)
        axes.set_title(title)
    figure.legend(*loss_axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    _draw_ends(end_axes, seeds)
    rows = [row for t in traces for row in t.rows()]
    rows += [row for group in seeds if len(group) > 1 for row in _mean_rows(group)]
    rows += [
        {"panel": "end", "side": PAPER, "series": v.label, "gap_pct": v.printed}
        for v in variants
        if v.printed is not None
    ]
    alt = f"Training loss and validation gap over batches {what}, and the last gap here and as published."
    told = (*notes, *_notes(study, traces))
    return Drawing(figure, pd.DataFrame(rows), told, alt, _table(study, seeds))


def _trace(study: Study, variant: Variant, run: str) -> Trace:
    train, validation = (study.log(run, kind).to_dict("records") for kind in ("train", "validation"))
    return Trace(variant, run, study.runs[run].seed, train, validation)  # type: ignore[arg-type]


def _log_y(axes: Axes, values: Sequence[float]) -> None:
    style.log_axis(axes, "y", values)
    if not any(y > 0 for y in values):
        style.empty_axes(axes, "nothing positive")


def _draw(axes: Axes, panel: str, seeds: Sequence[Trace]) -> None:
    """Each seed's curve thin and their mean strong where all are there; a cross where a failed one ends."""
    variant, curves = seeds[0].variant, [t.points(panel) for t in seeds]
    marks: dict[str, Any] = {"color": variant.colour, "label": variant.label}
    if panel == "gap":
        marks |= {"marker": variant.marker, "markersize": 3.5, "markeredgecolor": "white"}
    if len(seeds) == 1:
        axes.plot(*_with_holes(curves[0]), linewidth=0.9, **marks)
    else:
        for points in curves:
            axes.plot(*_with_holes(points), color=variant.colour, linewidth=0.6, alpha=0.5)
        mean = _mean(curves)
        marks["label"] += f", mean of {len(seeds)} seeds"
        axes.plot(*_with_holes(mean), linewidth=1.2, **marks)
    for trace, points in zip(seeds, curves, strict=True):
        if trace.failure is not None and points:
            axes.plot(*points[-1], "x", color=variant.colour, markersize=7, markeredgewidth=1.6, zorder=4)


def _mean(curves: Sequence[Sequence[tuple[int, float]]]) -> list[tuple[int, float]]:
    """The mean at each batch that every curve reaches."""
    shared = sorted(set.intersection(*({x for x, _ in points} for points in curves)))
    return [(x, float(np.mean([dict(points)[x] for points in curves]))) for x in shared]


def _mean_rows(seeds: Sequence[Trace]) -> list[dict[str, Any]]:
    """What is drawn of several seeds together."""
    shared = {"side": HERE, "series": seeds[0].variant.label, "seed": "mean"}
    rows: list[dict[str, Any]] = []
    for panel, key in (("loss", "loss"), ("gap", "gap_pct")):
        rows += [{"panel": panel, **shared, "batch": x, key: y} for x, y in _mean([t.points(panel) for t in seeds])]
    return rows


def _with_holes(points: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    """x and y; y is not a number where it has no place on a log axis."""
    return [x for x, _ in points], [y if y > 0 else np.nan for _, y in points]


def _draw_ends(axes: Axes, seeds: Sequence[Sequence[Trace]]) -> None:
    """The gap at the end of training: here with the range over seeds, and as printed."""
    values: list[float] = []
    for group, shift in zip(seeds, (-0.12, 0.12), strict=True):
        v = group[0].variant
        ends = [t.end for t in group if t.end is not None]
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
    axes.set_xticks([0, 1], ["here", "paper"])
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("Optimality gap (%)")
    axes.set_title("(c) Last gap")


def _notes(study: Study, traces: Sequence[Trace]) -> list[str]:
    dataset = roles.validation(study.scale).dataset
    notes = [
        f"Here: scale “{study.scale.name}”; validation is greedy on {described(dataset)}. Batches are what the "
        "paper calls steps.",
    ]
    gaps = [y for t in traces for _, y in t.points("gap")]
    if hidden := sum(not y > 0 for y in gaps):
        notes.append(f"{hidden} of {len(gaps)} validation gaps are not positive: not drawn; they are in the CSV.")
    for t in traces:
        if t.failure is not None:
            notes.append(
                f"Seed {t.seed} {t.variant.label}: the loss is not finite from batch {t.failure:,} on "
                "(cross: where its curves end); later gaps, of a broken network, are in the CSV only."
            )
    rises: dict[str, float] = {}
    for t in traces:
        rises[t.variant.label] = max(rises.get(t.variant.label, 0.0), _rise(t))
    every = max((int(t.train[0]["batch"]) for t in traces if t.train), default=0)
    told = ", ".join(f"{label} {_times(rise)}" for label, rise in rises.items())
    notes.append(
        f"Largest rise of a logged loss over the least before it: {told}. Each is a mean over up to {every:,} batches, "
        "which blunts spikes."
    )
    return notes


def _rise(trace: Trace) -> float:
    return largest_rise([float(line["loss"]) for line in trace.train])


def _times(value: float) -> str:
    return f"{value:.2f} times" if np.isfinite(value) else "to no finite value"


def _table(study: Study, seeds: Sequence[Sequence[Trace]]) -> Table:
    """Where the curves end; means over the seeds, with their range where there are several."""

    def over(values: Sequence[float | None], printed: float | None = None) -> Cell:
        known = [v for v in values if v is not None and np.isfinite(v)]
        if len(known) < len(values):
            return Cell("not finite", printed)
        several = len(known) > 1
        return Cell(float(np.mean(known)), printed, min(known) if several else None, max(known) if several else None)

    rows = [
        Row(
            (group[0].variant.label, len(group)),
            (
                over([t.points("loss")[-1][1] if t.failure is None and t.train else None for t in group]),
                over([_rise(t) for t in group]),
                over([t.end for t in group], group[0].variant.printed),
            ),
        )
        for group in seeds
    ]
    validation = described(roles.validation(study.scale).dataset)
    columns = (
        Column("loss_last", "Last loss", format=fixed(4)),
        Column("loss_rise", "Largest rise of the loss", "times", fixed(2)),
        Column("gap_last_pct", "Last gap", "%", at=validation),
    )
    return Table("Ends of the curves", ("Training", "Seeds"), columns, tuple(rows))
