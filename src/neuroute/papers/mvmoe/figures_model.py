"""Figures 1 to 4 of paper `mvmoe`: routes under constraints, the network and its gates, all of a trained model's."""

from typing import Any

import numpy as np
import pandas as pd

from neuroute.papers.mvmoe import layout_constraints, layout_gates, layout_scores, roles
from neuroute.papers.mvmoe.layout_network import (
    current,
    draw_chances,
    draw_decoder,
    draw_encoder,
    draw_mixture,
    draw_state,
)
from neuroute.papers.mvmoe.layout_scores import Routed
from neuroute.papers.mvmoe.layout_seen import Seen, Solved
from neuroute.rendering import style
from neuroute.rendering.sketch import Sheet, words
from neuroute.rendering.study import Study
from neuroute.rendering.style import MEASURED, Drawing

CONSTRAINTS = {  # variant with one of them -> how the paper calls it
    "OVRP": "open route (O)",
    "VRPB": "backhaul (B)",
    "VRPL": "duration limit (L)",
    "VRPTW": "time window (TW)",
}
SIDE = 1.12  # of the maps of Figure 2, in inches
NOTHING_PRINTED = "The paper prints a diagram and no numbers."


def seen_of(study: Study, method: str = "MVMoE/4E") -> Seen:
    """What was seen of a model for 50 customers."""
    return Seen.read(study, roles.run_id(roles.multi(study.scale, method, roles.SIZES[0])))


# -- Figure 1 -------------------------------------------------------------------------------------------------------


def figure1(study: Study) -> Drawing:
    """A solved instance of each constraint, and the constraint at work on one of its routes."""
    seen = seen_of(study)
    solved = [seen.solved(variant) for variant in CONSTRAINTS]
    sheet = Sheet.new(style.TWO_COLUMNS, 3.45)
    side, left, pitch = 1.46, 0.1, 1.66
    for k, (instance, name) in enumerate(zip(solved, CONSTRAINTS.values(), strict=True)):
        x = left + k * pitch
        sheet.heading(x, 3.4, f"({'abcd'[k]}) {name}")
        layout_constraints.draw_map(sheet.panel(x, 1.7, side, side), instance)
        layout_constraints.draw_constraint(sheet.panel(x + 0.28, 0.62, side - 0.3, 0.95), instance)
    sheet.figure.legend(handles=layout_constraints.legend(), loc="lower center", ncols=6, bbox_to_anchor=(0.5, 0.0),
                        fontsize=6, columnspacing=1.2)  # fmt: skip
    rows = [row | {"side": MEASURED} for instance in solved for row in layout_constraints.rows(instance)]
    alt = "Four solved instances, one for each constraint; below each the lengths, loads or times of a route."
    return Drawing(sheet.figure, pd.DataFrame(rows), tuple(_constraint_notes(seen, solved)), alt)


def _constraint_notes(seen: Seen, solved: list[Solved]) -> list[str]:
    told = "; ".join(f"{s.variant} {len(s.routes)} routes, {s.length:.3f}" for s in solved)
    opened, backhaul, limited, timely = solved
    spared = sum(opened.home(route) for route in opened.routes)
    collected = int((backhaul.demand < 0).sum())
    longest = max(limited.driven(route) for route in limited.routes)
    waits = [stop.begins - stop.arrives for route in timely.routes for stop in timely.stops(route)]
    waiting = [wait for wait in waits if wait > 1e-6]  # what double precision leaves is none
    return [
        f"An instance of {seen.customers:,} customers each, solved greedily from many starts by {seen.run.id} as "
        f"trained here, the shortest solution of each: {told}.",
        f"(a) Dotted: ways home, {spared:.3f} in all, which open routes do not drive. (b) {collected} of "
        f"{backhaul.demand.size - 1} customers have goods to be picked up; bars: the load after each stop of the blue "
        f"route, red: the capacity, {backhaul.capacity}; vehicles leave full, and empty only where all that is left is "
        f"to be picked up. (c) Red: the limit, {_number(limited.limit)}; the longest route here has {longest:.3f}. "
        f"(d) Light: time windows, dark: service, grey: waiting, at {len(waiting)} of {len(waits)} stops; red: closing "
        "of the depot.",
        NOTHING_PRINTED,
    ]


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


# -- Figure 2 -------------------------------------------------------------------------------------------------------


def figure2(study: Study) -> Drawing:
    """MVMoE with its shapes over a decision on a real instance (a), and how a mixture routes a node of it (b)."""
    seen = seen_of(study)
    sheet = Sheet.new(style.TWO_COLUMNS, 4.75)
    canvas = sheet.canvas(0, 0, sheet.width, sheet.height)
    encoder, decoder = 3.82, 2.32
    sheet.heading(0.05, 4.7, f"(a) MVMoE, {seen.model.parameters:,} parameters")
    draw_encoder(canvas, seen, encoder)
    draw_decoder(canvas, seen, decoder, encoder)
    for draw, middle, title in (
        (draw_state, encoder, f"instance of {seen.shown.variant}"),
        (draw_chances, decoder, "probability of the next stop"),
    ):
        axes = sheet.panel(0.05, middle - SIDE / 2, SIDE, SIDE)
        draw(axes, seen)
        axes.set_title(title, loc="center", fontsize=5.8, fontweight="normal", pad=2)
    sheet.heading(0.05, 1.6, f"(b) A node in the mixture of encoder layer {seen.layer_number}")
    draw_mixture(sheet, seen, 0.02)
    rows = [row | {"panel": "a"} for row in seen.model.rows()]
    alt = "The encoder and the decoder of MVMoE with their shapes, and a gate that sends a node to two of its experts."
    frame = pd.DataFrame([*rows, *_decision_rows(seen), *_node_rows(seen)])
    return Drawing(sheet.figure, frame, tuple(_network_notes(seen)), alt)


def _decision_rows(seen: Seen) -> list[dict[str, Any]]:
    solved, stops = seen.shown, {int(node): i for i, node in enumerate(seen.array("prefix")) if node}
    chances, logits = (np.asarray(seen.array(name), float) for name in ("probabilities", "logits"))
    return [
        {
            "panel": "a, decision", "side": MEASURED, "node": node, "x": round(float(x), 6), "y": round(float(y), 6),
            "demand": int(solved.demand[node]), "stop": stops.get(node),
            "logit": float(logits[node]) if np.isfinite(logits[node]) else None,
            "probability": float(chances[node]) if np.isfinite(chances[node]) else None,
        }
        for node, (x, y) in enumerate(solved.coords)
    ]  # fmt: skip


def _node_rows(seen: Seen) -> list[dict[str, Any]]:
    node = current(seen)
    given = dict(zip(seen.array("input_experts")[node], seen.array("input_weights")[node], strict=True))
    return [
        {
            "panel": "b", "side": MEASURED, "node": node, "expert": j + 1, "score": float(score),
            "weight": float(given.get(j, 0.0)),
        }
        for j, score in enumerate(seen.array("scores")[node])
    ]  # fmt: skip


def _network_notes(seen: Seen) -> list[str]:
    chances = np.asarray(seen.array("probabilities"), float)
    left, visited = int(np.isfinite(chances).sum()), len(set(seen.array("prefix").tolist()) - {0})
    load, time, length, opened = (float(value) for value in seen.array("known"))
    return [
        f"Read from the loaded {seen.run.id} as trained here: shapes (outputs × inputs) and counts are its own. As in "
        "the published code, but not in the paper's text, the depot has a linear of its own, of its coordinates alone.",
        f"Maps: an instance of {seen.shown.variant} after {visited} of {seen.customers:,} customers (grey), of the "
        f"tour from the first start; square: depot, ring: where the vehicle is, crosses: customers that a constraint "
        f"closes, {left} stops are open. Known of the route: load {load:.2f}, time {time:.2f}, length {length:.2f}, "
        f"open {opened:.0f}.",
        f"(b) The node with the ring; H are the gate's scores in evaluation, without noise, g the softmax over the "
        f"{seen.top} best. {NOTHING_PRINTED}",
    ]


# -- Figure 3 -------------------------------------------------------------------------------------------------------


def figure3(study: Study) -> Drawing:
    """Scores of a gate on real nodes, by which nodes choose experts (a) or experts choose nodes (b); loads (c, d)."""
    seen = seen_of(study)
    routed = Routed.of(seen)
    sheet = Sheet.new(style.TWO_COLUMNS, 3.3)
    for x, way, heading in ((0.05, "input", "(a) Input choice"), (2.62, "expert", "(b) Expert choice")):
        sheet.heading(x, 3.25, heading)
        layout_scores.draw_matrix(sheet.panel(x, 0.1, 2.5, 2.9), routed, way)
    sheet.heading(5.2, 3.25, "(c) Load of experts")
    loads = sheet.panel(5.55, 1.98, 1.15, 0.98)
    layout_scores.draw_loads(loads, routed)
    handles, labels = loads.get_legend_handles_labels()
    sheet.heading(5.2, 1.62, "(d) Experts of nodes")
    layout_scores.draw_experts(sheet.panel(5.55, 0.62, 1.15, 0.75), routed)
    sheet.figure.legend(handles, labels, loc="lower right", ncols=1, bbox_to_anchor=(0.995, 0.0), fontsize=6)
    rows = [row | {"side": MEASURED} for row in layout_scores.rows(routed)]
    alt = "Score matrices of nodes and experts with the chosen entries in colour, and how many nodes each expert gets."
    return Drawing(sheet.figure, pd.DataFrame(rows), tuple(_score_notes(seen, routed)), alt)


def _score_notes(seen: Seen, routed: Routed) -> list[str]:
    nodes, columns = routed.scores.shape
    without = int((routed.experts("expert") == 0).sum())
    drawn = len(routed.shown)
    cut = f" The first {drawn} of {nodes} nodes are drawn; (c, d) and the CSV have all." if drawn < nodes else ""
    loads = ", ".join(str(n) for n in routed.loads("input"))
    return [
        f"The gate of encoder layer {seen.layer_number} of {seen.run.id} as trained here, by input choice, on the "
        f"{nodes} nodes of one instance of {seen.shown.variant}, without noise.{cut}",
        f"Input choice: each node takes its {seen.top} best experts, whose loads are {loads}. Expert choice on the "
        f"same scores, which this gate was not trained for: each expert takes the {routed.taken} nodes that score "
        f"best (nodes times {seen.top} over {columns} experts, rounded down); nodes that none takes: {without}. In "
        "training a batch's nodes compete for experts, not an instance's.",
        NOTHING_PRINTED,
    ]


# -- Figure 4 -------------------------------------------------------------------------------------------------------


def figure4(study: Study) -> Drawing:
    """The decoder's base gate (a) and the hierarchical one (b) at a decision of as many tours as there are starts."""
    base, light = seen_of(study), seen_of(study, "MVMoE/4E-L")
    sheet = Sheet.new(style.TWO_COLUMNS, 3.45)
    sheet.heading(0.05, 3.4, "(a) Base gate: MVMoE/4E")
    layout_gates.draw_base(sheet.canvas(0.02, 0.02, 2.6, 3.1), base)
    sheet.heading(2.85, 3.4, "(b) Hierarchical gate: MVMoE/4E-L")
    canvas = sheet.canvas(2.8, 0.02, 3.9, 3.1)
    layout_gates.draw_hierarchical(canvas, light)
    words(canvas, 3.3, 0.2, "thick arrows:\nlarge shares", fontsize=5.6, color=style.GREY)
    rows = [row | {"side": MEASURED} for seen, name in ((base, "a"), (light, "b"))
            for row in layout_gates.rows(seen, name)]  # fmt: skip
    alt = "A gate that sends each tour to two of the experts, and one that first chooses between experts and a layer."
    return Drawing(sheet.figure, pd.DataFrame(rows), tuple(_gate_notes(base, light)), alt)


def _gate_notes(base: Seen, light: Seen) -> list[str]:
    def loads(seen: Seen) -> str:
        return ", ".join(f"{percent:.1f}" for percent in layout_gates.load(seen))

    sparse, dense = (float(p) for p in light.array("gate"))
    visited = len(set(base.array("prefix").tolist()) - {0})
    return [
        f"Read from the loaded {base.run.id} and {light.run.id} as trained here, at a decision on an instance of "
        f"{base.shown.variant} after {visited} of {base.customers:,} customers; percentages: of the tours' choices, "
        f"{base.top} for each. (a) {loads(base)}. (b) {loads(light)}.",
        f"(b) G₁ looks at the mean of all inputs of a batch, here of one instance, and draws the sparse layer with "
        f"probability {sparse:.3f}, the dense one with {dense:.3f}, at every decision, as in the paper; the published "
        "code computes the probabilities at an episode's first decision only. Shares are those of G₂, whichever was "
        "drawn.",
        NOTHING_PRINTED,
    ]
