"""Figures 1 and 2 of paper `sit`: the network over a real decision, and self-improved training on a real instance."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from neuroute.papers.sit import roles
from neuroute.papers.sit.iteration import IMPROVED, Iteration, draw_cut, draw_rebuilt, draw_tour
from neuroute.papers.sit.network_picture import Model, draw_module, draw_network, draw_products
from neuroute.papers.sit.rounds import Course, best_gaps, course, draw_gaps, draw_lengths
from neuroute.papers.sit.state import (
    NEAREST,
    STRONG,
    VISITED,
    State,
    draw_chances,
    draw_likeliest,
    draw_look,
    draw_state,
)
from neuroute.plan.objects import Reconstruction, Run
from neuroute.problems.longest import longest_sub_path
from neuroute.rendering import style
from neuroute.rendering.columns import described
from neuroute.rendering.diagram_nodes import RED, decimal
from neuroute.rendering.sketch import Sheet, arrow, box, words
from neuroute.rendering.study import Study
from neuroute.rendering.style import MEASURED, Drawing
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

MAPPED = 4  # modules whose looks are drawn, the first and the last among them
STARTS = {
    "greedy": "the model's greedy tour",
    "nearest": "nearest neighbour",
    "insertion": "random insertion",
    "insertion-angle": "insertion by angle",
    "insertion-published": "random insertion",
}


# -- Figure 1 -------------------------------------------------------------------------------------------------------


def figure1(study: Study) -> Drawing:
    """What cross-attention saves (a), a module (b), and the network over a decision (c)."""
    run, seen = _round(study)
    state, model = State.read(seen), Model.read(str(seen["modules"][()]), run.network.arguments)
    sheet = Sheet.new(style.TWO_COLUMNS, 5.35)
    sheet.heading(0.05, 5.3, "(a) Products of a query with a key")
    side = 1.22
    draw_products(sheet.canvas(0.02, 3.3, 2 * side + 0.62, side + 0.62), state, side)
    sheet.heading(3.05, 5.3, "(b) A cross-attention module")
    draw_module(sheet.canvas(2.98, 3.12, 3.77, 2.0), model, state)
    sheet.heading(0.05, 2.92, f"(c) The network, {model.parameters:,} parameters, over one of its decisions")
    _decision(sheet, model, state)
    rows = [*_products_rows(state), *model.rows(), *state.rows()]
    alt = (
        "Squares of attention products to scale; a cross-attention module with its shapes; and the network between "
        "maps of a path under construction, of the candidates' probabilities and of where the representatives look."
    )
    return Drawing(sheet.figure, pd.DataFrame(rows), tuple(_model_notes(run, state, model)), alt, _looks(state))


def _round(study: Study) -> tuple[Run, Mapping[str, NDArray[Any]]]:
    """The run that the figures are drawn from, and what its evaluation kept."""
    run = study.runs[roles.run_id("tsp_1k")]
    return run, study.arrays(f"{run.id}/round")


def _decision(sheet: Sheet, model: Model, state: State) -> None:
    """The state, the way through the network, the probabilities; below it where the representatives look."""
    side, top, edge = 1.38, 2.5, 0.05
    right = sheet.width - edge - side
    low = top - side
    maps = sheet.panel(edge, low, side, side), sheet.panel(right, low, side, side)
    draw_state(maps[0], state)
    draw_chances(maps[1], state)
    for axes, text in zip(maps, ("what the network sees", "probability of the next node"), strict=True):
        axes.set_title(text, loc="center", fontsize=6.5, fontweight="normal", pad=2)
    middle = right - edge - side
    draw_network(sheet.canvas(edge + side, low, middle, side + 0.1), model, state, middle, side - 0.27)
    chosen = _spaced(len(state.attention), MAPPED)
    small, label = 0.66, 0.8
    left = edge + side + 0.12 + label
    pitch = (right - 0.04 - left) / MAPPED
    left += (MAPPED - len(chosen)) * pitch / 2
    for j, module in enumerate(chosen):
        for i, of in enumerate(("current", "destination")):
            axes = sheet.panel(left + j * pitch, 1.0 - i * 0.87, small, small)
            draw_look(axes, state, module, of)
            if not i:
                axes.set_title(f"module {module + 1}", loc="center", fontsize=6, fontweight="normal", pad=2)
    r = state.representatives - 1
    notes = sheet.canvas(left - 0.08 - label, 0, label, 1.95)
    words(notes, label, 1.38, "seen by the\ncurrent node", ha="right", fontsize=6, fontweight="bold")
    words(notes, label, 1.18, f"mean of {r} repetitions" if r > 1 else "", ha="right", color=style.GREY, fontsize=5.2)
    words(notes, label, 0.46, "seen by the\ndestination", ha="right", fontsize=6, fontweight="bold")
    _marks(sheet, edge, low - 0.05)
    draw_likeliest(sheet.panel(right + 0.5, 0.28, side - 0.5, 0.7), state)


def _marks(sheet: Sheet, x: float, top: float) -> None:
    """What the marks of the maps mean, below the first of them."""
    point: dict[str, Any] = {"linestyle": "none", "markersize": 4.5}
    handles = [
        Line2D([], [], **point | {"markersize": 6.5}, marker="o", markerfacecolor="none", color=RED, label="current"),
        Line2D([], [], **point | {"markersize": 6.5}, marker="*", color=RED, label="destination (the first node)"),
        Line2D([], [], **point, marker="o", color=VISITED, markeredgecolor=style.INK, label="visited: not seen again"),
        Line2D([], [], **point, marker="o", color="white", markeredgecolor=style.INK, label="candidate"),
    ]
    axes = sheet.canvas(x, top - 0.72, 1.5, 0.72)
    axes.legend(handles=handles, loc="upper left", fontsize=5.6, handletextpad=0.3, borderaxespad=0)


def _spaced(count: int, most: int) -> list[int]:
    """At most so many of 0..count - 1, evenly spaced, both ends among them."""
    return sorted({round(float(i)) for i in np.linspace(0, count - 1, min(count, most))})


def _products_rows(state: State) -> list[dict[str, Any]]:
    own, cross = state.products
    about = {"panel": "a", "side": MEASURED, "tokens": state.tokens, "representatives": state.representatives}
    return [about | {"attention": "self", "products": own}, about | {"attention": "cross", "products": cross}]


def _looks(state: State) -> Table:
    """Where the representatives look, as numbers."""
    rows = [
        Row((f"module {module + 1}", name), tuple(Cell(v) for v in state.spread(module, of)))
        for module in range(len(state.attention))
        for of, name in (("current", "current node"), ("destination", "destination"))
    ]
    columns = (
        Column("effective_nodes", "Effective nodes", "", fixed(1)),
        Column("nearest_pct", f"On the nearest {NEAREST} % of nodes", "%", fixed(1)),
    )
    return Table("Where the representatives look", ("Module", "Representative"), columns, tuple(rows))


def _model_notes(run: Run, state: State, model: Model) -> list[str]:
    n, (own, cross) = len(state.coords), state.products
    whole = [sum(f(n - k) for k in range(1, n)) for f in _products_of(state.representatives)]
    return [
        f"(a) Counted at this decision, for each head: {state.tokens:,} tokens, of which {state.representatives} are "
        f"representatives ({state.representatives - 1} repetitions of the current node and the destination). A layer "
        f"of self-attention takes {own:,} products, a module of cross-attention {cross:,}; over the construction of a "
        f"whole tour of {n:,} nodes {whole[0]:,} and {whole[1]:,}. Squares and strips are to scale.",
        f"(b, c) Read from the loaded network: shapes (outputs × inputs) and counts are its own; {model.depth} modules "
        "whose two halves share no weights. The representatives are rows of H too; what they become there is not "
        "copied back into Z. The paper writes one matrix for all repetitions and no biases (Eq. 2); its published size "
        "needs a linear with a bias for each.",
        f"(c) A greedy decision of the {run.id} trained here, on one instance of the validation stream of TSP{n:,} "
        f"after {len(state.visited):,} visited nodes; dotted: the choice. Below: attention weights of the modules' "
        "first half, means over heads; a representative's weights sum to 1, colours reach from no weight to "
        f"{STRONG} times equal weights and more.{_left_out(len(state.attention))}",
        "Effective nodes: the exponential of the weights' entropy, so many nodes with equal weights are as spread out. "
        "Nearest: by distance to the node that looks, itself included. The paper prints a diagram and no numbers.",
    ]


def _products_of(representatives: int) -> tuple[Any, Any]:
    """Products at a decision among so many candidates: of self-attention, of cross-attention."""
    m = representatives
    return lambda left: (m + left) ** 2, lambda left: 2 * m * (m + left)


def _left_out(modules: int) -> str:
    return f" {MAPPED} of {modules} modules; the CSV has all." if modules > MAPPED else ""


# -- Figure 2 -------------------------------------------------------------------------------------------------------


def figure2(study: Study) -> Drawing:
    """The loop of self-improved training on a real instance (a), and what it does to tours and gaps (b to d)."""
    run, seen = _round(study)
    it, found = Iteration.read(seen), course(study)
    sheet = Sheet.new(style.TWO_COLUMNS, 4.45)
    sheet.heading(0.05, 4.4, "(a) One iteration of re-construction, and the training that follows")
    _loop(sheet, run, it)
    wide, gap, low, high = 1.66, 0.58, 0.42, 1.42
    panels = [sheet.panel(0.5 + k * (wide + gap), low, wide, high) for k in range(3)]
    _draw_iterations(panels[0], it)
    draw_lengths(panels[1], found)
    draw_gaps(panels[2], found)
    titles = ("(b) Length of this tour", "(c) Mean length of labels", "(d) Validation gap (%)")
    labels = ("iterations of re-construction", "round (0: warm-up)" if _warmed(found) else "round", "training epochs")
    for axes, title, label in zip(panels, titles, labels, strict=True):
        axes.set_title(title, pad=5)
        axes.set_xlabel(label)
    rows = [*it.rows(), *found.rounds, *found.validations]
    alt = (
        "Maps of a tour before it is cut, cut into blocks and re-constructed, with arrows to the training and back; "
        "below the tour's length by iteration, the labels' mean length by round and the validation gap by epoch."
    )
    return Drawing(sheet.figure, pd.DataFrame(rows), tuple(_loop_notes(run, it, found)), alt)


def _warmed(found: Course) -> bool:
    return bool(found.rounds) and bool(found.rounds[0]["warm_up"])


def _loop(sheet: Sheet, run: Run, it: Iteration) -> None:
    """Three maps and the training, with the way back to the next round."""
    side, low, pitch = 1.38, 2.66, 1.8
    training = run.training
    assert isinstance(training, Reconstruction)
    blocks, better = len(it.first), int(it.improved.sum())
    before, after = it.length_of(it.before), it.length_of(it.after)
    titles = (
        f"{STARTS.get(it.start, it.start)}: {before:.3f}",
        f"cut: {blocks} block{'s' * (blocks != 1)} of {it.length} stops",
        f"{better} of {blocks} shorter: {after:.3f}",
    )
    for k, (draw, title) in enumerate(zip((draw_tour, draw_cut, draw_rebuilt), titles, strict=True)):
        axes = sheet.panel(0.05 + k * pitch, low, side, side)
        draw(axes, it)
        axes.set_title(title, loc="center", fontsize=6.5, fontweight="bold" if k == 2 else "normal", pad=2,
                       color=IMPROVED if k == 2 and better else style.INK)  # fmt: skip
    canvas = sheet.canvas(0, 2.08, sheet.width, 2.2)
    y = low - 2.08 + side / 2
    for k, text in enumerate(("draw start,\nlength and\ndirection", "all blocks\nrebuilt at\nonce")):
        x = 0.05 + k * pitch + side
        arrow(canvas, (x + 0.06, y), (x + pitch - side - 0.06, y))
        words(canvas, x + (pitch - side) / 2, y + 0.24, text, fontsize=5.2)
    left = 0.05 + 2 * pitch + side
    middle = (left + 0.42 + sheet.width - 0.05) / 2
    longest = longest_sub_path(training.longest, run.n)  # l_max (sit, Section 5)
    arrow(canvas, (left + 0.06, y), (left + 0.42, y))
    words(canvas, left + 0.24, y + 0.24, f"×{training.reconstructions:,}:\npseudo-\nlabels", fontsize=5.2)
    wide = sheet.width - 0.05 - left - 0.42
    lines = (
        f"{training.epochs_per_round} epoch{'s' * (training.epochs_per_round > 1)}",
        f"on {training.samples:,} tours,",
        "sub-paths of",
    )
    box(canvas, middle, y, wide, 1.02, "training", "training", *lines, f"4 to {longest:,} stops")
    back = 0.33
    arrow(canvas, (middle, y - 0.51), (middle, back), (0.05 + pitch + side / 2, back),
          (0.05 + pitch + side / 2, low - 2.08 - 0.05))  # fmt: skip
    words(
        canvas, 0.05 + 2 * pitch + side / 2 + 0.1, back,
        f"the next of {training.rounds} rounds: the better network improves the same tours further", ground=True,
        fontsize=6,
    )  # fmt: skip


def _draw_iterations(axes: Axes, it: Iteration) -> None:
    """The tour's length before and after each iteration, the drawn one marked."""
    lengths = np.array([it.length_of(it.before), *it.lengths])
    axes.step(range(len(lengths)), lengths, where="post", color=style.RAMPS["blue"][2], linewidth=1.1)
    axes.plot(it.number, lengths[it.number], "o", color=IMPROVED, markeredgecolor="white", zorder=3, clip_on=False)
    late = it.number > len(it.lengths) / 2
    axes.annotate(
        "drawn above", (it.number, lengths[it.number]), (-5 if late else 6, 3), textcoords="offset points", fontsize=6,
        color=IMPROVED, va="bottom", ha="right" if late else "left",
    )  # fmt: skip
    share = 100 * (lengths[-1] / lengths[0] - 1)
    axes.text(
        0.98, 0.97, f"{decimal(share, 1)} % after {len(it.lengths):,}", transform=axes.transAxes, ha="right", va="top",
        fontsize=6,
    )  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    room = 0.12 * float(np.ptp(lengths)) or 0.05 * float(lengths[0]) or 1.0
    axes.set_ylim(lengths.min() - 0.5 * room, lengths.max() + 1.6 * room)
    axes.set_xlim(0, max(len(lengths) - 1, 1))


def _loop_notes(run: Run, it: Iteration, found: Course) -> list[str]:
    training, n = run.training, len(it.before)
    assert isinstance(training, Reconstruction)
    gains = [it.gain(int(block)) for block in np.flatnonzero(it.improved)]
    some = {0: "no stops are left over", 1: "one stop behind the last block stays (grey)"}
    kept = some.get(it.tail, f"{it.tail} stops behind the last block stay (grey)")
    which = "the first that finds a shorter block" if it.improved.any() else "as none finds a shorter block"
    gained = f" {len(gains)} of {len(it.first)} became shorter, by up to {max(gains):.4f}." if gains else ""
    notes = [
        f"(a, b) One instance of TSP{n:,}'s validation stream, by {run.id} as trained here; iteration {it.number} of a "
        f"fixed seed, {which}, with sub-paths so short that several blocks are seen. Blocks do not overlap, their "
        f"ends stay; {kept}. A block is taken where it became shorter (orange; dotted: as it was), else kept (grey)."
        f"{gained}",
        "(c) Mean length of the training set's tours: a bar from what a round found to what it made and trained on; "
        "the warm-up takes the initial solutions as they are.",
    ]
    dataset = run.validation.dataset
    validated = f"(d) {described(dataset)}, greedy, after {len(found.validations)} validations; bands are rounds."
    warm, best = best_gaps(found)
    if warm is not None and best is not None:
        trend = "below" if best < warm else "not below"
        validated += f" Best gap of the rounds {best:.3f} %, {trend} the warm-up's {warm:.3f} %."
    hidden = sum(not v["gap_pct"] > 1e-6 for v in found.validations)
    if hidden:
        validated += f" {hidden} of {len(found.validations)} gaps are not positive: not drawn; they are in the CSV."
    return [*notes, validated + " One training seed. The paper prints a diagram and no numbers."]
