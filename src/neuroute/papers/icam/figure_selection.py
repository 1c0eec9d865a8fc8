"""Figure 1 of paper `icam`: from how near the next node is chosen, at two sizes, measured on optimal tours."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from neuroute.papers.icam import roles
from neuroute.papers.icam.layout_seen import Array, Seen, apart
from neuroute.papers.icam.selections import RANKS, SHARE
from neuroute.rendering import style
from neuroute.rendering.diagram import Sheet
from neuroute.rendering.diagram_nodes import RED, bare_square
from neuroute.rendering.study import Study
from neuroute.rendering.style import MEASURED, Drawing

CHOOSERS = {"optimal": "optimal tours", "model": "ICAM, greedy"}
SHOWN_RANKS = 8


def figure1(study: Study) -> Drawing:
    """Instances of two sizes with the region of preferred nodes (a), distances and ranks of all choices (b, c)."""
    seen = Seen.read(study, roles.run_id(roles.OWN["tsp"]))
    sizes = [int(n) for n in np.sort(seen.array("sizes"))]
    colours = dict(zip(sizes, style.ramp("blue", len(sizes) + 1)[1:], strict=True))
    sheet = Sheet.new(style.TWO_COLUMNS, 4.3)
    sheet.heading(0.05, 4.25, f"(a) Within the circle: {100 * SHARE:.0f} % of all next nodes in optimal tours")
    side = 1.95
    gap = (sheet.width - 0.1 - side * len(sizes)) / max(len(sizes) + 1, 1)
    for k, n in enumerate(sizes):
        axes = sheet.panel(0.05 + gap + k * (side + gap), 2.02, side, side)
        _draw_region(axes, seen, n)
        radius, within = seen.number(f"radius_{n}_optimal"), seen.number(f"within_{n}_optimal")
        axes.set_title(
            f"{n:,} nodes: radius {radius:.3f}, {within:.1f} others inside",
            loc="center",
            fontsize=6.5,
            pad=3,
        )
    _marks(sheet)
    panels = [sheet.panel(x, 0.4, 2.75, 1.05) for x in (0.5, 3.85)]
    _draw_distances(panels[0], seen, colours)
    _draw_ranks(panels[1], seen, colours)
    panels[0].set_title("(b) Distance to the next node")
    panels[1].set_title("(c) Its rank among unvisited nodes")
    alt = "Instances of two sizes with a circle around the current node; below, how far away next nodes are chosen."
    return Drawing(sheet.figure, pd.DataFrame(_rows(seen, sizes)), tuple(_notes(seen, sizes)), alt)


def _current(coords: Array) -> int:
    """A node in the middle, so that the circle is inside."""
    return int(np.square(coords - coords.mean(axis=0)).sum(axis=1).argmin())


def _draw_region(axes: Axes, seen: Seen, n: int) -> None:
    coords = np.asarray(seen.array(f"coords_{n}"), float)
    tour, current = seen.array(f"tour_{n}"), _current(coords)
    radius = seen.number(f"radius_{n}_optimal")
    inside = apart(coords)[current] <= radius
    closed = coords[np.append(tour, tour[0])]
    axes.plot(*closed.T, color="#cdd2da", linewidth=0.6, zorder=1)
    area = float(np.clip(1400 / n, 1.2, 16))
    axes.scatter(coords[~inside, 0], coords[~inside, 1], s=area, c="#aeb5c0", linewidths=0, zorder=2)
    axes.scatter(coords[inside, 0], coords[inside, 1], s=area, c=style.RAMPS["blue"][1], linewidths=0, zorder=3)
    axes.add_patch(
        Circle(tuple(coords[current]), radius, facecolor="#3f8fc622", edgecolor="#1c5a9c", linewidth=0.9, zorder=2)
    )
    axes.plot(*coords[current], "o", color=RED, markersize=max(3.0, area**0.5 + 1), zorder=5, markeredgecolor="white")
    bare_square(axes, 0.5, 0.5, 0.52)


def _marks(sheet: Sheet) -> None:
    point: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 4}
    handles = [
        Line2D([], [], **point, color=RED, label="current node"),
        Line2D([], [], **point, color=style.RAMPS["blue"][1], label="nodes within the circle"),
        Line2D([], [], **point, color="#aeb5c0", label="other nodes"),
        Line2D([], [], color="#cdd2da", linewidth=0.9, label="optimal tour"),
    ]
    sheet.figure.legend(handles=handles, loc="lower center", ncols=4, bbox_to_anchor=(0.5, 1.74 / sheet.height),
                        fontsize=6)  # fmt: skip


def _draw_distances(axes: Axes, seen: Seen, colours: dict[int, str]) -> None:
    """The share of choices that are not farther away, by size: solid the optimal tours', dotted the model's."""
    levels, reach = seen.array("levels"), 0.0
    for n, colour in colours.items():
        for who, dash in (("optimal", "-"), ("model", (0, (1.2, 1)))):
            quantiles = seen.array(f"quantiles_{n}_{who}")
            axes.plot(quantiles, 100 * levels, color=colour, linestyle=dash, linewidth=1.2)
            reach = max(reach, float(np.interp(0.985, levels, quantiles)))
        radius = seen.number(f"radius_{n}_optimal")
        axes.plot([radius, radius], [0, 100 * SHARE], color=colour, linewidth=0.7, linestyle="--")
    axes.axhline(100 * SHARE, color=style.GREY, linewidth=0.6, linestyle="--")
    axes.set_xlim(0, reach or 1)
    axes.set_ylim(0, 102)
    axes.set_xlabel("distance in the unit square", labelpad=2)
    axes.set_ylabel("choices within (%)", labelpad=2)
    handles = [Line2D([], [], color=c, label=f"{n:,} nodes") for n, c in colours.items()]
    handles += [Line2D([], [], color=style.INK, label=CHOOSERS["optimal"])]
    handles += [Line2D([], [], color=style.INK, linestyle=(0, (1.2, 1)), label=CHOOSERS["model"])]
    # A radius may fall behind the legend: its line ends at the frame.
    axes.legend(handles=handles, loc="lower right", fontsize=6, frameon=True, framealpha=1, edgecolor="none")


def _draw_ranks(axes: Axes, seen: Seen, colours: dict[int, str]) -> None:
    """Optimal tours' shares by rank, sizes side by side; what is beyond is the last."""
    width = 0.8 / len(colours)
    for k, (n, colour) in enumerate(colours.items()):
        for who in CHOOSERS:
            ranks = seen.array(f"ranks_{n}_{who}")
            shares = 100 * np.append(ranks[:SHOWN_RANKS], ranks[SHOWN_RANKS:].sum()) / ranks.sum()
            x = np.arange(1, SHOWN_RANKS + 2) - 0.4 + (k + 0.5) * width
            if who == "optimal":
                axes.bar(x, shares, width, color=colour, label=f"{n:,} nodes")
            else:
                axes.plot(
                    x,
                    shares,
                    "_",
                    color=RED,
                    markeredgewidth=1.3,
                    markersize=72 * 2.75 / (SHOWN_RANKS + 1.4) * width * 0.8,
                )
    axes.set_xticks(range(1, SHOWN_RANKS + 2), [*map(str, range(1, SHOWN_RANKS + 1)), f"≥ {SHOWN_RANKS + 1}"])
    axes.set_xlabel("1: the nearest", labelpad=2)
    axes.set_ylabel("choices (%)", labelpad=2)
    axes.grid(visible=False, axis="x")
    handles, _ = axes.get_legend_handles_labels()
    axes.legend(handles=[*handles, Line2D([], [], color=RED, linewidth=1.3, label=CHOOSERS["model"])], fontsize=6)


def _rows(seen: Seen, sizes: list[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for n in sizes:
        coords = np.asarray(seen.array(f"coords_{n}"), float)
        current = _current(coords)
        inside = apart(coords)[current] <= seen.number(f"radius_{n}_optimal")
        stop = np.argsort(seen.array(f"tour_{n}"))
        about = {"panel": "a", "side": MEASURED, "n": n}
        rows += [
            about | {
                "node": i, "x": round(float(x), 6), "y": round(float(y), 6), "stop": int(stop[i]),
                "place": "current" if i == current else "within" if inside[i] else "other",
            }
            for i, (x, y) in enumerate(coords)
        ]  # fmt: skip
        for who in CHOOSERS:
            about = {"side": MEASURED, "n": n, "chooser": who}
            own = {"radius": seen.number(f"radius_{n}_{who}"), "within": seen.number(f"within_{n}_{who}")}
            rows.append(about | {"panel": "a"} | own)
            levels, quantiles = seen.array("levels"), seen.array(f"quantiles_{n}_{who}")
            rows += [
                about | {"panel": "b", "level": round(float(a), 4), "distance": float(q)}
                for a, q in zip(levels, quantiles, strict=True)
            ]
            ranks = seen.array(f"ranks_{n}_{who}")
            rows += [about | {"panel": "c", "rank": k, "decisions": int(c)} for k, c in enumerate(ranks, 1)]
    return rows


def _notes(seen: Seen, sizes: list[int]) -> list[str]:
    counts, solved = (dict(zip(seen.array("sizes"), seen.array(key), strict=True)) for key in ("counts", "solved"))
    solvers = dict(zip(seen.array("sizes"), seen.array("solvers"), strict=True))
    sets = ", ".join(f"{counts[n]:,} of TSP{n:,} by {solvers[n]}" for n in sizes)
    own = ", ".join(f"{solved[n]:,} of TSP{n:,}" for n in sizes)
    notes = [
        f"Optimal tours: of the labelled test instances ({sets}), walked from node 0 as stored. Model: {seen.run.id} "
        f"as trained here, greedy from node 0 ({own}, the first ones). All decisions but the last count.",
        f"(a) The first instance of each set. The circle's radius is the {100 * SHARE:.0f} % quantile of the distance "
        "to the next node over all optimal tours of that size; the number of nodes is the mean of other nodes, visited "
        "or not, so near to a node.",
        f"(c) Bars: optimal tours, marks: the model. Ranks are counted up to {RANKS - 1}; the CSV has them.",
    ]
    if len(sizes) > 1:
        first, last = sizes[0], sizes[-1]
        told = seen.number(f"radius_{last}_optimal") / seen.number(f"radius_{first}_optimal")
        notes.append(
            f"From {first:,} to {last:,} nodes the radius changes by a factor of {told:.2f}; (n1/n2)^0.5, which keeps "
            f"the number of nodes inside, is {(first / last) ** 0.5:.2f}."
        )
    return [*notes, "The paper sketches the regions by hand and prints no numbers."]
