"""Table 1 and Figure 1: every point of the sweep, its keys and what it reaches."""

from collections.abc import Iterator
from dataclasses import replace

from neuroute.pipeline.papers.sweep.paper import decoding, points, tests
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.plan.shapes import Sweep
from neuroute.pipeline.rendering.cells import RANGES, gap_cell, solver_name, summary_cell
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import Drawing
from neuroute.pipeline.rendering.sweeps import draw_sweep
from neuroute.pipeline.rendering.table import WHOLE, Cell, Column, Row, Table, described, duration, fixed, joined


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
        f"The last validation is that of the first training. {_ranges(study)}".strip(),
    )
    return Table(study.artifact.title, tuple(map(sweep.short, sweep.grid)), tuple(columns), tuple(rows), notes)


@artifact("Gap over the sweep", needs=needs)
def figure1(study: Study) -> Drawing:
    """Gaps on the first test set; the first key's values lie where the numbers do, if they are."""
    sweep, rows = study.scale[Sweep], []
    for point, run in points(study.scale):
        labels = tests(study.scale, run)[0]
        cell = gap_cell(study, run.id, labels.dataset, None, decoding(run))
        gap = {"gap_pct": cell.measured, "low_pct": cell.low, "high_pct": cell.high}
        trainings = study.values("gap_pct", run.id, labels.dataset, decoding(run))
        rows.append({sweep.short(key): point[key] for key in sweep.grid} | gap | {"trainings": trainings})
    ranges = "least to largest" if study.shown_seeds() else "95 % interval"
    drawn = draw_sweep(rows, list(map(sweep.short, sweep.grid)), f"{sweep.run} over the sweep", ranges)
    return replace(drawn, notes=(f"On the first test set of the table. {_ranges(study)}".strip(),))


def _ranges(study: Study) -> str:
    """Say what ranges are; where several trainings are shown another note says it."""
    return "" if study.shown_seeds() else RANGES
