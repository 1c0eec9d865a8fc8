"""Table 1: every rival on the size that it is trained on."""

from collections.abc import Iterator

from neuroute.pipeline.papers.rivals.paper import rivals
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import Log, Need, Solved, artifact, tested
from neuroute.pipeline.rendering.cells import RANGES, Solvers, gap_cell, summary_cell
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import WHOLE, Cell, Column, Row, Table, described, duration, fixed


def _table1_needs(scale: Scale) -> Iterator[Need]:
    for each in rivals(Config(), scale):
        yield from tested(each.run.id, each.test, each.decoding)
        yield Log(each.run.id, all_seeds=True)
        yield Solved(each.test)
        yield Solved(each.test.model_copy(update={"solver": "nearest"}))


@artifact("Rival systems on the size that they are trained on", needs=_table1_needs)
def table1(study: Study) -> Table:
    """Parameters, training and gap of every network, beside the gap of nearest neighbour."""
    columns = (
        Column("parameters", "Parameters", "", WHOLE),
        Column("updates", "Updates", "", WHOLE),
        Column("training_s", "Training", "", duration),
        Column("first_validation_pct", "First validation", "%", fixed(2)),
        Column("last_validation_pct", "Last validation", "%", fixed(2)),
        Column("gap_pct", "Gap", "%", fixed(2)),
        Column("nearest_pct", "Nearest neighbour", "%", fixed(2)),
    )
    solvers, rows = Solvers.of(study), list[Row]()
    for each in rivals(Config(), study.scale):
        if each.run.id not in study.runs:
            continue
        run, dataset = each.run.id, each.test.dataset
        log = study.log(run, "validation")
        # A test set may be the first instances of a larger one.
        lengths, best = (solvers.lengths(each.test, solver) for solver in ("nearest", each.test.solver))
        cells = (
            Cell(study.value("parameters", run, dataset, each.decoding)),
            summary_cell(study, run, "updates"),
            summary_cell(study, run, "wall_time_s"),
            *(Cell(float(log.gap_pct.iloc[place]) if len(log) else None) for place in (0, -1)),
            gap_cell(study, run, dataset, None, each.decoding),
            Cell(None if lengths is None or best is None else 100 * float(lengths.mean() / best.mean() - 1)),
        )
        rows.append(Row((each.system, each.run.name, described(dataset), each.decoding.name), cells))
    notes = (
        f"One training of each network (one seed), where no note names more. {RANGES}",
        "Decoded as its authors do: `multistart-x8` takes the best of one solution from each start of each of the "
        "eight symmetric images, `decoders-beamB` the best of B beams of each decoder. Validations are the first "
        "training's own gaps, of networks of many starts that of all starts; the first one is before the first "
        "batch, or early in the training.",
    )
    return Table(study.artifact.title, ("System", "Run", "Test set", "Decoding"), columns, tuple(rows), notes)
