"""Routes under a constraint: a map of them all, and below it the constraint at work (mvmoe, Figure 1)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from neuroute.papers.mvmoe.layout_seen import Array, Solved
from neuroute.rendering import style
from neuroute.rendering.diagram_nodes import RED, bare_square
from neuroute.rendering.sketch import arrow

OWN, OTHERS = "#1c5a9c", "#b9c3d2"  # the route that the panel below follows, and the others
BACKHAUL = style.RAMPS["orange"][1]
LIGHT = style.RAMPS["blue"][0]


def highlighted(solved: Solved) -> Array:
    """The route that is followed: with backhauls one that has linehauls, too, with windows that of most stops, else
    the longest.
    """
    if solved.on.backhaul:
        return max(solved.routes, key=lambda route: _mixed(solved.demand[route]))
    if solved.on.windows:
        return max(solved.routes, key=len)
    return max(solved.routes, key=solved.driven)


def _mixed(demand: Array) -> tuple[bool, int, int]:
    """Whether goods are both delivered and picked up, how often the latter, and how many stops there are."""
    backhauls = int((demand < 0).sum())
    return 0 < backhauls < len(demand), backhauls, len(demand)


def draw_map(axes: Axes, solved: Solved) -> None:
    chosen = highlighted(solved)
    points = solved.coords
    for route in solved.routes:
        own = route is chosen
        path = [0, *route, *([] if solved.on.open else [0])]
        axes.plot(*points[path].T, color=OWN if own else OTHERS, linewidth=1.2 if own else 0.7, zorder=3 if own else 1)
        if solved.on.open:
            home = points[[route[-1], 0]]
            look: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": 0.9 if own else 0.5}
            axes.plot(*home.T, color=OWN if own else OTHERS, zorder=1, **look)
    for start, end in zip([0, *chosen[:-1]], chosen, strict=True):
        middle = points[start] + 0.6 * (points[end] - points[start])
        if np.linalg.norm(points[end] - points[start]) > 0.12:
            arrow(axes, tuple(points[start]), tuple(middle), colour=OWN, linewidth=0.6)
    area = float(np.clip(500 / len(points), 3, 16))
    for backhaul, face, marker in ((False, "white", "o"), (True, BACKHAUL, "^")):
        some = np.flatnonzero((solved.demand < 0) == backhaul)
        some = some[some > 0]
        x, y = points[some].T
        axes.scatter(x, y, s=area * (1.3 if backhaul else 1), c=face, marker=marker, edgecolors=style.INK,
                     linewidths=0.5, zorder=4)  # fmt: skip
    axes.plot(*points[0], "s", color=RED, markersize=4.5, markeredgecolor="white", markeredgewidth=0.5, zorder=5)
    low, high = points.min(axis=0), points.max(axis=0)
    x, y = (low + high) / 2
    bare_square(axes, float(x), float(y), 0.55 * float((high - low).max()) or 0.5)


def legend() -> list[Any]:
    point: dict[str, Any] = {"linestyle": "none", "markeredgecolor": style.INK, "markeredgewidth": 0.5}
    return [
        Line2D([], [], linestyle="none", marker="s", color=RED, markersize=4.5, label="depot"),
        Line2D([], [], marker="o", markerfacecolor="white", markersize=4, **point, label="linehaul"),
        Line2D([], [], marker="^", markerfacecolor=BACKHAUL, markersize=4.5, **point, label="backhaul"),
        Line2D([], [], color=OWN, linewidth=1.4, label="route of the panel below"),
        Line2D([], [], color=OTHERS, linewidth=1.0, label="other routes"),
        Patch(facecolor=LIGHT, edgecolor=OWN, linewidth=0.4, label="time window"),
    ]


def draw_constraint(axes: Axes, solved: Solved) -> None:
    """Lengths for open routes and limits, loads with backhauls, times with windows."""
    if solved.on.windows:
        _draw_times(axes, solved)
    elif solved.on.backhaul:
        _draw_loads(axes, solved)
    else:
        _draw_lengths(axes, solved)
    axes.tick_params(labelsize=5.5, pad=1.5)
    axes.xaxis.label.set_fontsize(6)
    axes.yaxis.label.set_fontsize(6)


def _draw_lengths(axes: Axes, solved: Solved) -> None:
    """A bar for each route; of open ones the way home that is not driven above it, dotted."""
    chosen = highlighted(solved)
    for i, route in enumerate(solved.routes, 1):
        length = solved.driven(route)
        axes.bar(i, length, 0.7, color=OWN if route is chosen else OTHERS)
        if solved.on.open:
            axes.bar(i, solved.home(route), 0.7, bottom=length, facecolor="none", edgecolor=style.GREY, linewidth=0.6,
                     linestyle=(0, (1, 1.5)))  # fmt: skip
    if solved.limit is not None:
        axes.axhline(solved.limit, color=RED, linewidth=0.9)
        axes.set_ylim(0, 1.12 * solved.limit)
    step = max(1, round(len(solved.routes) / 6))
    axes.set_xticks(range(1, len(solved.routes) + 1, step))
    axes.set_xlabel("route", labelpad=1.5)
    axes.set_ylabel("length", labelpad=1.5)
    axes.grid(visible=False, axis="x")


def _draw_loads(axes: Axes, solved: Solved) -> None:
    """The load after each stop of the route, from the depot on."""
    route = highlighted(solved)
    stops = solved.stops(route)
    before = stops[0].load + int(solved.demand[route[0]])
    loads = [before, *(stop.load for stop in stops)]
    axes.bar(range(len(loads)), loads, 0.75, color=OTHERS, zorder=1)
    for i, stop in enumerate(stops, 1):
        change = -int(solved.demand[stop.node])
        colour = BACKHAUL if change > 0 else OWN
        ends = [stop.load - change, stop.load]
        axes.plot([i - 0.5, i - 0.5], ends, color=colour, linewidth=1.6, solid_capstyle="butt", zorder=3)
    axes.axhline(solved.capacity, color=RED, linewidth=0.9)
    axes.axhline(0, color=style.INK, linewidth=0.6)
    axes.set_ylim(min(0, *loads), 1.12 * max(solved.capacity, *loads))
    step = max(1, round(len(loads) / 6))
    axes.set_xticks(range(0, len(loads), step))
    axes.set_xlabel("stop", labelpad=1.5)
    axes.set_ylabel("load", labelpad=1.5)
    axes.grid(visible=False, axis="x")


def _draw_times(axes: Axes, solved: Solved) -> None:
    """A row for each stop: its window, waiting as a line, service as a dark bar."""
    assert solved.windows is not None
    route = highlighted(solved)
    stops = solved.stops(route)
    for i, stop in enumerate(stops, 1):
        opens, closes = solved.windows[stop.node]
        axes.barh(i, closes - opens, 0.8, left=opens, color=LIGHT, edgecolor=OWN, linewidth=0.4, zorder=1)
        if stop.begins > stop.arrives:
            axes.plot([stop.arrives, stop.begins], [i, i], color=style.GREY, linewidth=0.8, zorder=2)
        service = max(stop.leaves - stop.begins, 0.01)
        axes.barh(i, service, 0.45, left=stop.begins, color="#0a2749", zorder=3)
    if not solved.on.open:
        axes.axvline(float(solved.windows[0, 1]), color=RED, linewidth=0.9)
    step = max(1, round(len(stops) / 5))
    axes.set_yticks(range(1, len(stops) + 1, step))
    axes.set_ylim(len(stops) + 0.7, 0.3)
    axes.set_xlim(0, 1.05 * max(float(solved.windows[0, 1]), stops[-1].leaves))
    axes.set_xlabel("time", labelpad=1.5)
    axes.set_ylabel("stop", labelpad=1.5)
    axes.grid(visible=False, axis="y")


def rows(solved: Solved) -> list[dict[str, Any]]:
    """Every stop of every route, and the depot."""
    chosen = highlighted(solved)
    depot = {"variant": solved.variant, "node": 0, "x": _round(solved.coords[0, 0]), "y": _round(solved.coords[0, 1])}
    every = [depot | {"capacity": solved.capacity, "limit": solved.limit, "total_length": solved.length}]
    for number, route in enumerate(solved.routes, 1):
        for place, stop in enumerate(solved.stops(route), 1):
            window = (None, None) if solved.windows is None else solved.windows[stop.node]
            every.append(
                {
                    "variant": solved.variant, "node": stop.node, "x": _round(solved.coords[stop.node, 0]),
                    "y": _round(solved.coords[stop.node, 1]), "route": number, "stop": place,
                    "followed": route is chosen, "demand": int(solved.demand[stop.node]), "load": stop.load,
                    "length": stop.length, "arrives": stop.arrives if window[0] is not None else None,
                    "begins": stop.begins if window[0] is not None else None, "opens": window[0], "closes": window[1],
                    "route_length": solved.driven(route),
                }
            )  # fmt: skip
    return every


def _round(value: Any) -> float:
    return round(float(value), 6)
