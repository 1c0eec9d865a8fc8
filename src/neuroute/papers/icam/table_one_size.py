"""Table 13 of paper `icam`, our own: the three stages beside trainings at one size, with several seeds of each."""

from collections.abc import Iterator
from math import isnan

from neuroute.papers.icam import roles
from neuroute.papers.icam.cells import reference_note, sets_of
from neuroute.papers.icam.roles import MULTI, OWN
from neuroute.papers.icam.scale import IcamScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Log, Need, artifact, tested
from neuroute.plan.objects import Problem
from neuroute.rendering.cells import gap_cell
from neuroute.rendering.columns import WHOLE, described
from neuroute.rendering.notes import notes
from neuroute.rendering.seeds import above_over_seeds, summary_over_seeds
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

TSP: Problem = "tsp"
MEANS = "a training"
QUANTITIES = {"instances": "samples", "updates": "batches", "processor_s": "processor_time_s"}  # in run.json


def _needs(scale: Scale) -> Iterator[Need]:
    for run in _rows(scale).values():
        yield Log(run, all_seeds=True)
        for labels in sets_of(scale, TSP).values():
            yield from tested(run, labels, MULTI)


def _rows(scale: Scale) -> dict[str, str]:
    """What each row is called, and its run; none where the scale has no control."""
    if scale[IcamScale].one_size is None:
        return {}
    return {"Three stages": roles.run_id(OWN[TSP]), "One size, in the same time": roles.run_id(roles.ONE_SIZE)}


@artifact("Our own: three stages against one size", needs=_needs)
def table13(study: Study) -> Table:
    """Gaps of ICAM in the three stages, and of ICAM at the first one's size in about the same time."""
    tests = sets_of(study.scale, TSP)
    sets = {size: labels.dataset for size, labels in tests.items()}
    columns = (
        Column("instances", "Instances", "", WHOLE, at=MEANS),
        Column("updates", "Updates", "", WHOLE, at=MEANS),
        Column("processor_s", "Processor time", "s", fixed(0), at=MEANS),
        *(Column(f"gap_{n}_pct", f"TSP{d.n}", "%", fixed(2), "Gap", described(d)) for n, d in sets.items()),
        *(Column(f"above_{n}", f"TSP{d.n}", "points", fixed(2), "Above", described(d)) for n, d in sets.items()),
    )
    rows, staged = [], roles.run_id(OWN[TSP])
    for label, run in _rows(study.scale).items():
        means = summary_over_seeds(study, run, QUANTITIES).values()
        cells = [Cell(None if isnan(mean) else mean) for mean in means]
        cells += [gap_cell(study, run, dataset, None, MULTI) for dataset in sets.values()]
        above = (Cell() if run == staged else above_over_seeds(study, run, staged, d, MULTI) for d in sets.values())
        rows.append(Row((label,), (*cells, *above)))
    reference = reference_note({TSP: tests}, {TSP: "Concorde"})
    return Table(study.artifact.title, ("Training",), columns, tuple(rows), notes(study, reference=reference))
