"""Table 22 of paper `scaling`, our own: short trainings that choose learning rates, and what one rate for all costs."""

from collections.abc import Iterator

from neuroute.pipeline.papers.scaling import roles
from neuroute.pipeline.papers.scaling.roles import GRID, PAPER, pilot, run_id
from neuroute.pipeline.papers.scaling.scale import ScalingScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact
from neuroute.pipeline.rendering.cells import mean_cell, model_here
from neuroute.pipeline.rendering.columns import HERE, described
from neuroute.pipeline.rendering.notes import draw_table
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table


def _needs(scale: Scale) -> Iterator[Need]:
    for name, (shape, _) in roles.pilots(scale).items():
        yield Log(f"{PAPER}/{name}", all_seeds=True)
        yield Log(run_id(shape), all_seeds=True)


@artifact("Our own: learning rates by shape", needs=_needs, printed_files=())
def table22(study: Study) -> Table:
    """Show what the rule of the rates is made of, and the rate that each model of the grid has by it."""
    s = study.scale[ScalingScale]
    assert s.rates is not None  # else no scale's plan has this table
    tried = sorted({rate for rates in s.rates.tried.values() for rate in rates})
    rows, others = [], []
    for shape in GRID:
        pilots = {rate: f"{PAPER}/{pilot(shape, rate)}" for rate in s.rates.tried.get(str(shape), ())}
        short = {rate: _last_gap(study, run) for rate, run in pilots.items()}
        gaps = {rate: cell.measured for rate, cell in short.items() if isinstance(cell.measured, float)}
        best = min(gaps, key=gaps.__getitem__) if gaps else None
        if gaps and best != s.rates.best[str(shape)]:
            others.append(shape.name)
        whole = [_last_gap(study, run) if pilots else Cell() for run in (run_id(shape), run_id(shape, "single"))]
        rate_here = s.recipe(s.model(*shape)).learning_rate
        cells = (*(short.get(rate, Cell()) for rate in tried), Cell(best), Cell(rate_here), *whole)
        rows.append(Row((shape.name, model_here(study, run_id(shape))), cells))
    at = described(roles.validation(study.scale).dataset)
    columns = [
        *(Column(f"gap_{rate:g}_pct", f"{rate:g}", "%", group="Short trainings", at=at) for rate in tried),
        Column("best", "Best tried", format="{:g}".format),
        Column("rate", "Rate by the rule", format="{:g}".format),
        Column("gap_pct", "At this rate", "%", group="Whole trainings", at=at),
        Column("gap_single_pct", f"At {s.training.learning_rate:g}", "%", group="Whole trainings", at=at),
    ]
    return draw_table(study, ("Model", HERE), columns, rows, part=s.rates.part, others=_others(others))


def _last_gap(study: Study, run: str) -> Cell:
    """Mean the last validation gaps of a run's trainings."""
    logs = [study.log(training, "validation") for training in study.trainings(run)]
    return mean_cell([float(log.gap_pct.iloc[-1]) for log in logs if len(log)])


def _others(names: list[str]) -> str:
    """Say whether the scale's rates are the best ones of this table."""
    if not names:
        return "The scale's rates are the best tried at each corner."
    return f"The scale has another rate than the best tried at {', '.join(names)}: correct `rates.best`."
