"""Rival systems of the papers' tables, trained and measured here: their common home.  No paper prints numbers of it.

Table 1: every rival on the size that it is trained on.

`pipeline/plan/systems.py` says how one is added.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import ConfigDict, create_model

from neuroute.core.dotted import parts
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import Log, Need, Solved, artifact, tested
from neuroute.pipeline.plan.paper import Paper
from neuroute.pipeline.plan.systems import PAPER as KEY
from neuroute.pipeline.plan.systems import Rival
from neuroute.pipeline.rendering.cells import RANGES, Solvers, gap_cell, summary_cell
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import WHOLE, Cell, Column, Row, Table, described, duration, fixed
from neuroute.specs.data import Spec
from neuroute.specs.objects import Labels, Run

if TYPE_CHECKING:

    class _Systems(Spec): ...
else:
    _BLOCKS = {name: (system.block | None, None) for name, system in parts("system", "SYSTEM")}
    _Systems = create_model("Systems", __base__=Spec, **_BLOCKS)


class RivalsScale(_Systems):
    """What rival systems of the papers' tables are trained and tested on; one that is left out is not trained."""

    model_config = ConfigDict(extra="allow")  # blocks of systems that no installed package has


def rivals(config: Config, scale: Scale) -> list[Rival]:
    """All networks that the scale trains."""
    systems = [(system, getattr(scale[RivalsScale], name)) for name, system in parts("system", "SYSTEM")]
    return [each for system, block in systems if block for each in system.rivals(config, scale, block)]


def runs(config: Config, scale: Scale) -> list[Run]:
    return [each.run for each in rivals(config, scale)]


def also_solved(scale: Scale) -> list[Labels]:
    """What nearest neighbour makes of the test sets."""
    return [each.test.model_copy(update={"solver": "nearest"}) for each in rivals(Config(), scale)]


PAPER = Paper(
    key=KEY,
    title="Rival systems of the papers' tables",
    scale=RivalsScale,
    runs=runs,
    also_solved=also_solved,
    optional=True,
)


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
