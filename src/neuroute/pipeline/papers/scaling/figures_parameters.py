"""Figures 1, 2 and 5 of paper `scaling`: gap against parameters and shape, here and as printed."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from neuroute.analysis import power_laws as laws
from neuroute.analysis.intervals import Interval
from neuroute.pipeline.papers.scaling import curves
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.papers.scaling.claims import directions
from neuroute.pipeline.papers.scaling.curves import HERE, PAPER, Curve, Models, Points, beats_larger, quoted_value
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import Drawing
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, fixed

WITH_ADDED = "with added"  # fits of all models, where a scale adds some to the paper's
MILLIONS = "Decoder parameters (millions)"


Fitted = dict[str, tuple[float, Interval | None]]  # name -> value, and what is known of its spread


def grid_needs(scale: Scale) -> Iterator[Need]:
    """Of figures of the twelve models' greedy gaps."""
    return Models.tsp(scale).needs()


@artifact("Decoder parameters against optimality gap", needs=grid_needs, printed_files=("table1", "table12"))
def figure1(study: Study) -> Drawing:
    """Draw the twelve models, and circle those that beat a larger one by being deeper."""
    figure = style.new_figure(height=2.9)
    rows, counted = [], []
    panels, models = figure.subplots(1, 2), Models.tsp(study.scale)
    for axes, (side, points) in zip(panels, models.points(study).items(), strict=True):
        of_paper = {shape: point for shape, point in points.items() if not scaling.is_added(shape)}
        every, deeper = beats_larger(of_paper)
        of_added = [[shape for shape in shapes if scaling.is_added(shape)] for shapes in beats_larger(points)]
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

    def all_models(side: str) -> list[Curve]:
        return of_line(side, "a", "all", models.shapes)

    def wider(side: str) -> list[Curve]:
        lines = {on[0].depth: on for on in models.lines("width")}
        return [c for d, on in lines.items() for c in of_line(side, "b", f"D={d}", on, colour=models.looks.depth[d])]

    def deeper(side: str) -> list[Curve]:
        lines = {on[0].width: on for on in models.lines("depth")}
        return [c for w, on in lines.items() for c in of_line(side, "c", f"W={w}", on, colour=models.looks.width[w])]

    panels = {"(a) All models": all_models, "(b) Wider, at fixed depth": wider, "(c) Deeper, at fixed width": deeper}
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
    in_print = {"β_n": quoted_value(study, "beta_n"), "β_a": quoted_value(study, "beta_a")}
    figure, models = style.new_figure(height=3.9), Models.tsp(study.scale)
    rows: list[dict[str, Any]] = []
    trouble: list[str] = []
    fitted: dict[str, Fitted] = {}
    for axes, (side, points) in zip(figure.subplots(1, 2), models.points(study).items(), strict=True):
        sizes_or_none = {shape: _size_here(study, scaling.run_id(shape)) if side == HERE else shape for shape in points}
        sizes = {shape: size for shape, size in sizes_or_none.items() if size}
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


def _size_here(study: Study, run: str) -> tuple[int, int] | None:
    """Return (depth, width) of the model that plays this role; None if its network has none."""
    arguments = study.runs[run].network.arguments
    return (arguments["depth"], arguments["width"]) if arguments.keys() >= {"depth", "width"} else None


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
