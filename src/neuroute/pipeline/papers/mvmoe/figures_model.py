"""Figures 2 to 4 of paper `mvmoe`: the network over a decision, its gates' scores and choices, of a trained model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe.snapshot import Routing, Solution, chosen_weights, shares
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering import diagram as dg
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.columns import decimal
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, Drawing

LAYER = "layers.0"


@artifact("MVMoE, drawn from a trained model", needs=mvmoe.experts_routing)
def figure2(study: Study) -> Drawing:
    """MVMoE with its shapes over a decision on a real instance (a), and how a mixture routes a node of it (b)."""
    net = Routing.of_model(study)
    m, node = net.model, net.decision.current
    scores, chosen = net.array("scores", float)[node], net.array("input_experts", int)[node]
    feed: tuple[str, ...] = ("FFN", m.shape(f"{LAYER}.up"), "ReLU", m.shape(f"{LAYER}.down"))
    if mixed := f"{LAYER}.mixture.gate.weight" in m.shapes:
        hidden = m.shapes[f"{LAYER}.mixture.experts.up.weight"][1]
        feed = ("MoE", f"{net.experts} FFNs", f"{m.width}–{hidden}–{m.width}", f"top {net.top}")
    mixes: tuple[str, ...] = ("linear", m.shape("combine"))
    if linears := m.shapes.get(f"{net.mixture}.experts.weight"):
        mixes = ("MoE", f"{linears[0]} linears", " × ".join(str(n) for n in linears[1:]), f"top {net.top}")
    experts = [
        dg.box(f"expert{j}", f"expert {j + 1}", fill="representatives" if j in chosen else "input", width=0.9)
        for j in range(len(scores))
    ]
    sheet = dg.Sheet.of(
        study, m, net=net, nodes=net.customers + 1, norm=net.run.network.arguments.get("norm", "instance"),
        clipping=net.number("clipping"), feed=feed, feed_fill="representatives" if mixed else "feed", mixes=mixes,
        mixes_fill="representatives" if linears else "nodes", experts=experts, experts_here=len(scores),
        node=f"customer {node}" if node else "depot", scores=maps.format_range(np.nan_to_num(scores)),
    )  # fmt: skip
    maps.draw_state(sheet.axes["instance"], net.decision)
    maps.draw_probabilities(sheet.axes["probabilities"], net.decision)
    axes = sheet.axes["scores"]
    colours = [style.RAMPS["orange"][1] if j in chosen else "#cdd2da" for j in range(len(scores))]
    maps.draw_bars(axes, np.nan_to_num(scores), x=f"expert; top {len(chosen)} in colour", color=colours)
    axes.axhline(0, color=style.INK, linewidth=0.5)
    axes.set(xticks=range(1, len(scores) + 1), yticks=[])
    for j, weight in zip(chosen, net.array("input_weights", float)[node], strict=True):
        sheet.arrow("scores", f"expert{j}", bend="across", label=f"g = {weight:.2f}")
        sheet.arrow(f"expert{j}", "sum", bend="across")
    rows = [*m.rows("a"), *_decision_rows(net), *_node_rows(net)]
    alt = "The encoder and the decoder of MVMoE with their shapes, and a gate that sends a node to two of its experts."
    of_route = dict(zip(("load", "time", "length", "opened"), map(float, net.array("known")), strict=True))
    texts = notes(study, net=net, visited=_visited(net), available=len(net.decision.available), **of_route)
    return Drawing(sheet.figure, rows, texts, alt)


def _decision_rows(net: Routing) -> list[dict[str, Any]]:
    stops = {int(node): i for i, node in enumerate(net.array("prefix")) if node}
    columns = {"demand": net.example.demand, "stop": stops, "logit": net.array("logits", float)}
    columns["probability"] = net.array("probabilities", float)
    return maps.node_rows(net.example.coords, {"panel": "a, decision", "side": MEASURED}, columns)


def _node_rows(net: Routing) -> list[dict[str, Any]]:
    node = net.decision.current
    weights = dict(zip(net.array("input_experts")[node], net.array("input_weights")[node], strict=True))
    about = {"panel": "b", "side": MEASURED, "node": node}
    return [
        about | {"expert": j + 1, "score": float(score), "weight": float(weights.get(j, 0.0))}
        for j, score in enumerate(net.array("scores")[node])
    ]


def _visited(net: Routing) -> int:
    """Customers that have been served when the decision is taken."""
    return len(set(net.array("prefix").tolist()) - {0})


MOST_NODES = 12  # nodes of a score matrix
COLOURS = {"input": style.RAMPS["blue"], "expert": style.RAMPS["orange"]}


@dataclass(frozen=True)
class Choices:
    """Scores of N nodes and what is chosen by them."""

    scores: maps.Array  # (N, m)
    weights: dict[str, maps.Array]  # by "input" and by "expert" choice: (N, m), 0 where a pair is not chosen
    taken: int  # nodes that each expert takes, where experts choose

    @classmethod
    def of(cls, net: Routing) -> Choices:
        scores, nodes = net.array("scores", float), net.array("expert_nodes")
        weights = {
            "input": chosen_weights(scores, net.array("input_experts"), net.array("input_weights"), 1),
            "expert": chosen_weights(scores, nodes, net.array("expert_weights"), 0),
        }
        return cls(scores, weights, len(nodes))

    @property
    def rows_drawn(self) -> int:
        """The first nodes, the depot being the first of all."""
        return min(MOST_NODES, len(self.scores))

    def loads(self, way: str) -> maps.Array:
        """(m,) how many nodes each expert gets."""
        return np.asarray((self.weights[way] > 0).sum(axis=0))

    def experts(self, way: str) -> maps.Array:
        """(N,) how many experts each node has."""
        return np.asarray((self.weights[way] > 0).sum(axis=1))


@artifact("Nodes that choose experts, experts that choose nodes", needs=mvmoe.experts_routing)
def figure3(study: Study) -> Drawing:
    """Scores of a gate on real nodes, by which nodes choose experts (a) or experts choose nodes (b); loads (c, d)."""
    net = Routing.of_model(study)
    choices = Choices.of(net)
    legend = {f"{way} choice": {"marker": "s", "color": ramp[1], "markersize": 5} for way, ramp in COLOURS.items()}
    sheet = dg.Sheet.of(study, net.model, ways=legend)
    for way in COLOURS:
        _draw_matrix(sheet.axes[way], choices, way)
    columns = choices.scores.shape[1]
    names = [f"E{j + 1}" for j in range(columns)]
    _draw_pairs(sheet.axes["loads"], {way: choices.loads(way) for way in COLOURS}, names)
    counts = {way: np.bincount(choices.experts(way), minlength=columns + 1) for way in COLOURS}
    _draw_pairs(sheet.axes["counts"], counts, [str(i) for i in range(columns + 1)], "experts of a node")
    alt = "Score matrices of nodes and experts with the chosen entries in colour, and how many nodes each expert gets."
    return Drawing(sheet.figure, _score_rows(choices), _score_notes(study, net, choices), alt)


def _draw_matrix(axes: mpl.axes.Axes, choices: Choices, way: str) -> None:
    """A row for each node, a column for each expert, the chosen in colour; units of the axes are cells."""
    rows, columns = choices.rows_drawn, choices.scores.shape[1]
    is_choice = choices.weights[way][:rows] > 0
    colours = mpl.colors.ListedColormap(["white", COLOURS[way][0]])
    axes.pcolormesh(np.arange(columns + 1), np.arange(rows + 1), is_choice, cmap=colours, vmin=0, vmax=1,
                    edgecolors="#c3c8d0", linewidth=0.3)  # fmt: skip
    for i, j in np.ndindex(rows, columns):
        weight, colour = ("bold", style.INK) if is_choice[i, j] else ("normal", style.GREY)
        dg.write(
            axes, j + 0.5, i + 0.52, _score(float(choices.scores[i, j])), fontsize=5.4, fontweight=weight, color=colour
        )
    for i in range(rows):
        dg.write(axes, -0.12, i + 0.52, f"customer {i}" if i else "depot", fontsize=5.4, ha="right")
    for j in range(columns):
        dg.write(axes, j + 0.5, -0.42, f"E{j + 1}", fontsize=6, fontweight="bold")
    if way == "input":
        dg.draw_arrow(axes, (columns + 0.25, 0.5), (columns + 1.05, 0.5))
        dg.write(axes, columns + 0.2, 1.15, "each node\nits best", fontsize=5.2, ha="left", va="top")
    else:
        dg.draw_arrow(axes, (columns + 0.3, 0.2), (columns + 0.3, 1.5))
        dg.write(axes, columns + 0.5, 0.85, "each expert\nits best", fontsize=5.2, ha="left")
    axes.set_xlim(-2.0, columns + 1.6)
    axes.set_ylim(rows + 0.1, -0.9)
    axes.axis("off")


def _score(value: float) -> str:
    return decimal(value, 2 if abs(value) < 9.995 else 1) if np.isfinite(value) else "–"


def _draw_pairs(axes: mpl.axes.Axes, counts: dict[str, maps.Array], labels: list[str], x: str = "") -> None:
    """Both ways' numbers of nodes side by side."""
    for way, shift in (("input", -0.2), ("expert", 0.2)):
        maps.draw_bars(axes, counts[way], labels, x=x, y="nodes", width=0.38, color=COLOURS[way][1], shift=shift)


def _score_rows(choices: Choices) -> list[dict[str, Any]]:
    """All nodes, also those that are not drawn."""
    return [
        {
            "node": i, "expert": j + 1, "score": float(choices.scores[i, j]),
            **{f"{way}_choice_weight": float(weights[i, j]) for way, weights in choices.weights.items()},
            "drawn": i < choices.rows_drawn, "side": MEASURED,
        }
        for i, j in np.ndindex(choices.scores.shape)
    ]  # fmt: skip


def _score_notes(study: Study, net: Routing, choices: Choices) -> tuple[str, ...]:
    nodes, columns = choices.scores.shape
    without, rows = int((choices.experts("expert") == 0).sum()), choices.rows_drawn
    cut = f" The first {rows} of {nodes} nodes are drawn; (c, d) and the CSV have all." if rows < nodes else ""
    loads = ", ".join(str(n) for n in choices.loads("input"))
    return notes(study, net=net, choices=choices, nodes=nodes, cut=cut, loads=loads, columns=columns, without=without)


@artifact(
    "A base gate and a hierarchical one",
    needs=lambda scale: [*mvmoe.experts_routing(scale), *mvmoe.light_routing(scale)],
)
def figure4(study: Study) -> Drawing:
    """The decoder's base gate (a) and the hierarchical one (b) at a decision of as many tours as there are starts."""
    base, light = Routing.of_model(study), Routing.of_model(study, "MVMoE/4E-L")
    sheet = dg.Sheet.of(
        study, base.model, base=base, light=light, base_experts=_experts(base, "E"), light_experts=_experts(light, "F"),
        base_gate=base.model.shape(f"{base.mixture}.gate"), light_gate=light.model.shape(f"{light.mixture}.gate"),
        dense=light.model.shape("combine.dense"), first_gate=light.model.shape("combine.gate"),
    )  # fmt: skip
    _draw_loads(sheet, base, "E", "gate", "sum")
    _draw_loads(sheet, light, "F", "gate₂", "sum₂")
    branches = (("gate₂", -0.4, "sparse layer, p₀"), ("D", 0.65, "dense layer, p₁"))
    for (name, leave, layer), share in zip(branches, light.array("gate", float), strict=True):
        label = f"{layer} = {share:.2f}"
        sheet.arrow("G₁", name, bend="straight", leave=leave, label=label, linewidth=_thickness(share))
    branch, other, first = (sheet.places[name] for name in ("sparse", "dense", "X₂"))
    sheet.write((branch.right + other.left) / 2, branch.y, "or", fontsize=6.5)
    sheet.write(other.x, first.y, "thick arrows:\nlarge shares", color=style.GREY)
    rows = [each | {"side": MEASURED} for net, name in ((base, "a"), (light, "b")) for each in _gate_rows(net, name)]
    alt = "A gate that sends each tour to two of the experts, and one that first chooses between experts and a layer."
    loads = [", ".join(f"{percent:.1f}" for percent in _load(net)) for net in (base, light)]
    sparse, dense = (float(p) for p in light.array("gate"))
    texts = notes(study, base=base, light=light, visited=_visited(base), loads=loads, sparse=sparse, dense=dense)
    return Drawing(sheet.figure, rows, texts, alt)


def _load(net: Routing) -> maps.Array:
    """(m,) percent of the tours' choices on each expert at the decision."""
    experts = net.array("decoder_experts", int)
    return shares(np.bincount(experts.ravel(), minlength=net.array("decoder_scores").shape[1]))


def _experts(net: Routing, name: str) -> list[dg.Element]:
    """A box for each, with its load; in colour where it has any."""
    return [
        dg.box(f"{name}{j}", f"E{j}", f"{percent:.0f} %" if np.isfinite(percent) else "–", width=0.52,
               fill="representatives" if percent > 0 else "input")
        for j, percent in enumerate(_load(net), 1)
    ]  # fmt: skip


def _draw_loads(sheet: dg.Sheet, net: Routing, name: str, gate: str, total: str) -> None:
    """Arrows by way of the experts, the thicker the more tours they stand for, and none for none."""
    for j, percent in enumerate(np.nan_to_num(_load(net)), 1):
        if percent > 0:
            expert, width = sheet.places[f"{name}{j}"], _thickness(percent / 100)
            leave = 0.35 * (expert.x - sheet.places[gate].x)
            sheet.arrow(gate, f"{name}{j}", bend="straight", leave=leave, linewidth=width)
            sheet.arrow(f"{name}{j}", total, bend="straight", linewidth=width)


def _thickness(share: float) -> float:
    """Of an arrow that stands for a share."""
    return 0.4 + 2.2 * share if np.isfinite(share) else 0.4


def _gate_rows(net: Routing, panel: str) -> list[dict[str, Any]]:
    """Of each tour its scores, and what it chooses; of the hierarchical gate its probabilities."""
    scores = net.array("decoder_scores", float)
    weights = chosen_weights(scores, net.array("decoder_experts"), net.array("decoder_weights"), 1)
    rows: list[dict[str, Any]] = [
        {"panel": panel, "tour": i, "expert": j + 1, "score": float(scores[i, j]), "weight": float(weights[i, j])}
        for i, j in np.ndindex(scores.shape)
    ]
    if "gate" in net.arrays:
        branches = zip(("sparse", "dense"), net.array("gate"), net.array("gate_scores"), strict=True)
        rows += [{"panel": panel, "branch": b, "score": float(s), "probability": float(p)} for b, p, s in branches]
    return rows


CONSTRAINTS = {  # variant with one of them -> how the paper calls it
    "OVRP": "open route (O)",
    "VRPB": "backhaul (B)",
    "VRPL": "duration limit (L)",
    "VRPTW": "time window (TW)",
}
FOLLOWED, OTHERS = "#1c5a9c", "#b9c3d2"  # the route that the panel below follows, and the others
BACKHAUL = style.RAMPS["orange"][1]
LIGHT, DARK = style.RAMPS["blue"][0], style.RAMPS["blue"][3]
ON_MAPS = {
    "depot": maps.MARKS["depot"],
    "linehaul": maps.MARKS["candidate"],
    "backhaul": maps.MARKS["candidate"] | {"marker": "^", "color": BACKHAUL},
    "route of the panel below": {"color": FOLLOWED},
    "other routes": {"color": OTHERS},
}
IN_CHARTS: dict[str, dict[str, Any]] = {
    "way home, not driven": {"color": style.GREY, "linestyle": (0, (1, 1.5))},
    "capacity, limit, closing": {"color": maps.RED, "linewidth": 0.9},
    "time window": {"color": LIGHT, "linewidth": 5},
    "service": {"color": DARK, "linewidth": 3},
    "waiting": {"color": style.GREY, "linewidth": 0.8},
}


@artifact("Routes under each constraint", needs=mvmoe.experts_routing)
def figure1(study: Study) -> Drawing:
    """A solved instance of each constraint, and the constraint at work on one of its routes."""
    net = Routing.of_model(study)
    solutions = [net.solution(variant) for variant in CONSTRAINTS]
    side = 1.46
    parts = [
        dg.column(dg.heading(f"({letter}) {name}"), dg.panel(f"map_{variant}", side, side),
               dg.panel(f"chart_{variant}", 1.05, 0.95, before=0.3, below=0.28), top=True, gap=0.1)
        for letter, (variant, name) in zip("abcd", CONSTRAINTS.items(), strict=True)
    ]  # fmt: skip
    sheet = dg.Sheet(
        dg.column(dg.row(*parts, gap=0.08), dg.legend(ON_MAPS, across=True), dg.legend(IN_CHARTS, across=True))
    )
    for solution in solutions:
        _draw_map(sheet.axes[f"map_{solution.variant}"], solution)
        # Lengths for open routes and limits, loads with backhauls, times with windows.
        axes = sheet.axes[f"chart_{solution.variant}"]
        if solution.on.windows:
            # A row for each stop: its window, waiting as a line, service as a dark bar
            assert solution.windows is not None
            stops = solution.stops(solution.followed)
            for i, stop in enumerate(stops, 1):
                opens, closes = solution.windows[stop.node]
                axes.barh(i, closes - opens, 0.8, left=opens, color=LIGHT, edgecolor=FOLLOWED, linewidth=0.4, zorder=1)
                if stop.begins > stop.arrives:
                    axes.plot([stop.arrives, stop.begins], [i, i], color=style.GREY, linewidth=0.8, zorder=2)
                axes.barh(i, max(stop.leaves - stop.begins, 0.01), 0.45, left=stop.begins, color=DARK, zorder=3)
            if not solution.on.open:
                axes.axvline(float(solution.windows[0, 1]), color=maps.RED, linewidth=0.9)
            axes.set_yticks(range(1, len(stops) + 1, max(1, round(len(stops) / 5))))
            axes.set_ylim(len(stops) + 0.7, 0.3)
            axes.set_xlim(0, 1.05 * max(float(solution.windows[0, 1]), stops[-1].leaves))
            maps.label_small(axes, "time", "stop", grid="x")
        elif solution.on.backhaul:
            _draw_vehicle_loads(axes, solution)
        else:
            _draw_lengths(axes, solution)
    rows = [each | {"side": MEASURED} for solution in solutions for each in _rows(solution)]
    alt = "Four solved instances, one for each constraint; below each the lengths, loads or times of a route."
    return Drawing(sheet.figure, rows, _notes(study, net, solutions), alt)


def _draw_map(axes: mpl.axes.Axes, s: Solution) -> None:
    for route in s.routes:
        is_followed = route is s.followed
        look: dict[str, Any] = {"color": FOLLOWED if is_followed else OTHERS}
        path = [0, *route, *([] if s.on.open else [0])]
        axes.plot(*s.coords[path].T, **look, linewidth=1.2 if is_followed else 0.7, zorder=3 if is_followed else 1)
        if s.on.open:
            home = s.coords[[route[-1], 0]]
            axes.plot(*home.T, **look, linestyle=(0, (1, 2)), linewidth=0.9 if is_followed else 0.5, zorder=1)
    for start, end in s.coords[np.stack([[0, *s.followed[:-1]], s.followed], axis=1)]:
        if np.linalg.norm(end - start) > 0.12:
            dg.draw_arrow(axes, tuple(start), tuple(start + 0.6 * (end - start)), colour=FOLLOWED, linewidth=0.6)
    area = float(np.clip(500 / len(s.coords), 3, 16))
    maps.draw_nodes(axes, s.coords, np.flatnonzero(s.demand > 0), "white", s=area, zorder=4)
    maps.draw_nodes(axes, s.coords, np.flatnonzero(s.demand < 0), BACKHAUL, s=1.3 * area, marker="^", zorder=4)
    maps.draw_mark(axes, s.coords[0], "depot", 9)
    maps.frame_square(axes, s.coords)


def _draw_lengths(axes: mpl.axes.Axes, s: Solution) -> None:
    """A bar for each route; of open ones the way home that is not driven above it, dotted."""
    for i, route in enumerate(s.routes, 1):
        length = s.route_length(route)
        axes.bar(i, length, 0.7, color=FOLLOWED if route is s.followed else OTHERS)
        if s.on.open:
            axes.bar(i, s.way_home(route), 0.7, bottom=length, facecolor="none", edgecolor=style.GREY, linewidth=0.6,
                     linestyle=(0, (1, 1.5)))  # fmt: skip
    if s.limit is not None:
        axes.axhline(s.limit, color=maps.RED, linewidth=0.9)
        axes.set_ylim(0, 1.12 * s.limit)
    axes.set_xticks(range(1, len(s.routes) + 1, max(1, round(len(s.routes) / 6))))
    maps.label_small(axes, "route", "length")


def _draw_vehicle_loads(axes: mpl.axes.Axes, s: Solution) -> None:
    """The load after each stop of the route, from the depot on."""
    stops = s.stops(s.followed)
    loads = [stops[0].load + int(s.demand[s.followed[0]]), *(stop.load for stop in stops)]
    axes.bar(range(len(loads)), loads, 0.75, color=OTHERS, zorder=1)
    for i, stop in enumerate(stops, 1):
        change = -int(s.demand[stop.node])
        colour = BACKHAUL if change > 0 else FOLLOWED
        ends = [stop.load - change, stop.load]
        axes.plot([i - 0.5, i - 0.5], ends, color=colour, linewidth=1.6, solid_capstyle="butt", zorder=3)
    axes.axhline(s.capacity, color=maps.RED, linewidth=0.9)
    axes.axhline(0, color=style.INK, linewidth=0.6)
    axes.set_ylim(min(0, *loads), 1.12 * max(s.capacity, *loads))
    axes.set_xticks(range(0, len(loads), max(1, round(len(loads) / 6))))
    maps.label_small(axes, "stop", "load")


def _rows(s: Solution) -> list[dict[str, Any]]:
    """Every stop of every route, and the depot."""
    places = [{"variant": s.variant, "node": i, "x": round(float(x), 6), "y": round(float(y), 6)}
              for i, (x, y) in enumerate(s.coords)]  # fmt: skip
    rows = [places[0] | {"capacity": s.capacity, "limit": s.limit, "total_length": s.length}]
    for number, route in enumerate(s.routes, 1):
        for i, stop in enumerate(s.stops(route), 1):
            timed = s.windows is not None
            opens, closes = (None, None) if s.windows is None else s.windows[stop.node]
            rows.append(
                places[stop.node]
                | {"route": number, "stop": i, "followed": route is s.followed, "demand": int(s.demand[stop.node])}
                | {"load": stop.load, "length": stop.length, "arrives": stop.arrives if timed else None}
                | {"begins": stop.begins if timed else None, "opens": opens, "closes": closes}
                | {"route_length": s.route_length(route)}
            )
    return rows


def _notes(study: Study, net: Routing, solutions: list[Solution]) -> tuple[str, ...]:
    lengths = "; ".join(f"{s.variant} {len(s.routes)} routes, {s.length:.3f}" for s in solutions)
    opened, backhaul, limited, timely = solutions
    spared = sum(opened.way_home(route) for route in opened.routes)
    collected = int((backhaul.demand < 0).sum())
    longest = max(limited.route_length(route) for route in limited.routes)
    waits = [stop.begins - stop.arrives for route in timely.routes for stop in timely.stops(route)]
    waiting = [wait for wait in waits if wait > 1e-6]  # what double precision leaves is none
    return notes(
        study,
        net=net,
        backhaul=backhaul,
        lengths=lengths,
        spared=spared,
        collected=collected,
        limit="none" if limited.limit is None else f"{limited.limit:g}",
        longest=longest,
        waiting=len(waiting),
        waits=len(waits),
    )
