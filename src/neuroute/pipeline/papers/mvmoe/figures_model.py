"""Figures 1 to 4, 8 and 9 of paper `mvmoe`: routes, the network and its gates, and how experts are loaded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.evaluation.snapshot import NetworkSnapshot
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering import diagram as dg
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.cells import quoted
from neuroute.pipeline.rendering.render import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, PUBLISHED, Drawing, line, new_figure
from neuroute.pipeline.rendering.table import decimal
from neuroute.problems.vrp import SWITCHES, Switches


@dataclass(frozen=True)
class Stop:
    """A customer of a route, and how the vehicle is there."""

    node: int
    load: int  # on board when it leaves
    length: float  # of the route so far
    arrives: float
    begins: float  # service; after waiting where it arrives early
    leaves: float


@dataclass(frozen=True)
class Solution:
    """An instance of a variant and the network's solution of it; row 0 of arrays over nodes is the depot."""

    variant: str
    coords: maps.Array  # (N, 2)
    demand: maps.Array  # (N,)
    capacity: int
    order: maps.Array  # (V,)
    flags: maps.Array  # (V,)
    length: float
    windows: maps.Array | None  # (N, 2)
    service: maps.Array | None  # (N,)
    limit: float | None

    @property
    def on(self) -> Switches:
        return SWITCHES[self.variant]

    @cached_property
    def routes(self) -> list[maps.Array]:
        """Customers of each route, in visiting order."""
        return np.split(self.order, np.flatnonzero(self.flags == 1)[1:])

    @cached_property
    def distances(self) -> maps.Array:
        """(N, N)"""
        return maps.pairwise_distances(self.coords)

    def stops(self, route: maps.Array) -> list[Stop]:
        """Drive a route: a vehicle that first picks up has left empty; all others leave full."""
        load = 0 if self.demand[route[0]] < 0 else self.capacity
        before, length, time, stops = 0, 0.0, 0.0, list[Stop]()
        for node in route:
            leg = float(self.distances[before, node])
            arrives = time + leg
            begins = arrives if self.windows is None else max(arrives, float(self.windows[node, 0]))
            time = begins + (0.0 if self.service is None else float(self.service[node]))
            load, length, before = load - int(self.demand[node]), length + leg, node
            stops.append(Stop(int(node), load, length, arrives, begins, time))
        return stops

    def route_length(self, route: maps.Array) -> float:
        """With the way home where that is part of it."""
        return self.stops(route)[-1].length + (0.0 if self.on.open else self.way_home(route))

    def way_home(self, route: maps.Array) -> float:
        """From its last customer to the depot."""
        return float(self.distances[route[-1], 0])

    @cached_property
    def followed(self) -> maps.Array:
        """The route that is followed: with backhauls one that has linehauls, too, with windows that of most stops, else
        the longest.
        """

        def mixed(route: maps.Array) -> tuple[bool, int, int]:
            backhauls = int((self.demand[route] < 0).sum())
            return 0 < backhauls < len(route), backhauls, len(route)

        if self.on.backhaul:
            return max(self.routes, key=mixed)
        return max(self.routes, key=len if self.on.windows else self.route_length)


@dataclass(frozen=True)
class Routing(NetworkSnapshot):
    """A run, its modules and the arrays of its routing evaluation."""

    name, weight = "routing", "layers.0.qkv.weight"

    @classmethod
    def of_model(cls, study: Study, method: str = "MVMoE/4E") -> Routing:
        """Of a model for 50 customers."""
        return cls.read(study, mvmoe.run_id(mvmoe.multi(study.scale, method, mvmoe.SIZES[0])))

    @property
    def mixture(self) -> str:
        """Where the decoder's experts are: of a light decoder they stand beside a dense layer."""
        return "combine.sparse" if "combine.dense.weight" in self.model.shapes else "combine"

    @property
    def variants(self) -> list[str]:
        return [str(name) for name in self.array("variants")]

    @property
    def customers(self) -> int:
        return int(self.number("customers"))

    @property
    def top(self) -> int:
        return int(self.number("top"))

    @property
    def experts(self) -> int:
        return int(self.array("encoder_load").shape[-1])

    @property
    def tours(self) -> int:
        """Of the decision that is shown."""
        return len(self.array("decoder_scores"))

    def solution(self, variant: str) -> Solution:
        """Raises NeurouteError when no instance of the variant was solved."""

        def optional(name: str) -> maps.Array | None:
            return np.asarray(self.arrays[key], float) if (key := f"{name}_{variant}") in self.arrays else None

        limit = optional("limit")
        return Solution(
            variant,
            self.array(f"coords_{variant}", float),
            self.array(f"demand_{variant}", int),
            int(self.number(f"capacity_{variant}")),
            self.array(f"order_{variant}", int),
            self.array(f"flags_{variant}", int),
            self.number(f"length_{variant}"),
            optional("windows"),
            optional("service"),
            None if limit is None else float(limit),
        )

    @property
    def example(self) -> Solution:
        """The instance that is shown in detail."""
        return self.solution(self.text("shown"))

    @property
    def decision(self) -> maps.Decision:
        chances = self.array("probabilities", float)
        open_nodes = np.flatnonzero(np.isfinite(chances))
        return maps.Decision(self.example.coords, self.array("prefix", int), open_nodes, chances, end=0, depot=True)

    @property
    def layer_number(self) -> int:
        """Of the encoder layer whose gate is shown, counted from 1."""
        return int(self.text("layer").removeprefix("enc")) + 1


def shares(load: maps.Array) -> maps.Array:
    """load (..., m) -> percent of the tokens' choices on each expert; nan where nothing was routed."""
    load = np.asarray(load, float)
    total = load.sum(axis=-1, keepdims=True)
    parts: maps.Array = np.divide(load, total, out=np.full_like(load, np.nan), where=total > 0)
    return 100 * parts


def chosen_weights(scores: maps.Array, indices: maps.Array, weights: maps.Array, axis: int) -> maps.Array:
    """Weights in the shape of the scores, 0 where nothing was chosen."""
    every = np.zeros_like(np.asarray(scores, float))
    np.put_along_axis(every, np.asarray(indices, int), np.asarray(weights, float), axis)
    return every


@artifact("MVMoE, drawn from a trained model", needs=mvmoe.routing_needs("MVMoE/4E"))
def figure2(study: Study) -> Drawing:
    """MVMoE with its shapes over a decision on a real instance (a), and how a mixture routes a node of it (b)."""
    net = Routing.of_model(study)
    m, node = net.model, net.decision.current
    scores, chosen = net.array("scores", float)[node], net.array("input_experts", int)[node]
    weights = net.array("input_weights", float)[node]
    feed, mixes = ["FFN", m.shape("layers.0.up"), "ReLU", m.shape("layers.0.down")], ["linear", m.shape("combine")]
    if mixed := "layers.0.mixture.gate.weight" in m.shapes:
        hidden = m.shapes["layers.0.mixture.experts.up.weight"][1]
        feed = ["MoE", f"{net.experts} FFNs", f"{m.width}–{hidden}–{m.width}", f"top {net.top}"]
    if linears := m.shapes.get(f"{net.mixture}.experts.weight"):
        mixes = ["MoE", f"{linears[0]} linears", " × ".join(str(n) for n in linears[1:]), f"top {net.top}"]
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
    for j, weight in zip(chosen, weights, strict=True):
        sheet.arrow("scores", f"expert{j}", bend="across", label=f"g = {weight:.2f}")
        sheet.arrow(f"expert{j}", "sum", bend="across")
    stops = {int(node): i for i, node in enumerate(net.array("prefix")) if node}
    columns = {"demand": net.example.demand, "stop": stops, "logit": net.array("logits", float)}
    columns["probability"] = net.array("probabilities", float)
    rows = m.rows("a") + maps.node_rows(net.example.coords, {"panel": "a, decision", "side": MEASURED}, columns)
    weight_of = dict(zip(chosen, weights, strict=True))
    rows += [
        {"panel": "b", "side": MEASURED, "node": node, "expert": j + 1, "score": float(score)}
        | {"weight": float(weight_of.get(j, 0.0))}
        for j, score in enumerate(scores)
    ]
    alt = "The encoder and the decoder of MVMoE with their shapes, and a gate that sends a node to two of its experts."
    of_route = dict(zip(("load", "time", "length", "opened"), map(float, net.array("known")), strict=True))
    texts = notes(study, net=net, visited=_visited(net), available=len(net.decision.available), **of_route)
    return Drawing(sheet.figure, rows, texts, alt)


def _visited(net: Routing) -> int:
    """Customers that have been served when the decision is taken."""
    return len(set(net.array("prefix").tolist()) - {0})


MOST_NODES = 12  # nodes of a score matrix
COLOURS = {"input": style.RAMPS["blue"], "expert": style.RAMPS["orange"]}


@artifact("Nodes that choose experts, experts that choose nodes", needs=mvmoe.routing_needs("MVMoE/4E"))
def figure3(study: Study) -> Drawing:
    """Scores of a gate on real nodes, by which nodes choose experts (a) or experts choose nodes (b); loads (c, d)."""
    net = Routing.of_model(study)
    scores, expert_nodes = net.array("scores", float), net.array("expert_nodes")
    weights = {  # (N, m), 0 where a pair is not chosen
        "input": chosen_weights(scores, net.array("input_experts"), net.array("input_weights"), 1),
        "expert": chosen_weights(scores, expert_nodes, net.array("expert_weights"), 0),
    }
    nodes, columns = scores.shape
    drawn = min(MOST_NODES, nodes)  # the first ones, the depot being the first of all
    legend = {f"{way} choice": {"marker": "s", "color": ramp[1], "markersize": 5} for way, ramp in COLOURS.items()}
    sheet = dg.Sheet.of(study, net.model, ways=legend)
    chosen = {way: of > 0 for way, of in weights.items()}
    for way, pairs in chosen.items():
        _draw_matrix(sheet.axes[way], scores[:drawn], pairs[:drawn], COLOURS[way][0])
        look: dict[str, Any] = {"y": "nodes", "width": 0.38, "color": COLOURS[way][1]}
        look["shift"] = -0.2 if way == "input" else 0.2
        maps.draw_bars(sheet.axes["loads"], pairs.sum(axis=0), [f"E{j + 1}" for j in range(columns)], **look)
        counts = np.bincount(pairs.sum(axis=1), minlength=columns + 1)
        labels = [str(i) for i in range(columns + 1)]
        maps.draw_bars(sheet.axes["counts"], counts, labels, x="experts of a node", **look)
    alt = "Score matrices of nodes and experts with the chosen entries in colour, and how many nodes each expert gets."
    without = int((~chosen["expert"].any(axis=1)).sum())
    cut = f" The first {drawn} of {nodes} nodes are drawn; (c, d) and the CSV have all." if drawn < nodes else ""
    loads = ", ".join(str(n) for n in chosen["input"].sum(axis=0))
    counts_of = {"nodes": nodes, "columns": columns, "taken": len(expert_nodes), "without": without}
    texts = notes(study, net=net, cut=cut, loads=loads, **counts_of)
    points = [
        {"node": i, "expert": j + 1, "score": float(scores[i, j])}
        | {f"{way}_choice_weight": float(of[i, j]) for way, of in weights.items()}
        | {"drawn": i < drawn, "side": MEASURED}  # all nodes, also those that are not drawn
        for i, j in np.ndindex(scores.shape)
    ]
    return Drawing(sheet.figure, points, texts, alt)


def _draw_matrix(axes: mpl.axes.Axes, scores: maps.Array, is_choice: maps.Array, colour: str) -> None:
    """A row for each node, a column for each expert, the chosen in colour; units of the axes are cells."""
    rows, columns = scores.shape
    colours = mpl.colors.ListedColormap(["white", colour])
    axes.pcolormesh(is_choice, cmap=colours, vmin=0, vmax=1, edgecolors="#c3c8d0", linewidth=0.3)
    for i, j in np.ndindex(rows, columns):
        look: dict[str, Any] = {"fontweight": "bold"} if is_choice[i, j] else {"color": style.GREY}
        score = float(scores[i, j])
        text = decimal(score, 2 if abs(score) < 9.995 else 1) if np.isfinite(score) else "–"
        dg.write(axes, j + 0.5, i + 0.52, text, fontsize=5.4, **look)
    axes.invert_yaxis()
    maps.hide_ticks(axes, "#c3c8d0")
    axes.set_yticks(np.arange(rows) + 0.5, [f"customer {i}" if i else "depot" for i in range(rows)], fontsize=5.4)
    axes.set_xticks(np.arange(columns) + 0.5, [f"E{j + 1}" for j in range(columns)], fontsize=6, fontweight="bold")
    axes.tick_params(length=0, pad=2, labeltop=True, labelbottom=False)


@artifact("A base gate and a hierarchical one", needs=mvmoe.routing_needs("MVMoE/4E", "MVMoE/4E-L"))
def figure4(study: Study) -> Drawing:
    """The decoder's base gate (a) and the hierarchical one (b) at a decision of as many tours as there are starts."""
    base, light = Routing.of_model(study), Routing.of_model(study, "MVMoE/4E-L")
    shares_of = {"E": _load(base), "F": _load(light)}
    boxes = {
        name: [
            dg.box(f"{name}{j}", f"E{j}", f"{percent:.0f} %" if np.isfinite(percent) else "–", width=0.52,
                   fill="representatives" if percent > 0 else "input")
            for j, percent in enumerate(load, 1)
        ]
        for name, load in shares_of.items()
    }  # fmt: skip
    sheet = dg.Sheet.of(
        study, base.model, base=base, light=light, base_experts=boxes["E"], light_experts=boxes["F"],
        base_gate=base.model.shape(f"{base.mixture}.gate"), light_gate=light.model.shape(f"{light.mixture}.gate"),
        dense=light.model.shape("combine.dense"), first_gate=light.model.shape("combine.gate"),
    )  # fmt: skip
    # Arrows by way of the experts, the thicker the more tours they stand for, and none for none.
    for name, gate, total in (("E", "gate", "sum"), ("F", "gate₂", "sum₂")):
        for j, percent in enumerate(shares_of[name], 1):
            if percent > 0:
                leave = 0.35 * (sheet.places[f"{name}{j}"].x - sheet.places[gate].x)
                look: dict[str, Any] = {"bend": "straight", "linewidth": _thickness(percent / 100)}
                sheet.arrow(gate, f"{name}{j}", leave=leave, **look)
                sheet.arrow(f"{name}{j}", total, **look)
    sparse, dense = (float(share) for share in light.array("gate"))
    for name, leave, label, share in (
        ("gate₂", -0.4, "sparse layer, p₀", sparse),
        ("D", 0.65, "dense layer, p₁", dense),
    ):
        look = {"bend": "straight", "linewidth": _thickness(share)}
        sheet.arrow("G₁", name, leave=leave, label=f"{label} = {share:.2f}", **look)
    branch, other, first = (sheet.places[name] for name in ("sparse", "dense", "X₂"))
    sheet.write((branch.right + other.left) / 2, branch.y, "or", fontsize=6.5)
    sheet.write(other.x, first.y, "thick arrows:\nlarge shares", color=style.GREY)
    rows = [each | {"side": MEASURED} for net, name in ((base, "a"), (light, "b")) for each in _gate_rows(net, name)]
    alt = "A gate that sends each tour to two of the experts, and one that first chooses between experts and a layer."
    loads = [", ".join(f"{percent:.1f}" for percent in load) for load in shares_of.values()]
    texts = notes(study, base=base, light=light, visited=_visited(base), loads=loads, sparse=sparse, dense=dense)
    return Drawing(sheet.figure, rows, texts, alt)


def _load(net: Routing) -> maps.Array:
    """(m,) percent of the tours' choices on each expert at the decision."""
    experts = net.array("decoder_experts", int)
    return shares(np.bincount(experts.ravel(), minlength=net.array("decoder_scores").shape[1]))


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


@artifact("Routes under each constraint", needs=mvmoe.routing_needs("MVMoE/4E"))
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
    rows = [each | {"side": MEASURED} for solution in solutions for each in _route_rows(solution)]
    alt = "Four solved instances, one for each constraint; below each the lengths, loads or times of a route."
    lengths = "; ".join(f"{s.variant} {len(s.routes)} routes, {s.length:.3f}" for s in solutions)
    opened, backhaul, limited, timely = solutions
    spared = sum(opened.way_home(route) for route in opened.routes)
    collected = int((backhaul.demand < 0).sum())
    longest = max(limited.route_length(route) for route in limited.routes)
    waits = [stop.begins - stop.arrives for route in timely.routes for stop in timely.stops(route)]
    waiting = [wait for wait in waits if wait > 1e-6]  # what double precision leaves is none
    limit = "none" if limited.limit is None else f"{limited.limit:g}"
    of_routes = {"lengths": lengths, "spared": spared, "collected": collected, "longest": longest, "limit": limit}
    texts = notes(study, net=net, backhaul=backhaul, waiting=len(waiting), waits=len(waits), **of_routes)
    return Drawing(sheet.figure, rows, texts, alt)


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


def _route_rows(s: Solution) -> list[dict[str, Any]]:
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


SPARSE, DENSE = style.RAMPS["orange"][1], "#dfe4ea"
WHITE_EDGE: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.4}
LEAST_REACH = 0.05  # of the colours, about their middle: less would draw rounding
OVER, HATCH = "#aeb6c1", "//////"  # of what was not decided any more


@artifact("When MVMoE/4E-L runs its experts", needs=mvmoe.routing_needs("MVMoE/4E-L"))
def figure8(study: Study) -> Drawing:
    """How probable experts are at the first decisions, by problem (a), and at which share of all they ran (b)."""
    net = Routing.of_model(study, "MVMoE/4E-L")
    names, chances = net.variants, net.array("sparse_chance", float)
    figure = new_figure(height=0.7 + 0.165 * len(names) + 0.3)
    first, second = figure.subplots(1, 2, width_ratios=(1.75, 1))
    _draw_chances(figure, first, chances, names)
    ran, decisions = (net.array(name, float) for name in ("sparse_decisions", "decisions"))
    percent = 100 * ran / np.maximum(decisions, 1)
    places = range(len(percent))
    second.barh(places, percent, 0.72, color=SPARSE)
    second.barh(places, 100 - percent, 0.72, left=percent, color=DENSE)
    for i, share in enumerate(percent):
        inside = share > 50
        second.annotate(f"{share:.0f} %", (share, i), (-3 if inside else 3, 0), textcoords="offset points",
                      ha="right" if inside else "left", va="center", fontsize=5.8,
                      color="white" if inside else style.INK)  # fmt: skip
    second.set(ylim=(len(percent) - 0.5, -0.5), xlim=(0, 100))
    second.set_yticks([])
    second.set_xlabel("share of the decisions (%)")
    second.grid(visible=False)
    first.set_title(f"(a) Probability of the experts at the first {chances.shape[1]} decisions")
    second.set_title("(b) What ran at all decisions")
    squares: dict[str, dict[str, Any]] = {"(b) experts": {"facecolor": SPARSE, "edgecolor": "#5a6270"}}
    squares["(b) dense layer"] = {"facecolor": DENSE, "edgecolor": "#5a6270"}
    if np.isnan(chances).any():
        squares["(a) all is served"] = {"facecolor": "white", "edgecolor": OVER, "hatch": HATCH}
    handles = [mpl.patches.Patch(label=label, linewidth=0.4, **look) for label, look in squares.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    alt = "By problem: at which of the first decisions the light decoder ran its experts, and at what share of all."
    low, high = int(percent.argmin()), int(percent.argmax())
    finite, chances_text = chances[np.isfinite(chances)], ""
    if len(finite):
        chances_text = f" Probabilities of the sparse layer in (a): {finite.min():.2f} to {finite.max():.2f}."
    ends = {"low": (names[low], percent[low]), "high": (names[high], percent[high])}
    mean, batches = percent.mean(), _batches(net)
    texts = notes(study, net=net, batches=batches, chances_text=chances_text, mean=mean, **ends)
    rows: list[dict[str, Any]] = []
    sparse = net.array("sparse", int)
    for i, (name, share) in enumerate(zip(names, percent, strict=True)):
        about = {"side": MEASURED, "variant": name, "trained": name in mvmoe.TRAINED}
        counts = {"decisions": int(decisions[i]), "sparse_decisions": int(ran[i]), "sparse_pct": float(share)}
        rows.append(about | {"panel": "b"} | counts)
        rows += [
            about
            | {"panel": "a", "decision": step, "layer": "sparse" if is_sparse else "dense", "probability": float(p)}
            for step, (is_sparse, p) in enumerate(zip(sparse[i], chances[i], strict=True), 1)
            if is_sparse != -1  # no decision was left
        ]
    return Drawing(figure, rows, texts, alt)


def _draw_chances(figure: mpl.figure.Figure, axes: mpl.axes.Axes, chances: maps.Array, names: list[str]) -> None:
    """A square for each decision, as dark as experts are probable (v, steps); hatched where all was over (nan)."""
    steps, finite = chances.shape[1], chances[np.isfinite(chances)]
    if not len(finite):
        style.empty_axes(axes, style.NOT_MEASURED)
        return
    middle, half = (finite.min() + finite.max()) / 2, max((finite.max() - finite.min()) / 2, LEAST_REACH)
    colours = mpl.colors.LinearSegmentedColormap.from_list("probable", ["white", *style.RAMPS["orange"]])
    squares = axes.pcolormesh(
        np.arange(steps + 1) + 0.5, np.arange(len(names) + 1) - 0.5, np.ma.masked_invalid(chances), cmap=colours,
        vmin=max(0.0, middle - half), vmax=min(1.0, middle + half), edgecolors="#c3c8d0", linewidth=0.4,
    )  # fmt: skip
    bar = figure.colorbar(squares, ax=axes, pad=0.02, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=6)
    axes.patch.set(hatch=HATCH, edgecolor=OVER)  # masked squares show what is behind them
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), names, fontsize=6.3)
    axes.set_xticks([1, *range(5, steps + 1, 5)] if steps >= 5 else range(1, steps + 1))
    axes.set_xlabel("decision")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False)


def _batches(net: Routing) -> str:
    counts = sorted({int(count) for count in net.array("counts")})
    many = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return f"one batch of {many} instance{'s' * (counts != [1])} of each problem"


@artifact("Load of the experts of MVMoE/4E", needs=mvmoe.routing_needs("MVMoE/4E"), printed_files=("quoted",))
def figure9(study: Study) -> Drawing:
    """The mean share of nodes on each expert by problem (a), and layer by layer (b)."""
    net = Routing.of_model(study)
    # (v, layers, m): a mixture's choices on each expert, the decoder's last
    by_layer = shares(np.concatenate([net.array("encoder_load"), net.array("decoder_load")[:, None]], axis=1))
    by_variant = np.asarray(np.ma.masked_invalid(by_layer).mean(axis=1).filled(0))  # over layers that routed anything
    figure = new_figure(height=3.7)
    top, bottom = figure.subplots(2, 1, height_ratios=(1.35, 1))
    even, quoted_share = 100 / net.experts, quoted(study, "largest_expert_share_pct")
    colours = style.ramp("cool-warm", net.experts)
    names = net.variants
    places = np.arange(len(names))
    top.vlines(places, by_variant.min(axis=1), by_variant.max(axis=1), color=style.GREY, linewidth=0.8, zorder=1)
    for j, colour in enumerate(colours):
        top.plot(places, by_variant[:, j], "o", color=colour, markersize=4.5, **WHITE_EDGE)
    top.axhline(even, color=style.INK, linewidth=0.8, zorder=3)
    top.set_xticks(range(len(names)), [name.replace("VRP", "VRP\n", 1) for name in names], fontsize=5.8)
    top.set(xlim=(-0.6, len(names) - 0.4), ylabel="nodes (%)")
    top.grid(visible=False, axis="x")
    top.tick_params(axis="x", length=0, pad=2)
    top.axhline(quoted_share, color=style.GREY, linewidth=0.8, linestyle=(0, (1, 1.5)))
    layers = [*(f"enc {int(str(name).removeprefix('enc')) + 1}" for name in net.array("mixtures")), "dec"]
    for j, colour in enumerate(colours):
        for i in range(by_layer.shape[1]):
            finite = by_layer[:, i, j][np.isfinite(by_layer[:, i, j])]
            if not len(finite):
                continue
            x = i + (j - (len(colours) - 1) / 2) * 0.16
            bottom.plot([x, x], [finite.min(), finite.max()], color=colour, linewidth=1.0)
            bottom.plot(x, finite.mean(), "o", color=colour, markersize=4, **WHITE_EDGE)
    bottom.axhline(even, color=style.INK, linewidth=0.8, zorder=1)
    bottom.set_xticks(range(len(layers)), layers)
    bottom.set_xlim(-0.5, len(layers) - 0.5)
    bottom.set_ylim(bottom=0)
    bottom.set_ylabel("nodes (%)")
    bottom.grid(visible=False, axis="x")
    handles: list[Any] = [mpl.patches.Patch(fc=colour, label=f"expert {j}") for j, colour in enumerate(colours, 1)]
    handles.append(line("all alike", color=style.INK, linewidth=0.8))
    handles.append(line("largest in print", color=style.GREY, linewidth=0.8, linestyle=(0, (1, 1.5))))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), columnspacing=1.2)
    top.set_title("(a) Mean over layers")
    bottom.set_title("(b) Each layer, mean over problems; line: range over problems")
    alt = "Shares of the nodes that each expert gets, by problem and by layer, around the line where all are alike."
    rows: list[dict[str, Any]] = []
    for i, name in enumerate(names):
        about = {"side": MEASURED, "variant": name, "trained": name in mvmoe.TRAINED}
        for j in range(by_layer.shape[2]):
            rows.append(about | {"panel": "a", "expert": j + 1, "pct": float(by_variant[i, j])})
            rows += [
                about | {"panel": "b", "layer": layer, "expert": j + 1, "pct": float(by_layer[i, k, j])}
                for k, layer in enumerate(layers)
            ]
    rows.append({"panel": "a", "side": PUBLISHED, "variant": "largest", "pct": quoted_share})
    return Drawing(figure, rows, _share_notes(study, net, by_variant, by_layer, layers), alt)


def _share_notes(
    study: Study, net: Routing, by_variant: maps.Array, by_layer: maps.Array, layers: list[str]
) -> tuple[str, ...]:
    names, largest_share, uneven = net.variants, "", ""
    if np.isfinite(by_layer).any():
        i, j = np.unravel_index(int(by_variant.argmax()), by_variant.shape)
        v, layer, k = np.unravel_index(int(np.nanargmax(by_layer)), by_layer.shape)
        trained = np.array([name in mvmoe.TRAINED for name in names])
        kinds = {"trained": by_variant[trained], "unseen": by_variant[~trained]}
        groups = ", ".join(f"{kind} problems {of.max():.1f} %" for kind, of in kinds.items() if len(of))
        largest_share = (
            f"The largest mean share is {by_variant[i, j]:.1f} % (expert {j + 1}, {names[i]}); largest by kind: "
            f"{groups}. In a single layer it is {by_layer[v, layer, k]:.1f} % ({layers[layer]}, {names[v]})."
        )
    steps = shares(net.array("step_load"))
    if np.isfinite(steps).any():
        v, step, _ = np.unravel_index(int(np.nanargmax(steps)), steps.shape)
        worst = ", ".join(f"{percent:.1f}" for percent in steps[v, step])
        example = ", ".join(f"{quoted(study, f'step_load_n500_expert_{j}_pct'):.1f}" for j in range(1, 5))
        uneven = (
            f"Of the first {steps.shape[1]} decisions the most uneven one is number {step + 1} of {names[v]}: {worst} "
            f"%. The paper has an example at n = 500: {example} % (Appendix D)."
        )
    values = {"batches": _batches(net), "layers": len(layers), "most": quoted(study, "largest_expert_share_pct")}
    return notes(study, net=net, largest_share=largest_share, uneven=uneven, **values)
