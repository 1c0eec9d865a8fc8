"""Figures 1 and 4 of paper `pens`: gaps at the largest size and over sizes, here and as printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from neuroute.core.lazy import mpl, pd
from neuroute.pipeline.papers.pens import paper as pens
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact, tested
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import mean_of_gaps_cell, number, printed_numbers, solver_name
from neuroute.pipeline.rendering.columns import decimal, described
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, PUBLISHED, Drawing, drawable, hidden_note, new_figure
from neuroute.pipeline.rendering.table import Cell
from neuroute.specs.objects import Decoding

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
    _draw_measured(here, bars, places)
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
    points = pd.DataFrame([row for bar in bars for row in _rows(bar, dataset.n)])
    alt = f"Bars of the optimality gap of {len(bars)} solvers at the largest size, measured here and as published."
    return Drawing(figure, points, _bar_notes(study, bars), alt)


def _bars(study: Study) -> list[list[Bar]]:
    """Solvers that see the whole graph, those that do not, and the paper's own."""
    dataset = pens.reference(study.scale, LARGEST).dataset

    def gap(run: str | None, decoding: Decoding, table: str, **where: object) -> Cell:
        value = number(printed_numbers(study, table, **where), LARGEST, "gap_pct")
        return mean_of_gaps_cell(study, run, dataset, value, decoding) if run else Cell(published=value)

    name = pens.NAMES["coordns"]
    decoding = pens.repeated(study.scale)
    run = pens.run_id("coordns")
    own = [Bar(name, pens.COLOUR["coordns"], run, decoding, gap(run, decoding, "figure4_table", method=name))]
    whole: list[Bar] = []
    sparse: list[Bar] = []
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


def _draw_measured(axes: mpl.axes.Axes, bars: Sequence[Bar], places: Sequence[float]) -> None:
    ends: list[float] = []
    for y, bar in zip(places, bars, strict=True):
        gap = bar.gap.measured
        if not isinstance(gap, float):
            why = "not measured" if bar.run else "published only"
            axes.text(0, y, f" {why}", color=style.GREY, va="center", fontsize=6)
            continue
        axes.barh(y, gap, height=0.62, color=bar.colour, alpha=0.55 if bar.faded else 1, linewidth=0)
        low, high = (gap if end is None else end for end in (bar.gap.low, bar.gap.high))
        axes.plot([low, high], [y, y], color=style.INK, linewidth=0.8, zorder=3)
        _value(axes, y, gap, max(gap, high) if gap >= 0 else min(gap, low))
        ends += [gap, low, high]
    _set_limits(axes, ends)


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


def _rows(bar: Bar, nodes: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    if bar.gap.measured is not None:
        about = {"side": MEASURED, "series": bar.label, "run": bar.run, "decoding": bar.decoding.name, "n": nodes}
        rows.append(about | {"gap_pct": bar.gap.measured, "low_pct": bar.gap.low, "high_pct": bar.gap.high})
    if bar.gap.published is not None:
        rows.append({"side": PUBLISHED, "series": bar.label, "n": LARGEST, "gap_pct": bar.gap.published})
    return rows


def _bar_notes(study: Study, bars: Sequence[Bar]) -> tuple[str, ...]:
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
    return notes(
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


def _figure4_needs(scale: Scale) -> Iterator[Need]:
    tests = [pens.reference(scale, size) for size in pens.SIZES]
    return tested(map(pens.run_id, pens.POSITIONS), tests, pens.repeated(scale))


@artifact("ALiBi, RoPE and coordinates across sizes", needs=_figure4_needs, printed_files=("figure4_table", "table3"))
def figure4(study: Study) -> Drawing:
    figure = new_figure(height=3.0)
    here, paper = figure.subplots(1, 2)
    sizes = {size: study.scale[pens.PensScale].sizes[size] for size in pens.SIZES}
    rows: list[dict[str, Any]] = []
    for name in pens.POSITIONS:
        run, decoding = pens.run_id(name), pens.repeated(study.scale)
        sets = {size: pens.reference(study.scale, size).dataset for size in pens.SIZES}
        cells = {size: mean_of_gaps_cell(study, run, dataset, decoding=decoding) for size, dataset in sets.items()}
        measured_over_sizes = {size: cell for size, cell in cells.items() if cell.measured is not None}
        label, cells = pens.NAMES[name], measured_over_sizes
        if name == EXTRA:
            values = pens.printed_gaps(study, "table3", method=label, scaled="no")
        else:
            values = pens.printed_gaps(study, "figure4_table", method=label)
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
    here.set_xticks(list(sizes.values()), [_tick(sizes, size) for size in sizes])
    here.set_xlabel("Nodes here" + (" (in the paper)" if any(a != b for a, b in sizes.items()) else ""))
    paper.set_xlabel("Nodes")
    here.set_title(f"Here: scale “{study.scale.name}”")
    paper.set_title("Paper: Figure 4's table")
    figure.legend(*here.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    alt = "Optimality gap over instance size of CoordNS, PENS-A, PENS-R and PENS-AR, measured here and as published."
    return Drawing(figure, points, _size_notes(study, points), alt)


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


def _tick(sizes: dict[int, int], size: int) -> str:
    """Nodes here and, beneath, the sizes of the paper that they stand for."""
    here = sizes[size]
    roles_here = [style.plain_number(role) for role, n in sizes.items() if n == here]
    return style.plain_number(here) if here == size else f"{style.plain_number(here)}\n({', '.join(roles_here)})"


def _size_notes(study: Study, points: pd.DataFrame) -> tuple[str, ...]:
    sets = [pens.reference(study.scale, size).dataset for size in pens.SIZES]
    points_here = points[points.side == MEASURED]
    orders = []
    for size in pens.SIZES:
        at = points_here[(points_here["size"] == size) & points_here.gap_pct.notna()].sort_values("gap_pct")
        if size in (min(pens.SIZES), LARGEST) and len(at):
            order = ", ".join(f"{s} {decimal(g)} %" for s, g in zip(at.series, at.gap_pct, strict=True))
            orders.append(f"At TSP{pens.size_label(study, size)} here: {order}.")
    return notes(
        study,
        trained=study.scale[pens.PensScale].sizes[100],
        tests=", ".join(f"{d.count:,} TSP{d.n:,}" for d in dict.fromkeys(sets)),
        several=pens.several(study),
        spread=pens.spread_note(study, pens.POSITIONS, dict.fromkeys(sets), pens.repeated(study.scale)),
        hidden=hidden_note(points_here.gap_pct, "measured"),
        orders=orders,
    )
