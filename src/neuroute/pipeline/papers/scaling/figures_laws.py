"""Figures 1 to 6 of paper `scaling`: gap against parameters, shape, data, compute and time, here and as printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from neuroute.analysis import power_laws as laws
from neuroute.analysis.contrasts import slope
from neuroute.analysis.intervals import Interval
from neuroute.core.lazy import mpl
from neuroute.pipeline.papers.scaling import curves
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.papers.scaling.claims import directions
from neuroute.pipeline.papers.scaling.curves import HERE, PAPER, Curve, Models, Points, model_curve, printed_values
from neuroute.pipeline.papers.scaling.paper import SIX, Shape
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import behind, mean_cell, model_here, quoted
from neuroute.pipeline.rendering.render import draw_table, notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import Drawing
from neuroute.pipeline.rendering.table import HERE as MODEL_HERE
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, described, fixed

WITH_ADDED = "with added"  # fits of all models, where a scale adds some to the paper's
MILLIONS = "Decoder parameters (millions)"


Fitted = dict[str, tuple[float, Interval | None]]  # name -> value, and what is known of its spread


def grid_needs(scale: Scale) -> Iterator[Need]:
    """Of figures of the twelve models' greedy gaps."""
    return tested(map(scaling.run_id, scaling.grid(scale)), scaling.reference(scale, 100))


@artifact("Decoder parameters against optimality gap", needs=grid_needs, printed_files=("table1", "table12"))
def figure1(study: Study) -> Drawing:
    """Draw the twelve models, and circle those that beat a larger one by being deeper."""
    figure = style.new_figure(height=2.9)
    rows, counted = [], []
    panels, models = figure.subplots(1, 2), Models.tsp(study.scale)
    for axes, (side, points) in zip(panels, models.points(study).items(), strict=True):
        of_paper = {shape: point for shape, point in points.items() if not scaling.is_added(shape)}
        every, deeper = curves.beats_larger(of_paper)
        of_added = [[shape for shape in shapes if scaling.is_added(shape)] for shapes in curves.beats_larger(points)]
        for shape, (x, y) in points.items():
            rows.append(
                {"side": side, **shape._asdict(), "parameters_millions": x, "gap_pct": y}
                | {"beats_larger": shape in (*every, *of_added[0]), "circled": shape in (*deeper, *of_added[1])}
            )
            shade = models.looks.depth[shape.depth]
            look: dict[str, Any] = {"color": shade, "markersize": 6} | curves.face(shape, shade)
            ring = {"markersize": 12, "markerfacecolor": "none", "markeredgecolor": style.GREEN, "markeredgewidth": 1.2}
            if y > 0:
                axes.plot(x, y, models.looks.marker[shape.width], **look)
            if y > 0 and shape in (*deeper, *of_added[1]):
                axes.plot(x, y, "o", **ring)
        curves.frame(axes, points.values(), MILLIONS)
        axes.set_title(curves.side_title(study, side, "as printed"))
        if hidden := [shape.name for shape, (_, y) in points.items() if y <= 0]:
            counted.append(f"Gaps that are not positive have no place on the log axis: {side} {', '.join(hidden)}.")
        counted.append(
            f"{side.capitalize()}: {len(every)} of {len(of_paper)} models beat a larger one; {len(deeper)} of them are "
            "deeper than a larger one that they beat (circled)."
        )
    curves.shape_legend(panels[1], models.looks)
    texts = notes(study, counted=counted, added=curves.added_note(models.added))
    alt = "Scatter of optimality gap over decoder parameters for twelve models, here and as published."
    return Drawing(figure, rows, texts, alt)


@artifact(
    "Power laws of the gap in parameters: all models, by width, by depth",
    needs=grid_needs,
    printed_files=("table1", "table12"),
)
def figure2(study: Study) -> Drawing:
    figure = style.new_figure(height=7.4)
    models = Models.tsp(study.scale)
    sides = models.points(study)

    def of_line(side: str, panel: str, name: str, line: Sequence[scaling.Shape], **look: Any) -> list[Curve]:
        """Fit the paper's models of a line and, where the scale adds some, all of them."""
        in_paper, every = [shape for shape in line if not scaling.is_added(shape)], []
        for label, shapes in {name: in_paper, f"{name}, with added": line if len(in_paper) < len(line) else []}.items():
            there = [shape for shape in shapes if shape in sides[side]]
            if there and (label == name or (side == HERE and len(there) > 1)):
                shades = {"colours": [models.looks.depth[shape.depth] for shape in there]} if panel == "a" else {}
                every.append(models.curve(study, side, panel, label, sides[side], there, **look, **shades))
        return every

    def wider(side: str) -> list[Curve]:
        lines = {on[0].depth: on for on in models.lines("width")}
        return [c for d, on in lines.items() for c in of_line(side, "b", f"D={d}", on, colour=models.looks.depth[d])]

    def deeper(side: str) -> list[Curve]:
        lines = {on[0].width: on for on in models.lines("depth")}
        return [c for w, on in lines.items() for c in of_line(side, "c", f"W={w}", on, colour=models.looks.width[w])]

    panels: dict[str, Callable[[str], list[Curve]]] = {
        "(a) All models": partial(of_line, panel="a", name="all", line=models.shapes),
        "(b) Wider, at fixed depth": wider,
        "(c) Deeper, at fixed width": deeper,
    }
    every = curves.draw_panels(figure.subplots(3, 2), panels, "linear", MILLIONS, partial(curves.side_title, study))
    texts = notes(
        study,
        qualities=[_quality(title, side, every) for title in panels for side in curves.SIDES],
        held_out=[_held_out(side, sides[side]) for side in curves.SIDES],
        added=curves.added_note(models.added),
        trouble=curves.trouble_notes(every),
    )
    alt = "Six panels of gap over parameters with power-law fits: all models, by width, by depth; here and published."
    fits = curves.fits_table("Power laws in parameters", "α", every, {})
    return Drawing(figure, [row for curve in every for row in curve.rows()], texts, alt, fits)


def _quality(title: str, side: str, every: Sequence[Curve]) -> str:
    """Say how well the curves of a panel are fitted; its title begins with its letter."""
    panel = [curve for curve in every if (f"({curve.panel})", curve.side) == (title[:3], side)]
    values = curves.mean_quality(panel, "linear")
    if values is None:
        return f"{title}, {side}: no fit to judge."
    r2, mape = values
    return f"{title}, {side}: mean R² {r2:.3f}, mean absolute percentage error {mape:.2f} % (linear-scale fits)."


def _held_out(side: str, points: Points) -> str:
    """Say what a law in depth and width, fitted to all models of the paper but the largest, predicts for this one."""
    there = {shape: points[shape] for shape in scaling.GRID if shape in points}
    largest = max(there, key=lambda shape: there[shape][0], default=None)
    if len(there) < len(scaling.GRID) or largest is None:
        return f"Held out, {side}: nothing, as the grid lacks models."
    rows = directions({shape: x for shape, (x, _) in there.items()})
    others = [i for i, shape in enumerate(there) if shape != largest]
    gaps = [there[shape][1] for shape in there if shape != largest]
    try:
        low, middle, high = laws.predict(rows[others], gaps, rows[list(there).index(largest)])
    except laws.FitError as error:
        return f"Held out, {side}: no law ({error})."
    return (
        f"Held out, {side}: a law in depth and width of the eleven smaller models predicts {middle:.3g} % "
        f"[{low:.3g}, {high:.3g}] for {largest.name}; it has {there[largest][1]:.3g} %."
    )


@artifact("Gap by parameters and depth-to-width ratio", needs=grid_needs, printed_files=("quoted", "table1", "table12"))
def figure5(study: Study) -> Drawing:
    """Draw lines of constant depth-to-width ratio, as Eq. 6 has them."""
    in_print = {"β_n": quoted(study, "beta_n"), "β_a": quoted(study, "beta_a")}
    figure, models = style.new_figure(height=3.9), Models.tsp(study.scale)
    rows: list[dict[str, Any]] = []
    trouble: list[str] = []
    fitted: dict[str, Fitted] = {}
    for axes, (side, points) in zip(figure.subplots(1, 2), models.points(study).items(), strict=True):
        sizes: dict[Shape, tuple[int, int]] = {}  # here of the model that plays the role, where its network has one
        for shape in points:
            here = study.runs[scaling.run_id(shape)].network.arguments if side == HERE else shape._asdict()
            if here.keys() >= {"depth", "width"}:
                sizes[shape] = here["depth"], here["width"]
        points = {shape: points[shape] for shape in sizes}
        ratio = {shape: round(depth / width, 6) for shape, (depth, width) in sizes.items()}
        levels = sorted(set(ratio.values()))
        shade = dict(zip(levels, style.ramp("cool-warm", len(levels)), strict=True))
        for shape, (x, y) in points.items():
            if y > 0:
                colour = shade[ratio[shape]]
                look: dict[str, Any] = {"markersize": 5.5, "zorder": 3} | curves.face(shape, colour)
                axes.plot(x, y, models.looks.marker[shape.width], color=colour, **look)
        axes.set_title(curves.side_title(study, side))
        if hidden := sum(y <= 0 for _, y in points.values()):
            trouble.append(f"{hidden} of {len(points)} {side} gaps are not positive: neither drawn nor in the fit.")
        law = None
        try:
            law, fitted[side] = _fit_shape(study, models.of_paper, side, points, sizes, ratio)
            if models.added and side == HERE:
                _, fitted[WITH_ADDED] = _fit_shape(study, models, side, points, sizes, ratio)
        except laws.FitError as error:
            trouble.append(f"{side.capitalize()}: no fit ({error}).")
        inside = list(points.values())  # what the axes are to hold
        if law:
            line = np.geomspace(min(x for x, _ in inside), max(x for x, _ in inside), 40)
            for level in levels:
                axes.plot(line, law(line, level), color=shade[level], linewidth=1)
                inside += curves.near(zip(line, law(line, level), strict=True), points.values())
        curves.frame(axes, inside, MILLIONS)
        if law and law.dropped:
            count = law.dropped + law.points
            trouble.append(f"{law.dropped} of {count} {side} gaps are not positive: not in the fit.")
        handles = [style.line(f"{a:.3f}", color=shade[a], linewidth=2) for a in reversed(levels)]
        place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": 4}
        axes.legend(handles=handles, **place, title="A = D / W", columnspacing=1.0)
        exponents = {"beta_n": law.beta_u if law else None, "beta_a": law.beta_v if law else None}
        rows += [
            {"side": side, **shape._asdict(), "x": x, "ratio": ratio[shape], "gap_pct": y, **exponents}
            for shape, (x, y) in points.items()
        ]
    texts = notes(study, trouble=trouble, added=curves.added_note(models.added))
    marks = curves.width_marks(models.looks)
    figure.legend(handles=marks, title="Width", loc="outside lower center", ncols=len(marks))
    alt = "Gap over parameters with fitted lines of constant depth-to-width ratio; here and published."
    return Drawing(figure, rows, texts, alt, _shape_table(fitted, in_print))


def _fit_shape(
    study: Study,
    models: Models,
    side: str,
    points: Points,
    sizes: Mapping[scaling.Shape, tuple[int, int]],
    ratio: Mapping[scaling.Shape, float],
) -> tuple[laws.BivariateLaw, Fitted]:
    """Fit Eq. 6 directly to these models, and tell all exponents of Eq. 5 and 6.  Raises FitError."""
    points = {shape: point for shape, point in points.items() if shape in models.shapes}
    x, gaps = ([point[i] for point in points.values()] for i in (0, 1))
    a, here = [ratio[shape] for shape in points], [sizes[shape] for shape in points]
    law = laws.fit_bivariate(x, a, gaps)
    by_size = laws.fit_bivariate([depth for depth, _ in here], [width for _, width in here], gaps)
    beta_n, beta_a = laws.size_and_shape_exponents(by_size.beta_u, by_size.beta_v)
    samples = models.samples(study, points) if side == HERE else None
    spread = laws.bootstrap_bivariate(x, a, samples) if samples is not None else {}
    return law, {
        "β_n": (law.beta_u, spread.get("beta_u")),
        "β_a": (law.beta_v, spread.get("beta_v")),
        "Factor of doubling N": (2**-law.beta_u, None),
        "Factor of doubling A": (2**-law.beta_v, None),
        "R²": (law.r2, None),
        "Mean error (%)": (law.mape, None),
        "β_d (Eq. 5)": (by_size.beta_u, None),
        "β_w (Eq. 5)": (by_size.beta_v, None),
        "β_n = (β_d + β_w) / 3": (beta_n, None),
        "β_a = (2 β_d − β_w) / 3": (beta_a, None),
    }


def _shape_table(fitted: Mapping[str, Fitted], in_print: Mapping[str, float]) -> Table:
    """Fitted values, measured and refitted from the paper, beside those that it prints."""
    here, paper = fitted.get(HERE, {}), fitted.get(PAPER, {})
    rows, with_added = [], fitted.get(WITH_ADDED)
    for name in here | paper:
        (value, interval), (refitted, _) = (values.get(name, (None, None)) for values in (here, paper))
        low, high = (interval.low, interval.high) if interval else (None, None)
        cells = [Cell(value, refitted, low, high), Cell(published=in_print.get(name))]
        rows.append(Row((name,), (*cells, *([Cell(with_added[name][0])] if with_added else []))))
    columns = [Column("value", "Fitted", format=fixed(3)), Column("printed", "As printed", format=fixed(3))]
    columns += [Column("with_added", "With added models", format=fixed(3))] if with_added else []
    return Table("Gap(N, A) and Gap(W, D)", ("Quantity",), tuple(columns), tuple(rows))


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
    in_print = printed_values(study, "quoted", quantity="alpha_s")
    hollow: dict[str, Any] = {"markerfacecolor": "white", "markersize": 7, "markeredgewidth": 1}
    bounds = [_interval(curve) for curve in every]
    for i, (shape, curve) in enumerate(zip(SIX, every, strict=True)):
        if (range_here := bounds[i]) is not None:
            second.plot(range_here, [i, i], color=curve.colour, linewidth=0.9)
        for scale, look in (("linear", hollow), ("log-log", {"markersize": 4})):
            law = curve.fits[scale]  # type: ignore[index]
            if isinstance(law, laws.PowerLaw):
                second.plot(law.alpha, i, "o", color=curve.colour, **look)
        if shape in in_print:
            second.plot(in_print[shape], i, "x", color=style.INK, markersize=6, markeredgewidth=1.3)
    second.set_yticks(range(len(every)), [curve.name for curve in every])
    second.set(ylim=(len(every) - 0.5, -0.5), ylabel="Model (depth, width)", xlabel="Exponent α$_s$")
    intervals = [each for each in bounds if each is not None]
    is_ordered = len(intervals) == len(bounds) and max(low for low, _ in intervals) > min(high for _, high in intervals)
    second.set_title("Exponents: here and as printed" + ("" if is_ordered else "\nno order: intervals overlap"))
    second.margins(x=0.1)
    handles = [
        style.mark("here, log-log", "o", style.GREY),
        style.mark("here, linear", "o", style.GREY, markerfacecolor="white"),
        style.mark("paper", "x", style.INK),
    ]
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16)}
    second.legend(handles=handles, **place, ncols=3, handletextpad=0.1, columnspacing=1)
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
    in_print, rows = printed_values(study, "quoted", quantity="alpha_s"), []
    dataset = scaling.validation(study.scale).dataset
    for shape in SIX:
        run = scaling.run_id(shape)
        of_seeds = zip(*map(study.trainings, scaling.learning_curve(study.scale, shape)), strict=False)
        fits = [model_curve(HERE, "", shape, _learning_curve(study, each)).fits["log-log"] for each in of_seeds]
        exponents = [law.alpha for law in fits if isinstance(law, laws.PowerLaw)]
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


def _interval(curve: Curve) -> tuple[float, float] | None:
    """The 95 % interval (Student's t) of a log-log fit's exponent; None where fewer than three points leave none."""
    positive = [point for point in curve.points if min(point) > 0]
    bounds = slope([x for x, _ in positive], [gap for _, gap in positive]).interval() if len(positive) > 2 else None
    return None if bounds is None else (-bounds[1], -bounds[0])


@artifact(
    "Compute efficiency: gap against inference FLOPs",
    needs=lambda scale: curves.beam_needs(scale, SIX),
    printed_files=("quoted", "table1", "table18"),
)
def figure4(study: Study) -> Drawing:
    """Draw the gaps of beam searches over their FLOPs, of wider and of deeper models."""
    figure = style.new_figure(height=5.2)
    greedy = curves.printed_gflops(study)

    def curve(side: str, panel: str, shape: Shape) -> Curve:
        cost = (
            curves.measured_beams(study, shape, "gflops_paper") if side == HERE else lambda beam: beam * greedy[shape]
        )
        return curves.beam_curve(study, side, panel, shape, cost, resample=True)

    panels = {
        "(a) Wider, at depth 6": lambda side: [curve(side, "a", Shape(6, width)) for width in scaling.WIDTHS],
        "(b) Deeper, at width 128": lambda side: [curve(side, "b", Shape(depth, 128)) for depth in scaling.DEPTHS],
    }
    label = "GFLOPs per solution (beam × greedy)"
    every = curves.draw_panels(figure.subplots(2, 2), panels, "log-log", label, partial(curves.side_title, study))
    every.sort(key=lambda curve: curves.SIDES.index(curve.side))
    unique = {(curve.side, curve.name): curve for curve in every}  # both panels have the smallest model
    in_print = printed_values(study, "quoted", quantity="alpha_c")
    parts = []
    for model, value in in_print.items():
        if refit := unique.get((PAPER, model.name)):
            low, high = laws.rounding_interval(refit.x, refit.gaps, 0.00005)
            verdict = "inside" if low <= value <= high else "outside"
            parts.append(f"{refit.name} {value:.2f}, {verdict} the {low:.2f}–{high:.2f} that its rounding allows")
    texts = notes(
        study,
        compute=(
            f"Printed α_c against log-log refits of Table 18: {'; '.join(parts)}. What does not fall inside does not "
            "follow from the printed gaps."
        ),
        trouble=curves.trouble_notes(list(unique.values())),
    )
    alt = "Gap over inference GFLOPs under beam search with power-law fits, by width and by depth; here and published."
    fits = curves.fits_table("Power laws in inference compute", "α_c", unique.values(), in_print)
    return Drawing(figure, [row for curve in every for row in curve.rows()], texts, alt, fits)


@artifact(
    "Gap against inference time",
    needs=lambda scale: curves.beam_needs(scale, scaling.GRID),
    printed_files=("table12", "table18"),
)
def figure6(study: Study) -> Drawing:
    """Draw the gaps of beam searches over their time, with shifted power laws (Eq. 7)."""
    figure = style.new_figure(height=5.0)
    greedy = printed_values(study, 12, metric="time_s")
    counts = {HERE: scaling.beam_test(study.scale).dataset.count, PAPER: int(study.published(18).n_instances.max())}

    def curve(side: str, shape: Shape) -> Curve:
        cost = (
            curves.measured_beams(study, shape, "time_s", 60)
            if side == HERE
            else lambda beam: beam * greedy[shape] / 60
        )
        return curves.beam_curve(study, side, "", shape, cost, resample=False)

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
            axes = row[scaling.WIDTHS.index(shape.width)]
            shade = curves.DEPTH_COLOUR[shape.depth]
            look: dict[str, Any] = {"markersize": 3.6, "markeredgecolor": "white", "markeredgewidth": 0.4, "zorder": 3}
            positive = np.array([point for point in each.points if point[1] > 0]).reshape(-1, 2)
            axes.plot(*positive.T, curves.WIDTH_MARKER[shape.width], color=shade, **look)
            if law:
                t = np.geomspace(min(each.x), max(each.x), 60)
                axes.plot(t, law(t), "--", color=shade, linewidth=0.9)
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
