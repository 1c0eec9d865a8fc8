"""Figure 16, our own: which conclusions of the depth x width grids flip with seeds, instances and test sets."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from neuroute.analysis import intervals
from neuroute.analysis import power_laws as laws
from neuroute.analysis.intervals import Array, resampled_gaps_of_seeds
from neuroute.papers.scaling.curves import HERE, PAPER
from neuroute.papers.scaling.roles import Shape
from neuroute.papers.scaling.series import Models
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, artifact, tested
from neuroute.rendering import style
from neuroute.rendering.notes import notes
from neuroute.rendering.plots import SURE, share_cells
from neuroute.rendering.study import Study
from neuroute.rendering.style import Drawing
from neuroute.rendering.table import Cell, Column, Row, Table, fixed
from neuroute.specs.objects import Labels

EQUAL = 0.1  # by how much the logarithms of equal numbers of parameters may differ
IN_PRINT = "paper, TSP100"


class Conclusion(NamedTuple):
    """A sentence on the grid: that `better` has a smaller gap than `worse`; without them, that depth pays more."""

    name: str
    better: Shape | None = None
    worse: Shape | None = None

    def margin(self, models: Models, gaps: Mapping[Shape, Array], x: Mapping[Shape, float]) -> Array | None:
        """By how much it holds in each resample (resamples,), given the models' gaps there; None if one is missing."""
        if self.better is not None and self.worse is not None:
            return gaps[self.worse] - gaps[self.better] if {self.better, self.worse} <= gaps.keys() else None
        if not models.shapes or not set(models.shapes) <= gaps.keys():
            return None
        deeper, wider = (
            np.mean(
                [laws.resampled_exponents([x[s] for s in on], np.stack([gaps[s] for s in on], 1)) for on in lines], 0
            )
            for lines in (models.lines("depth"), models.lines("width"))
        )
        return np.asarray(deeper - wider)


def grids(scale: Scale) -> dict[str, Models]:
    models_of = {"TSP": Models.tsp(scale).of_paper, "CVRP": Models.cvrp(scale)}
    return {name: models for name, models in models_of.items() if models.shapes}


def flips_needs(scale: Scale) -> Iterator[Need]:
    """Of the greedy gaps of all trainings of both grids, on all their test sets."""
    for models in grids(scale).values():
        yield from tested(map(models.run, models.shapes), models.tests)


@artifact(
    "Our own: which conclusions of the depth x width grids flip", needs=flips_needs, printed_files=("table1", "table12")
)
def figure16(study: Study) -> Drawing:
    """Draw of each conclusion the share of resamples in which it holds, on each test set; and what it takes to tell."""
    rows: list[dict[str, Any]] = []
    sheets = {name: _sheet(study, name, models, rows) for name, models in grids(study.scale).items()}
    figure = style.new_figure(height=1.2 + sum(0.9 + 0.22 * len(sheet) for sheet in sheets.values()))
    panels = figure.subplots(len(sheets), 1, squeeze=False, height_ratios=[3 + len(s) for s in sheets.values()])[:, 0]
    for axes, (name, sheet) in zip(panels, sheets.items(), strict=True):
        columns = list(next(iter(sheet.values())))
        share_cells(axes, np.array([list(line.values()) for line in sheet.values()]), list(sheet), columns, name)
    here = [row for row in rows if row["side"] == HERE]
    open_here = sum(max(row["share"], 1 - row["share"]) < SURE for row in here)
    texts = notes(
        study,
        sure=100 * SURE,
        open=open_here,
        cells=len(here),
        equal=100 * EQUAL,
        level=100 * intervals.ALPHA,
        power=intervals.POWER,
    )
    alt = "Share of resamples in which each conclusion on depth and width holds, by test set."
    return Drawing(figure, rows, texts, alt, _table(study))


def conclusions(study: Study, models: Models) -> list[Conclusion]:
    """Depth against width: by exponents, at equal parameters; and whether the largest step of each helps at all."""
    x = {shape: point[0] for shape, point in models.points(study)[HERE].items()}
    out = [Conclusion("Depth pays more than width")]
    for deep, wide in permutations(x, 2):
        if deep.depth > wide.depth and abs(np.log(x[deep] / x[wide])) < EQUAL:
            out.append(Conclusion(f"{deep.name} before {wide.name}, equal parameters", deep, wide))
    for along, word in (("depth", "deeper"), ("width", "wider")):
        for line in models.lines(along):  # type: ignore[arg-type]
            least, most = line[0], line[-1]
            out.append(Conclusion(f"{most.name} before {least.name}, {word}", most, least))
    return out


def _sheet(study: Study, grid: str, models: Models, rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return conclusion -> column -> share; and add them to the rows."""
    sides = models.points(study)
    x = {shape: point[0] for shape, point in sides[HERE].items()}
    columns = {
        f"{test.dataset.problem.upper()}{test.dataset.n}": (HERE, x, _gaps(study, models, test))
        for test in models.tests
    }
    sizes_in_print = {shape: point[0] for shape, point in sides[PAPER].items()}
    columns[IN_PRINT] = PAPER, sizes_in_print, {shape: np.array([point[1]]) for shape, point in sides[PAPER].items()}
    sheet: dict[str, dict[str, float]] = {}
    for conclusion in conclusions(study, models):
        line = sheet.setdefault(conclusion.name, {})
        for column, (side, size, gaps) in columns.items():
            margin = conclusion.margin(models, gaps, size)
            line[column] = float("nan") if margin is None else float(((margin > 0) + 0.5 * (margin == 0)).mean())
            about = {"side": side, "grid": grid, "conclusion": conclusion.name, "test": column}
            if margin is not None:
                rows.append(about | {"share": line[column], "margin": float(margin.mean())})
    return sheet


def _gaps(study: Study, models: Models, test: Labels) -> dict[Shape, Array]:
    """Resample the gaps (%) of each model (resamples,): the same instances for all, seeds of each."""
    gaps = {}
    for stream, shape in enumerate(models.shapes):
        if (lengths := study.lengths_of_each(models.run(shape), test.dataset)) is not None:
            gaps[shape] = resampled_gaps_of_seeds(*lengths, stream)
    return gaps


def _table(study: Study) -> Table:
    """What it takes to tell each difference from noise, on the test set of the training's size."""
    rows = []
    for grid, models in grids(study.scale).items():
        # Pool the spread (points) of a model's gap over its seeds; None where no model has several.
        variances = []
        for shape in models.shapes:
            lengths = study.lengths_of_each(models.run(shape), models.test.dataset)
            if lengths is not None and lengths[0].shape[1] > 1:
                gaps = 100 * lengths[0].mean(0) / lengths[1].mean()
                variances += [gaps.var(ddof=1)] * (len(gaps) - 1)
        spread = float(np.sqrt(np.mean(variances))) if variances else None
        for conclusion in conclusions(study, models):
            if conclusion.better is not None and conclusion.worse is not None:
                cells = _powers(study, models, (conclusion.better, conclusion.worse), spread)
                rows.append(Row((grid, conclusion.name), tuple(cells)))
    columns = (
        Column("difference", "Difference", "points", fixed(2)),
        Column("instance_sd", "instances", "points", fixed(2), "Spread over"),
        Column("seed_sd", "seeds", "points", fixed(2), "Spread over"),
        Column("by_instances", "these instances, seeds aside", "points", fixed(2), "Told from"),
        Column("by_both", "two seeds of each", "points", fixed(2), "Told from"),
        Column("seeds", "Seeds of each that tell it", "", str),
    )
    return Table("What it takes to tell", ("Grid", "Conclusion"), columns, tuple(rows))


def _powers(study: Study, models: Models, pair: Sequence[Shape], seed_sd: float | None) -> list[Cell]:
    better, worse = (study.lengths_of_each(models.run(shape), models.test.dataset) for shape in pair)
    if better is None or worse is None:
        return [Cell() for _ in range(6)]
    differences = 100 * (worse[0].mean(1) - better[0].mean(1)) / better[1].mean()
    difference, instance_sd, count = float(differences.mean()), float(differences.std(ddof=1)), len(differences)
    alone = intervals.least_effect(0, instance_sd, 1, count)
    if seed_sd is None:
        return [*map(Cell, (difference, instance_sd, None, alone, None, None))]
    both, needed = (
        intervals.least_effect(seed_sd, instance_sd, 2, count),
        intervals.seeds_needed(difference, seed_sd, instance_sd, count),
    )
    seeds_text = f"more than {intervals.MOST}" if needed is None else str(needed)
    return [*map(Cell, (difference, instance_sd, seed_sd, alone, both, seeds_text))]
