"""Figures of paper `sit`: the network over a decision, self-improved training, repetitions of the last node."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np

from neuroute.core.lazy import mpl, pd
from neuroute.evaluation.snapshot import ModuleShapes, NetworkSnapshot
from neuroute.pipeline.papers.sit import paper as sit
from neuroute.pipeline.plan.needs import Log, artifact, tested
from neuroute.pipeline.rendering import diagram as dg
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.cells import gap_cell
from neuroute.pipeline.rendering.render import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, Drawing, drawable, hidden_note, new_figure
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, decimal, described, fixed
from neuroute.problems.longest import longest_sub_path
from neuroute.problems.tsp import tour_length
from neuroute.specs.objects import Reconstruction

NEAREST = 10  # % of the nodes that count as near
ENDS = {"current": "current node", "destination": "destination"}


@dataclass(frozen=True)
class Round(NetworkSnapshot):
    """A run, its modules and the arrays of its round evaluation."""

    name, weight = "round", "decoder.layers.0.gather.query.weight"

    @classmethod
    def of_sit(cls, study: Study) -> Round:
        return cls.read(study, sit.run_id("tsp_1k"))

    @cached_property
    def decision(self) -> maps.Decision:
        coords, visited, chances = (self.array(name) for name in ("coords", "visited", "probabilities"))
        return maps.Decision.of_tour(coords, visited, chances, int(self.number("destination")))

    @cached_property
    def attention(self) -> maps.Array:
        """(modules, r + 1, n): of the repetitions of the current node, then of the destination."""
        return self.array("attention", float)

    @property
    def tokens_seen(self) -> maps.Array:
        """Nodes that the network sees: the candidates and the two ends."""
        return np.unique([*self.decision.available, self.decision.current, self.decision.end])

    @property
    def representatives(self) -> int:
        return int(self.attention.shape[1])

    @property
    def tokens(self) -> int:
        """Of the long stream: the representatives and the candidates."""
        return self.representatives + len(self.decision.available)

    def look(self, module: int, of: str) -> maps.Array:
        """(n,) the weights of the current node (mean of its repetitions) or of the destination in a module."""
        weights = self.attention[module]
        return np.asarray(weights[:-1].mean(axis=0) if of == "current" else weights[-1])

    def spread(self, module: int, of: str) -> tuple[float, float]:
        """(nodes that as many equal weights would be on, share in % on the nearest tenth of the seen nodes)."""
        nodes, coords = self.tokens_seen, self.decision.coords
        weights = self.look(module, of)[nodes]
        if not np.isfinite(weights).all():
            return math.nan, math.nan
        positive = weights[weights > 0]
        of_node = self.decision.current if of == "current" else self.decision.end
        distances = np.linalg.norm(coords[nodes] - coords[of_node], axis=1)
        near = np.argsort(distances, kind="stable")[: max(1, round(len(nodes) * NEAREST / 100))]
        return float(np.exp(-(positive * np.log(positive)).sum())), float(100 * weights[near].sum())

    def decision_rows(self) -> list[dict[str, Any]]:
        place = np.full(len(self.decision.coords), "visited", dtype=object)
        place[self.decision.available] = "candidate"
        place[[self.decision.end, self.decision.current]] = ["destination", "current"]
        stop = {int(node): i for i, node in enumerate(self.decision.path)}
        looks = {
            f"look_{of}_module{module + 1}": _six_digits(self.look(module, of))
            for module in range(len(self.attention))
            for of in ENDS
        }
        columns = {"place": place, "stop": stop, "probability": _six_digits(self.decision.probabilities), **looks}
        return maps.node_rows(self.decision.coords, {"panel": "c", "side": MEASURED}, columns)

    @cached_property
    def iteration(self) -> Iteration:
        before, after, first = (self.array(name, int) for name in ("before", "after", "first"))
        return Iteration(
            self.array("coords", float), int(self.number("iteration")), before, after, first,
            int(self.number("length")), self.array("improved", bool), self.array("rounds", float), self.text("start"),
        )  # fmt: skip


def _six_digits(values: maps.Array) -> maps.Array:
    return np.array([float(f"{value:.6g}") for value in values])


@dataclass(frozen=True)
class Iteration:
    """A tour before and after one iteration of re-construction, and the blocks that it was cut into."""

    coords: maps.Array  # (n, 2)
    number: int  # of the iteration, from 1; those before it left the tour as it was
    before: maps.Array  # (n,)
    after: maps.Array  # (n,)
    first: maps.Array  # (blocks,) where each begins
    length: int  # of each
    improved: maps.Array  # (blocks,)
    lengths: maps.Array  # (iterations,) of the tour after each
    start: str  # what the tour came from

    @property
    def tail(self) -> int:
        """Stops behind the last block, which stay as they are."""
        return len(self.before) - len(self.first) * self.length

    @property
    def all_lengths(self) -> maps.Array:
        """(1 + iterations,) of the tour, before the first one too."""
        return np.array([tour_length(self.coords, self.before), *self.lengths])

    def gain(self, block: int) -> float:
        """By how much a block has become shorter."""
        inside = slice(self.first[block], self.first[block] + self.length)
        old, new = (
            np.linalg.norm(np.diff(self.coords[t[inside]], axis=0), axis=1).sum() for t in (self.before, self.after)
        )
        return float(old - new)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each stop, with its place before and after; then one for each iteration."""
        place = np.argsort(self.after)
        rows: list[dict[str, Any]] = []
        for i, node in enumerate(self.before):
            block = i // self.length if i < len(self.first) * self.length else None
            x, y = (round(float(v), 6) for v in self.coords[node])
            rows.append({"panel": "a", "side": MEASURED, "node": int(node), "x": x, "y": y, "place_before": i,
                         "place_after": int(place[node]), "block": block,
                         "improved": None if block is None else bool(self.improved[block])})  # fmt: skip
        about = {"panel": "b", "side": MEASURED}
        return rows + [about | {"iteration": k, "length": float(length)} for k, length in enumerate(self.all_lengths)]


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
    r, tokens = net.representatives, net.tokens
    full, cross = tokens**2, 2 * r * tokens  # products of a query with a key, for each head: of (a), of a module
    of_cross = f"2 × {r} × {tokens:,} = {cross:,} ({maps.format_percent(cross / full)})"
    squares = [
        dg.column(
            dg.panel(name, 1.15, 1.15, f"keys: all {tokens:,} tokens", before=0.15),
            dg.words(f"{name}-attention", 6.5, bold=True), dg.words(text), gap=0.05,
        )
        for name, text in (("self", f"{tokens:,}² = {full:,} products"), ("cross", of_cross))
    ]  # fmt: skip
    repeated = f"\n(mean of {r - 1}\nrepetitions)" if r > 2 else ""
    seen_by = {"current": f"seen by the\ncurrent node{repeated}", "destination": "seen by the\ndestination"}
    looks = []
    for of, text in seen_by.items():
        titles = {module: f"module {module + 1}" if of == "current" else "" for module in _mapped(net)}
        panels = [dg.panel(f"{of}{module}", 0.6, 0.6, title, below=0.12) for module, title in titles.items()]
        looks.append(dg.row(dg.column(dg.words(text, 6, bold=True), width=0.8), *panels, gap=0.1))
    red, blue = dg.COLOURS["dark_red"], dg.COLOURS["blue"]
    sheet = dg.Sheet.of(
        study, m, net=net, squares=squares, modules=modules, marks=marks, looks=looks, embed=m.count("embed."),
        ends=m.count("decoder.current.") + m.count("decoder.start."), head=m.count("head."),
        gather=[_stream("Z", r, m, red), _part("gather", "Eq. 3", m, fill="representatives", head=0.14)],
        spread=[_stream("H", tokens, m, blue), dg.space(0.95), _part("spread", "Eq. 4", m, head=0.0, foot=0.14)],
    )  # fmt: skip
    for axes in (sheet.axes["self"], sheet.axes["cross"]):
        axes.set(xlim=(0, tokens), ylim=(0, tokens))
        axes.axis("off")
    _draw_cells(sheet.axes["self"], tokens, 0, tokens, style.RAMPS["blue"][1])
    axes = sheet.axes["cross"]
    _draw_cells(axes, tokens, tokens - r, tokens, style.RAMPS["orange"][1])
    _draw_cells(axes, r, 0, max(tokens - r - 0.05 * tokens, 0.1 * tokens), style.RAMPS["orange"][1])
    dg.write(sheet.axes["self"], -0.06 * tokens, tokens / 2, "queries: all tokens", rotation=90)
    dg.write(axes, -0.06 * tokens, tokens - r / 2, str(r), ha="right" if r < 0.16 * tokens else "center")
    ways = f"1. {r} representatives\nlook at all tokens;\n2. all look at them"
    dg.write(axes, (r + tokens) / 2, (tokens - r) / 2, ways, fontsize=5.4, linespacing=1.5)
    maps.draw_state(sheet.axes["state"], net.decision)
    maps.draw_probabilities(sheet.axes["chances"], net.decision)
    _draw_likeliest(sheet.axes["likeliest"], net)
    decision, nodes = net.decision, net.tokens_seen
    for module, (of, end) in product(_mapped(net), (("current", decision.current), ("destination", decision.end))):
        axes, weights = sheet.axes[f"{of}{module}"], net.look(module, of)
        area = maps.node_area(axes, len(decision.coords))
        maps.draw_nodes(axes, decision.coords, decision.path, "#e6e8ec", s=0.4 * area, linewidths=0, zorder=1)
        if np.isfinite(weights[nodes]).all():
            order = nodes[np.argsort(weights[nodes], kind="stable")]
            share = np.minimum(weights[order] * len(nodes) / STRONG, 1)
            look = {"s": area * (0.6 + 1.4 * share), "linewidths": 0.3, "edgecolors": "#b5651d55", "zorder": 2}
            maps.draw_nodes(axes, decision.coords, order, maps.color_values("Oranges", 0.08 + 0.92 * share), **look)
            on_ends = weights[list({decision.current, decision.end})].sum()
            axes.set_xlabel(f"{100 * on_ends:.0f} % on the ends", fontsize=5.3, labelpad=1.5)
        else:
            maps.write_not_finite(axes, 5.5)
        maps.draw_mark(axes, decision.coords[end], of, 6)
        maps.frame_square(axes, decision.coords)
    about = {"panel": "a", "side": MEASURED, "tokens": tokens, "representatives": r}
    counted = [about | {"attention": k, "products": v} for k, v in (("self", full), ("cross", cross))]
    alt = (
        "Squares of attention products to scale; a cross-attention module with its shapes; and the network between "
        "maps of a path under construction, of the candidates' probabilities and of where the representatives look."
    )
    rows = [*counted, *net.model.rows(), *net.decision_rows()]
    n, count = len(decision.coords), len(net.attention)
    whole = sum((r + n - k) ** 2 for k in range(1, n)), sum(2 * r * (r + n - k) for k in range(1, n))
    left_out = f" {MAPPED} of {count} modules; the CSV has all." if count > MAPPED else ""
    counts = {"n": n, "full": full, "cross": cross, "repetitions": r - 1, "path": len(decision.path), "strong": STRONG}
    texts = notes(study, net=net, whole=whole, left_out=left_out, **counts)
    return Drawing(sheet.figure, rows, texts, alt, _look_table(net))


def _stream(name: str, tokens: int, m: ModuleShapes, colour: str) -> dg.Element:
    """Where one begins, with its shape."""
    texts = dg.words(f"{tokens:,} × {m.width}"), dg.words(name, 7.5, bold=True, colour=colour)
    return dg.column(*texts, dg.space(0, 0.1), gap=0.03)


def _part(name: str, equation: str, m: ModuleShapes, fill: str = "nodes", **room: float) -> dg.Element:
    """A half of a module: attention and feed-forward layer, each added to what came in."""
    of = f"decoder.layers.0.{name}."
    shapes = [m.shape(f"{of}{key}", label) for key, label in (("query", "q"), ("key_value", "k, v"), ("out", "out"))]
    feed = m.shape(f"{of}up"), "ReLU", m.shape(f"{of}down")
    items = (
        dg.box(f"{name}_attention", "attention", m.heads_text, *shapes, fill=fill), dg.sign(f"{name}1"),
        dg.box(f"{name}_feed", "FFN", *feed, fill="feed"), dg.sign(f"{name}2"),
    )  # fmt: skip
    return dg.frame(name, dg.row(*items, tight=True), f"{equation}: {m.count(of):,} parameters", **room)


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
    bars = axes.barh(y, chances[best], height=0.7, color=maps.color_values("Blues", chances[best] / chances.max()),
                     edgecolor=style.INK, linewidth=0.4)  # fmt: skip
    axes.bar_label(bars, [maps.format_percent(chance) for chance in chances[best]], padding=2.5, fontsize=5.6)
    axes.set_yticks(y, [f"{ordinal(int(i) + 1)} nearest" for i in best], fontsize=5.6)
    axes.set(ylim=(0.5 - LIKELIEST, 0.6), xlim=(0, 1.5 * float(chances.max())), xticks=[])
    axes.tick_params(axis="y", length=0, pad=2)
    axes.grid(visible=False)
    axes.spines[["bottom", "left"]].set_visible(False)


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 22nd"""
    teens = 10 < number % 100 < 14
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _look_table(net: Round) -> Table:
    """Where the representatives look, as numbers."""
    rows = [
        Row((f"module {module + 1}", name), tuple(Cell(v) for v in net.spread(module, of)))
        for module in range(len(net.attention))
        for of, name in ENDS.items()
    ]
    columns = (
        Column("effective_nodes", "Effective nodes", "", fixed(1)),
        Column("nearest_pct", f"On the nearest {NEAREST} % of nodes", "%", fixed(1)),
    )
    return Table("Where the representatives look", ("Module", "Representative"), columns, tuple(rows))


PAPERS_CHOICE = 15  # repetitions in all experiments of the paper


@artifact(
    "Repetitions of the last node",
    needs=lambda scale: tested(
        (sit.run_id(sit.with_repetitions(count)) for count in scale[sit.SitScale].repetitions),
        sit.reference(scale, "tsp", 1000),
    ),
)
def figure3(study: Study) -> Drawing:
    dataset = sit.reference(study.scale, "tsp", 1000).dataset
    rows: list[dict[str, Any]] = []
    for count, here in sorted(study.scale[sit.SitScale].repetitions.items()):
        run = sit.run_id(sit.with_repetitions(count))
        cell = gap_cell(study, run, dataset)
        if not isinstance(cell.measured, float):
            continue
        about = {"side": MEASURED, "repetitions": count, "repetitions_here": here, "n": dataset.n, "run": run}
        values = {"gap_pct": cell.measured, "low_pct": cell.low, "high_pct": cell.high}
        rows.append(about | values | {"parameters": study.value("parameters", run, dataset)})
    figure = new_figure(4.6, 2.7)
    _draw(figure.subplots(), rows)
    alt = "Optimality gap against the number of repetitions of the last node among the representative nodes."
    columns = ["side", "repetitions", "repetitions_here", "n", "run", "gap_pct", "low_pct", "high_pct", "parameters"]
    training: Reconstruction = study.scale[sit.SitScale].repetition_training
    numbers = study.scale[sit.SitScale].repetitions
    first = ", of which the first trains on insertion's solutions as they are" if training.warm_up else ""
    renamed = any(count != here for count, here in numbers.items())
    gaps = [f"{r['repetitions_here']}: {r['gap_pct']:.3f} %" for r in rows]
    few = f"{len(rows)} numbers of repetitions show no course: scale “{study.scale.name}” trains no more."
    missing = f"{len(numbers) - len(rows)} of {len(numbers)} numbers of repetitions were not measured."
    texts = notes(
        study,
        training=training,
        first=first,
        test=described(dataset),
        renamed=" In parentheses: the paper's number." if renamed else "",
        chosen=PAPERS_CHOICE,
        gaps=f"Gaps here by repetitions: {'; '.join(gaps)}." if gaps else "",
        hidden=hidden_note(row["gap_pct"] for row in rows),
        few=few if len(rows) < 3 else "",
        missing=missing if len(rows) < len(numbers) else "",
    )
    return Drawing(figure, pd.DataFrame(rows, columns=columns), texts, alt)


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


TOURS_FROM = {
    "greedy": "the model's greedy tour",
    "nearest": "nearest neighbour",
    "insertion": "random insertion",
    "insertion-angle": "insertion by angle",
    "insertion-published": "random insertion",
}
FAINT, IMPROVED, WAS = "#b9bfc8", "#dd6b20", "#f0b98a"
CUT = ("#1c5a9c", "#5fa8d6")  # blocks in turn, so that neighbours are told apart
EDGES_ONLY = 300  # nodes from which on edges alone say where they are


@artifact(
    "Self-improved training, drawn from a real round",
    needs=lambda scale: [*sit.round_needs(scale), Log(sit.run_id("warm_tsp")), Log(sit.run_id("tsp_1k"))],
)
def figure2(study: Study) -> Drawing:
    """The loop of self-improved training on a real instance (a), and what it does to tours and gaps (b to d)."""
    net = Round.of_sit(study)
    it, course = net.iteration, read_course(study)
    training = net.run.training
    assert isinstance(training, Reconstruction)
    rounds = "round (0: warm-up)" if course.rounds and course.rounds[0]["warm_up"] else "round"
    charts = {
        "iterations": ("(b) Length of this tour", "iterations of re-construction"),
        "lengths": ("(c) Mean length of labels", rounds),
        "gaps": ("(d) Validation gap (%)", "training epochs"),
    }
    panels = [
        dg.column(dg.heading(title), dg.panel(name, 1.66, 1.42, before=0.4, below=0.34), top=True, gap=0.1)
        for name, (title, _) in charts.items()
    ]
    sheet = dg.Sheet(
        dg.column(
            dg.heading("(a) One iteration of re-construction, and the training that follows"),
            _loop(it, training, net.run.n),
            dg.space(height=0.3),
            dg.row(*panels),
        )
    )
    _draw_edges(sheet.axes["tour"], it, it.before, range(len(it.before)), style.INK, 0.9)
    _draw_frame(sheet.axes["tour"], it)
    _draw_cut(sheet.axes["cut"], it)
    _draw_rebuilt(sheet.axes["rebuilt"], it)
    # The arrows, and the way back to the next round.
    sheet.chain("tour", "cut", "rebuilt", "training")
    cut, after = sheet.places["cut"], sheet.places["training"]
    level = cut.low - 0.25
    sheet.draw_line((after.x, after.low), (after.x, level), (cut.x, level), (cut.x, cut.low))
    text = f"the next of {training.rounds} rounds: the better network improves the same tours further"
    sheet.write((cut.x + after.x) / 2, level, text, ground=True, fontsize=6)
    axes = sheet.axes["iterations"]
    lengths = it.all_lengths
    axes.step(range(len(lengths)), lengths, where="post", color=style.RAMPS["blue"][2], linewidth=1.1)
    axes.plot(it.number, lengths[it.number], "o", color=IMPROVED, markeredgecolor="white", zorder=3, clip_on=False)
    late = it.number > len(it.lengths) / 2
    axes.annotate(
        "drawn above", (it.number, lengths[it.number]), (-5 if late else 6, 3), textcoords="offset points", fontsize=6,
        color=IMPROVED, va="bottom", ha="right" if late else "left",
    )  # fmt: skip
    share = f"{decimal(100 * (lengths[-1] / lengths[0] - 1), 1)} % after {len(it.lengths):,}"
    axes.text(0.98, 0.97, share, transform=axes.transAxes, ha="right", va="top", fontsize=6)
    axes.locator_params(axis="x", nbins=6, integer=True)
    margin = 0.12 * float(np.ptp(lengths)) or 0.05 * float(lengths[0]) or 1.0
    axes.set(ylim=(lengths.min() - 0.5 * margin, lengths.max() + 1.6 * margin), xlim=(0, max(len(lengths) - 1, 1)))
    draw_lengths(sheet.axes["lengths"], course)
    draw_gaps(sheet.axes["gaps"], course)
    for name, (_, label) in charts.items():
        sheet.axes[name].set_xlabel(label)
    alt = (
        "Maps of a tour before it is cut, cut into blocks and re-constructed, with arrows to the training and back; "
        "below the tour's length by iteration, the labels' mean length by round and the validation gap by epoch."
    )
    rows = [*it.rows(), *course.rounds, *course.validations]
    n = len(it.before)
    gains = [it.gain(int(block)) for block in np.flatnonzero(it.improved)]
    some = {0: "no stops are left over", 1: "one stop behind the last block stays (grey)"}
    tail = some.get(it.tail, f"{it.tail} stops behind the last block stay (grey)")
    which = "the first that finds a shorter block" if it.improved.any() else "as none finds a shorter block"
    gained = f" {len(gains)} of {len(it.first)} became shorter, by up to {max(gains):.4f}." if gains else ""
    dataset = net.run.validation.dataset
    validated = f"(d) {described(dataset)}, greedy, after {len(course.validations)} validations; bands are rounds."
    warm, best = course.least_gap(warm_up=True), course.least_gap(warm_up=False)
    if warm is not None and best is not None:
        trend = "below" if best < warm else "not below"
        validated += f" Best gap of the rounds {best:.3f} %, {trend} the warm-up's {warm:.3f} %."
    validated = " ".join([validated, *hidden_note(v["gap_pct"] for v in course.validations)])
    texts = notes(study, run=net.run, it=it, n=n, which=which, tail=tail, gained=gained, validated=validated)
    return Drawing(sheet.figure, rows, texts, alt)


def _loop(it: Iteration, training: Reconstruction, nodes: int) -> dg.Element:
    """Three maps and the training."""
    blocks, better, lengths = len(it.first), int(it.improved.sum()), it.all_lengths
    titles = {
        "tour": f"{TOURS_FROM.get(it.start, it.start)}: {lengths[0]:.3f}",
        "cut": f"cut: {blocks} block{'s' * (blocks != 1)} of {it.length} stops",
        "rebuilt": f"{better} of {blocks} shorter: {lengths[it.number]:.3f}",
    }
    maps = {name: dg.panel(name, 1.38, 1.38, title, bold=name == "rebuilt") for name, title in titles.items()}
    lines = (
        f"{training.epochs_per_round} epoch{'s' * (training.epochs_per_round > 1)}",
        f"on {training.samples:,} tours,",
        "sub-paths of",
        f"4 to {longest_sub_path(training.longest, nodes):,} stops",  # l_max (sit, Section 5)
    )
    return dg.row(
        maps["tour"], dg.words("draw start,\nlength and\ndirection", 5.2, above=True),
        maps["cut"], dg.words("all blocks\nrebuilt at\nonce", 5.2, above=True),
        maps["rebuilt"], dg.words(f"×{training.reconstructions:,}:\npseudo-\nlabels", 5.2, above=True),
        dg.box("training", "training", *lines, fill="output", width=1.1, height=1.0), gap=0.04,
    )  # fmt: skip


def _draw_cut(axes: mpl.axes.Axes, it: Iteration) -> None:
    """Blocks in two blues in turn, between them the edges that stay; the ends of a block are filled."""
    ends = np.concatenate([it.first, it.first + it.length - 1])
    blocks = [range(first, first + it.length - 1) for first in it.first]
    between = np.setdiff1d(np.arange(len(it.before)), np.concatenate(blocks))
    _draw_edges(axes, it, it.before, between, FAINT, 0.7)
    for i, block in enumerate(blocks):
        _draw_edges(axes, it, it.before, block, CUT[i % 2], 1.1)
    _draw_frame(axes, it)
    maps.draw_nodes(axes, it.coords, it.before[ends], style.INK, s=1.3 * _area(it), linewidths=0, zorder=4)


def _draw_rebuilt(axes: mpl.axes.Axes, it: Iteration) -> None:
    """Blocks that became shorter in colour, over what they were; the rest in grey."""
    blocks = [range(first, first + it.length - 1) for first in it.first[it.improved]]
    rest = np.setdiff1d(np.arange(len(it.after)), [i for block in blocks for i in block])
    _draw_edges(axes, it, it.after, rest, FAINT, 0.8)
    for block in blocks:
        _draw_edges(axes, it, it.before, block, WAS, 0.6, linestyle=(0, (1.5, 1.2)))
        _draw_edges(axes, it, it.after, block, IMPROVED, 1.2, zorder=3)
    _draw_frame(axes, it)


def _draw_edges(
    axes: mpl.axes.Axes, it: Iteration, tour: Any, places: Any, colour: str, width: float, **how: Any
) -> None:
    """The edges from these places of a tour to the next ones."""
    here = np.asarray(list(places), int)
    legs = it.coords[np.stack([tour[here], tour[(here + 1) % len(tour)]], axis=1)]
    thin = 1 if len(tour) <= EDGES_ONLY else 0.7
    axes.add_collection(
        mpl.collections.LineCollection(list(legs), colors=colour, linewidths=width * thin, **{"zorder": 2, **how})
    )


def _draw_frame(axes: mpl.axes.Axes, it: Iteration) -> None:
    if len(it.coords) <= EDGES_ONLY:
        maps.draw_nodes(axes, it.coords, slice(None), "white", s=_area(it), linewidths=0.4, zorder=3.5)
    maps.frame_square(axes, it.coords, margin=0.04)


def _area(it: Iteration) -> float:
    """Of a node's mark, in square points."""
    return float(np.clip(400 / len(it.coords), 0.4, 9))


# -- what the logs of self-improved training say round by round (sit, Figure 2, Algorithm 1) -------------------------

COLOURS = (style.GREY, style.RAMPS["blue"][2])  # the warm-up, the rounds after it


@dataclass(frozen=True)
class Course:
    """Trainings that continue each other, as one: epochs and rounds count through."""

    rounds: list[dict[str, Any]]  # run, round, warm_up, epoch it begins at, length_before, length_after
    validations: list[dict[str, Any]]  # run, warm_up, epoch, gap_pct
    epochs: float

    def least_gap(self, *, warm_up: bool) -> float | None:
        """Of the warm-up's validations, or of those after it."""
        gaps = [v["gap_pct"] for v in self.validations if v["warm_up"] is warm_up]
        return min((gap for gap in gaps if math.isfinite(gap)), default=None)


def read_course(study: Study) -> Course:
    """The logs of the artifact's runs, which its needs name each after the one that it starts from."""
    rounds: list[dict[str, Any]] = []
    validations: list[dict[str, Any]] = []
    offset = 0
    for run in (study.runs[name] for name in study.artifact.runs):
        training = run.training
        assert isinstance(training, Reconstruction)
        lines = study.log(run.id).to_dict("records")  # of given weights there are none
        for line in (each for each in lines if each["kind"] in ("round", "validation")):
            epoch = offset + line["batch"] / training.batches_per_epoch
            about = {"side": MEASURED, "run": run.id, "epoch": round(epoch, 4)}
            if line["kind"] == "round":
                about |= {"panel": "c", "round": len(rounds), "iterations": int(line["iterations"])}
                about |= {name: float(line[name]) for name in ("length_before", "length_after")}
                rounds.append(about | {"warm_up": not line["iterations"]})
            else:
                of_run = [r for r in rounds if r["run"] == run.id]
                begins_warm = training.warm_up or not training.reconstructions
                warm = of_run[-1]["warm_up"] if of_run else begins_warm or run.start is not None
                validations.append(about | {"panel": "d", "gap_pct": float(line["gap_pct"]), "warm_up": warm})
        offset += training.epochs
    return Course(rounds, validations, offset)


def draw_lengths(axes: mpl.axes.Axes, course: Course) -> None:
    """The labels' mean length: what each round began with, and what it trained on."""
    rounds = course.rounds
    if not rounds:
        style.empty_axes(axes, "no rounds in the logs")
        return
    for r in rounds:
        colour = COLOURS[not r["warm_up"]]
        axes.plot([r["round"]] * 2, [r["length_before"], r["length_after"]], color=colour, linewidth=1.6, alpha=0.45)
        axes.plot(r["round"], r["length_after"], "o", color=colour, markeredgecolor="white", zorder=3)
    for earlier, later in pairwise(rounds):
        ends = [earlier["length_after"], later["length_before"]]
        axes.plot([earlier["round"], later["round"]], ends, color=style.GREY, linewidth=0.7, linestyle=":")
    low, high = (f(v for r in rounds for v in (r["length_before"], r["length_after"])) for f in (min, max))
    margin = 0.14 * (high - low) or 0.1 * abs(high) or 1.0
    if math.isfinite(margin):
        axes.set_ylim(low - 2.4 * margin, high + 1.2 * margin)
    axes.set_xlim(-0.5, len(rounds) - 0.5)
    axes.locator_params(axis="x", nbins=8, integer=True)
    begin, end = rounds[0]["length_before"], rounds[-1]["length_after"]
    look: dict[str, Any] = {"ha": "center", "fontsize": 6, "zorder": 4, "linespacing": 1.05}
    axes.text(rounds[0]["round"], begin + 0.35 * margin, f"{begin:.3f}", va="bottom", **look)
    if len(rounds) > 1:
        text = f"{end:.3f}\n({100 * (end / begin - 1):+.1f} %)".replace("-", "−")
        axes.text(rounds[-1]["round"], end - 0.45 * margin, text, va="top", **look)


def draw_gaps(axes: mpl.axes.Axes, course: Course) -> None:
    """The greedy validation gap over all epochs, a band for each round."""
    validations = course.validations
    gaps = [drawable(v["gap_pct"]) for v in validations]
    if not any(math.isfinite(gap) for gap in gaps):
        style.empty_axes(axes, "no positive gap to draw")
        return
    edges = [*(r["epoch"] for r in course.rounds), course.epochs]
    for k, (start, end) in enumerate(pairwise(edges)):
        if k % 2:
            axes.axvspan(start, end, color="#f3f4f6", zorder=0, linewidth=0)
        name = "warm-up" if course.rounds[k]["warm_up"] and end - start > 0.2 * course.epochs else str(k)
        axes.text(
            (start + end) / 2, 0.985, name, transform=axes.get_xaxis_transform(), ha="center", va="top", fontsize=6,
            color=style.GREY,
        )  # fmt: skip
    x = [v["epoch"] for v in validations]
    axes.plot(x, gaps, color=COLOURS[1], linewidth=0.8, alpha=0.6)
    size, edge = (3.2, 0.4) if len(x) <= 50 else (2, 0)
    points: dict[str, Any] = {"markersize": size, "markeredgecolor": "white", "markeredgewidth": edge, "zorder": 3}
    for warm in (True, False):
        mine = np.array([v["warm_up"] is warm for v in validations])
        axes.plot(np.array(x)[mine], np.array(gaps)[mine], "o", color=COLOURS[not warm], **points)
    axes.set_xlim(0, course.epochs * 1.02)
    style.log_axis(axes, "y", gaps, pad=0.18)
    finite = [i for i, gap in enumerate(gaps) if math.isfinite(gap)]
    bests = {
        min(some, key=gaps.__getitem__) for some in ([i for i in finite if validations[i]["warm_up"]], finite) if some
    }
    for i in bests:  # the best gap of the warm-up, and the best of all: below the curve, which comes from above
        side = "right" if x[i] > 0.6 * course.epochs else "left"
        axes.annotate(f"{gaps[i]:.2f} %", (x[i], gaps[i]), (0, -4), textcoords="offset points", ha=side, va="top",
                      fontsize=6, zorder=4)  # fmt: skip
