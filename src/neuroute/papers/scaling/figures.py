"""The figures of paper `scaling`: measured on the left, the paper's printed numbers with the same fits on the right."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from neuroute.analysis import flops
from neuroute.analysis import power_laws as laws
from neuroute.papers.scaling import grid
from neuroute.papers.scaling.curves import (
    DEPTH_COLOUR,
    HERE,
    PAPER,
    WIDTH_COLOUR,
    WIDTH_MARKER,
    Curve,
    colour,
    fits_table,
    shape_legend,
    shape_name,
    trouble_notes,
)
from neuroute.papers.scaling.grid import DEPTHS, GRID, SIX, WIDTHS, Shape
from neuroute.papers.scaling.series import Points, beam_curve, beats_larger, grid_curve, grid_points
from neuroute.rendering import style
from neuroute.rendering.study import Study
from neuroute.rendering.style import Drawing, empty_axes, log_axis, new_figure
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

MILLIONS = "Decoder parameters (millions)"
BOOTSTRAP = (
    f"Brackets: 95 % bootstrap intervals over test instances, the same resamples for every model ({laws.RESAMPLES:,}); "
    "they do not cover the spread between training seeds."
)


def _side_title(study: Study, side: str, printed: str = "printed numbers, refitted") -> str:
    return f"Here: scale “{study.scale.name}”" if side == HERE else f"Paper: {printed}"


def _frame(axes: Axes, curves: Sequence[Curve], x_label: str, y_label: str = "Optimality gap (%)") -> None:
    """Log axes around the points of these curves."""
    log_axis(axes, "x", [x for c in curves for x in c.x])
    gaps = [y for c in curves for y in c.gaps]
    log_axis(axes, "y", gaps)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    if not any(y > 0 for y in gaps):
        empty_axes(axes, "no positive gap to draw")


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
        _frame(axes, [curve], MILLIONS)
        axes.set_title(_side_title(study, side, "printed numbers"))
        hidden = [shape_name(s) for s, (_, y) in points.items() if y <= 0]
        if hidden:
            notes.append(f"Gaps that are not positive have no place on the log axis: {side} {', '.join(hidden)}.")
        notes.append(
            f"{side.capitalize()}: {len(every)} of {len(points)} models beat a larger one; {len(deeper)} of them are "
            "deeper than a larger one that they beat (circled)."
        )
    shape_legend(axes_by_side[PAPER])
    claimed = grid.quoted(study, "models_beating_a_larger_one")[None]
    notes.append(f"The paper's text says {claimed:.0f} of 12.")
    alt = "Scatter of optimality gap over decoder parameters for twelve models, here and as published."
    return Drawing(figure, pd.DataFrame(rows), tuple(notes), alt)


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
            _frame(axes[i, j], drawn, MILLIONS)
            axes[i, j].set_title(f"{title}\n{_side_title(study, side)}")
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


def figure3(study: Study) -> Drawing:
    """Data efficiency: gap against training samples."""
    figure = new_figure(height=3.1)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    curves = []
    for shape in SIX:
        log = study.log(grid.run_id(shape), "validation")
        log = log[log.samples > 0] if len(log) else log
        x = [float(v) for v in log.samples] if len(log) else []
        gaps = [float(v) for v in log.gap_pct] if len(log) else []
        curve = Curve(
            HERE, "a", shape_name(shape), x, gaps, colour(shape), [WIDTH_MARKER[shape[1]]] * len(x), [shape] * len(x)
        )
        curve.draw(left, "log-log", curve.label("α", "log-log"))
        curves.append(curve)
    _frame(left, curves, "Training samples", "Validation gap (%)")
    left.legend(loc="best")
    left.set_title(_side_title(study, HERE))
    quoted = grid.quoted(study, "alpha_s")
    printed = {shape_name(s): v for s, v in quoted.items() if s}
    _exponent_panel(right, curves, printed)
    rows = [r for c in curves for r in c.rows()]
    rows += [
        {"panel": "b", "side": PAPER, "series": shape_name(s), "depth": s[0], "width": s[1], "alpha_printed": v}
        for s, v in quoted.items()
        if s
    ]
    notes = [
        "The paper prints α_s for three of the six models and does not publish the curves, so its exponents cannot be "
        "refitted. It has 20 points per model, every 3 million samples.",
        f"Validation: greedy gap on {grid.declare.validation(study.scale).dataset.count:,} instances of the training "
        "size. No intervals: the log keeps mean gaps, and the points of one run depend on each other.",
        *trouble_notes(curves),
    ]
    alt = "Validation gap over training samples with power-law fits, and the exponents beside the printed ones."
    return Drawing(
        figure,
        pd.DataFrame(rows),
        tuple(notes),
        alt,
        fits_table("Power laws in training samples", "α_s", curves, printed),
    )


def _exponent_panel(axes: Axes, curves: Sequence[Curve], printed: dict[str, float]) -> None:
    """Exponents of each curve on both scales beside the printed one."""
    for i, curve in enumerate(curves):
        linear, log_log = curve.fits["linear"], curve.fits["log-log"]
        if isinstance(linear, laws.PowerLaw):
            axes.plot(
                linear.alpha, i, "o", color=curve.colour, markerfacecolor="white", markersize=7, markeredgewidth=1
            )
        if isinstance(log_log, laws.PowerLaw):
            axes.plot(log_log.alpha, i, "o", color=curve.colour, markersize=4)
        if curve.name in printed:
            axes.plot(printed[curve.name], i, "x", color=style.INK, markersize=6, markeredgewidth=1.3)
    axes.set_yticks(range(len(curves)), [c.name for c in curves])
    axes.set_ylim(len(curves) - 0.5, -0.5)
    axes.set_ylabel("Model (depth, width)")
    axes.set_xlabel("Exponent α$_s$")
    axes.set_title("Exponents: here and as printed")
    axes.margins(x=0.1)
    handles = [
        Line2D([], [], linestyle="none", marker="o", color=style.GREY, label="here, log-log"),
        Line2D([], [], linestyle="none", marker="o", color=style.GREY, markerfacecolor="white", label="here, linear"),
        Line2D([], [], linestyle="none", marker="x", color=style.INK, label="paper"),
    ]
    axes.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, handletextpad=0.1, columnspacing=1
    )


def figure4(study: Study) -> Drawing:
    """Compute efficiency: gap against inference FLOPs."""
    figure = new_figure(height=5.2)
    axes = figure.subplots(2, 2)
    dataset = grid.searched_set(study)
    heads = grid.printed(study, 1, "heads", GRID)

    def gflops_here(shape: Shape, beam: int) -> float | None:
        return study.value("gflops_paper", grid.run_id(shape), dataset, grid.decoding_id(beam))

    def gflops_paper(shape: Shape, beam: int) -> float:
        return flops.beam_flops_paper(*shape, int(heads[shape]), 100, beam) / 1e9

    curves: list[Curve] = []
    for j, (side, cost) in enumerate(((HERE, gflops_here), (PAPER, gflops_paper))):
        for i, (title, shapes) in enumerate(
            (
                ("(a) Wider, at depth 6", [(6, w) for w in WIDTHS]),
                ("(b) Deeper, at width 128", [(d, 128) for d in DEPTHS]),
            )
        ):
            drawn = [beam_curve(study, side, "ab"[i], shape, cost, resample=True) for shape in shapes]
            for curve in drawn:
                curve.draw(axes[i, j], "log-log", curve.label("α", "log-log"))
            _frame(axes[i, j], drawn, "GFLOPs per solution (beam × greedy)")
            axes[i, j].set_title(f"{title}\n{_side_title(study, side)}")
            axes[i, j].legend(loc="best")
            curves += drawn
    unique = {(c.side, c.name): c for c in curves}
    notes = [
        _printed_compute_note(study, unique),
        "FLOPs follow the paper's convention: each decision at the size of the first, times the beam width. Lines are "
        "log-log fits.",
        BOOTSTRAP,
        *trouble_notes(list(unique.values())),
    ]
    alt = "Gap over inference GFLOPs under beam search with power-law fits, by width and by depth; here and published."
    printed = {shape_name(s): v for s, v in grid.quoted(study, "alpha_c").items() if s}
    fits = fits_table("Power laws in inference compute", "α_c", list(unique.values()), printed)
    return Drawing(figure, pd.DataFrame([r for c in curves for r in c.rows()]), tuple(notes), alt, fits)


def _printed_compute_note(study: Study, curves: dict[tuple[str, str], Curve]) -> str:
    """The printed exponents against what rounding allows of a refit of Table 18."""
    parts = []
    for shape, value in grid.quoted(study, "alpha_c").items():
        curve = curves.get((PAPER, shape_name(shape))) if shape else None
        if curve:
            low, high = laws.rounding_interval(curve.x, curve.gaps, 0.00005)
            verdict = "inside" if low <= value <= high else "outside"
            parts.append(f"{curve.name} {value:.2f}, {verdict} the {low:.2f}–{high:.2f} that its rounding allows")
    return (
        "Printed α_c against log-log refits of Table 18: "
        + "; ".join(parts)
        + ". What does not fall inside does not follow from the printed gaps."
    )


def figure5(study: Study) -> Drawing:
    """Gap by parameters and depth-to-width ratio."""
    figure = new_figure(height=3.2)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    fitted: dict[str, dict[str, tuple[float, laws.Interval | None]]] = {}
    for axes, (side, points) in zip(figure.subplots(1, 2), grid_points(study).items(), strict=True):
        sizes = {s: grid.size_here(study, s)[:2] if side == HERE else s for s in points}
        ratio = {s: round(depth / width, 6) for s, (depth, width) in sizes.items()}
        levels = sorted(set(ratio.values()))
        shade = dict(zip(levels, style.ramp("cool-warm", len(levels)), strict=True))
        for s, (x, y) in points.items():
            if y > 0:
                look = {"color": shade[ratio[s]], "markersize": 5.5, "markeredgecolor": "white", "zorder": 3}
                axes.plot(x, y, WIDTH_MARKER[s[1]], **look)
        curve = Curve(side, "", side, [p[0] for p in points.values()], [p[1] for p in points.values()])
        _frame(axes, [curve], MILLIONS)
        axes.set_title(_side_title(study, side))
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
        handles = [Line2D([], [], color=shade[a], label=f"{a:.3f}", **look) for a in reversed(levels)]  # type: ignore[arg-type]
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


def figure6(study: Study) -> Drawing:
    """Gap against inference time."""
    figure = new_figure(height=3.4)
    dataset = grid.searched_set(study)
    greedy = grid.printed(study, 12, "time_s", GRID)
    counts = {HERE: dataset.count, PAPER: int(study.published(18).n_instances.max())}

    def minutes_here(shape: Shape, beam: int) -> float | None:
        seconds = study.value("time_s", grid.run_id(shape), dataset, grid.decoding_id(beam))
        return seconds / 60 if seconds is not None else None

    def minutes_paper(shape: Shape, beam: int) -> float:
        return beam * greedy[shape] / 60

    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    found: dict[tuple[str, str], tuple[laws.ShiftedPowerLaw, laws.ShiftedPowerLaw]] = {}
    panels = figure.subplots(1, 2)
    for axes, (side, cost) in zip(panels, ((HERE, minutes_here), (PAPER, minutes_paper)), strict=True):
        curves = [beam_curve(study, side, "", shape, cost, resample=False) for shape in GRID]
        failed = []
        for curve, shape in zip(curves, GRID, strict=True):
            shade = DEPTH_COLOUR[shape[0]]
            look = {"color": shade, "markersize": 3.6, "markeredgecolor": "white", "markeredgewidth": 0.4}
            seen = [(x, y) for x, y in zip(curve.x, curve.gaps, strict=True) if y > 0]
            axes.plot(*zip(*seen, strict=True) if seen else ([], []), WIDTH_MARKER[shape[1]], zorder=3, **look)
            fitted: dict[str, Any] = {}
            try:
                law = laws.fit_shifted(curve.x, curve.gaps, relative=True)
                linear = laws.fit_shifted(curve.x, curve.gaps)
            except laws.FitError as error:
                failed.append(f"{curve.name} ({error})")
            else:
                found[side, curve.name] = law, linear
                t = np.geomspace(min(curve.x), max(curve.x), 60)
                axes.plot(t, law(t), "--", color=shade, linewidth=0.9)
                fitted = {"alpha_t": law.alpha, "beta_t": law.beta, "gamma": law.gamma} | {"beta_t_linear": linear.beta}
            shared = {"side": side, "depth": shape[0], "width": shape[1]}
            rows += [
                shared | {"beam": b, "minutes": x, "gap_pct": y} | fitted
                for b, x, y in zip(curve.extra["beam"], curve.x, curve.gaps, strict=True)
            ]
        _frame(axes, curves, f"Minutes for {counts[side]:,} instances")
        axes.set_title(_side_title(study, side, "Table 18, time assumed"))
        if failed:
            notes.append(f"No {side} fit for {'; '.join(failed)}.")
        hidden = sum(1 for c in curves for y in c.gaps if not y > 0)
        if hidden:
            notes.append(f"{hidden} {side} gaps are not positive: neither drawn nor in the relative fits; see the CSV.")
    shape_legend(panels[1])
    notes += [
        "Lines: Eq. 7 by least squares of the relative error; that of the gap itself sees only the large gaps. γ = 0 "
        "means the fit stops at its bound: the points show no floor.",
        "The paper gives no beam-search times but Table 4's, no coefficients, and does not say which models it draws: "
        "its side takes beam × the greedy time of Table 12, for all twelve.",
    ]
    alt = "Gap over inference time under beam search with shifted power laws for twelve models; here and published."
    return Drawing(figure, pd.DataFrame(rows), tuple(notes), alt, _shifted_table(found))


def _shifted_table(found: dict[tuple[str, str], tuple[laws.ShiftedPowerLaw, laws.ShiftedPowerLaw]]) -> Table:
    """beta_t and gamma of Eq. 7 for each model, measured and refitted from the paper."""

    def row(name: str) -> Row:
        here, paper = found.get((HERE, name)), found.get((PAPER, name))
        cells = [
            Cell(getattr(here[i], key) if here else None, getattr(paper[i], key) if paper else None)
            for i, key in ((0, "beta"), (0, "gamma"), (1, "beta"), (1, "gamma"))
        ]
        return Row((name,), tuple(cells))

    columns = tuple(
        Column(f"{key}_{scale}", label, unit, form, f"Least squares of the {what}")
        for scale, what in (("relative", "relative error"), ("linear", "gap"))
        for key, label, unit, form in (("beta", "β_t", "", fixed(2)), ("gamma", "γ", "%", lambda v: f"{v:.2g}"))
    )
    names = [shape_name(s) for s in GRID if any(name == shape_name(s) for _, name in found)]
    return Table("Shifted power laws in time", ("Model",), columns, tuple(row(name) for name in names))
