"""Figure 1: the gap against the first key of the sweep, a line for each value of the others."""

from __future__ import annotations

from typing import Any

from neuroute.core.lazy import pd
from neuroute.papers.sweep.paper import decoding, points, tests
from neuroute.papers.sweep.tables import needs
from neuroute.plan.needs import artifact
from neuroute.plan.shapes import Sweep
from neuroute.rendering import style
from neuroute.rendering.cells import RANGES, gap_cell
from neuroute.rendering.plots import bounds
from neuroute.rendering.study import Study
from neuroute.rendering.style import MARKERS, Drawing, new_figure


@artifact("Gap over the sweep", needs=needs)
def figure1(study: Study) -> Drawing:
    """Gaps on the first test set, with their ranges; the first key's values lie where the numbers do, if they are."""
    sweep = study.scale[Sweep]
    first, *others = sweep.grid
    rows = []
    for point, run in points(study.scale):
        labels = tests(study.scale, run)[0]
        cell = gap_cell(study, run.id, labels.dataset, None, decoding(run))
        low, high = bounds(cell) or (None, None)
        line = ", ".join(f"{sweep.short(key)} {point[key]}" for key in others)
        rows.append({first: point[first], "line": line, "gap_pct": cell.measured, "low_pct": low, "high_pct": high})
    places = _places(sweep.grid[first])
    figure = new_figure(style.ONE_COLUMN, 2.6)
    axes = figure.subplots()
    lines = list(dict.fromkeys(row["line"] for row in rows))
    for i, (line, colour) in enumerate(zip(lines, style.ramp("cool-warm", len(lines)), strict=True)):
        of_line = [row for row in rows if row["line"] == line and row["gap_pct"] is not None]
        of_line.sort(key=lambda row: places[str(row[first])])
        at = [places[str(row[first])] for row in of_line]
        axes.plot(at, [row["gap_pct"] for row in of_line], MARKERS[i % len(MARKERS)], ls="-", color=colour, label=line)
        for x, row in zip(at, of_line, strict=True):
            if row["low_pct"] is not None:
                axes.plot([x, x], [row["low_pct"], row["high_pct"]], color=colour, linewidth=0.9)
    if all(isinstance(value, float) for value in places.values()) and min(places.values()) > 0:
        style.log_axis(axes, "x", list(places.values()))
    else:
        axes.set_xticks(list(places.values()), list(places))
    axes.set_xlabel(sweep.short(first))
    axes.set_ylabel("Optimality gap (%)")
    if others:
        figure.legend(loc="outside lower center", ncols=2)
    alt = f"Optimality gap against {sweep.short(first)}, one line for each value of the other keys."
    return Drawing(figure, pd.DataFrame(rows), (f"On the first test set of the table. {RANGES}",), alt)


def _places(values: list[Any]) -> dict[str, float]:
    """Where values lie on the axis: numbers, written as text, too, where they are; others side by side."""
    try:
        return {str(value): float(str(value)) for value in values}
    except ValueError:
        return {str(value): i for i, value in enumerate(values)}
