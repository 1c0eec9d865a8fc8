"""Figure 1 of paper `icam`: from how near the next node is chosen, at two sizes, measured on optimal tours."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.papers.icam.figures_adaptation import middle_node
from neuroute.papers.icam.roles import structure_needs
from neuroute.papers.icam.selections import RANKS, SHARE
from neuroute.papers.icam.snapshot import Structure
from neuroute.plan.needs import artifact
from neuroute.rendering import diagram as dg
from neuroute.rendering import maps, style
from neuroute.rendering.notes import notes
from neuroute.rendering.study import Study
from neuroute.rendering.style import MEASURED, Drawing

CHOOSERS = {"optimal": "optimal tours", "model": "ICAM, greedy"}
DASHES: dict[str, Any] = {"optimal": "-", "model": (0, (1.2, 1))}
SHOWN_RANKS = 8
NEAR, FAR, TOUR = style.RAMPS["blue"][1], "#aeb5c0", "#cdd2da"


@artifact("Where optimal tours go, in small and large instances", needs=structure_needs)
def figure1(study: Study) -> Drawing:
    """Instances of two sizes with the region of preferred nodes (a), distances and ranks of all choices (b, c)."""
    net = Structure.of_icam(study)
    sizes = [int(n) for n in np.sort(net.array("sizes"))]
    colours = dict(zip(sizes, style.ramp("blue", len(sizes) + 1)[1:], strict=True))
    titles = {
        n: f"{n:,} nodes: radius {net.number(f'radius_{n}_optimal'):.3f}, "
        f"{net.number(f'within_{n}_optimal'):.1f} others inside"
        for n in sizes
    }
    side = min(1.95, 6.2 / len(sizes))
    point = maps.MARKS["candidate"] | {"markeredgecolor": "none"}
    marks = {
        "current node": point | {"color": maps.RED},
        "nodes within the circle": point | {"color": NEAR},
        "other nodes": point | {"color": FAR},
        "optimal tour": {"color": TOUR},
    }
    charts = {"distances": "(b) Distance to the next node", "ranks": "(c) Its rank among unvisited nodes"}
    sheet = dg.Sheet(
        dg.column(
            dg.heading(f"(a) Within the circle: {100 * SHARE:.0f} % of all next nodes in optimal tours"),
            dg.row(dg.space(), *(dg.Panel(f"map{n}", side, side, title) for n, title in titles.items()), dg.space()),
            dg.legend(marks, across=True),
            dg.row(*(dg.Panel(name, 2.75, 1.05, before=0.4, below=0.3) for name in charts)),
            gap=0.2,
        )
    )
    for n in sizes:
        _draw_region(sheet.axes[f"map{n}"], net, n)
    _draw_distances(sheet.axes["distances"], net, colours)
    _draw_ranks(sheet.axes["ranks"], net, colours)
    for name, title in charts.items():
        sheet.axes[name].set_title(title, pad=4)
    alt = "Instances of two sizes with a circle around the current node; below, how far away next nodes are chosen."
    return dg.drawing(sheet.figure, _rows(net, sizes), _notes(study, net, sizes), alt)


def _inside(net: Structure, n: int) -> Any:
    """(n,) whether nodes lie within the circle around the middle node, which is drawn as the current one."""
    coords = net.array(f"coords_{n}", float)
    return maps.pairwise_distances(coords)[middle_node(coords)] <= net.number(f"radius_{n}_optimal")


def _draw_region(axes: mpl.axes.Axes, net: Structure, n: int) -> None:
    coords, tour, inside = net.array(f"coords_{n}", float), net.array(f"tour_{n}"), _inside(net, n)
    current, area = coords[middle_node(coords)], float(np.clip(1400 / n, 1.2, 16))
    axes.plot(*coords[np.append(tour, tour[0])].T, color=TOUR, linewidth=0.6, zorder=1)
    maps.draw_nodes(axes, coords, ~inside, FAR, s=area, linewidths=0, zorder=2)
    maps.draw_nodes(axes, coords, inside, NEAR, s=area, linewidths=0)
    radius = net.number(f"radius_{n}_optimal")
    axes.add_patch(
        mpl.patches.Circle(tuple(current), radius, facecolor="#3f8fc622", edgecolor="#1c5a9c", linewidth=0.9, zorder=2)
    )
    axes.plot(*current, "o", color=maps.RED, markersize=max(3.0, area**0.5 + 1), zorder=5, markeredgecolor="white")
    maps.frame_square(axes, margin=0.02)


def _draw_distances(axes: mpl.axes.Axes, net: Structure, colours: dict[int, str]) -> None:
    """The share of choices that are not farther away, by size: solid the optimal tours', dotted the model's."""
    levels, reach = net.array("levels"), 0.0
    for n, colour in colours.items():
        for who, dash in DASHES.items():
            quantiles = net.array(f"quantiles_{n}_{who}")
            axes.plot(quantiles, 100 * levels, color=colour, linestyle=dash)
            reach = max(reach, float(np.interp(0.985, levels, quantiles)))
        radius = net.number(f"radius_{n}_optimal")
        axes.plot([radius, radius], [0, 100 * SHARE], color=colour, linewidth=0.7, linestyle="--")
        axes.plot([], [], color=colour, label=f"{n:,} nodes")
    for who, name in CHOOSERS.items():
        axes.plot([], [], color=style.INK, linestyle=DASHES[who], label=name)
    axes.axhline(100 * SHARE, color=style.GREY, linewidth=0.6, linestyle="--")
    axes.set_xlim(0, 1.4 * reach or 1)  # room for the legend beside all radii
    axes.set_ylim(0, 102)
    axes.set_xlabel("distance in the unit square", labelpad=2)
    axes.set_ylabel("choices within (%)", labelpad=2)
    axes.legend(loc="lower right", fontsize=6)


def _draw_ranks(axes: mpl.axes.Axes, net: Structure, colours: dict[int, str]) -> None:
    """Optimal tours' shares by rank, sizes side by side; what is beyond is the last."""
    width = 0.8 / len(colours)
    for k, (n, colour) in enumerate(colours.items()):
        x = np.arange(1, SHOWN_RANKS + 2) - 0.4 + (k + 0.5) * width
        shares = {}
        for who in CHOOSERS:
            ranks = net.array(f"ranks_{n}_{who}")
            shares[who] = 100 * np.append(ranks[:SHOWN_RANKS], ranks[SHOWN_RANKS:].sum()) / ranks.sum()
        axes.bar(x, shares["optimal"], width, color=colour, label=f"{n:,} nodes")
        size = 72 * 2.75 / (SHOWN_RANKS + 1.4) * width * 0.8
        axes.plot(x, shares["model"], "_", color=maps.RED, markeredgewidth=1.3, markersize=size)
    axes.plot([], [], color=maps.RED, linewidth=1.3, label=CHOOSERS["model"])
    axes.set_xticks(range(1, SHOWN_RANKS + 2), [*map(str, range(1, SHOWN_RANKS + 1)), f"≥ {SHOWN_RANKS + 1}"])
    axes.set_xlabel("1: the nearest", labelpad=2)
    axes.set_ylabel("choices (%)", labelpad=2)
    axes.grid(visible=False, axis="x")
    axes.legend(fontsize=6)


def _rows(net: Structure, sizes: list[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for n in sizes:
        coords = net.array(f"coords_{n}", float)
        place = np.where(_inside(net, n), "within", "other").astype(object)
        place[middle_node(coords)] = "current"
        columns = {"stop": np.argsort(net.array(f"tour_{n}")), "place": place}
        rows += maps.node_rows(coords, {"panel": "a", "side": MEASURED, "n": n}, columns)
        for who in CHOOSERS:
            about = {"side": MEASURED, "n": n, "chooser": who}
            rows.append(about | {"panel": "a"} | {k: net.number(f"{k}_{n}_{who}") for k in ("radius", "within")})
            rows += [
                about | {"panel": "b", "level": round(float(level), 4), "distance": float(distance)}
                for level, distance in zip(net.array("levels"), net.array(f"quantiles_{n}_{who}"), strict=True)
            ]
            counts = enumerate(net.array(f"ranks_{n}_{who}"), 1)
            rows += [about | {"panel": "c", "rank": k, "decisions": int(count)} for k, count in counts]
    return rows


def _notes(study: Study, net: Structure, sizes: list[int]) -> tuple[str, ...]:
    counts, solved, solvers = (
        dict(zip(net.array("sizes"), net.array(key), strict=True)) for key in ("counts", "solved", "solvers")
    )
    sets = ", ".join(f"{counts[n]:,} of TSP{n:,} by {solvers[n]}" for n in sizes)
    solved_text = ", ".join(f"{solved[n]:,} of TSP{n:,}" for n in sizes)
    ratio = ""
    if len(sizes) > 1:
        first, last = sizes[0], sizes[-1]
        change = net.number(f"radius_{last}_optimal") / net.number(f"radius_{first}_optimal")
        ratio = (
            f"From {first:,} to {last:,} nodes the radius changes by a factor of {change:.2f}; (n1/n2)^0.5, which "
            f"keeps the number of nodes inside, is {(first / last) ** 0.5:.2f}."
        )
    return notes(study, net=net, sets=sets, solved=solved_text, quantile=100 * SHARE, most=RANKS - 1, ratio=ratio)
