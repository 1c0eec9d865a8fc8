"""Figures of paper `pens`: gaps by size, scaling factors, initial embeddings, and the network with what it looks at."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis.rescaling import Parabola
from neuroute.core.lazy import mpl, pd
from neuroute.evaluation.snapshot import NetworkSnapshot
from neuroute.pipeline.papers.pens import paper as pens
from neuroute.pipeline.papers.pens.tables import table_figure5_grid
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.rendering import diagram as dg
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.cells import mean_of_gaps_cell, number, printed_numbers, solver_name
from neuroute.pipeline.rendering.grid import needs_of
from neuroute.pipeline.rendering.render import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, PUBLISHED, Drawing, drawable, hidden_note, new_figure
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, decimal, described, fixed
from neuroute.problems.tsp import tour_length
from neuroute.specs.objects import Dataset, Decoding

LARGEST = max(pens.SIZES)
BASELINE = "#6d7683"  # bars of other papers' solvers
SPARSE = ("INViT-2V", "INViT-3V", "DGL")  # which read a part of the graph
EXTRA = "pens_ar"  # which the paper's Figure 4 leaves out


@dataclass(frozen=True)
class Bar:
    """One solver at the largest size."""

    label: str
    colour: str
    run: str | None  # id; None: not among the models that are trained here
    decoding: Decoding
    gap: Cell
    faded: bool = False  # without rescaling, where there is a bar with it


def _figure1_needs(scale: Scale) -> Iterator[Need]:
    labels, decodings = pens.reference(scale, LARGEST), [pens.repeated(scale), pens.rescaled(scale)]
    yield from tested(pens.run_id("coordns"), labels, decodings[0])
    for m in pens.methods(scale):
        if m.run:
            yield from tested(m.run, labels, *(decodings if m.rescaled else [m.decoding]))


@artifact("The gap at the largest size", needs=_figure1_needs, printed_files=("figure4_table", "table3"))
def figure1(study: Study) -> Drawing:
    groups = _bars(study)
    bars = [bar for group in groups for bar in group]
    starts = [sum(map(len, groups[:i])) + 0.6 * i for i in range(len(groups))]
    places = [start + i for start, group in zip(starts, groups, strict=True) for i in range(len(group))]
    figure = new_figure(height=3.5)
    here, paper = figure.subplots(1, 2, sharey=True)
    ends: list[float] = []
    for y, bar in zip(places, bars, strict=True):
        gap = bar.gap.measured
        if not isinstance(gap, float):
            why = "not measured" if bar.run else "published only"
            here.text(0, y, f" {why}", color=style.GREY, va="center", fontsize=6)
            continue
        here.barh(y, gap, height=0.62, color=bar.colour, alpha=0.55 if bar.faded else 1, linewidth=0)
        low, high = (gap if end is None else end for end in (bar.gap.low, bar.gap.high))
        here.plot([low, high], [y, y], color=style.INK, linewidth=0.8, zorder=3)
        _value(here, y, gap, max(gap, high) if gap >= 0 else min(gap, low))
        ends += [gap, low, high]
    _set_limits(here, ends)
    printed_bars = [(y, bar) for y, bar in zip(places, bars, strict=True) if bar.gap.published is not None]
    bars_in_print = [(y, bar, float(bar.gap.published or 0)) for y, bar in printed_bars]
    for y, bar, gap in bars_in_print:
        paper.barh(y, gap, height=0.62, facecolor="white", edgecolor=bar.colour, linewidth=1.1)
        _value(paper, y, gap, gap)
    _set_limits(paper, [gap for _, _, gap in bars_in_print])
    here.set_yticks(places, [b.label for b in bars])
    here.set_ylim(max(places) + 0.7, -0.7)
    dataset = pens.reference(study.scale, LARGEST).dataset
    rows = printed_numbers(study, 3, n=str(LARGEST))
    here.set_title(f"Here: {described(dataset)}")
    paper.set_title(f"Paper: TSP{LARGEST}, {int(rows.n_instances.iloc[0])} instances")
    for axes in (here, paper):
        axes.set_xlabel("Optimality gap (%)")
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
    rows_of_bars: list[dict[str, Any]] = []
    for bar in bars:
        if bar.gap.measured is not None:
            run = {"run": bar.run, "decoding": bar.decoding.name, "n": dataset.n}
            gap_here = {"gap_pct": bar.gap.measured, "low_pct": bar.gap.low, "high_pct": bar.gap.high}
            rows_of_bars.append({"side": MEASURED, "series": bar.label} | run | gap_here)
        if bar.gap.published is not None:
            in_print = {"n": LARGEST, "gap_pct": bar.gap.published}
            rows_of_bars.append({"side": PUBLISHED, "series": bar.label} | in_print)
    points = pd.DataFrame(rows_of_bars)
    alt = f"Bars of the optimality gap of {len(bars)} solvers at the largest size, measured here and as published."
    labels = pens.reference(study.scale, LARGEST)
    factors = [
        f"{bar.label.removesuffix(', scaled')} ×{factor:.2f}"
        for bar in bars
        if bar.run and bar.decoding.rescale == "best"
        if (factor := study.value("rescale_factor", bar.run, labels.dataset, bar.decoding)) is not None
    ]
    published = {bar: float(bar.gap.published) for bar in bars if bar.gap.published is not None}
    behind = []
    for bar, value in published.items():
        ahead = [f"{b.label} ({v:.2f})" for b, v in published.items() if b.label in SPARSE and v < value]
        if ahead and bar.decoding.rescale == "best":
            behind.append(f"In the paper's own numbers {bar.label} ({value:.2f}) is behind {', '.join(ahead)}.")
    texts = notes(
        study,
        labels=labels,
        solver=solver_name(labels.solver),
        several=pens.several(study),
        spread=pens.spread_note(
            study, pens.RESCALED, [labels.dataset], pens.repeated(study.scale), pens.rescaled(study.scale)
        ),
        not_trained=pens.not_trained(study),
        factors=f"Scaling factors here, found on held-out instances: {', '.join(factors)}." if factors else "",
        behind=behind,
    )
    return Drawing(figure, points, texts, alt)


def _bars(study: Study) -> list[list[Bar]]:
    """Solvers that see the whole graph, those that do not, and the paper's own."""
    dataset = pens.reference(study.scale, LARGEST).dataset

    def gap(run: str | None, decoding: Decoding, table: str, **where: object) -> Cell:
        value = number(printed_numbers(study, table, **where), LARGEST, "gap_pct")
        return mean_of_gaps_cell(study, run, dataset, value, decoding) if run else Cell(published=value)

    name, run, decoding = pens.NAMES["coordns"], pens.run_id("coordns"), pens.repeated(study.scale)
    own = [Bar(name, pens.COLOUR["coordns"], run, decoding, gap(run, decoding, "figure4_table", method=name))]
    whole, sparse = list[Bar](), list[Bar]()
    colours = {pens.run_id(name): colour for name, colour in pens.COLOUR.items()}
    for m in pens.methods(study.scale):
        if m.rescaled is None:
            bar = Bar(m.name, BASELINE, m.run, m.decoding, gap(m.run, m.decoding, "table3", method=m.name))
            (sparse if m.name in SPARSE else whole).append(bar)
            continue
        for scaled, label in ((False, m.name), (True, f"{m.name}, scaled")):
            how = m.decoded(scaled)
            published = gap(m.run, how, "table3", method=m.name, scaled="yes" if scaled else "no")
            own.append(Bar(label, colours[str(m.run)], m.run, how, published, faded=not scaled))
    return [whole, sparse, own]


def _value(axes: mpl.axes.Axes, y: float, value: float, end: float) -> None:
    """The number, beside the end of its bar."""
    shift, side = (3, "left") if value >= 0 else (-3, "right")
    text = decimal(value, 2 if abs(value) < 100 else 0)
    axes.annotate(text, (end, y), (shift, 0), textcoords="offset points", va="center", ha=side, fontsize=6.5)


def _set_limits(axes: mpl.axes.Axes, ends: Sequence[float]) -> None:
    """Limits around zero and these values, with room for the numbers beside them."""
    low, high = min([0.0, *ends]), max([0.0, *ends])
    span = (high - low) or 1.0
    axes.set_xlim(low - (0.17 * span if low < 0 else 0), high + (0.17 * span if high > 0 else 0.02 * span))
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(6, steps=[1, 2, 5, 10]))
    if low < 0:
        axes.axvline(0, color=style.INK, linewidth=0.6)


@artifact(
    "ALiBi, RoPE and coordinates across sizes",
    needs=lambda scale: tested(
        map(pens.run_id, pens.POSITIONS), [pens.reference(scale, size) for size in pens.SIZES], pens.repeated(scale)
    ),
    printed_files=("figure4_table", "table3"),
)
def figure4(study: Study) -> Drawing:
    figure = new_figure(height=3.0)
    here, paper = figure.subplots(1, 2)
    sizes = {size: study.scale[pens.PensScale].sizes[size] for size in pens.SIZES}
    rows: list[dict[str, Any]] = []
    for name in pens.POSITIONS:
        run, label, how = pens.run_id(name), pens.NAMES[name], pens.repeated(study.scale)
        sets = pens.sets_of(study.scale, pens.SIZES)
        cells = {size: mean_of_gaps_cell(study, run, test.dataset, None, how) for size, test in sets.items()}
        cells = {size: cell for size, cell in cells.items() if cell.measured is not None}
        where = {"table": "table3", "scaled": "no"} if name == EXTRA else {"table": "figure4_table"}
        values = pens.printed_gaps(study, method=label, **where)
        _curve(here, name, {sizes[size]: cell for size, cell in cells.items()}, solid=True)
        _curve(paper, name, {size: Cell(value) for size, value in values.items()}, solid=False)
        for size, cell in cells.items():
            about = {"side": MEASURED, "series": label, "size": size, "n": sizes[size]}
            rows.append(about | {"gap_pct": cell.measured, "low_pct": cell.low, "high_pct": cell.high})
        rows += [
            {"side": PUBLISHED, "series": label, "size": size, "n": size, "gap_pct": value}
            for size, value in values.items()
        ]
    points = pd.DataFrame(rows)
    for axes, side, ticks in ((here, MEASURED, sizes), (paper, PUBLISHED, {size: size for size in sizes})):
        gaps = [drawable(gap) for gap in points[points.side == side].gap_pct]
        nodes = list(ticks.values())
        style.log_axis(axes, "x", nodes)
        style.log_axis(axes, "y", gaps)
        low, high = axes.get_ylim()
        if axes.get_yscale() == "log" and 100 < high / low < 2000:  # by decades only, there would be two ticks
            axes.yaxis.set_major_locator(mpl.ticker.LogLocator(10, subs=(1.0, 2.0, 5.0), numticks=12))
        axes.xaxis.set_major_locator(mpl.ticker.FixedLocator(sorted(set(nodes))))
        axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(style.plain_number))
        if not any(y > 0 for y in gaps):
            style.empty_axes(axes, "no positive gap to draw")
        axes.set_ylabel("Optimality gap (%)")
    # Nodes here and, beneath, the sizes of the paper that they stand for.
    ticks_here = []
    for size, n in sizes.items():
        roles = ", ".join(style.plain_number(role) for role, nodes in sizes.items() if nodes == n)
        ticks_here.append(style.plain_number(n) + ("" if n == size else f"\n({roles})"))
    here.set_xticks(list(sizes.values()), ticks_here)
    here.set_xlabel("Nodes here" + (" (in the paper)" if any(a != b for a, b in sizes.items()) else ""))
    paper.set_xlabel("Nodes")
    here.set_title(f"Here: scale “{study.scale.name}”")
    paper.set_title("Paper: Figure 4's table")
    figure.legend(*here.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    alt = "Optimality gap over instance size of CoordNS, PENS-A, PENS-R and PENS-AR, measured here and as published."
    datasets = dict.fromkeys(pens.reference(study.scale, size).dataset for size in pens.SIZES)
    points_here = points[points.side == MEASURED]
    orders = []
    for size in pens.SIZES:
        at = points_here[(points_here["size"] == size) & points_here.gap_pct.notna()].sort_values("gap_pct")
        if size in (min(pens.SIZES), LARGEST) and len(at):
            order = ", ".join(f"{s} {decimal(g)} %" for s, g in zip(at.series, at.gap_pct, strict=True))
            orders.append(f"At TSP{pens.size_label(study, size)} here: {order}.")
    texts = notes(
        study,
        trained=study.scale[pens.PensScale].sizes[100],
        tests=", ".join(f"{d.count:,} TSP{d.n:,}" for d in datasets),
        several=pens.several(study),
        spread=pens.spread_note(study, pens.POSITIONS, datasets, pens.repeated(study.scale)),
        hidden=hidden_note(points_here.gap_pct, "measured"),
        orders=orders,
    )
    return Drawing(figure, points, texts, alt)


def _curve(axes: mpl.axes.Axes, name: str, cells: Mapping[int, Cell], *, solid: bool) -> None:
    """Filled markers on a line where gaps were measured, hollow ones where they were printed."""
    extra = name == EXTRA
    gaps = [drawable(float(cell.measured or 0)) for cell in cells.values()]
    look: dict[str, Any] = {"color": pens.COLOUR[name], "marker": pens.MARKER[name], "linewidth": 0.8 if extra else 1.3}
    look |= {"markeredgecolor": "white"} if solid else {"markerfacecolor": "white", "markeredgewidth": 1.1}
    label = pens.NAMES[name] + (" (not in the paper's figure)" if extra else "")
    axes.plot(list(cells), gaps, linestyle=":" if extra else "-", zorder=3, label=label, **look)
    for n, cell in cells.items():
        if cell.low is not None and cell.high is not None and cell.low > 0:
            axes.plot([n, n], [cell.low, cell.high], color=pens.COLOUR[name], linewidth=0.8, zorder=2)


FAR = 30.0  # % above the shortest length


@dataclass(frozen=True)
class Swept:
    """One model's sweep at one size."""

    name: str
    size: int  # the paper's
    dataset: Dataset
    factors: NDArray[np.float64]  # (f,)
    lengths: NDArray[np.float64]  # (f,) mean tour lengths on the original coordinates
    fit: Parabola  # nan where nothing could be fitted
    printed: float | None  # the paper's best factor

    @property
    def unit(self) -> float:
        """The length that others are relative to: at the factor nearest to 1."""
        return float(self.lengths[np.argmin(np.abs(np.log(self.factors)))])

    @property
    def relative(self) -> NDArray[np.float64]:
        """Lengths, in % above the one at factor 1."""
        return np.asarray(100 * (self.lengths / self.unit - 1))

    def rows(self) -> list[dict[str, Any]]:
        about = {"series": pens.NAMES[self.name], "size": self.size, "n": self.dataset.n}
        parabola = {"best_factor": self.fit.best, "interior": self.fit.interior}
        parabola |= {f"parabola_{name}": getattr(self.fit, name) for name in "abc"}
        parabola |= {"fitted_from": self.fit.low, "fitted_to": self.fit.high}
        rows: list[dict[str, Any]] = [
            {"side": MEASURED, **about, "factor": x, "length": y, "relative_pct": r, **parabola}
            for x, y, r in zip(self.factors, self.lengths, self.relative, strict=True)
        ]
        if self.printed is not None:
            rows.append({"side": PUBLISHED, **about, "n": self.size, "best_factor": self.printed})
        return rows


@artifact(
    "Tour length against the scaling factor of the coordinates",
    needs=lambda scale: (pens.rescaling(scale, name) for name in pens.RESCALED),
    printed_files=("table1",),
)
def figure3(study: Study) -> Drawing:
    swept = {name: [_swept(study, name, size) for size in pens.SIZES] for name in pens.RESCALED}
    figure = new_figure(height=5.0)
    panels = figure.subplots(len(swept), len(pens.SIZES), sharex="col", squeeze=False)
    limits: dict[int, tuple[float, float]] = {}  # by size, with room for every factor, the paper's as well
    for of_size in zip(*swept.values(), strict=True):
        values = [v for each in of_size for v in (*each.factors, each.fit.best, each.printed) if v is not None]
        margin = 0.07 * (max(values) - min(values))
        limits[of_size[0].size] = min(values) - margin, max(values) + margin
    for row, (name, sweeps) in enumerate(swept.items()):
        for axes, each in zip(panels[row], sweeps, strict=True):
            _draw_sweep(axes, each)
            axes.set_xlim(*limits[each.size])
            if row == 0:
                here = f"TSP{each.dataset.n:,}"
                paper = f"\n(paper: {each.size:,})" if each.dataset.n != each.size else ""
                axes.set_title(here + paper, loc="center", fontsize=7.5, pad=14)  # above the best factor
        panels[row, 0].set_ylabel(f"({'abc'[row]}) {pens.NAMES[name]}\nmean tour length")
    panels[-1, len(pens.SIZES) // 2].set_xlabel("Scaling factor of the coordinates")
    handles = [
        style.mark("mean length at a factor", "o", style.GREY),
        style.line("fitted parabola (dotted: no minimum inside)", color=style.GREY, linewidth=1),
        style.line("its minimum, the best factor", color=style.GREY, linewidth=0.8, linestyle="--"),
        style.mark("the paper's (Table 1)", "^", style.INK, markerfacecolor="white"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.4)
    rows = [row for sweeps in swept.values() for each in sweeps for row in each.rows()]
    alt = "Mean tour length against the coordinates' scaling factor with parabolas, for three models and five sizes."
    every = [each for sweeps in swept.values() for each in sweeps]
    sets = dict.fromkeys(pens.held_out(study.scale, size) for size in pens.SIZES)
    counts = ", ".join(f"{dataset.count:,} TSP{dataset.n:,}" for dataset in sets)
    outside = [f"{pens.NAMES[each.name]} at TSP{each.dataset.n:,}" for each in every if not each.fit.interior]
    bare = {f"TSP{each.dataset.n:,}" for each in every if not np.any(np.isclose(each.factors, 1))}
    without_one = "Without factor 1 in the sweep, so relative to the factor nearest to it"
    rest = (
        "None is drawn there; what is rescaled nevertheless (Tables 1 to 3) takes the factor with the shortest tours "
        "of those swept."
    )
    texts = notes(
        study,
        counts=counts,
        trained=study.scale[pens.PensScale].sizes[100],
        far=FAR,
        outside=f"No minimum between the fitted factors: {', '.join(outside)}. {rest}" if outside else "",
        bare=f"{without_one}: {', '.join(bare)}." if bare else "",
    )
    return Drawing(figure, rows, texts, alt, _factors_table(study, swept))


def _swept(study: Study, name: str, size: int) -> Swept:
    stored, dataset = study.arrays(f"{pens.run_id(name)}/rescaling"), pens.held_out(study.scale, size)
    at = int(np.flatnonzero(stored["sizes"] == dataset.n)[0])
    factors, lengths, (a, b, c), (low, high) = (
        np.asarray(stored[f"{dataset.id}|{key}"], np.float64) for key in ("factors", "lengths", "parabola", "fitted")
    )
    best, interior = float(stored["best"][at]), bool(stored["interior"][at])
    fit = Parabola(float(a), float(b), float(c), best, interior, float(low), float(high))
    paper = number(printed_numbers(study, 1, method=pens.NAMES[name], scaled="yes"), size, "scale_factor")
    printed_factor = paper if isinstance(paper, float) else None
    return Swept(name, size, dataset, factors, lengths, fit, printed_factor)


def _draw_sweep(axes: mpl.axes.Axes, each: Swept) -> None:
    colour = pens.COLOUR[each.name]
    finite = np.isfinite(each.relative)
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(3))
    axes.yaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
    axes.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda v, _: f"{v:g}".replace("-", "−")))
    axes.tick_params(labelsize=6)
    if not finite.any():
        style.empty_axes(axes, "lengths are\nnot finite")
        return
    # What lies far above what is fitted would flatten the rest: it is drawn at the panel's upper edge.
    far = finite & (each.relative > each.relative[finite].min() + FAR)
    near = finite & ~far
    axes.plot(
        each.factors[near], each.lengths[near], pens.MARKER[each.name], color=colour, markersize=3.6,
        markeredgecolor="white", markeredgewidth=0.4, zorder=3,
    )  # fmt: skip
    low, high = float(each.lengths[near].min()), float(each.lengths[near].max())
    if np.isfinite([each.fit.a, each.fit.b, each.fit.c]).all():
        x = np.linspace(each.fit.low, each.fit.high, 80)
        y = each.fit(x)
        axes.plot(x, y, "-" if each.fit.interior else ":", color=colour, linewidth=1, zorder=2)
        low, high = min(low, float(y.min())), max(high, float(y.max()))
    if each.fit.interior:
        axes.axvline(each.fit.best, color=colour, linewidth=0.8, linestyle="--", zorder=1, alpha=0.8)
    span = (high - low) or 1.0
    axes.set_ylim(low - 0.12 * span, high + (0.2 if far.any() else 0.1) * span)
    if far.any():  # not clipped, and a mark of nothing lies nowhere: the layout would collapse
        axes.plot(
            each.factors[far], np.full(far.sum(), 1.0), linestyle="none", marker=mpl.markers.CARETUP, color=colour,
            markersize=4.5, transform=axes.get_xaxis_transform(), zorder=3, clip_on=False,
        )  # fmt: skip
    words = f"×{each.fit.best:.2f}" if each.fit.interior else "no minimum found"
    axes.text(0.5, 1.04, words, transform=axes.transAxes, ha="center", va="bottom", fontsize=6)
    if each.printed is not None:
        axes.plot(
            each.printed, 0.0, "^", transform=axes.get_xaxis_transform(), clip_on=False, markersize=5.5,
            markerfacecolor="white", markeredgecolor=style.INK, markeredgewidth=0.9, zorder=5,
        )  # fmt: skip


def _factors_table(study: Study, swept: Mapping[str, Sequence[Swept]]) -> Table:
    """Best factors, here and printed."""
    rows, columns = [], []
    for name, sweeps in swept.items():
        cells = (Cell(s.fit.best if np.isfinite(s.fit.best) else "not finite", s.printed) for s in sweeps)
        rows.append(Row((pens.NAMES[name],), tuple(cells)))
    for size in pens.SIZES:
        d, paper = pens.held_out(study.scale, size), f"TSP{size:,}"
        columns.append(Column(f"factor_{size}", f"TSP{d.n:,}", "", fixed(2), at=described(d), paper=paper))
    return Table("Best scaling factors", ("Model",), tuple(columns), tuple(rows))


INITIAL = {"zero": ("zero", style.RAMPS["orange"][1], "s"), "gauss": ("Gaussian", style.RAMPS["blue"][2], "o")}
MODELS = {"a": pens.NAMES["pens_a"], "r": pens.NAMES["pens_r"]}
PANELS = {"a": "ac", "r": "bd"}  # after training and while training
CURVES = (20, 100)  # the paper's sizes of the training curves
DASHES: dict[int, Any] = {20: (0, (3, 1.5)), 100: "-"}


@artifact(
    "Zero and Gaussian initial embeddings",
    needs=lambda scale: [*needs_of(table_figure5_grid)(scale), *(Log(pens.run_id(name)) for name in pens.SMALL)],
    printed_files=("figure5a_table",),
)
def figure5(study: Study) -> Drawing:
    figure = new_figure(height=4.6)
    panels = figure.subplots(2, 2, height_ratios=(1, 1.15), sharey="row")
    ends, curves = _ends(study), _validations(study)
    renamed = any(study.scale[pens.PensScale].sizes[size] != size for size in pens.SMALL_SIZES)
    for column, (key, model) in enumerate(MODELS.items()):
        top, bottom = panels[:, column]
        _draw_ends(top, [row for row in ends if row["series"] == model])
        top.set_xticks(range(len(pens.SMALL_SIZES)), [pens.size_label(study, size) for size in pens.SMALL_SIZES])
        top.set_xlabel("Nodes" + (" (the paper's)" if renamed else ""))
        top.set_title(f"({PANELS[key][0]}) {model}, after training")
        of_model = [row for row in curves if row["series"] == model]
        last = 1
        for words, colour, marker in INITIAL.values():
            for size in CURVES:
                mine = [r for r in of_model if r["initial"] == words and r["size"] == size and r["batch"] > 0]
                x = [r["batch"] for r in mine]
                y = [drawable(r["gap_pct"]) for r in mine]
                bottom.plot(
                    x, y, color=colour, linestyle=DASHES[size], linewidth=1.1, marker=marker, markersize=2.6,
                    markeredgewidth=0,
                )  # fmt: skip
                last = max([last, *x])
        style.batches_axis(bottom, last)
        bottom.set_xlabel("Training batches")
        bottom.set_title(f"({PANELS[key][1]}) {model}, while training" + (" (not in the paper)" if key == "a" else ""))
    for row, rows_drawn, label in ((panels[0], ends, "Optimality gap (%)"), (panels[1], curves, "Validation gap (%)")):
        gaps = [drawable(r["gap_pct"]) for r in rows_drawn if r.get("batch") != 0]  # before training: not drawn
        style.log_axis(row[0], "y", gaps)
        row[0].set_ylabel(label)
        if all(map(math.isnan, gaps)):
            for axes in row:
                style.empty_axes(axes, "no positive gap to draw")
    handles = [style.mark(f"{words} embeddings", marker, colour) for words, colour, marker in INITIAL.values()]
    handles.append(style.mark("(a, b) published", "o", style.GREY, markerfacecolor="white", markeredgewidth=1.1))
    for size in CURVES:
        label = f"(c, d) on TSP{pens.size_label(study, size)}"
        handles.append(style.line(label, color=style.INK, linestyle=DASHES[size], linewidth=1.1))
    figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.3)
    alt = "Gaps of small PENS-A and PENS-R from zero and Gaussian embeddings at three sizes, and while training."
    return Drawing(figure, [*ends, *curves], _embedding_notes(study, ends, curves), alt)


def _ends(study: Study) -> list[dict[str, Any]]:
    """Gaps of the trained models on the three sizes, measured and printed."""
    rows: list[dict[str, Any]] = []
    decoding = pens.repeated(study.scale)
    for key, model in MODELS.items():
        for initial, (words, _, _) in INITIAL.items():
            run = pens.run_id(f"small_{key}_{initial}")
            about = {"panel": PANELS[key][0], "series": model, "initial": words}
            values = pens.printed_gaps(study, "figure5a_table", method=model, init=words.lower())
            for size in pens.SMALL_SIZES:
                dataset = pens.reference(study.scale, size).dataset
                cell = mean_of_gaps_cell(study, run, dataset, decoding=decoding)
                if cell.measured is not None:
                    values_here = {"side": MEASURED, "size": size, "n": dataset.n, "run": run, "gap_pct": cell.measured}
                    rows.append(about | values_here | {"low_pct": cell.low, "high_pct": cell.high})
                if size in values:
                    rows.append(about | {"side": PUBLISHED, "size": size, "n": size, "gap_pct": values[size]})
    return rows


def _validations(study: Study) -> list[dict[str, Any]]:
    """Every validation of the logs, on both sizes."""
    sets = {size: pens.validation(study.scale, size).dataset for size in CURVES}
    rows: list[dict[str, Any]] = []
    for key, model in MODELS.items():
        for initial, (words, _, _) in INITIAL.items():
            run = pens.run_id(f"small_{key}_{initial}")
            about = {"panel": PANELS[key][1], "side": MEASURED, "series": model, "initial": words, "run": run}
            for line in study.log(run, "validation").to_dict("records"):
                at = {"batch": int(line["batch"]), "samples": int(line["samples"])}
                listed = line.get("gaps_pct")
                if not isinstance(listed, dict):  # the run's own gap alone
                    listed = {sets[min(sets)].id: line["gap_pct"]}
                for size, dataset in sets.items():
                    if dataset.id in listed:
                        gap = float(listed[dataset.id])
                        rows.append(about | at | {"size": size, "n": dataset.n, "gap_pct": gap})
    return rows


def _draw_ends(axes: mpl.axes.Axes, rows: Sequence[dict[str, Any]]) -> None:
    """Beside each other at every size: filled what was measured, hollow what was printed."""
    for i, (words, colour, marker) in enumerate(INITIAL.values()):
        for side, shift in ((MEASURED, -0.2), (PUBLISHED, 0.14)):
            mine = [r for r in rows if r["initial"] == words and r["side"] == side]
            x = [pens.SMALL_SIZES.index(r["size"]) + shift + 0.08 * i for r in mine]
            y = [drawable(r["gap_pct"]) for r in mine]
            look: dict[str, Any] = {"color": colour, "markersize": 5.5, "linestyle": "none", "marker": marker}
            if side == PUBLISHED:
                look |= {"markerfacecolor": "white", "markeredgewidth": 1.1}
            else:
                look |= {"markeredgecolor": "white"}
                for at, row in zip(x, mine, strict=True):
                    if row["low_pct"] is not None and row["low_pct"] > 0:
                        axes.plot([at, at], [row["low_pct"], row["high_pct"]], color=colour, linewidth=0.8)
            axes.plot(x, y, zorder=3, **look)
    for edge in range(1, len(pens.SMALL_SIZES)):
        axes.axvline(edge - 0.5, color="#e6e8ec", linewidth=0.6, zorder=0)
    axes.set_xlim(-0.5, len(pens.SMALL_SIZES) - 0.5)
    axes.grid(visible=False, axis="x")


def _embedding_notes(study: Study, ends: Sequence[dict[str, Any]], curves: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    sets = [pens.reference(study.scale, size).dataset for size in pens.SMALL_SIZES]
    validation = [pens.validation(study.scale, size).dataset for size in CURVES]
    training = study.runs[pens.run_id("small_r_gauss")].training
    nodes = study.scale[pens.PensScale].sizes[20]
    compared = []
    for model in MODELS.values():
        measured = [r for r in ends if r["series"] == model and r["side"] == MEASURED]
        parts = []
        for size in pens.SMALL_SIZES:
            at = {r["initial"]: r for r in measured if r["size"] == size and math.isfinite(r["gap_pct"])}
            if len(at) == 2:
                zero, gauss = at["zero"]["gap_pct"], at["Gaussian"]["gap_pct"]
                parts.append(f"TSP{at['zero']['n']:,} zero {decimal(zero)} %, Gaussian {decimal(gauss)} %")
        comparison = "; ".join(parts)
        if comparison:
            compared.append(f"{model} here: {comparison}.")
    hidden = [
        *hidden_note((r["gap_pct"] for r in ends if r["side"] == MEASURED), "test"),
        *hidden_note((r["gap_pct"] for r in curves), "validation"),
    ]
    return notes(
        study,
        nodes=nodes,
        samples=training.samples,
        tests="; ".join(described(d) for d in sets),
        several=pens.several(study),
        spread=pens.spread_note(study, pens.SMALL, sets, pens.repeated(study.scale)),
        validation=" and ".join(described(d) for d in validation),
        compared=compared,
        hidden=hidden,
    )


SIDE = 0.96  # of the maps, in inches


@dataclass(frozen=True)
class Attention(NetworkSnapshot):
    """A run, its modules and the arrays of its attention evaluation."""

    name, weight = "attention", "layers.0.qkv.weight"

    @property
    def walk(self) -> Walk:
        return Walk(*(self.array(f"small_{name}") for name in ("coords", "tour", "probabilities")))


@dataclass(frozen=True)
class Walk:
    """A small instance that was solved greedily."""

    coords: maps.Array  # (m, 2)
    tour: maps.Array  # (m,) from node 0
    probabilities: maps.Array  # (m - 1, m)

    def name(self, node: int) -> str:
        return chr(ord("A") + node) if len(self.coords) <= 26 else str(node)

    def rows(self) -> list[dict[str, Any]]:
        place, rows = np.argsort(self.tour), []  # stop of the tour
        for k, chances in enumerate(self.probabilities):
            kinds = np.where(place < k, "visited", np.where(place == k, "origin", "candidate"))
            columns = {"place": kinds, "probability": {i: float(chances[i]) for i in np.flatnonzero(place > k)}}
            columns |= {"chosen": place == k + 1}
            for each in maps.node_rows(self.coords, {"panel": "a", "side": MEASURED, "decision": k + 1}, columns):
                x, y = (float(v) for v in self.coords[each["node"]])
                rows.append(each | {"node": self.name(each["node"]), "x": x, "y": y})
        return rows


@artifact("Path-TSP and the model, drawn from the live network", needs=lambda scale: pens.attention(scale, "pens_a"))
def figure2(study: Study) -> Drawing:
    """One path-TSP step by step (a), and the model that solves it (b)."""
    net = Attention.read(study, pens.run_id("pens_a"))
    walk, decisions = net.walk, range(len(net.walk.probabilities))
    panels = [
        (dg.panel(f"map{k}", SIDE, SIDE, f"decision {k + 1}"), dg.panel(f"bars{k}", SIDE, 0.42, below=0.1))
        for k in decisions
    ]
    steps = [dg.column(*pair, top=True, gap=0.06) for pair in panels]
    marks = {"origin": maps.MARKS["current"]} | {name: maps.MARKS[name] for name in ("destination", "visited")}
    sheet = dg.Sheet.of(study, net.model, steps=steps, marks=marks, cities=len(walk.coords))
    for k in decisions:
        _draw_step(sheet.axes[f"map{k}"], walk, k)
        # A bar for each candidate, in the colour that it has on the map.
        axes = sheet.axes[f"bars{k}"]
        chances, nodes = walk.probabilities[k], sorted(int(node) for node in walk.tour[k + 1 :])
        if np.isfinite(chances[nodes]).all():
            colours = [_shade(c) for c in chances[nodes]]
            axes.bar(nodes, chances[nodes], width=0.7, color=colours, edgecolor=style.INK, linewidth=0.5)
        else:
            maps.write_not_finite(axes)
        axes.set_xticks(nodes, [walk.name(node) for node in nodes])
        axes.set(xlim=(-0.6, len(walk.coords) - 0.4), ylim=(0, 1.05), yticks=[])
        axes.tick_params(labelsize=5.5, length=0, pad=1.5)
        axes.grid(visible=False)
    _draw_step(sheet.axes["tour"], walk, len(decisions))
    first = sheet.axes["bars0"]
    first.set_yticks([0, 1])
    first.set_ylabel("probability", fontsize=5.5, labelpad=1)
    first.tick_params(axis="y", pad=1)
    alt = "Steps of a path-TSP with the probabilities of its candidates, and the network's modules with their shapes."
    texts = notes(study, net=net, m=net.model, length=tour_length(walk.coords, walk.tour))
    return Drawing(sheet.figure, [*walk.rows(), *net.model.rows()], texts, alt)


def _draw_step(axes: mpl.axes.Axes, walk: Walk, step: int) -> None:
    """The state before a decision, its candidates coloured by their probability; last the closed tour."""
    is_last = step == len(walk.probabilities)
    path = [*walk.tour, walk.tour[0]] if is_last else walk.tour[: step + 1]
    axes.plot(*walk.coords[path].T, color=style.INK, linewidth=1.3, zorder=2)
    faces: dict[int, Any] = {int(node): maps.VISITED for node in path}
    if not is_last:
        axes.plot(*walk.coords[walk.tour[step : step + 2]].T, color=style.INK, linewidth=0.9, linestyle=":", zorder=1)
        faces |= {int(node): _shade(walk.probabilities[step][node]) for node in walk.tour[step + 1 :]}
        maps.draw_mark(axes, walk.coords[walk.tour[step]], "current", 10.5)
        # at the shoulder of its node, so that both are seen
        axes.annotate("★", walk.coords[walk.tour[0]], (4.4, 4.4), textcoords="offset points", ha="center", va="center",
                      fontsize=7, color=maps.MARKS["destination"]["color"], zorder=6)  # fmt: skip
    for node, face in faces.items():
        at = tuple(walk.coords[node])
        axes.plot(*at, "o", color=face, markersize=7, markeredgecolor=style.INK, markeredgewidth=0.7, zorder=3)
        ink = style.INK if face == maps.VISITED or sum(face[:3]) >= 1.5 else "white"
        axes.annotate(walk.name(node), at, ha="center", va="center_baseline", fontsize=5, color=ink, zorder=4)
    maps.frame_square(axes, walk.coords, margin=0.22)


def _shade(chance: float) -> Any:
    return maps.color_values("Blues", float(chance)) if np.isfinite(chance) else (1.0, 1.0, 1.0, 1.0)


LOW, HIGH = 2, 98  # percentiles of a panel's logits between which its colours may lie
MAP = "viridis"


@artifact(
    "Where the origin looks, by scaling factor",
    needs=lambda scale: (need for name in pens.MAPPED for need in pens.attention(scale, name)),
)
def figure6(study: Study) -> Drawing:
    nets = {name: Attention.read(study, pens.run_id(name)) for name in pens.MAPPED}
    columns = max(len(net.array("factors")) for net in nets.values())
    figure = new_figure(height=len(nets) * (5.75 / columns + 0.3) + 0.45)
    panels = figure.subplots(len(nets), columns, squeeze=False)
    for i, (name, net) in enumerate(nets.items()):
        ranges = [_range(net, j) for j in range(len(net.array("factors")))]
        reach = max(1e-9, *(high - low for low, high in ranges))  # below the highest: softmax knows differences alone
        norm = mpl.colors.Normalize(-reach, 0)
        for j in range(columns):
            _draw_map(panels[i, j], net, j, norm)
        panels[i, 0].set_ylabel(pens.NAMES[name], fontweight="bold", fontsize=8)
        bar = figure.colorbar(mpl.cm.ScalarMappable(norm, MAP), ax=panels[i].tolist(), pad=0.015)
        bar.set_label("Logit below the highest", fontsize=6)
        bar.set_ticks([-reach, 0], labels=[f"−{reach:.3g}", "0"], fontsize=6)
        bar.outline.set_visible(False)
    marks = {"origin": maps.MARKS["current"], "destination": maps.MARKS["destination"]}
    handles = [style.line(name, linestyle="none", **look) for name, look in marks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    alt = "Maps of the origin's mean attention logits over the square for three models and several scaling factors."
    rows = [row for name, net in nets.items() for row in _rows(name, net)]
    texts = notes(study, dataset=pens.held_out(study.scale, max(pens.SIZES)), high=HIGH, low=LOW)
    # What the maps show, as numbers: how local the look is, and whether it finds the destination.
    title = "Where the origin looks"
    looks = tuple(
        Row((pens.NAMES[name], label.replace("best:", "best,")), tuple(Cell(v) for v in measure_look(net, j)))
        for name, net in nets.items()
        for j, label in enumerate(_titles(net))
    )
    heads = (
        Column("nearness", "Nearness", "", fixed(2), title),
        Column("destination_pct", "Destination", "%", fixed(1), title),
    )
    return Drawing(figure, rows, texts, alt, Table(title, ("Model", "Factor"), heads, looks))


def _titles(net: Attention) -> list[str]:
    """Of the factors; the last is the best one."""
    *others, best = (float(factor) for factor in net.array("factors"))
    return [*(f"×{factor:g}" for factor in others), f"best: ×{best:.2f}"]


def _range(net: Attention, column: int) -> tuple[float, float]:
    """The lowest and the highest logit of a panel, but for a few; (0, 0) where none is finite."""
    logits = net.array("logits", float)[column]
    finite = np.isfinite(logits)
    finite[int(net.number("origin"))] = False  # its logit for itself would stretch the colours
    low, high = np.percentile(logits[finite], (LOW, HIGH)) if finite.any() else (0.0, 0.0)
    return float(low), float(high)


def _draw_map(axes: mpl.axes.Axes, net: Attention, column: int, norm: mpl.colors.Normalize) -> None:
    coords, logits = net.array("coords"), np.asarray(net.array("logits")[column], float)
    maps.frame_square(axes, margin=0.03)
    axes.set_title(_titles(net)[column], loc="center", fontsize=7, pad=2)
    finite = np.isfinite(logits)
    finite[int(net.number("origin"))] = False  # its logit for itself would stretch the colours
    if not finite.any():
        style.empty_axes(axes, "not finite")
        return
    low, high = _range(net, column)
    order = np.flatnonzero(finite)[np.argsort(logits[finite], kind="stable")]  # the highest on top
    side = 72 * 6.2 / max(len(net.array("factors")), 1)  # points
    size = float(np.clip((0.9 * side) ** 2 / len(coords) * 0.5, 0.35, 26))
    x, y = coords[order].T
    axes.scatter(x, y, size, logits[order] - high, cmap=MAP, norm=norm, linewidths=0, rasterized=True)
    maps.draw_mark(axes, coords[int(net.number("origin"))], "current", 6.5)
    maps.draw_mark(axes, coords[int(net.number("destination"))], "destination", 9)
    axes.set_xlabel(f"{low:.1f} … {high:.1f}".replace("-", "−"), fontsize=6, labelpad=1.5)


def _rows(name: str, net: Attention) -> list[dict[str, Any]]:
    """A row for each node, a column for each factor: long tables of 10,000 nodes would be several times as large."""
    *others, best = (float(factor) for factor in net.array("factors"))
    keys = [*(f"logit_x{factor:g}" for factor in others), "logit_best"]
    logits = np.round(net.array("logits", float), 4).T.tolist()
    coords = np.round(net.array("coords", float), 6).tolist()
    ends = {int(net.number(end)): end for end in ("origin", "destination")}
    return [
        {"side": MEASURED, "series": pens.NAMES[name], "node": node, "x": x, "y": y}
        | {"place": ends.get(node, "candidate"), **dict(zip(keys, values, strict=True)), "best_factor": best}
        for node, ((x, y), values) in enumerate(zip(coords, logits, strict=True))
    ]


def measure_look(net: Attention, column: int) -> tuple[float | str, float | str]:
    """(rank correlation of logit and nearness, share of nodes whose logit is below the destination's in %)."""
    from scipy.stats import spearmanr

    logits, coords = np.asarray(net.array("logits")[column], float), net.array("coords", float)
    origin, destination = int(net.number("origin")), int(net.number("destination"))
    others = np.isfinite(logits)
    others[[origin, destination]] = False
    if others.sum() < 3 or not np.isfinite(logits[destination]):
        return "not finite", "not finite"
    near = -np.linalg.norm(coords - coords[origin], axis=1)
    below = 100 * float(np.mean(logits[others] < logits[destination]))
    if np.ptp(logits[others]) == 0:
        return "all equal", below
    return float(spearmanr(near[others], logits[others]).statistic), below
