"""Table 1: gaps of ICAM in three stages of growing sizes, and at the first one's size."""

from collections.abc import Iterator
from math import nan
from statistics import fmean

from neuroute.pipeline.papers.one_size.paper import ALIKE, STAGED

from neuroute.analysis import intervals
from neuroute.pipeline.papers.icam.paper import MULTI
from neuroute.pipeline.papers.icam.tables import reference_note, sets_of
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.rendering.cells import gap_cell, interval_cell
from neuroute.pipeline.rendering.render import draw_table
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import WHOLE, Cell, Column, Row, Table, described, fixed
from neuroute.specs.objects import Dataset

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
        cells = [Cell(mean) for mean in _means(study, run)]
        cells += [gap_cell(study, run, dataset, None, MULTI) for dataset in sets.values()]
        above = (Cell() if run == STAGED else _above(study, run, STAGED, d) for d in sets.values())
        rows.append(Row((label,), (*cells, *above)))
    reference = reference_note({"tsp": tests}, {"tsp": "Concorde"})
    return draw_table(study, ("Training",), columns, rows, reference=reference)


def _means(study: Study, run: str) -> list[float]:
    """What a run's trainings have seen and taken, on average."""
    summaries = [study.summary(training) for training in study.trainings(run)]
    return [fmean(summary.get(name, nan) for summary in summaries) for name in QUANTITIES.values()]


def _above(study: Study, run: str, base: str, dataset: Dataset) -> Cell:
    """By how many points the mean gap of a run is above that of another, over instances and seeds."""
    gap, base_gap = (study.gap(each, dataset, MULTI) for each in (run, base))
    here, there = (study.lengths_of_each(each, dataset, MULTI) for each in (run, base))
    if here is None or there is None or gap is None or base_gap is None:
        return Cell()
    pairs = ((here, 1), (there, 0))
    upper, lower = (intervals.mean_over_seeds(intervals.gaps_of_each_seed(*each), stream) for each, stream in pairs)
    return interval_cell(gap - base_gap, upper - lower)
