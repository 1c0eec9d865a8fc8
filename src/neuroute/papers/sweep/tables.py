"""Table 1: every point of the sweep, its keys and what it reaches."""

from __future__ import annotations

from collections.abc import Iterator

from neuroute.papers.sweep.paper import decoding, points, tests
from neuroute.plan.config import Scale
from neuroute.plan.needs import Log, Need, artifact, tested
from neuroute.plan.shapes import Sweep
from neuroute.rendering.cells import RANGES, gap_cell, solver_name
from neuroute.rendering.columns import WHOLE, described, joined
from neuroute.rendering.seeds import summary_cell
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, duration, fixed


def needs(scale: Scale) -> Iterator[Need]:
    for _, run in points(scale):
        for labels in tests(scale, run):
            yield from tested(run.id, labels, decoding(run))
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
