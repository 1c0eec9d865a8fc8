"""The picture of a comparison: mean gap against mean time, for each problem, on the instances that all solved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from neuroute.comparison.summary import Summary, by_cpu, by_problem
from neuroute.core.lazy import mpl, pd
from neuroute.rendering import style
from neuroute.rendering.plots import mark
from neuroute.rendering.style import Drawing, drawing
from neuroute.rendering.table import duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = {  # kind -> what it is called, colour, marker
    "network": ("networks", style.RAMPS["orange"][1], "o"),
    "solver": ("solvers and heuristics", style.RAMPS["blue"][2], "s"),
    "function": ("functions of one's own", style.GREEN, "D"),
    "file": ("results of others", style.GREY, "^"),
}
LINEAR = 1.0  # % up to which the gap's axis is linear, so that optimal solutions have a place
TICKS = (0, 0.5, 1, 2, 5, 10, 20, 50, 100)


def picture(records: pd.DataFrame) -> Drawing:
    """Draw a panel for each problem: gap over time, with the methods that no other one beats in both joined."""
    problems = {p: s for p, s in by_problem(records).items() if s.common}
    figure = style.new_figure(style.TWO_COLUMNS, 3.3)
    panels = figure.subplots(1, max(1, len(problems)), squeeze=False)[0]
    xlabel = "CPU time of an instance" if by_cpu(records) else "time of an instance"
    rows: list[dict[str, Any]] = []
    if not problems:
        style.empty_axes(panels[0], "no instance was solved by all methods")
    for axes, (problem, summary) in zip(panels, problems.items(), strict=False):
        points = _points(problem, summary)
        rows += points
        _panel(
            figure, axes, points, f"{problem.upper()}, {len(summary.common)} of {len(summary.sizes)} instances", xlabel
        )
    kinds = dict.fromkeys(row["kind"] for row in rows)
    entries = [mark(*_entry(kind)) for kind in LOOKS if kind in kinds]
    if entries:
        figure.legend(handles=entries, loc="outside lower center", ncols=len(entries), frameon=False)
    notes = [
        "Means over the instances that all methods solved. The line joins the methods that none beats in both; the "
        "axis of gaps is linear up to 1 %. Filled: greedy or one pass; hollow: with a budget of time."
    ]
    first = "; ".join(
        f"{r['problem']}: {r['method']} ({r['how']}) {r['gap_pct']:.2f} % in {duration(r['seconds'])}" for r in rows
    )
    return drawing(figure, rows, notes, f"Mean gap against mean time. {first}")


def _entry(kind: str) -> tuple[str, str, str]:
    label, color, marker = LOOKS[kind]
    return label, marker, color


def _points(problem: str, summary: Summary) -> list[dict[str, Any]]:
    points = []
    for key in summary.keys:
        seconds = summary.mean("time_s", key, summary.common)
        if seconds is None or seconds <= 0:
            continue  # a results file without times
        gap = summary.mean("gap_pct", key, summary.common)
        kind = summary.records[(summary.records.method == key[0]) & (summary.records.how == key[1])].kind.iloc[0]
        about = {"problem": problem, "method": key[0], "how": key[1], "kind": kind, "instances": len(summary.common)}
        points.append(about | {"gap_pct": gap, "seconds": seconds})
    for point in points:
        point["unbeaten"] = not any(_beats(other, point) for other in points)
    return points


def _beats(other: dict[str, Any], point: dict[str, Any]) -> bool:
    """Whether one is no worse in both, and better in one."""
    no_worse = other["gap_pct"] <= point["gap_pct"] and other["seconds"] <= point["seconds"]
    return no_worse and (other["gap_pct"], other["seconds"]) != (point["gap_pct"], point["seconds"])


def _panel(figure: mpl.figure.Figure, axes: Axes, points: Sequence[dict[str, Any]], title: str, xlabel: str) -> None:
    axes.set_title(title)
    style.log_axis(axes, "x", [p["seconds"] for p in points], pad=0.14)
    axes.set_yscale("symlog", linthresh=LINEAR, linscale=0.6)
    top = max([*(p["gap_pct"] for p in points), 1.0])
    axes.set_ylim(min(-0.08, *(p["gap_pct"] for p in points)), top * 1.5)
    axes.yaxis.set_major_locator(mpl.ticker.FixedLocator([t for t in TICKS if t <= top * 1.5]))
    axes.yaxis.set_minor_locator(mpl.ticker.NullLocator())
    axes.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(style.plain_number))
    axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: _short(value)))
    axes.set(xlabel=xlabel, ylabel="gap to the best known (%)")
    front = sorted((p for p in points if p["unbeaten"]), key=lambda p: p["seconds"])
    axes.plot([p["seconds"] for p in front], [p["gap_pct"] for p in front], color=style.GREY, linewidth=0.8, zorder=1)
    for point in points:
        _, color, marker = LOOKS[point["kind"]]
        hollow = point["how"].endswith(" s")
        look: dict[str, Any] = {"color": color, "markerfacecolor": "white" if hollow else color, "zorder": 3}
        axes.plot(point["seconds"], point["gap_pct"], marker, **look)
    _label(figure, axes, points)


def _short(seconds: float) -> str:
    """1 ms, 0.1 s, 10 s, 2 min"""
    if seconds < 0.1:
        return f"{1000 * seconds:g} ms"
    return f"{seconds:g} s" if seconds < 100 else f"{seconds / 60:.3g} min"


def _label(figure: mpl.figure.Figure, axes: Axes, points: Sequence[dict[str, Any]]) -> None:
    """Write each method's name beside its point, on the first side where no other name or point is."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    places = [axes.transData.transform((p["seconds"], p["gap_pct"])) for p in points]
    taken = [mpl.transforms.Bbox.from_extents(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    inside = axes.get_window_extent(renderer)
    sides = [(6, 0, "left", "center"), (-6, 0, "right", "center"), (0, 6, "center", "bottom"), (0, -6, "center", "top")]
    sides += [(5, 5, "left", "bottom"), (5, -5, "left", "top"), (-5, 5, "right", "bottom"), (-5, -5, "right", "top")]
    sides += [(dx, dy, ha, "center") for dy in (11, -11, 18, -18, 26, -26) for dx, ha in ((8, "left"), (-8, "right"))]
    for place, point in enumerate(points):
        name = point["method"] if point["how"] in ("one pass", "results file") else f"{point['method']}, {point['how']}"
        _, color, _ = LOOKS[point["kind"]]
        best = None
        for dx, dy, ha, va in sides:
            text = axes.annotate(
                name, (point["seconds"], point["gap_pct"]), (dx, dy), textcoords="offset points", ha=ha, va=va,
                color=color, fontsize=6.5, zorder=4,
            )  # fmt: skip
            box = text.get_window_extent(renderer)
            others = [t for i, t in enumerate(taken) if i != place]
            outside = box.x0 < inside.x0 or box.x1 > inside.x1 or box.y0 < inside.y0 or box.y1 > inside.y1
            crossed = sum(box.overlaps(other) for other in others) + 2 * outside
            if best is None or crossed < best[0]:
                if best is not None:
                    best[1].remove()
                best = (crossed, text, box)
            else:
                text.remove()
            if crossed == 0:
                break
        assert best is not None
        taken.append(best[2])
