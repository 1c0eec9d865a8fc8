"""Figures 3 and 6 of paper `icam`: ICAM, and POMO that it is developed from, over a decision on a real instance."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from neuroute.papers.icam import roles
from neuroute.papers.icam.layout_matrices import alpha_bars, matrix
from neuroute.papers.icam.layout_network import draw_adaptation, draw_decoder, draw_encoder, icam_words, pomo_words
from neuroute.papers.icam.layout_seen import Seen
from neuroute.papers.sit.state import State, draw_chances, draw_state
from neuroute.rendering import style
from neuroute.rendering.diagram import Sheet, words
from neuroute.rendering.diagram_nodes import RED, bare_square
from neuroute.rendering.study import Study
from neuroute.rendering.style import MEASURED, Drawing

SIDE = 1.12  # of the maps, in inches
STARTS = 3  # tours that are drawn
NOTHING_PRINTED = "The paper prints a diagram and no numbers."


# -- Figure 3 -------------------------------------------------------------------------------------------------------


def figure3(study: Study) -> Drawing:
    """ICAM with its shapes, and where distances and the number of nodes enter it."""
    seen = Seen.read(study, roles.run_id(roles.OWN["tsp"]))
    sheet, text = Sheet.new(style.TWO_COLUMNS, 4.2), icam_words(seen)
    canvas = sheet.canvas(0, 0, sheet.width, sheet.height)
    encoder, middle, decoder = 3.3, 2.12, 0.78
    draw_encoder(canvas, seen.model, seen.n, text, encoder)
    draw_decoder(canvas, seen.model, seen.n, text, decoder, encoder)
    draw_adaptation(canvas, seen.n, seen.number("log_n"), middle, encoder, decoder)
    sheet.heading(0.05, 4.15, f"ICAM, {seen.model.parameters:,} parameters")
    _map(sheet, seen, draw_state, encoder, f"instance, {seen.n:,} nodes")
    _map(sheet, seen, draw_chances, decoder, "probability of the next node")
    small = 0.8
    distances = sheet.panel(0.71, middle - small / 2, small, small)
    matrix(distances, seen.distances[np.ix_(seen.order, seen.order)], "distances", colours="Greys")
    words(canvas, 0.37, middle, f"N = {seen.n:,}", fontsize=7, fontweight="bold")
    bars = sheet.panel(4.86, middle + 0.06, 1.12, 0.42)
    alpha_bars(bars, seen.alphas)
    bars.set_title("learnt α (D: decoder, C: comp.)", loc="center", fontsize=5.6, fontweight="normal", pad=2)
    rows = [*seen.model.rows(), *_decision_rows(seen)]
    rows += [{"panel": "α", "side": MEASURED, "where": where, "alpha": alpha} for where, alpha in seen.alphas.items()]
    alt = "The encoder and the decoder of ICAM with their shapes between an instance and the next node's probabilities."
    notes = (*_notes(seen), _bias_note(seen), NOTHING_PRINTED)
    return Drawing(sheet.figure, pd.DataFrame(rows), notes, alt)


def _map(sheet: Sheet, seen: Seen, draw: Callable[[Axes, State], None], middle: float, title: str) -> None:
    axes = sheet.panel(0.05, middle - SIDE / 2, SIDE, SIDE)
    draw(axes, seen.state)
    axes.set_title(title, loc="center", fontsize=5.8, fontweight="normal", pad=2)


def _notes(seen: Seen) -> list[str]:
    state = seen.state
    return [
        f"Read from the loaded {seen.run.id} as trained here: shapes (outputs × inputs) and counts are its own. "
        f"Encoded once; then {seen.n:,} tours at a time ask for their next node, one from each start.",
        f"Maps: a greedy decision of the tour from the first node (star), after {len(state.visited):,} visited nodes "
        f"(grey), on one instance of TSP{seen.n:,}'s validation stream; ring: the current node, dotted: the choice.",
    ]


def _bias_note(seen: Seen) -> str:
    """What the bias does to this decision."""
    state = seen.state
    left = np.flatnonzero(np.isfinite(np.asarray(seen.array("logits"), float)))
    fits, bias = (np.asarray(seen.array(name), float)[left] for name in ("fits", "bias"))
    if not len(left) or not np.isfinite(fits).all() or state.chosen is None:
        return "The logits of this decision are not finite."
    without, nearest = int(left[fits.argmax()]), int(left[bias.argmax()])
    told = "also prefer the chosen node" if without == state.chosen else "prefer another node than the chosen one"
    near = "is" if nearest == state.chosen else "is not"
    return (
        f"At this decision the products alone, without their bias, {told}; the chosen node {near} the one that the "
        "bias favours."
    )


def _decision_rows(seen: Seen) -> list[dict[str, Any]]:
    stop = {int(node): i for i, node in enumerate(seen.array("visited"))}
    numbers = {key: seen.arrays[key] for key in ("logits", "probabilities", "fits", "bias") if key in seen.arrays}
    return [
        {
            "panel": "decision", "side": MEASURED, "node": node, "x": round(float(x), 6), "y": round(float(y), 6),
            "stop": stop.get(node),
            **{key: float(v[node]) if np.isfinite(v[node]) else None for key, v in numbers.items()},
        }
        for node, (x, y) in enumerate(seen.array("coords"))
    ]  # fmt: skip


# -- Figure 6 -------------------------------------------------------------------------------------------------------


def figure6(study: Study) -> Drawing:
    """POMO with its shapes (a), where its heads look (b), and tours from several starts with all lengths (c, d)."""
    seen = Seen.read(study, roles.run_id(roles.ORIGINAL["tsp"]))
    sheet, text = Sheet.new(style.TWO_COLUMNS, 5.0), pomo_words(seen)
    canvas = sheet.canvas(0, 0, sheet.width, sheet.height)
    encoder, decoder = 4.0, 2.32
    sheet.heading(0.05, 4.95, f"(a) POMO, {seen.model.parameters:,} parameters")
    draw_encoder(canvas, seen.model, seen.n, text, encoder)
    draw_decoder(canvas, seen.model, seen.n, text, decoder, encoder)
    _map(sheet, seen, draw_state, encoder, f"instance, {seen.n:,} nodes")
    _map(sheet, seen, draw_chances, decoder, "probability of the next node")
    sheet.heading(0.05, 1.52, "(b) Where the heads look")
    _draw_heads(sheet.panel(0.48, 0.36, 1.2, 0.9), seen)
    sheet.heading(2.0, 1.52, f"(c) {min(STARTS, seen.n)} of {seen.n:,} tours of this instance")
    for k, start in enumerate(_starts(seen)):
        _draw_tour(sheet.panel(2.0 + k * 0.98, 0.28, 0.92, 0.92), seen, start)
    sheet.heading(5.12, 1.52, "(d) All lengths")
    _draw_lengths(sheet.panel(5.34, 0.36, 1.33, 0.9), seen)
    rows = [*seen.model.rows(), *_decision_rows(seen), *_tour_rows(seen)]
    alt = "POMO's encoder and decoder with their shapes; the heads' attention; tours from several starts."
    return Drawing(sheet.figure, pd.DataFrame(rows), tuple(_pomo_notes(seen)), alt)


def _starts(seen: Seen) -> list[int]:
    """The starts of the shortest and the longest tour, and between them that of the median."""
    order = np.argsort(seen.array("lengths"), kind="stable")
    places = np.linspace(0, len(order) - 1, min(STARTS, len(order))).round().astype(int)
    return [int(order[place]) for place in places]


def _draw_heads(axes: Axes, seen: Seen) -> None:
    """A row for each head, the nodes that are left from near to far."""
    attention, state = np.asarray(seen.array("attention"), float), seen.state
    left = np.flatnonzero(np.isfinite(seen.array("logits")))
    if not len(left):
        style.empty_axes(axes, "not finite")
        return
    distances = np.linalg.norm(state.coords[left] - state.coords[state.current], axis=1)
    matrix(axes, attention[:, left[np.argsort(distances, kind="stable")]], colours="Blues")
    heads = len(attention)
    axes.set_yticks([0, heads - 1], ["1", str(heads)], fontsize=5.5)
    axes.set_ylabel("head", fontsize=6, labelpad=1)
    axes.set_xlabel("unvisited nodes, near to far", fontsize=6, labelpad=2)
    axes.tick_params(length=0, pad=2)


def _draw_tour(axes: Axes, seen: Seen, start: int) -> None:
    coords = np.asarray(seen.array("coords"), float)
    tour = np.asarray(seen.array("tours")[start], int)
    best = start == int(np.argmin(seen.array("lengths")))
    axes.plot(*coords[np.append(tour, tour[0])].T, color=style.GREEN if best else style.GREY, linewidth=0.8)
    axes.plot(*coords[start], "*", color=RED, markersize=7, markeredgecolor="white", markeredgewidth=0.4, zorder=3)
    low, high = coords.min(axis=0), coords.max(axis=0)
    x, y = (low + high) / 2
    bare_square(axes, float(x), float(y), 0.56 * float((high - low).max()) or 0.5)
    length = float(seen.array("lengths")[start])
    axes.set_title(f"{'best: ' if best else ''}{length:.3f}", loc="center", fontsize=6, pad=2,
                   fontweight="bold" if best else "normal")  # fmt: skip


def _draw_lengths(axes: Axes, seen: Seen) -> None:
    """How many starts lead to which length."""
    lengths = np.asarray(seen.array("lengths"), float)
    axes.hist(lengths, bins=min(15, max(4, len(lengths) // 3)), color=style.RAMPS["blue"][1])
    axes.axvline(lengths.min(), color=style.GREEN, linewidth=1.2)
    axes.set_ylabel("starts", fontsize=6, labelpad=1)
    axes.set_xlabel("tour length", fontsize=6, labelpad=2)
    axes.tick_params(labelsize=5.5, pad=1.5)
    axes.grid(visible=False, axis="x")


def _tour_rows(seen: Seen) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {"panel": "d", "side": MEASURED, "start": i, "length": float(length)}
        for i, length in enumerate(seen.array("lengths"))
    ]
    for start in _starts(seen):
        tour = seen.array("tours")[start]
        rows += [
            {"panel": "c", "side": MEASURED, "start": start, "stop": i, "node": int(v)} for i, v in enumerate(tour)
        ]
    attention = seen.array("attention")
    rows += [
        {"panel": "b", "side": MEASURED, "head": head, "node": node, "weight": float(weight)}
        for head, weights in enumerate(attention, 1)
        for node, weight in enumerate(weights)
    ]
    return rows


def _pomo_notes(seen: Seen) -> list[str]:
    lengths = np.asarray(seen.array("lengths"), float)
    first, best, mean = lengths[0], lengths.min(), lengths.mean()
    return [
        *_notes(seen),
        "(b) The decoder's attention weights at this decision; each row sums to 1. The bottom row is the last head.",
        f"(c, d) All {seen.n:,} greedy tours of this instance, one from each node (star): the shortest, the median and "
        f"the longest are drawn. The shortest, {best:.3f}, is the answer; from node 0 the tour is {first:.3f} long, on "
        f"average {mean:.3f}. {NOTHING_PRINTED}",
    ]
