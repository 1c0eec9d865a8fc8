"""Table 1 and Figure 1: every point of the sweep, its keys and what it reaches."""

from collections.abc import Iterator
from typing import Any

from neuroute.papers.sweep.paper import decoding, points, tests
from neuroute.plan.config import Scale
from neuroute.plan.needs import Log, Need, artifact, tested
from neuroute.plan.shapes import Sweep
from neuroute.rendering import style
from neuroute.rendering.cells import RANGES, gap_cell, solver_name, summary_cell
from neuroute.rendering.columns import WHOLE, described, joined
from neuroute.rendering.study import Study
from neuroute.rendering.style import MARKERS, Drawing, new_figure
from neuroute.rendering.table import Cell, Column, Row, Table, duration, fixed


def needs(scale: Scale) -> Iterator[Need]:
    for _, run in points(scale):
        yield from tested(run.id, tests(scale, run), decoding(run))
        yield Log(run.id, all_seeds=True)


@artifact("Every point of the sweep", needs=needs)
def table1(study: Study) -> Table:
    """Parameters, training and gaps of each point."""
    sweep, every = study.scale[Sweep], points(study.scale)
    sets = tests(study.scale, every[0][1])
    columns = [Column("parameters", "Parameters", "", WHOLE), Column("training_s", "Training", "", duration)]
    columns.append(Column("validation_gap_pct", "Last validation", "%", fixed(2)))
    for labels in sets:
        name = labels.dataset.variant or f"n={labels.dataset.n}"
        key = f"gap_{labels.dataset.variant or labels.dataset.n}_pct"
        columns.append(Column(key, name, "%", fixed(2), "Gap", described(labels.dataset)))
    rows = []
    for point, run in every:
        log = study.log(run.id, "validation")
        cells = (
            Cell(study.value("parameters", run.id, sets[0].dataset, decoding(run))),
            summary_cell(study, run.id, "wall_time_s"),
            Cell(float(log.gap_pct.iloc[-1]) if len(log) else None),
            *(gap_cell(study, run.id, labels.dataset, None, decoding(run)) for labels in sets),
        )
        rows.append(Row(tuple(str(value) for value in point.values()), cells))
    notes = (
        f"Each point is {sweep.run} with these values. References: {joined(solver_name(s.solver) for s in sets)}. "
        f"The last validation is that of the first training. {RANGES}",
    )
    return Table(study.artifact.title, tuple(map(sweep.short, sweep.grid)), tuple(columns), tuple(rows), notes)


@artifact("Gap over the sweep", needs=needs)
def figure1(study: Study) -> Drawing:
    """Gaps on the first test set, with their ranges; the first key's values lie where the numbers do, if they are."""
    sweep = study.scale[Sweep]
    first, *others = sweep.grid
    rows = []
    for point, run in points(study.scale):
        labels = tests(study.scale, run)[0]
        cell = gap_cell(study, run.id, labels.dataset, None, decoding(run))
        gap = {"gap_pct": cell.measured, "low_pct": cell.low, "high_pct": cell.high}
        line = ", ".join(f"{sweep.short(key)} {point[key]}" for key in others)
        rows.append({first: point[first], "line": line, **gap})
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
    return Drawing(figure, rows, (f"On the first test set of the table. {RANGES}",), alt)


def _places(values: list[Any]) -> dict[str, float]:
    """Where values lie on the axis: numbers, written as text, too, where they are; others side by side."""
    try:
        return {str(value): float(str(value)) for value in values}
    except ValueError:
        return {str(value): i for i, value in enumerate(values)}
