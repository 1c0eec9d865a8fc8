"""Table 1: gaps of ICAM in three stages of growing sizes, and at the first one's size."""

from collections.abc import Iterator
from math import isnan

from neuroute.pipeline.papers.one_size.paper import ALIKE, STAGED

from neuroute.pipeline.papers.icam.paper import MULTI
from neuroute.pipeline.papers.icam.tables import reference_note, sets_of
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.rendering.cells import above_over_seeds, gap_cell, summary_over_seeds
from neuroute.pipeline.rendering.notes import draw_table
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import WHOLE, Cell, Column, Row, Table, described, fixed

ROWS = {"Three stages": STAGED, "One size, in the same time": ALIKE}
QUANTITIES = {"instances": "samples", "updates": "batches", "processor_s": "processor_time_s"}  # in run.json


def _needs(scale: Scale) -> Iterator[Need]:
    for run in ROWS.values():
        yield Log(run, all_seeds=True)
        yield from tested(run, sets_of(scale, "tsp").values(), MULTI)


@artifact("Three stages against one size", needs=_needs)
def table1(study: Study) -> Table:
    tests = sets_of(study.scale, "tsp")
    sets = {size: labels.dataset for size, labels in tests.items()}
    columns = (
        Column("instances", "Instances", "", WHOLE, at="a training"),
        Column("updates", "Updates", "", WHOLE, at="a training"),
        Column("processor_s", "Processor time", "s", fixed(0), at="a training"),
        *(Column(f"gap_{n}_pct", f"TSP{d.n}", "%", fixed(2), "Gap", described(d)) for n, d in sets.items()),
        *(Column(f"above_{n}", f"TSP{d.n}", "points", fixed(2), "Above", described(d)) for n, d in sets.items()),
    )
    rows = []
    for label, run in ROWS.items():
        cells = [Cell(None if isnan(mean) else mean) for mean in summary_over_seeds(study, run, QUANTITIES).values()]
        cells += [gap_cell(study, run, dataset, None, MULTI) for dataset in sets.values()]
        above = (Cell() if run == STAGED else above_over_seeds(study, run, STAGED, d, MULTI) for d in sets.values())
        rows.append(Row((label,), (*cells, *above)))
    reference = reference_note({"tsp": tests}, {"tsp": "Concorde"})
    return draw_table(study, ("Training",), columns, rows, reference=reference)
