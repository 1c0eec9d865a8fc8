"""Figures 3, 4 and 6 of paper `scaling`: gap against data, compute and time, here and as printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.accounting.counts import DecoderOnly
from neuroute.accounting.flops import solution_paper
from neuroute.analysis import power_laws as laws
from neuroute.core.lazy import mpl, pd
from neuroute.papers.scaling import grid, roles
from neuroute.papers.scaling.cells import first_seed_note
from neuroute.papers.scaling.curves import (
    BOOTSTRAP,
    DEPTH_COLOUR,
    HERE,
    PAPER,
    WIDTH_MARKER,
    Curve,
    colour,
    fits_table,
    frame,
    shape_legend,
    shape_name,
    side_title,
    trouble_notes,
)
from neuroute.papers.scaling.grid import DEPTHS, GRID, SIX, WIDTHS, Shape
from neuroute.papers.scaling.series import beam_curve, beam_needs
from neuroute.plan.needs import Log, Need, artifact
from neuroute.rendering import style
from neuroute.rendering.style import Drawing, new_figure
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study


def _figure3_needs(scale: Scale) -> list[Need]:
    return [Log(f"{roles.PAPER}/base_{shape}") for shape in roles.SIX]


@artifact("Data efficiency: gap against training samples", needs=_figure3_needs)
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
    frame(left, curves, "Training samples", "Validation gap (%)")
    left.legend(loc="best")
    left.set_title(side_title(study, HERE))
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
        f"Validation: greedy gap on {grid.roles.validation(study.scale).dataset.count:,} instances of the training "
        "size. No intervals: the log keeps mean gaps, and the points of one run depend on each other.",
        *first_seed_note(study),
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
        mpl.lines.Line2D([], [], linestyle="none", marker="o", color=style.GREY, label="here, log-log"),
        mpl.lines.Line2D(
            [], [], linestyle="none", marker="o", color=style.GREY, markerfacecolor="white", label="here, linear"
        ),
        mpl.lines.Line2D([], [], linestyle="none", marker="x", color=style.INK, label="paper"),
    ]
    axes.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, handletextpad=0.1, columnspacing=1
    )


def _figure4_needs(scale: Scale) -> Iterator[Need]:
    for shape in roles.SIX:
        yield from beam_needs(scale, shape)


@artifact("Compute efficiency: gap against inference FLOPs", needs=_figure4_needs)
def figure4(study: Study) -> Drawing:
    """Compute efficiency: gap against inference FLOPs."""
    figure = new_figure(height=5.2)
    axes = figure.subplots(2, 2)
    dataset = grid.searched_set(study)
    heads = grid.printed(study, 1, "heads", GRID)

    def gflops_here(shape: Shape, beam: int) -> float | None:
        return study.value("gflops_paper", grid.run_id(shape), dataset, grid.decoding_id(beam))

    def gflops_paper(shape: Shape, beam: int) -> float:
        return beam * solution_paper(DecoderOnly(*shape, int(heads[shape])).decision, 100) / 1e9

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
            frame(axes[i, j], drawn, "GFLOPs per solution (beam × greedy)")
            axes[i, j].set_title(f"{title}\n{side_title(study, side)}")
            axes[i, j].legend(loc="best")
            curves += drawn
    unique = {(c.side, c.name): c for c in curves}
    notes = [
        _printed_compute_note(study, unique),
        "FLOPs follow the paper's convention: each decision at the size of the first, times the beam width. Lines are "
        "log-log fits.",
        BOOTSTRAP,
        *first_seed_note(study),
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


def _figure6_needs(scale: Scale) -> Iterator[Need]:
    for shape in roles.GRID:
        yield from beam_needs(scale, shape)


@artifact("Gap against inference time", needs=_figure6_needs)
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
        frame(axes, curves, f"Minutes for {counts[side]:,} instances")
        axes.set_title(side_title(study, side, "Table 18, time assumed"))
        if failed:
            notes.append(f"No {side} fit for {'; '.join(failed)}.")
        hidden = sum(1 for c in curves for y in c.gaps if not y > 0)
        if hidden:
            notes.append(f"{hidden} {side} gaps are not positive: neither drawn nor in the relative fits; see the CSV.")
    shape_legend(panels[1])
    notes += [
        *first_seed_note(study),
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
