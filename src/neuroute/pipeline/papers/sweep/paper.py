"""The runs of config.yaml's `sweep` as a paper of their own: trained, measured, tabled and drawn by the DAG.

Table 1 and Figure 1: every point of the sweep, its keys and what it reaches.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.yaml_files import put, validate
from neuroute.pipeline.plan.changes import change_network
from neuroute.pipeline.plan.config import Config, RunChange, Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.plan.paper import Paper, borrow_runs, load_paper
from neuroute.pipeline.plan.shapes import SWEEP, Sweep
from neuroute.pipeline.rendering.cells import RANGES, gap_cell, solver_name, summary_cell
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import Drawing
from neuroute.pipeline.rendering.sweeps import draw_sweep
from neuroute.pipeline.rendering.table import WHOLE, Cell, Column, Row, Table, described, duration, fixed, joined
from neuroute.specs.objects import Decoding, Labels, Run


def runs(config: Config, scale: Scale) -> list[Run]:
    """Return each point's run, and before them those that they start from.

    Raises NeurouteError for a run that is not declared or is not trained as this package's networks are, and for keys
    and values that `runs` of config.yaml would not take.
    """
    sweep, where = scale[Sweep], f"{config.where}: sweep"
    paper = load_paper(sweep.run.partition("/")[0])
    declared = {run.id: run for run in (paper.lends or paper.runs)(config, scale)}
    if sweep.run not in declared:
        raise NeurouteError(f"{where}.run: no run {sweep.run}{did_you_mean(near(sweep.run, declared))}")
    if sweep.run in config.runs and config.runs[sweep.run].weights:
        raise NeurouteError(f"{where}.run: {sweep.run} has given weights, and points are trained; sweep another")
    if ":" in declared[sweep.run].training.kind:
        raise NeurouteError(f"{where}.run: {sweep.run} is trained and decoded by its system's own code; sweep another")
    every: dict[str, Run] = {}
    for point in sweep.points:
        *before, run = borrow_runs(_changed(config, sweep, point), scale, [sweep.run])
        run = change_network(_changed(config, sweep, point), run)
        run = run.model_copy(update={"paper": SWEEP, "name": sweep.name_of(point), "role": {}})
        every |= {each.id: each for each in (*before, run)}
    return list(every.values())


def _changed(config: Config, sweep: Sweep, point: Mapping[str, Any]) -> Config:
    """Return the config with a point's values, as if `runs` had them."""
    change = config.runs.get(sweep.run, RunChange()).model_dump(exclude_unset=True)
    for key, value in point.items():
        put(change, key.split("."), value, f"{config.where}: sweep.grid.{key}")
    changed = validate(RunChange, change, f"{config.where}: sweep.grid")
    return config.model_copy(update={"runs": config.runs | {sweep.run: changed}})


def points(scale: Scale) -> list[tuple[dict[str, Any], Run]]:
    """Each point of the grid with its run, as it is declared."""
    sweep = scale[Sweep]
    of_name = {run.name: run for run in runs(Config(), scale) if run.paper == SWEEP}
    return [(point, of_name[sweep.name_of(point)]) for point in sweep.points]


def tests(scale: Scale, run: Run) -> list[Labels]:
    """What a point is tested on: instances like those that its training validates on, but others."""
    count = scale[Sweep].test_count
    sets = []
    for labels in (run.validation, *run.also_validation):
        change = {"split": "test", "count": count or labels.dataset.count}
        sets.append(labels.model_copy(update={"dataset": labels.dataset.model_copy(update=change)}))
    return sets


def decoding(run: Run) -> Decoding:
    """How a point is tested: as its training validates."""
    return Decoding(starts=getattr(run.training, "validated_starts", 1))


PAPER = Paper(key=SWEEP, title="The sweep of config.yaml", scale=Sweep, runs=runs, optional=True)


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
