"""The figure of a sweep: gaps over the values of a key, a line for each value of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuroute.core.lazy import mpl
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.style import INK, MARKERS, Drawing, new_figure

APART = 0.13  # of the axis, between labels of ticks


def draw_sweep(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], title: str, ranges: str) -> Drawing:
    """Draw gaps (%) of points with their ranges and single trainings.

    Args:
        rows: of each point the value of each key, `gap_pct`, `low_pct`, `high_pct`, and `trainings`, the gap of each.
        keys: the first is on the axis, at its numbers if all its values are numbers; others have a line each.
        title: of the figure.
        ranges: what the bars are.
    """
    first, *others = keys
    drawn = [{**row, "line": ", ".join(f"{key} {row[key]}" for key in others)} for row in rows]
    places = _places([row[first] for row in rows])
    lines = list(dict.fromkeys(row["line"] for row in drawn))
    figure = new_figure(style.ONE_COLUMN, 2.8 + 0.12 * len(lines))
    axes = figure.subplots()
    for i, (line, colour) in enumerate(zip(lines, style.ramp("cool-warm", len(lines)), strict=True)):
        of_line = [row for row in drawn if row["line"] == line and row["gap_pct"] is not None]
        of_line.sort(key=lambda row: places[str(row[first])])
        at = [places[str(row[first])] for row in of_line]
        label = line or "mean"
        axes.plot(at, [row["gap_pct"] for row in of_line], MARKERS[i % len(MARKERS)], ls="-", color=colour, label=label)
        for x, row in zip(at, of_line, strict=True):
            if row["low_pct"] is not None:
                axes.plot([x, x], [row["low_pct"], row["high_pct"]], color=colour, linewidth=0.9)
            if len(row["trainings"]) > 1:
                axes.plot([x] * len(row["trainings"]), row["trainings"], ls="none", marker="_", ms=4, color=colour)
    _set_ticks(axes, places)
    axes.set_title(title, fontsize=8, parse_math=False)
    axes.set_xlabel(first)
    axes.set_ylabel("Optimality gap (%)")
    several = any(len(row["trainings"]) > 1 for row in rows)
    handles, labels = axes.get_legend_handles_labels()
    handles.append(mpl.lines.Line2D([], [], color=INK, linewidth=0.9))
    if several:
        handles.append(mpl.lines.Line2D([], [], ls="none", marker="_", ms=4, color=INK))
    figure.legend(handles, [*labels, ranges, *["a training"] * several], loc="outside lower center", ncols=2)
    alt = f"Optimality gap against {first}" + (", one line for each value of the other keys." if others else ".")
    points = [{key: value for key, value in row.items() if key != "trainings"} for row in drawn]
    return Drawing(figure, points, (), alt)


def _set_ticks(axes: mpl.axes.Axes, places: Mapping[str, float]) -> None:
    """Label the values that are tried, as many as fit side by side."""
    at = sorted(set(places.values()))
    is_log = all(place > 0 for place in at) and at[-1] >= 5 * at[0] and any(str(p) in places for p in at)
    if is_log:
        style.log_axis(axes, "x", at)
        axes.xaxis.set_major_locator(mpl.ticker.FixedLocator(at))
    axes.get_xlim()  # which sets them
    across = axes.transData + axes.transAxes.inverted()
    shown, last = [], -1.0
    for place in at:
        x = float(across.transform((place, 0))[0])
        if x - last >= APART:
            shown.append(place)
            last = x
    text_of = {place: text for text, place in places.items()}
    axes.set_xticks(shown, [text_of[place] for place in shown])


def _places(values: Sequence[Any]) -> dict[str, float]:
    """Where values lie on the axis: numbers, written as text, too, where they are; others side by side."""
    try:
        return {str(value): float(str(value)) for value in values}
    except ValueError:
        return {text: float(i) for i, text in enumerate(dict.fromkeys(map(str, values)))}
