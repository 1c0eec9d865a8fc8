"""Figures 1, 2 and 5 of paper `scaling`: gap against parameters and shape, here and as printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.analysis import power_laws as laws
from neuroute.core.lazy import mpl, pd
from neuroute.papers.scaling import grid
from neuroute.papers.scaling.cells import first_seed_note
from neuroute.papers.scaling.curves import (
    BOOTSTRAP,
    DEPTH_COLOUR,
    HERE,
    PAPER,
    WIDTH_COLOUR,
    WIDTH_MARKER,
    Curve,
    fits_table,
    frame,
    shape_legend,
    shape_name,
    side_title,
    trouble_notes,
)
from neuroute.papers.scaling.grid import DEPTHS, GRID, WIDTHS, Shape
from neuroute.papers.scaling.series import Points, beats_larger, grid_curve, grid_needs, grid_points
from neuroute.plan.needs import artifact
from neuroute.rendering import style
from neuroute.rendering.style import Drawing, new_figure
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from neuroute.rendering.study import Study

MILLIONS = "Decoder parameters (millions)"


@artifact("Decoder parameters against optimality gap", needs=grid_needs)
def figure1(study: Study) -> Drawing:
    """Decoder parameters against optimality gap."""
    figure = new_figure(height=2.9)
    rows, notes = [], []
    axes_by_side = dict(zip((HERE, PAPER), figure.subplots(1, 2), strict=True))
    for side, points in grid_points(study).items():
        axes = axes_by_side[side]
        every, deeper = beats_larger(points)
        for shape, (x, y) in points.items():
            circled = shape in deeper
            rows.append(
                {"side": side, "depth": shape[0], "width": shape[1], "parameters_millions": x, "gap_pct": y}
                | {"beats_larger": shape in every, "circled": circled}
            )
            if y <= 0:
                continue
            axes.plot(x, y, WIDTH_MARKER[shape[1]], color=DEPTH_COLOUR[shape[0]], markersize=6, markeredgecolor="white")
            if circled:
                axes.plot(
                    x, y, "o", markersize=12, markerfacecolor="none", markeredgecolor=style.GREEN, markeredgewidth=1.2
                )
        curve = Curve(side, "", side, [p[0] for p in points.values()], [p[1] for p in points.values()])
        frame(axes, [curve], MILLIONS)
        axes.set_title(side_title(study, side, "printed numbers"))
        hidden = [shape_name(s) for s, (_, y) in points.items() if y <= 0]
        if hidden:
            notes.append(f"Gaps that are not positive have no place on the log axis: {side} {', '.join(hidden)}.")
        notes.append(
            f"{side.capitalize()}: {len(every)} of {len(points)} models beat a larger one; {len(deeper)} of them are "
            "deeper than a larger one that they beat (circled)."
        )
    shape_legend(axes_by_side[PAPER])
    claimed = grid.quoted(study, "models_beating_a_larger_one")[None]
    notes += [f"The paper's text says {claimed:.0f} of 12.", *first_seed_note(study)]
    alt = "Scatter of optimality gap over decoder parameters for twelve models, here and as published."
    return Drawing(figure, pd.DataFrame(rows), tuple(notes), alt)


@artifact("Power laws of the gap in parameters: all models, by width, by depth", needs=grid_needs)
def figure2(study: Study) -> Drawing:
    """Power laws of the gap in parameters: all models, by width, by depth."""
    figure = new_figure(height=7.4)
    axes = figure.subplots(3, 2)
    sides = grid_points(study)
    notes: list[str] = []
    curves: list[Curve] = []
    panels: dict[str, Callable[[str], list[Curve]]] = {
        "(a) All models": lambda side: [
            grid_curve(
                study,
                side,
                "a",
                "all",
                sides[side],
                GRID,
                colours=[DEPTH_COLOUR[s[0]] for s in GRID if s in sides[side]],
            )
        ],
        "(b) Wider, at fixed depth": lambda side: [
            grid_curve(study, side, "b", f"D={d}", sides[side], [(d, w) for w in WIDTHS], colour=DEPTH_COLOUR[d])
            for d in DEPTHS
        ],
        "(c) Deeper, at fixed width": lambda side: [
            grid_curve(study, side, "c", f"W={w}", sides[side], [(d, w) for d in DEPTHS], colour=WIDTH_COLOUR[w])
            for w in WIDTHS
        ],
    }
    for i, (title, build) in enumerate(panels.items()):
        for j, side in enumerate((HERE, PAPER)):
            drawn = build(side)
            curves += drawn
            for curve in drawn:
                curve.draw(axes[i, j], "linear", curve.label("α", "linear"))
            frame(axes[i, j], drawn, MILLIONS)
            axes[i, j].set_title(f"{title}\n{side_title(study, side)}")
            axes[i, j].legend(loc="best")
            notes.append(_quality(title, side, drawn))
    q = {k: grid.quoted(study, k)[None] for k in QUOTED_2}
    notes += [
        f"The paper prints R² {q['r2_global']:g} and error {q['mape_global']:g} % for (a); "
        f"mean R² {q['r2_width']:g}, error {q['mape_width']:g} % and α {q['alpha_n_width_min']:.2f}–"
        f"{q['alpha_n_width_max']:.2f} for (b); mean R² {q['r2_depth']:g}, error {q['mape_depth']:g} % and "
        f"α {q['alpha_n_depth_min']:.2f}–{q['alpha_n_depth_max']:.2f} for (c). Least squares on the linear scale gives "
        "them back from its Tables 1 and 12; the log-log scale does not.",
        "Lines are the linear-scale fits. Colour: depth in (a) and (b), width in (c); marker: width (circle, square, "
        "diamond from narrow to wide).",
        BOOTSTRAP,
        *first_seed_note(study),
        *trouble_notes(curves),
    ]
    alt = "Six panels of gap over parameters with power-law fits: all models, by width, by depth; here and published."
    fits = fits_table("Power laws in parameters", "α", curves, {})
    return Drawing(figure, pd.DataFrame([r for c in curves for r in c.rows()]), tuple(notes), alt, fits)


QUOTED_2 = (
    *(f"{what}_{group}" for what in ("r2", "mape") for group in ("global", "width", "depth")),
    *(f"alpha_n_{group}_{end}" for group in ("width", "depth") for end in ("min", "max")),
)


def _quality(title: str, side: str, curves: Sequence[Curve]) -> str:
    good = [law for c in curves for law in [c.fits["linear"]] if isinstance(law, laws.PowerLaw)]
    if not good:
        return f"{title}, {side}: no fit to judge."
    r2, mape = (float(np.mean([getattr(law, key) for law in good])) for key in ("r2", "mape"))
    return f"{title}, {side}: mean R² {r2:.3f}, mean absolute percentage error {mape:.2f} % (linear-scale fits)."


@artifact("Gap by parameters and depth-to-width ratio", needs=grid_needs)
def figure5(study: Study) -> Drawing:
    """Gap by parameters and depth-to-width ratio."""
    figure = new_figure(height=3.2)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    fitted: dict[str, dict[str, tuple[float, laws.Interval | None]]] = {}
    for axes, (side, points) in zip(figure.subplots(1, 2), grid_points(study).items(), strict=True):
        known = {s: grid.size_here(study, s) if side == HERE else s for s in points}
        sizes = {s: size for s, size in known.items() if size}
        points = {s: points[s] for s in sizes}
        ratio = {s: round(depth / width, 6) for s, (depth, width) in sizes.items()}
        levels = sorted(set(ratio.values()))
        shade = dict(zip(levels, style.ramp("cool-warm", len(levels)), strict=True))
        for s, (x, y) in points.items():
            if y > 0:
                look = {"color": shade[ratio[s]], "markersize": 5.5, "markeredgecolor": "white", "zorder": 3}
                axes.plot(x, y, WIDTH_MARKER[s[1]], **look)
        curve = Curve(side, "", side, [p[0] for p in points.values()], [p[1] for p in points.values()])
        frame(axes, [curve], MILLIONS)
        axes.set_title(side_title(study, side))
        hidden = sum(y <= 0 for _, y in points.values())
        if hidden:
            notes.append(f"{hidden} of {len(points)} {side} gaps are not positive: neither drawn nor in the fit.")
        law = None
        try:
            law, fitted[side] = _shape_law(study, side, points, sizes, ratio)
        except laws.FitError as error:
            notes.append(f"{side.capitalize()}: no fit ({error}).")
        if law:
            line = np.geomspace(min(curve.x), max(curve.x), 40)
            for a in levels:
                axes.plot(line, law(line, a), color=shade[a], linewidth=1)
            if law.dropped:
                notes.append(
                    f"{law.dropped} of {law.dropped + law.points} {side} gaps are not positive: not in the fit."
                )
        look = {"marker": "o", "markersize": 3.5}
        handles = [mpl.lines.Line2D([], [], color=shade[a], label=f"{a:.3f}", **look) for a in reversed(levels)]  # type: ignore[arg-type]
        columns = 2 if len(handles) > 4 else 1
        axes.legend(handles=handles, loc="lower left", title="A = D / W", ncols=columns, columnspacing=1.0)
        for s, (x, y) in points.items():
            rows.append(
                {"side": side, "depth": s[0], "width": s[1], "x": x, "ratio": ratio[s], "gap_pct": y}
                | {"beta_n": law.beta_u if law else None, "beta_a": law.beta_v if law else None}
            )
    notes += [
        "The paper's β_n and β_a follow from log-log least squares, unlike the exponents of its Figure 2. A factor is "
        "what doubling leaves of the gap.",
        "Lines: the direct fit of Eq. 6 at each ratio that occurs. Marker: width (circle, square, diamond from narrow "
        "to wide).",
        BOOTSTRAP,
        *first_seed_note(study),
    ]
    printed = {k: grid.quoted(study, q)[None] for k, q in (("β_n", "beta_n"), ("β_a", "beta_a"))}
    alt = "Gap over parameters with fitted lines of constant depth-to-width ratio; here and published."
    return Drawing(
        figure, pd.DataFrame(rows), tuple(notes), alt, _values_table("Gap(N, A) and Gap(W, D)", fitted, printed)
    )


def _shape_law(
    study: Study, side: str, points: Points, sizes: dict[Shape, tuple[int, int]], ratio: dict[Shape, float]
) -> tuple[laws.BivariateLaw, dict[str, tuple[float, laws.Interval | None]]]:
    """Eq. 6 fitted directly, and all exponents of Eq. 5 and 6 with what is known of their spread.  Raises FitError."""
    x, gaps = [p[0] for p in points.values()], [p[1] for p in points.values()]
    a = list(ratio.values())
    law = laws.fit_bivariate(x, a, gaps)
    by_size = laws.fit_bivariate([d for d, _ in sizes.values()], [w for _, w in sizes.values()], gaps)
    beta_n, beta_a = laws.size_and_shape_exponents(by_size.beta_u, by_size.beta_v)
    spread: Mapping[str, laws.Interval] = {}
    if side == HERE:
        samples = grid.resampled_gaps(study, [(s, 1) for s in points], grid.labelled_set(study, 100))
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


def _values_table(
    title: str, fitted: dict[str, dict[str, tuple[float, laws.Interval | None]]], printed: dict[str, float]
) -> Table:
    """Named values, measured and refitted from the paper, beside those that it prints."""
    here, paper = fitted.get(HERE, {}), fitted.get(PAPER, {})
    rows = []
    for name in dict.fromkeys((*here, *paper)):
        value, interval = here.get(name, (None, None))
        low, high = (interval.low, interval.high) if interval else (None, None)
        rows.append(
            Row((name,), (Cell(value, paper.get(name, (None,))[0], low, high), Cell(published=printed.get(name))))
        )
    columns = (Column("value", "Fitted", format=fixed(3)), Column("printed", "As printed", format=fixed(3)))
    return Table(title, ("Quantity",), columns, tuple(rows))
