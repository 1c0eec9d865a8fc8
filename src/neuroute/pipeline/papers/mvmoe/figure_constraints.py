"""Figure 1 of paper `mvmoe`: routes under each constraint, and the constraint at work on one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.pipeline.papers.mvmoe.roles import experts_routing
from neuroute.pipeline.papers.mvmoe.snapshot import Routing, Solution
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering import diagram as dg
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, Drawing

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


@artifact("Routes under each constraint", needs=experts_routing)
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
            _draw_loads(axes, solution)
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


def _draw_loads(axes: mpl.axes.Axes, s: Solution) -> None:
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
