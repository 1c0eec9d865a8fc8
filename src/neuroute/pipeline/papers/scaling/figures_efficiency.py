"""Figures 3, 4 and 6 of paper `scaling`: gap against data, compute and time, here and as printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from neuroute.analysis import power_laws as laws
from neuroute.analysis.contrasts import slope
from neuroute.core.lazy import mpl
from neuroute.pipeline.papers.scaling import curves
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.papers.scaling.curves import (
    HERE,
    PAPER,
    Curve,
    beam_curve,
    beam_needs,
    measured_beams,
    model_curve,
    printed_gflops,
    printed_values,
    quoted_values,
)
from neuroute.pipeline.papers.scaling.paper import SIX, Shape
from neuroute.pipeline.plan.needs import Log, artifact
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import behind, mean_cell, model_here
from neuroute.pipeline.rendering.columns import described
from neuroute.pipeline.rendering.notes import draw_table, notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import Drawing
from neuroute.pipeline.rendering.table import HERE as MODEL_HERE
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, fixed

NO_ORDER = "no order: intervals overlap"
Shifted = tuple[laws.ShiftedPowerLaw, laws.ShiftedPowerLaw]  # by the relative error, and by that of the gap itself


@artifact(
    "Data efficiency: gap against training samples",
    needs=lambda scale: [Log(run) for shape in SIX for run in scaling.learning_curve(scale, shape)],
    printed_files=("quoted",),
)
def figure3(study: Study) -> Drawing:
    """Draw the gap while training, and the exponents of its power laws beside the printed ones."""
    figure = style.new_figure(height=3.1)
    first, second = figure.subplots(1, 2, width_ratios=(1.25, 1))
    every = []
    for shape in SIX:
        curve = model_curve(HERE, "a", shape, _learning_curve(study, scaling.learning_curve(study.scale, shape)))
        curve.draw(first, "log-log")
        every.append(curve)
    curves.frame(first, (p for curve in every for p in curve.points), "Training samples", "Validation gap (%)")
    first.legend(loc="best")
    first.set_title(curves.side_title(study, HERE))
    in_print = quoted_values(study, "alpha_s")
    _draw_exponents(second, every, in_print)
    rows = [row for curve in every for row in curve.rows()]
    rows += [
        {"panel": "b", "side": PAPER, "series": shape.name, **shape._asdict(), "alpha_printed": value}
        for shape, value in in_print.items()
    ]
    count, trouble = scaling.validation(study.scale).dataset.count, curves.trouble_notes(every)
    texts = notes(study, count=count, points=_points_note(study), trouble=trouble)
    alt = "Validation gap over training samples with power-law fits, and the exponents beside the printed ones."
    fits = curves.fits_table("Power laws in training samples", "α_s", every, in_print)
    return Drawing(figure, rows, texts, alt, fits)


@artifact(
    "Figure 3's exponents, of every training",
    needs=lambda scale: [Log(run, all_seeds=True) for shape in SIX for run in scaling.learning_curve(scale, shape)],
    printed_files=("quoted",),
)
def table_figure3(study: Study) -> Table:
    """Exponents of log-log fits, averaged over trainings."""
    in_print, rows = quoted_values(study, "alpha_s"), []
    dataset = scaling.validation(study.scale).dataset
    for shape in SIX:
        run = scaling.run_id(shape)
        of_seeds = zip(*map(study.trainings, scaling.learning_curve(study.scale, shape)), strict=False)
        exponents = [exponent for trainings in of_seeds for exponent in _exponent(study, trainings)]
        study.note_seeds(run, len(exponents))
        cell = mean_cell(exponents, in_print.get(shape))
        if exponents:  # of instances nothing is known: the log keeps mean gaps
            cell = replace(cell, behind=behind(study, run, exponents, None, dataset))
        rows.append(Row((shape.name, model_here(study, run)), (cell,)))
    columns = [Column("alpha_s", "α_s", at=described(dataset))]
    return draw_table(study, ("Model", MODEL_HERE), columns, rows, count=dataset.count, points=_points_note(study))


def _learning_curve(study: Study, trainings: Sequence[str]) -> list[tuple[float, float]]:
    """Samples and validation gaps (%): at the ends of several trainings, or along a single one."""
    logs = [study.log(training, "validation").to_dict("records") for training in trainings]
    lines = [line for log in logs for line in (log[-1:] if len(logs) > 1 else log)]
    return [(float(line["samples"]), float(line["gap_pct"])) for line in lines if line["samples"] > 0]


def _points_note(study: Study) -> str:
    """Say what the points of a learning curve are."""
    if parts := study.scale[scaling.ScalingScale].parts:
        count = len(parts) + 1
        return f"Each point is the end of a training of its own on so many samples: {count} for each model and seed."
    return "The points are of one training, whose rate falls meanwhile."


def _exponent(study: Study, trainings: Sequence[str]) -> list[float]:
    """By how much the validation gap falls with samples; nothing where no law fits."""
    points = _learning_curve(study, trainings)
    try:
        return [laws.fit([x for x, _ in points], [gap for _, gap in points], "log-log").alpha]
    except laws.FitError:
        return []


def _draw_exponents(axes: mpl.axes.Axes, every: Sequence[Curve], in_print: Mapping[Shape, float]) -> None:
    """Draw the exponents of each model on both scales beside the printed one."""
    hollow: dict[str, Any] = {"markerfacecolor": "white", "markersize": 7, "markeredgewidth": 1}
    bounds = [_interval(curve) for curve in every]
    for i, (shape, curve) in enumerate(zip(SIX, every, strict=True)):
        if (range_here := bounds[i]) is not None:
            axes.plot(range_here, [i, i], color=curve.colour, linewidth=0.9)
        for scale, look in (("linear", hollow), ("log-log", {"markersize": 4})):
            law = curve.fits[scale]  # type: ignore[index]
            if isinstance(law, laws.PowerLaw):
                axes.plot(law.alpha, i, "o", color=curve.colour, **look)
        if shape in in_print:
            axes.plot(in_print[shape], i, "x", color=style.INK, markersize=6, markeredgewidth=1.3)
    axes.set_yticks(range(len(every)), [curve.name for curve in every])
    axes.set_ylim(len(every) - 0.5, -0.5)
    axes.set_ylabel("Model (depth, width)")
    axes.set_xlabel("Exponent α$_s$")
    intervals = [each for each in bounds if each is not None]
    is_ordered = len(intervals) == len(bounds) and max(low for low, _ in intervals) > min(high for _, high in intervals)
    axes.set_title("Exponents: here and as printed" + ("" if is_ordered else f"\n{NO_ORDER}"))
    axes.margins(x=0.1)
    handles = [
        style.mark("here, log-log", "o", style.GREY),
        style.mark("here, linear", "o", style.GREY, markerfacecolor="white"),
        style.mark("paper", "x", style.INK),
    ]
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16)}
    axes.legend(handles=handles, **place, ncols=3, handletextpad=0.1, columnspacing=1)


def _interval(curve: Curve) -> tuple[float, float] | None:
    """The 95 % interval (Student's t) of a log-log fit's exponent; None where fewer than three points leave none."""
    positive = [point for point in curve.points if min(point) > 0]
    bounds = slope([x for x, _ in positive], [gap for _, gap in positive]).interval() if len(positive) > 2 else None
    return None if bounds is None else (-bounds[1], -bounds[0])


@artifact(
    "Compute efficiency: gap against inference FLOPs",
    needs=lambda scale: beam_needs(scale, SIX),
    printed_files=("quoted", "table1", "table18"),
)
def figure4(study: Study) -> Drawing:
    """Draw the gaps of beam searches over their FLOPs, of wider and of deeper models."""
    figure = style.new_figure(height=5.2)
    greedy = printed_gflops(study)

    def curve(side: str, panel: str, shape: Shape) -> Curve:
        cost = measured_beams(study, shape, "gflops_paper") if side == HERE else lambda beam: beam * greedy[shape]
        return beam_curve(study, side, panel, shape, cost, resample=True)

    panels = {
        "(a) Wider, at depth 6": lambda side: [curve(side, "a", Shape(6, width)) for width in scaling.WIDTHS],
        "(b) Deeper, at width 128": lambda side: [curve(side, "b", Shape(depth, 128)) for depth in scaling.DEPTHS],
    }
    label = "GFLOPs per solution (beam × greedy)"
    every = curves.draw_panels(figure.subplots(2, 2), panels, "log-log", label, partial(curves.side_title, study))
    every.sort(key=lambda curve: curves.SIDES.index(curve.side))
    unique = {(curve.side, curve.name): curve for curve in every}  # both panels have the smallest model
    in_print = quoted_values(study, "alpha_c")
    texts = notes(
        study,
        compute=_printed_compute_note(in_print, unique),
        trouble=curves.trouble_notes(list(unique.values())),
    )
    alt = "Gap over inference GFLOPs under beam search with power-law fits, by width and by depth; here and published."
    fits = curves.fits_table("Power laws in inference compute", "α_c", unique.values(), in_print)
    return Drawing(figure, [row for curve in every for row in curve.rows()], texts, alt, fits)


def _printed_compute_note(in_print: Mapping[Shape, float], unique: Mapping[tuple[str, str], Curve]) -> str:
    """The printed exponents against what rounding allows of a refit of Table 18."""
    parts = []
    for shape, value in in_print.items():
        if curve := unique.get((PAPER, shape.name)):
            low, high = laws.rounding_interval(curve.x, curve.gaps, 0.00005)
            verdict = "inside" if low <= value <= high else "outside"
            parts.append(f"{curve.name} {value:.2f}, {verdict} the {low:.2f}–{high:.2f} that its rounding allows")
    return (
        f"Printed α_c against log-log refits of Table 18: {'; '.join(parts)}. What does not fall inside does not "
        "follow from the printed gaps."
    )


@artifact(
    "Gap against inference time",
    needs=lambda scale: beam_needs(scale, scaling.GRID),
    printed_files=("table12", "table18"),
)
def figure6(study: Study) -> Drawing:
    """Draw the gaps of beam searches over their time, with shifted power laws (Eq. 7)."""
    figure = style.new_figure(height=5.0)
    greedy = printed_values(study, 12, metric="time_s")
    counts = {HERE: scaling.searched(study.scale).dataset.count, PAPER: int(study.published(18).n_instances.max())}

    def curve(side: str, shape: Shape) -> Curve:
        cost = measured_beams(study, shape, "time_s", 60) if side == HERE else lambda beam: beam * greedy[shape] / 60
        return beam_curve(study, side, "", shape, cost, resample=False)

    rows: list[dict[str, Any]] = []
    trouble: list[str] = []
    fitted: dict[tuple[str, Shape], Shifted] = {}
    panels = figure.subplots(2, len(scaling.WIDTHS), sharex="row", sharey="row")
    for row, side in zip(panels, curves.SIDES, strict=True):
        every, failed = {shape: curve(side, shape) for shape in scaling.GRID}, []
        for shape, each in every.items():
            law = None
            try:
                law, linear = laws.fit_shifted(each.x, each.gaps, relative=True), laws.fit_shifted(each.x, each.gaps)
                fitted[side, shape] = law, linear
            except laws.FitError as error:
                failed.append(f"{each.name} ({error})")
            _draw_shifted(row[scaling.WIDTHS.index(shape.width)], shape, each, law)
            values = {"alpha_t": law.alpha, "beta_t": law.beta, "gamma": law.gamma} if law else {}
            values |= {"beta_t_linear": linear.beta} if law else {}
            rows += [
                {"side": side, **shape._asdict(), "beam": beam, "minutes": x, "gap_pct": gap, **values}
                for beam, (x, gap) in zip(each.extra["beam"], each.points, strict=True)
            ]
        points = [point for each in every.values() for point in each.points]
        for axes, width in zip(row, scaling.WIDTHS, strict=True):
            curves.frame(axes, points, f"Minutes for {counts[side]:,} instances")
            axes.set_title(f"{curves.side_title(study, side, 'time assumed')}\nwidth {width}")
            axes.set_ylabel("Optimality gap (%)" if axes is row[0] else "")
            low, high = axes.get_xlim()
            if high > 20 * low:  # decades alone: the panels are narrow
                axes.xaxis.set_major_locator(mpl.ticker.LogLocator(10))
        if failed:
            trouble.append(f"No {side} fit for {'; '.join(failed)}.")
        if hidden := sum(not gap > 0 for _, gap in points):
            trouble.append(
                f"{hidden} {side} gaps are not positive: neither drawn nor in the relative fits; see the CSV."
            )
    depths = [style.mark(str(depth), "o", shade) for depth, shade in curves.DEPTH_COLOUR.items()]
    figure.legend(handles=depths, title="Depth", loc="outside lower center", ncols=len(depths))
    alt = "Gap over inference time under beam search with shifted power laws for twelve models; here and published."
    return Drawing(figure, rows, notes(study, trouble=trouble), alt, _shifted_table(fitted))


def _draw_shifted(axes: mpl.axes.Axes, shape: Shape, curve: Curve, law: laws.ShiftedPowerLaw | None) -> None:
    shade = curves.DEPTH_COLOUR[shape.depth]
    look: dict[str, Any] = {"markersize": 3.6, "markeredgecolor": "white", "markeredgewidth": 0.4, "zorder": 3}
    positive = np.array([point for point in curve.points if point[1] > 0]).reshape(-1, 2)
    axes.plot(*positive.T, curves.WIDTH_MARKER[shape.width], color=shade, **look)
    if law:
        t = np.geomspace(min(curve.x), max(curve.x), 60)
        axes.plot(t, law(t), "--", color=shade, linewidth=0.9)


def _shifted_table(fitted: Mapping[tuple[str, Shape], Shifted]) -> Table:
    """beta_t and gamma of Eq. 7 for each model, measured and refitted from the paper."""
    rows, columns = [], []
    for shape in scaling.GRID:
        here, paper = (fitted.get((side, shape)) for side in curves.SIDES)
        cells = [
            Cell(getattr(here[i], key) if here else None, getattr(paper[i], key) if paper else None)
            for i in (0, 1)
            for key in ("beta", "gamma")
        ]
        rows += [Row((shape.name,), tuple(cells))] if here or paper else []
    for scale, what in (("relative", "relative error"), ("linear", "gap")):
        group = f"Least squares of the {what}"
        columns.append(Column(f"beta_{scale}", "β_t", "", fixed(2), group))
        columns.append(Column(f"gamma_{scale}", "γ", "%", lambda value: f"{value:.2g}", group))
    return Table("Shifted power laws in time", ("Model",), tuple(columns), tuple(rows))
