"""The picture of a comparison: mean gap against mean time, for each problem, on the instances that all solved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.analysis import RESAMPLES
from neuroute.analysis.intervals import Array
from neuroute.core.lazy import mpl, pd
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.style import Drawing, line, mark
from neuroute.pipeline.rendering.table import duration
from neuroute_compare.records import MEASURED
from neuroute_compare.summary import Key, Summary, by_problem, clocks, groups, label, left_out, shares_better

if TYPE_CHECKING:
    from matplotlib.axes import Axes


LOOKS = {  # kind -> what it is called, marker, colour
    "network": ("networks", "o", style.RAMPS["orange"][1]),
    "solver": ("solvers and heuristics", "s", style.RAMPS["blue"][2]),
    "function": ("your functions", "D", style.GREEN),
    "file": ("results files", "^", style.GREY),
    "constructive": ("published, constructive", "v", style.RAMPS["cool-warm"][0]),
    "improvement": ("published, improvement", "^", style.RAMPS["cool-warm"][2]),
    "heat map": ("published, heat map", "P", style.RAMPS["cool-warm"][3]),
    "classical": ("published, classical", "s", style.GREY),
}
SURE = 0.975  # share of resamples from which on an order stands
NAMED = 24  # methods whose names all have a place; of more, those measured here and the unbeaten ones are named
LINES = {  # machine that times are of -> line of the unbeaten, and how the legend calls it
    "here": ("-", "unbeaten, measured here"),
    "GPU": ("--", "unbeaten, published, GPU"),
    "CPU": (":", "unbeaten, published, CPU"),
    "unknown": ("-.", "unbeaten, unknown machine"),
}
LINEAR = 1.0  # % up to which the gap's axis is linear, so that optimal solutions have a place
TICKS = (0, 0.5, 1, 2, 5, 10, 20, 50, 100)


def picture(records: pd.DataFrame) -> Drawing:
    """Draw a panel for each problem: gap over time; of one machine the methods that none beats in both are joined."""
    summaries = by_problem(records)
    problems = {p: s for p, s in summaries.items() if s.common}
    figure = style.new_figure(style.TWO_COLUMNS, 3.3)
    panels = figure.subplots(1, max(1, len(problems)), squeeze=False)[0]
    xlabel = {("cpu",): "CPU time", ("cpu", "wall"): "CPU or wall-clock time"}.get(tuple(clocks(records)), "time")
    xlabel += " of an instance"
    xlabel += " (published: theirs)" if records.how.str.startswith("published").any() else ""
    if not problems:
        style.empty_axes(panels[0], "no instance was solved by all methods")
    points = {problem: _points(problem, summary) for problem, summary in problems.items()}
    rows = [point for of_problem in points.values() for point in of_problem]
    counts = Counter((point["problem"], point["machine"]) for point in rows if point["unbeaten"])
    _legend(figure, {row["kind"] for row in rows}, {machine for (_, machine), count in counts.items() if count > 1})
    for axes, (problem, summary) in zip(panels, problems.items(), strict=False):
        title = f"{problem.upper()}, {len(summary.common)} of {len(summary.sizes)} instances"
        _panel(axes, points[problem], title, xlabel)
    for axes, of_problem in zip(panels, points.values(), strict=False):  # when all else has its place
        crowd = [p for p in of_problem if p["kind"] in MEASURED or p["unbeaten"]]
        _label(figure, axes, of_problem, of_problem if len(of_problem) <= NAMED else crowd)
    notes = [
        "Means over the instances that all these methods solved. Lines: Pareto fronts, one a kind of machine, as times "
        "do not compare across machines. The gap axis is linear up to 1 %. Filled: without search; hollow: with a time "
        "budget.",
        *left_out(summaries),
    ]
    first = "; ".join(
        f"{r['problem']}: {r['method']} ({r['how']}) {r['gap_pct']:.2f} % in {duration(r['seconds'])}" for r in rows
    )
    return Drawing(figure, rows, notes, f"Mean gap against mean time. {first}")


def by_size(records: pd.DataFrame, beginnings: Iterable[int]) -> Drawing | None:
    """Draw a panel for each problem: mean gap in each group of sizes that a method solved whole; None for one group."""
    problems = {p: [g for g in groups(beginnings) if s.within(g)] for p, s in by_problem(records).items()}
    if max(map(len, problems.values())) < 2:
        return None
    figure = style.new_figure(style.TWO_COLUMNS, 3.3)
    panels = figure.subplots(1, len(problems), squeeze=False)[0]
    rows, kinds = list[dict[str, Any]](), set[str]()
    labels: list[tuple[Axes, list[dict[str, Any]]]] = []
    for axes, (problem, summary) in zip(panels, by_problem(records).items(), strict=True):
        here = problems[problem]
        ends: list[dict[str, Any]] = []
        for key in summary.keys:
            kind = summary.first("kind", key) or "file"
            whole = [(i, g, summary.within(g)) for i, g in enumerate(here)]
            whole = [(i, g, names) for i, g, names in whole if len(summary.solved_by(key, names)) == len(names)]
            gaps = [summary.mean("gap_pct", key, names) or 0.0 for _, _, names in whole]
            about = {"problem": problem, "method": key[0], "how": key[1], "kind": kind}
            rows += [about | {"sizes": str(g), "gap_pct": gap} for (_, g, _), gap in zip(whole, gaps, strict=True)]
            if not whole:
                continue
            kinds.add(kind)
            places, (_, marker, color) = [i for i, _, _ in whole], LOOKS[kind]
            bold = kind in MEASURED
            face = "white" if key[1].endswith(" s") else color
            axes.plot(
                places, gaps, color=color, marker=marker, markerfacecolor=face, linewidth=1.4 if bold else 0.5,
                markersize=4 if bold else 2, alpha=1 if bold else 0.6, zorder=3 if bold else 2,
            )  # fmt: skip
            ends.append(about | {"seconds": places[-1], "gap_pct": gaps[-1]})
        _gap_axis(axes, [row["gap_pct"] for row in rows if row["problem"] == problem])
        axes.set_title(problem.upper())
        axes.set_xlim(-0.3, len(here) + 0.3)
        axes.set_xticks(range(len(here)), [str(g) for g in here], rotation=20)
        labels.append((axes, ends))
    _legend(figure, kinds)
    for axes, ends in labels:
        _label(figure, axes, ends, [e for e in ends if e["kind"] in MEASURED or len(ends) <= NAMED])
    notes = ["Means over the instances of a group; a method has a point where it solved all of them."]
    return Drawing(figure, rows, notes, "Mean gap of each method by size of the instances; the CSV has the numbers.")


def _legend(figure: mpl.figure.Figure, kinds: Collection[str], machines: Collection[str] = ()) -> None:
    entries = [mark(*look) for kind, look in LOOKS.items() if kind in kinds]
    entries += [
        line(name, color=style.GREY, linewidth=0.8, linestyle=dashes)
        for machine, (dashes, name) in LINES.items()
        if machine in machines
    ]
    if entries:
        figure.legend(handles=entries, loc="outside lower center", ncols=min(len(entries), 4), frameon=False)


def _points(problem: str, summary: Summary) -> list[dict[str, Any]]:
    points = []
    for key in summary.compared:
        seconds = summary.mean("time_s", key, summary.common)
        if seconds is None or seconds <= 0:
            continue  # a results file without times
        gap = summary.mean("gap_pct", key, summary.common)
        kind = summary.first("kind", key) or "file"
        about = {"problem": problem, "method": key[0], "how": key[1], "kind": kind, "instances": len(summary.common)}
        about["machine"] = "here" if kind in MEASURED else _machine(summary.first("device", key))
        points.append(about | {"gap_pct": gap, "seconds": seconds})
    for point in points:
        alike = [other for other in points if other["machine"] == point["machine"]]
        point["unbeaten"] = not any(_beats(other, point) for other in alike)
    return points


def _machine(device: str | None) -> str:
    return "unknown" if device is None else "CPU" if device.startswith("CPU") else "GPU"


def _beats(other: dict[str, Any], point: dict[str, Any]) -> bool:
    """Whether one is no worse in both, and better in one."""
    no_worse = other["gap_pct"] <= point["gap_pct"] and other["seconds"] <= point["seconds"]
    return no_worse and (other["gap_pct"], other["seconds"]) != (point["gap_pct"], point["seconds"])


def _panel(axes: Axes, points: Sequence[dict[str, Any]], title: str, xlabel: str) -> None:
    axes.set_title(title)
    style.log_axis(axes, "x", [p["seconds"] for p in points], pad=0.14)
    _gap_axis(axes, [p["gap_pct"] for p in points])
    axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: _short(value)))
    axes.set_xlabel(xlabel)
    for machine, (dashes, _) in LINES.items():
        front = sorted((p for p in points if p["unbeaten"] and p["machine"] == machine), key=lambda p: p["seconds"])
        at, gaps = [p["seconds"] for p in front], [p["gap_pct"] for p in front]
        axes.plot(at, gaps, color=style.GREY, linewidth=0.8, linestyle=dashes, zorder=1)
    for point in points:
        _, marker, color = LOOKS[point["kind"]]
        hollow = point["how"].endswith(" s")
        look: dict[str, Any] = {"color": color, "markerfacecolor": "white" if hollow else color, "zorder": 3}
        axes.plot(point["seconds"], point["gap_pct"], marker, **look)


def _gap_axis(axes: Axes, gaps: Sequence[float]) -> None:
    top = max([*gaps, 1.0])
    axes.set_yscale("symlog", linthresh=LINEAR, linscale=0.6)
    axes.set_ylim(min(-0.08, *gaps), top * 1.5)
    axes.yaxis.set_major_locator(mpl.ticker.FixedLocator([t for t in TICKS if t <= top * 1.5]))
    axes.yaxis.set_minor_locator(mpl.ticker.NullLocator())
    axes.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(style.plain_number))
    axes.set_ylabel("gap to the best known (%)")


def _short(seconds: float) -> str:
    """1 ms, 0.1 s, 1,000 s"""
    return f"{1000 * seconds:g} ms" if seconds < 0.1 else f"{seconds:,g} s"


def _label(
    figure: mpl.figure.Figure, axes: Axes, points: Sequence[dict[str, Any]], labelled: Sequence[dict[str, Any]]
) -> None:
    """Write each named method's name beside its point, where nothing else is; a line joins what is apart."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    places = [axes.transData.transform((p["seconds"], p["gap_pct"])) for p in points]
    boxes = [mpl.transforms.Bbox.from_extents(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    inside = axes.get_window_extent(renderer)
    for place, point in enumerate(points):
        if point not in labelled:
            continue
        name = label((point["method"], point["how"]))
        _, _, color = LOOKS[point["kind"]]
        others = [box for i, box in enumerate(boxes) if i != place]
        candidates = []
        for order, (dx, dy, ha) in enumerate(_sides(place, places)):
            text = axes.annotate(
                name, (point["seconds"], point["gap_pct"]), (dx, dy), textcoords="offset points", ha=ha, va="center",
                color=color, fontsize=6.5, zorder=4,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.2, "alpha": 0.8},
                arrowprops={"arrowstyle": "-", "color": color, "lw": 0.4, "shrinkA": 0, "shrinkB": 2} if dy else None,
            )  # fmt: skip
            text.set_in_layout(False)
            text.update_positions(renderer)
            box = mpl.text.Text.get_window_extent(text, renderer)  # of the name, without its line
            outside = not (inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1)
            candidates.append((sum(box.overlaps(other) for other in others) + 2 * outside, order, text, box))
        best = min(candidates, key=lambda each: each[:2])
        for _, _, text, _ in candidates:
            if text is not best[2]:
                text.remove()
        boxes.append(best[3])


def _sides(place: int, places: Sequence[Any]) -> list[tuple[float, float, str]]:
    """Where a name may stand, in points beside its own; first beside it, then away from the point that is nearest."""
    x, y = places[place]
    near = [(abs(v - y) + abs(u - x), v) for i, (u, v) in enumerate(places) if i != place]
    away = -1 if near and min(near)[1] > y else 1
    sides: list[tuple[float, float, str]] = [(6, 0, "left"), (-6, 0, "right")]
    for dx, dy in ((10, 9), (10, 16), (10, 24), (30, 9), (30, 16), (10, 32), (30, 28), (60, 16), (60, 28), (20, 44)):
        for sign in (away, -away):
            sides += [(dx, sign * dy, "left"), (-dx, sign * dy, "right")]
    return sides


# -- which conclusions flip when instances and seeds are drawn anew, and with the seconds that searches have ---------

MOST = 24  # methods that a panel has place for


def flips(records: pd.DataFrame) -> Drawing:
    """Draw for each problem, of each pair of methods, the share of resamples in which the row has the smaller gap.

    Of many methods, those measured here and the best others.  Of several budgets of searches, the one in the middle.
    A problem with too few instances has words instead.
    """
    problems = by_problem(_within(records, _middle(_seconds(records))))
    panel_keys = {problem: [] if s.too_few else s.foremost(MOST) for problem, s in problems.items()}
    most = max(map(len, panel_keys.values()))
    figure = style.new_figure(style.TWO_COLUMNS, 1.4 + 0.24 * most)
    panels = figure.subplots(1, len(problems), squeeze=False)[0]
    rows: list[dict[str, Any]] = []
    for axes, (problem, summary) in zip(panels, problems.items(), strict=True):
        if summary.too_few:
            style.empty_axes(axes, f"{problem.upper()}: {summary.too_few}")
            continue
        shares = shares_better([summary.values("gap_pct", key, summary.common) for key in panel_keys[problem]])
        names = [label(key) for key in panel_keys[problem]]
        upper = np.where(np.triu(np.ones_like(shares), 1) > 0, shares, np.nan)[:-1, 1:]
        _share_cells(axes, upper, names[:-1], names[1:], f"{problem.upper()}, {len(summary.common)} instances")
        axes.set_aspect("equal")
        for i, j in zip(*np.triu_indices(len(names), 1), strict=True):
            pair = {"problem": problem, "method": names[i], "other": names[j]}
            rows.append(pair | {"share_better": shares[i, j], "flips": bool(shares[i, j] < SURE)})
    open_pairs = [row for row in rows if row["flips"]]
    notes = [
        f"Share (%) of {RESAMPLES:,} resamples of common instances and seeds in which the row's mean gap is below the "
        f"column's. Orange: below {100 * SURE:g} %, an order that may flip on other instances "
        f"({len(open_pairs)} of {len(rows)} pairs).",
        *(f"{p.upper()}: {s.too_few}." for p, s in problems.items() if s.too_few),
        *left_out(problems),
    ]
    text = "; ".join(
        f"{r['problem']}: {r['method']} before {r['other']} in {100 * r['share_better']:.0f} %" for r in open_pairs
    )
    return Drawing(figure, rows, notes, f"Pairs of methods whose order is not sure: {text or 'none'}.")


def _share_cells(axes: Axes, shares: Array, rows: Sequence[str], columns: Sequence[str], title: str = "") -> None:
    """Draw shares (rows, columns) in per cent, blue where they stand, one way or the other; NaN: no cell."""
    for i, of_row in enumerate(shares):
        for j, share in enumerate(of_row):
            if share != share:
                continue
            color = style.RAMPS["blue" if max(share, 1 - share) >= SURE else "orange"][0]
            axes.add_patch(mpl.patches.Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=color, edgecolor="white"))
            axes.text(j, i, f"{100 * share:.0f}", ha="center", va="center", fontsize=6.5)
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set_title(title)


def _seconds(records: pd.DataFrame) -> list[float]:
    """Return what searches had, shortest first."""
    return sorted(float(b) for b in records.budget_s.dropna().unique())


def _middle(times: Sequence[float]) -> float | None:
    return times[len(times) // 2] if times else None


def _within(records: pd.DataFrame, budget: float | None) -> pd.DataFrame:
    """Keep what ends by itself, and searches of that budget."""
    records_kept: pd.DataFrame = records[records.budget_s.isna() | (records.budget_s == budget)]
    return records_kept


def budgets(records: pd.DataFrame) -> Drawing | None:
    """Draw which orders change with the seconds that searches have; None where all had as many.

    Of each pair, of which one at least searches, the share of resamples in which the first has the smaller gap.
    """
    times, rows = _seconds(records), list[dict[str, Any]]()
    if len(times) < 2:
        return None
    problems = by_problem(records)
    for problem, all_of_it in problems.items():
        if not all_of_it.too_few:
            rows += _orders(problem, all_of_it, times)
    sheets = {problem: _changing(rows, problem, times) for problem in problems}
    most = max((len(sheet) for sheet in sheets.values()), default=1)
    figure = style.new_figure(style.TWO_COLUMNS, 1.2 + 0.24 * max(most, 4))
    panels = figure.subplots(1, len(sheets), squeeze=False)[0]
    for axes, (problem, sheet) in zip(panels, sheets.items(), strict=True):
        if sheet:
            _share_cells(
                axes, np.array(list(sheet.values())), list(sheet), [f"{b:g} s" for b in times], problem.upper()
            )
        else:
            style.empty_axes(axes, f"{problem.upper()}: {problems[problem].too_few or 'no order changes'}")
    shown_text = f"{sum(map(len, sheets.values()))} of {len(rows) // len(times)} orders"
    notes = [
        f"Share (%) of {RESAMPLES:,} resamples of instances and seeds in which the first method has the smaller mean "
        f"gap at this search budget. Blue: at least {100 * SURE:g} % one way. Shown: {shown_text}, those open at some "
        "budget or flipping between two; the CSV has all.",
        *left_out(problems),
    ]
    return Drawing(figure, rows, notes, f"Orders of methods that depend on the search budget: {shown_text}.")


def _orders(problem: str, every: Summary, times: Sequence[float]) -> list[dict[str, Any]]:
    """Return for each pair and budget the share of resamples in which the first is better."""
    middle = f"{_middle(times):g} s"
    keys = Summary(_within(every.records, _middle(times))).keys
    rows = []
    for pair in [(a, b) for i, a in enumerate(keys) for b in keys[i + 1 :] if middle in (a[1], b[1])]:
        at = {s: [(key[0], f"{s:g} s") if key[1] == middle else key for key in pair] for s in times}
        if not all(key in every.compared for now in at.values() for key in now):
            continue
        for seconds, now in at.items():
            share = shares_better([every.values("gap_pct", key, every.common) for key in now])[0, 1]
            about = {"problem": problem, "method": _plain(pair[0]), "other": _plain(pair[1]), "seconds": seconds}
            rows.append(about | {"share_better": share, "open": bool(max(share, 1 - share) < SURE)})
    return rows


def _changing(rows: Sequence[dict[str, Any]], problem: str, times: Sequence[float]) -> dict[str, list[float]]:
    """Return the shares at each budget of the pairs that are open at one, or turn round between two."""
    sheet: dict[str, list[float]] = {}
    for row in rows:
        if row["problem"] == problem:
            sheet.setdefault(f"{row['method']} before {row['other']}", []).append(row["share_better"])
    return {name: line for name, line in sheet.items() if min(line) < SURE and max(line) > 1 - SURE}


def _plain(key: Key) -> str:
    """Name a method without its budget."""
    return key[0] if key[1].endswith(" s") else label(key)
