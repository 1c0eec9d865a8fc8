"""Figures 2, 4 and 5 of paper `icam`: the adaptation function, its module, and the module's calculation."""

from typing import Any

import numpy as np
import pandas as pd

from neuroute.papers.icam import roles
from neuroute.papers.icam.layout_aafm import draw_decoder_module, draw_encoder_module
from neuroute.papers.icam.layout_calculation import CHANNELS, NODES, Term, draw_calculation, terms
from neuroute.papers.icam.layout_idea import (
    DRAWN,
    draw_distances,
    draw_function,
    draw_instance,
    draw_model,
    draw_weights,
    instances,
    middle_node,
)
from neuroute.papers.icam.layout_matrices import alpha_bars
from neuroute.papers.icam.layout_seen import Array, Seen, apart, strength
from neuroute.rendering import style
from neuroute.rendering.diagram import Sheet, arrow, words
from neuroute.rendering.study import Study
from neuroute.rendering.style import MEASURED, Drawing

NOTHING_PRINTED = "The paper prints a diagram and no numbers."


def seen_of(study: Study) -> Seen:
    return Seen.read(study, roles.run_id(roles.OWN["tsp"]))


# -- Figure 2 -------------------------------------------------------------------------------------------------------


def figure2(study: Study) -> Drawing:
    """From instance to bias at two sizes (a), where the bias enters (b), and what was learnt of it (c)."""
    seen = seen_of(study)
    shown, alpha = instances(seen), seen.number("decoder_alpha")
    rows = len(shown)
    side, low = 1.15, 1.72
    pitch = side + 0.22
    sheet = Sheet.new(style.TWO_COLUMNS, low + rows * pitch + 0.15)
    sheet.heading(0.05, sheet.height - 0.05, "(a) What an instance tells: its distances and its number of nodes")
    canvas = sheet.canvas(0, 0, sheet.width, sheet.height)
    lefts = (0.62, 2.05, 5.5)
    for k, (n, coords, tour) in enumerate(shown):
        y = low + (rows - 1 - k) * pitch
        words(canvas, 0.3, y + side / 2, f"N = {n:,}", fontsize=6.3, fontweight="bold")
        panels = [sheet.panel(x, y, side, side) for x in lefts]
        draw_instance(panels[0], coords)
        draw_distances(panels[1], coords, tour)
        draw_weights(panels[2], coords, alpha)
        arrow(canvas, (lefts[0] + side + 0.05, y + side / 2), (lefts[1] - 0.05, y + side / 2))
        if not k:
            for axes, text in zip(panels, ("instance", "distance matrix", "weight exp(A) of the nodes"), strict=True):
                axes.set_title(text, loc="center", fontsize=6.5, fontweight="normal", pad=2)
    middle = low + rows * pitch / 2 - 0.11
    axes = sheet.panel(3.92, middle - 0.42, 1.15, 0.84)
    draw_function(axes, [n for n, _, _ in shown], alpha)
    axes.set_title("f(N, d) = −α log₂(N) d", loc="center", fontsize=6.5, fontweight="normal", pad=2)
    for k in range(rows):
        y = low + k * pitch + side / 2
        near = middle + (0.25 if y > middle else -0.25 if y < middle else 0)
        arrow(canvas, (lefts[1] + side + 0.05, y), (3.58, near))
        arrow(canvas, (5.12, near), (lefts[2] - 0.05, y))
    sheet.heading(0.05, 1.5, "(b) Where the bias enters")
    draw_model(sheet.canvas(0.05, 0.3, 4.7, 0.95), seen)
    sheet.heading(5.0, 1.5, "(c) Learnt α")
    bars = sheet.panel(5.2, 0.42, 1.45, 0.8)
    alpha_bars(bars, seen.alphas)
    bars.set_xlabel("layer; D: decoder, C: compatibility", fontsize=5.6, labelpad=2)
    alt = "Two instances, their distance matrices, the learnt adaptation function and the weights that it gives nodes."
    return Drawing(sheet.figure, pd.DataFrame(_idea_rows(seen, shown)), tuple(_idea_notes(seen, shown)), alt)


def _idea_rows(seen: Seen, shown: list[tuple[int, Array, Array]]) -> list[dict[str, Any]]:
    alpha = seen.number("decoder_alpha")
    rows: list[dict[str, Any]] = [
        {"panel": "c", "side": MEASURED, "where": where, "alpha": value} for where, value in seen.alphas.items()
    ]
    for n, coords, tour in shown:
        distances, stop = apart(coords)[middle_node(coords)], np.argsort(tour)
        rows += [
            {
                "panel": "a", "side": MEASURED, "n": n, "node": i, "x": round(float(coords[i, 0]), 6),
                "y": round(float(coords[i, 1]), 6), "stop": int(stop[i]), "distance": float(distances[i]),
                "bias": float(strength(alpha, n) * distances[i]),
            }
            for i in range(n)
        ]  # fmt: skip
    return rows


def _idea_notes(seen: Seen, shown: list[tuple[int, Array, Array]]) -> list[str]:
    alpha = seen.number("decoder_alpha")
    counts = " and ".join(f"TSP{n:,}" for n, _, _ in shown)
    cut = f"; of larger ones the first {DRAWN} nodes" if any(n > DRAWN for n, _, _ in shown) else ""
    fall = "; ".join(f"N = {n:,}: {np.log(2) / max(-strength(alpha, n), 1e-9):.3f}" for n, _, _ in shown)
    halves = f" exp(A) halves every so far: {fall}." if alpha > 0 else " As α is not above 0, far nodes do not fade."
    return [
        f"(a) One instance each of {counts}; nodes of the matrices along a tour{cut}. The function has the α of the "
        f"decoder's module of {seen.run.id} as trained here, {alpha:.3f}; weights are those seen from the ringed node, "
        f"as shares of the largest.{halves}",
        "(b, c) The published code learns an α for each layer, one for the decoder's module and one for the "
        "compatibility, and so does the network here; the paper writes of one. All start at 1 (dashed). "
        + NOTHING_PRINTED,
    ]


# -- Figure 4 -------------------------------------------------------------------------------------------------------


def figure4(study: Study) -> Drawing:
    """The module in the encoder, where all nodes ask all (a), and in the decoder, where tours do (b)."""
    seen = seen_of(study)
    sheet = Sheet.new(style.TWO_COLUMNS, 2.9)
    sheet.heading(0.05, 2.85, "(a) In a layer of the encoder")
    draw_encoder_module(sheet, seen, 0.05, 0.02)
    sheet.heading(3.6, 2.85, "(b) In the decoder, at each step")
    draw_decoder_module(sheet, seen, 3.6, 0.02)
    rows = [row | {"panel": "a, b"} for row in seen.model.rows()]
    rows += [{"panel": "a, b", "side": MEASURED, "where": k, "alpha": v} for k, v in seen.alphas.items()]
    notes = (
        f"Read from the loaded {seen.run.id}: shapes (outputs × inputs) and counts are its own; the linears of Q, "
        f"K and V are one product. Small maps: layer {int(seen.number('layer')) + 1} on one instance of TSP{seen.n:,} "
        "(validation), nodes along the greedy tour, the first 16 channels; blue below 0, red above, "
        "A from dark (far) to light (near).",
        f"(b) Each of the {seen.n:,} tours of an instance has a context of its first and its current node. A is "
        f"that of the current node, here after {len(seen.array('visited')):,} visited nodes, and −∞ where it has been. "
        "Keys and values are computed once for all steps. " + NOTHING_PRINTED,
    )
    alt = "The attention-free module with its linears and shapes, on matrices of a real instance."
    return Drawing(sheet.figure, pd.DataFrame(rows), notes, alt)


# -- Figure 5 -------------------------------------------------------------------------------------------------------


def figure5(study: Study) -> Drawing:
    """Every term of Eq. 3 on a real instance."""
    seen = seen_of(study)
    found = terms(seen)
    sheet = Sheet.new(style.TWO_COLUMNS, 3.6)
    draw_calculation(sheet, seen, found)
    alt = (
        "Queries, keys, values and adaptation bias of a real instance, and what the module makes of them step by step."
    )
    frame = pd.DataFrame(_calculation_rows(seen, found))
    return Drawing(sheet.figure, frame, tuple(_calculation_notes(seen, found)), alt)


def _calculation_rows(seen: Seen, found: list[Term]) -> list[dict[str, Any]]:
    """The part that is drawn, value by value."""
    nodes = seen.order[:NODES]
    rows: list[dict[str, Any]] = []
    for term in found:
        square = term.key.endswith("adaptation")
        columns = nodes if square else range(min(CHANNELS, term.values.shape[1]))
        rows += [
            {"side": MEASURED, "matrix": term.key, "node": int(i), "column": int(j), "value": float(term.values[i, j])}
            for i in nodes
            for j in columns
        ]
    return rows


def _calculation_notes(seen: Seen, found: list[Term]) -> list[str]:
    values = {term.key: term.values for term in found}
    with np.errstate(invalid="ignore"):
        difference = float(np.abs(values["sigmoid_query"] * values["ratio"] - values["output"]).max())
    width = seen.model.width
    return [
        f"Layer {int(seen.number('layer')) + 1} of {seen.run.id} as trained here, on one instance of TSP{seen.n:,}'s "
        f"validation stream. Drawn are {min(NODES, seen.n)} of {seen.n:,} nodes along the greedy tour (rows; of A and "
        f"exp(A) columns too) and {min(CHANNELS, width)} of {width} channels; below each matrix the range of all its "
        "values. Products run over all nodes.",
        "Red: above 0, blue: below, or from light to dark where all are positive; A is darker the farther two nodes "
        "are apart. Of each channel's keys the largest is subtracted before exp, which cancels in the ratio.",
        f"Y is what the live layer computed; σ(Q) ⊙ ratio, multiplied out here, differs from it by at most "
        f"{difference:.1g}. {NOTHING_PRINTED}",
    ]
