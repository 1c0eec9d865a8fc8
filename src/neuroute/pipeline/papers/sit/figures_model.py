"""Figure 1 of paper `sit`: what cross-attention saves, a module, and the network over a decision."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from neuroute.core.lazy import mpl, pd
from neuroute.pipeline.papers.sit import paper as sit
from neuroute.pipeline.papers.sit.snapshot import ENDS, NEAREST, Round
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact, tested
from neuroute.pipeline.rendering import diagram as dg
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.cells import gap_cell
from neuroute.pipeline.rendering.columns import described
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, Drawing, drawable, hidden_note, new_figure
from neuroute.pipeline.rendering.table import Cell, Table, fixed
from neuroute.pipeline.rendering.table import Column as TableColumn
from neuroute.pipeline.rendering.table import Row as TableRow
from neuroute.specs.objects import Reconstruction

MAPPED = 4  # modules whose looks are drawn, the first and the last among them
STRONG = 4  # times the weight that each node had if all had the same: the darkest colour of a look
GRID_TOKENS = 60  # up to so many the single products are ruled
LIKELIEST = 5  # candidates whose probabilities are bars


@artifact("The network, drawn from a decoding state", needs=sit.round_needs)
def figure1(study: Study) -> Drawing:
    """What cross-attention saves (a), a module (b), and the network over a decision (c)."""
    net = Round.of_sit(study)
    m, modules = net.model, f"{net.model.depth} module{'s' * (net.model.depth > 1)}"
    names = {"visited": "visited: not seen again", "destination": "destination (the first node)"}
    marks = {names.get(kind, kind): maps.MARKS[kind] for kind in ("current", "destination", "visited", "candidate")}
    full, cross = net.products
    sheet = dg.Sheet.of(
        study, m, net=net, full=full, cross=cross, part=maps.format_percent(cross / full), modules=modules, marks=marks,
        linears=m.count("decoder.current.") + m.count("decoder.start."), looks=_looks(net),
    )  # fmt: skip
    _draw_products(sheet, net)
    maps.draw_state(sheet.axes["state"], net.decision)
    maps.draw_probabilities(sheet.axes["chances"], net.decision)
    _draw_likeliest(sheet.axes["likeliest"], net)
    for module in _mapped(net):
        for of in ENDS:
            _draw_look(sheet.axes[f"{of}{module}"], net, module, of)
    about = {"panel": "a", "side": MEASURED, "tokens": net.tokens, "representatives": net.representatives}
    counted = [about | {"attention": k, "products": v} for k, v in zip(("self", "cross"), net.products, strict=True)]
    alt = (
        "Squares of attention products to scale; a cross-attention module with its shapes; and the network between "
        "maps of a path under construction, of the candidates' probabilities and of where the representatives look."
    )
    rows = [*counted, *net.model.rows(), *net.decision_rows()]
    return Drawing(sheet.figure, rows, _notes(study, net), alt, _look_table(net))


def _draw_products(sheet: dg.Sheet, net: Round) -> None:
    t, m = net.tokens, net.representatives
    gap = 0.05 * t
    for axes in (sheet.axes["self"], sheet.axes["cross"]):
        axes.set_xlim(0, t)
        axes.set_ylim(0, t)
        axes.axis("off")
    _draw_cells(sheet.axes["self"], t, 0, t, style.RAMPS["blue"][1])
    axes = sheet.axes["cross"]
    _draw_cells(axes, t, t - m, t, style.RAMPS["orange"][1])
    _draw_cells(axes, m, 0, max(t - m - gap, 0.1 * t), style.RAMPS["orange"][1])
    dg.write(sheet.axes["self"], -0.06 * t, t / 2, "queries: all tokens", rotation=90)
    dg.write(axes, -0.06 * t, t - m / 2, str(m), ha="right" if m < 0.16 * t else "center")
    text = f"1. {m} representatives\nlook at all tokens;\n2. all look at them"
    dg.write(axes, (m + t) / 2, (t - m) / 2, text, fontsize=5.4, linespacing=1.5)


def _draw_cells(axes: mpl.axes.Axes, columns: int, low: float, high: float, colour: str) -> None:
    """A cell for each product, ruled where they can be told apart."""
    ruled = max(axes.get_xlim()) <= GRID_TOKENS
    x = np.arange(columns + 1) if ruled else np.array([0, columns])
    y = np.append(np.arange(low, high), high) if ruled else np.array([low, high])
    look: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.25} if ruled else {}
    cells = np.zeros((len(y) - 1, len(x) - 1))
    axes.pcolormesh(x, y, cells, cmap=mpl.colors.ListedColormap([f"{colour}8c"]), clip_on=False, **look)


def _mapped(net: Round) -> list[int]:
    """Modules whose looks are drawn, evenly spaced, both ends among them."""
    count = len(net.attention)
    return sorted({round(float(i)) for i in np.linspace(0, count - 1, min(count, MAPPED))})


def _looks(net: Round) -> list[dg.Element]:
    """Where the representatives look: a row of maps for each."""
    r = net.representatives - 1
    repeated = f"\n(mean of {r}\nrepetitions)" if r > 1 else ""
    texts = {"current": f"seen by the\ncurrent node{repeated}", "destination": "seen by the\ndestination"}
    looks = []
    for of, text in texts.items():
        titles = {m: f"module {m + 1}" if of == "current" else "" for m in _mapped(net)}
        panels = [dg.panel(f"{of}{module}", 0.6, 0.6, title, below=0.12) for module, title in titles.items()]
        looks.append(dg.row(dg.column(dg.words(text, 6, bold=True), width=0.8), *panels, gap=0.1))
    return looks


def _draw_likeliest(axes: mpl.axes.Axes, net: Round) -> None:
    """The likeliest candidates' probabilities, each named by its rank among the candidates by nearness."""
    decision, nodes = net.decision, net.decision.nearest_first()
    if decision.choice is None:
        style.empty_axes(axes, "not finite")
        axes.set_xticks([])
        return
    chances = decision.probabilities[nodes]
    best = np.lexsort((nodes, -chances))[:LIKELIEST]
    y = -np.arange(len(best))
    axes.barh(y, chances[best], height=0.7, color=maps.color_values("Blues", chances[best] / chances.max()),
              edgecolor=style.INK, linewidth=0.4)  # fmt: skip
    for at, chance in zip(y, chances[best], strict=True):
        axes.annotate(
            maps.format_percent(chance), (chance, at), (2.5, 0), textcoords="offset points", fontsize=5.6, va="center"
        )
    axes.set_yticks(y, [f"{ordinal(int(i) + 1)} nearest" for i in best], fontsize=5.6)
    axes.set_ylim(0.5 - LIKELIEST, 0.6)
    axes.set_xlim(0, 1.5 * float(chances.max()))
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0, pad=2)
    axes.grid(visible=False)
    axes.spines[["bottom", "left"]].set_visible(False)


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 22nd"""
    teens = 10 < number % 100 < 14
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _draw_look(axes: mpl.axes.Axes, net: Round, module: int, of: str) -> None:
    """Nodes in the colour and size of their weight, the same scale in all maps; the looking end is marked."""
    weights, nodes, decision = net.look(module, of), net.tokens_seen, net.decision
    area = maps.node_area(axes, len(decision.coords))
    maps.draw_nodes(axes, decision.coords, decision.path, "#e6e8ec", s=0.4 * area, linewidths=0, zorder=1)
    if np.isfinite(weights[nodes]).all():
        order = nodes[np.argsort(weights[nodes], kind="stable")]
        share = np.minimum(weights[order] * len(nodes) / STRONG, 1)
        colours, sizes = maps.color_values("Oranges", 0.08 + 0.92 * share), area * (0.6 + 1.4 * share)
        maps.draw_nodes(
            axes, decision.coords, order, colours, s=sizes, linewidths=0.3, edgecolors="#b5651d55", zorder=2
        )
        on_ends = weights[list({decision.current, decision.end})].sum()
        axes.set_xlabel(f"{100 * on_ends:.0f} % on the ends", fontsize=5.3, labelpad=1.5)
    else:
        maps.write_not_finite(axes, 5.5)
    maps.draw_mark(axes, decision.coords[decision.current if of == "current" else decision.end], of, 6)
    maps.frame_square(axes, decision.coords)


def _look_table(net: Round) -> Table:
    """Where the representatives look, as numbers."""
    rows = [
        TableRow((f"module {module + 1}", name), tuple(Cell(v) for v in net.spread(module, of)))
        for module in range(len(net.attention))
        for of, name in ENDS.items()
    ]
    columns = (
        TableColumn("effective_nodes", "Effective nodes", "", fixed(1)),
        TableColumn("nearest_pct", f"On the nearest {NEAREST} % of nodes", "%", fixed(1)),
    )
    return Table("Where the representatives look", ("Module", "Representative"), columns, tuple(rows))


def _notes(study: Study, net: Round) -> tuple[str, ...]:
    n, m, modules = len(net.decision.coords), net.representatives, len(net.attention)
    whole = sum((m + n - k) ** 2 for k in range(1, n)), sum(2 * m * (m + n - k) for k in range(1, n))
    left_out = f" {MAPPED} of {modules} modules; the CSV has all." if modules > MAPPED else ""
    counts = {"n": n, "repetitions": m - 1, "path": len(net.decision.path), "strong": STRONG}
    return notes(study, net=net, whole=whole, left_out=left_out, **counts)


PAPERS_CHOICE = 15  # repetitions in all experiments of the paper


def _figure3_needs(scale: Scale) -> Iterator[Need]:
    runs = (sit.run_id(sit.with_repetitions(count)) for count in scale[sit.SitScale].repetitions)
    return tested(runs, sit.reference(scale, "tsp", 1000))


@artifact("Repetitions of the last node", needs=_figure3_needs)
def figure3(study: Study) -> Drawing:
    rows = _rows(study)
    figure = new_figure(4.6, 2.7)
    axes = figure.subplots()
    _draw(axes, rows)
    alt = "Optimality gap against the number of repetitions of the last node among the representative nodes."
    columns = ["side", "repetitions", "repetitions_here", "n", "run", "gap_pct", "low_pct", "high_pct", "parameters"]
    return Drawing(figure, pd.DataFrame(rows, columns=columns), _repetition_notes(study, rows), alt)


def _rows(study: Study) -> list[dict[str, Any]]:
    dataset = sit.reference(study.scale, "tsp", 1000).dataset
    rows = []
    for count, here in sorted(study.scale[sit.SitScale].repetitions.items()):
        run = sit.run_id(sit.with_repetitions(count))
        cell = gap_cell(study, run, dataset)
        if not isinstance(cell.measured, float):
            continue
        about = {"side": MEASURED, "repetitions": count, "repetitions_here": here, "n": dataset.n, "run": run}
        values = {"gap_pct": cell.measured, "low_pct": cell.low, "high_pct": cell.high}
        rows.append(about | values | {"parameters": study.value("parameters", run, dataset)})
    return rows


def _draw(axes: mpl.axes.Axes, rows: list[dict[str, Any]]) -> None:
    colour = style.RAMPS["blue"][2]
    positive = [row for row in rows if math.isfinite(drawable(row["gap_pct"]))]
    axes.set_ylabel(f"Optimality gap, TSP{rows[0]['n']} (%)" if rows else "Optimality gap (%)")
    axes.set_xlabel("Repetitions of the last node, and parameters of the network")
    if not positive:
        style.empty_axes(axes, "no positive gap to draw" if rows else style.NOT_MEASURED)
        return
    if len(positive) < 3:
        style.say_in(axes, "too few points for a course")
    x = [row["repetitions_here"] for row in positive]
    y = [row["gap_pct"] for row in positive]
    joined = "-" if len(positive) > 2 else "none"  # a line through two points would look like a course
    axes.plot(x, y, color=colour, linestyle=joined, marker="o", markeredgecolor="white", markersize=5.5, zorder=3)
    for row in positive:
        if row["low_pct"] is not None:
            axes.plot([row["repetitions_here"]] * 2, [row["low_pct"], row["high_pct"]], color=colour, linewidth=0.9)
        is_choice = row["repetitions"] == PAPERS_CHOICE
        axes.annotate(
            f"{row['gap_pct']:.2f} %", (row["repetitions_here"], row["gap_pct"]), (5, 4), textcoords="offset points",
            fontsize=6.5, fontweight="bold" if is_choice else "normal", color=colour,
        )  # fmt: skip
    axes.set_xticks(x, [_tick(row) for row in positive])
    margin = 0.12 * (max(x) - min(x)) or 0.5
    axes.set_xlim(min(x) - 0.5 * margin, max(x) + 1.4 * margin)  # the last label is on the right of its mark
    low = min(row["gap_pct"] if row["low_pct"] is None else row["low_pct"] for row in positive)
    high = max(row["gap_pct"] if row["high_pct"] is None else row["high_pct"] for row in positive)
    axes.set_ylim(max(0.0, low - 0.2 * (high - low)), high + 0.15 * (high - low) + 1e-9)
    axes.grid(visible=False, axis="x")


def _tick(row: dict[str, Any]) -> str:
    """5 (15), 41 k: what is repeated here, the paper's number where it differs, and the parameters."""
    here, count, parameters = row["repetitions_here"], row["repetitions"], row["parameters"]
    name = str(here) if here == count else f"{here} ({count})"
    if parameters is None or not math.isfinite(parameters):
        return name
    return f"{name}\n{parameters / 1e6:.2f} M" if parameters >= 1e6 else f"{name}\n{parameters / 1e3:.1f} k"


def _repetition_notes(study: Study, rows: list[dict[str, Any]]) -> tuple[str, ...]:
    dataset = sit.reference(study.scale, "tsp", 1000).dataset
    training: Reconstruction = study.scale[sit.SitScale].repetition_training
    numbers = study.scale[sit.SitScale].repetitions
    first = ", of which the first trains on insertion's solutions as they are" if training.warm_up else ""
    renamed = any(count != here for count, here in numbers.items())
    gaps = [f"{r['repetitions_here']}: {r['gap_pct']:.3f} %" for r in rows]
    few = f"{len(rows)} numbers of repetitions show no course: scale “{study.scale.name}” trains no more."
    missing = len(numbers) - len(rows)
    return notes(
        study,
        training=training,
        first=first,
        test=described(dataset),
        renamed=" In parentheses: the paper's number." if renamed else "",
        chosen=PAPERS_CHOICE,
        gaps=f"Gaps here by repetitions: {'; '.join(gaps)}." if gaps else "",
        hidden=hidden_note(row["gap_pct"] for row in rows),
        few=few if len(rows) < 3 else "",
        missing=f"{missing} of {len(numbers)} numbers of repetitions were not measured." if missing else "",
    )
