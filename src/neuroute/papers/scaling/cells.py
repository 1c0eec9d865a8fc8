"""Measured gaps as table cells: over training seeds where a run has several, with a range in any case."""

from collections.abc import Iterable, Mapping

import numpy as np

from neuroute.papers.scaling import roles
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.objects import Dataset, Decoding
from neuroute.rendering.gaps import BOOTSTRAP, single_gap_cell
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell


def trainings(study: Study, run: str) -> list[str]:
    """Ids of a run's trainings, which differ in their seed only."""
    return [f"{roles.PAPER}/{name}" for name in roles.seeds(study.scale, run.removeprefix(f"{roles.PAPER}/"))]


def gap_cell(
    study: Study, run: str, dataset: Dataset, published: float | None = None, decoding: Decoding | str = "greedy"
) -> Cell:
    """The gap in %, as ratio of means: the mean over a run's trainings between the least and the largest, or that of
    the only training measured, as in `single_gap_cell`."""
    gaps = {each: gap for each in trainings(study, run) if (gap := study.gap(each, dataset, decoding)) is not None}
    if len(gaps) > 1:
        return Cell(float(np.mean(list(gaps.values()))), published, min(gaps.values()), max(gaps.values()))
    return single_gap_cell(study, next(iter(gaps), run), dataset, published, decoding)


def mean_value(study: Study, metric: str, run: str, dataset: Dataset, decoding: Decoding | str = "greedy") -> Cell:
    """The mean of a measured value over a run's trainings."""
    values = [v for each in trainings(study, run) if (v := study.value(metric, each, dataset, decoding)) is not None]
    return Cell(float(np.mean(values)) if values else None)


def printed_gaps(study: Study, table: int, **where: object) -> dict[int, float]:
    """The paper's n -> its printed gap in %, of the rows whose columns (depth, width, decoding, ...) hold `where`."""
    rows = study.published(table)
    rows = rows[rows.metric == "gap_pct"]
    for key, value in where.items():
        rows = rows[rows[key] == value]
    return {int(n): float(gap) for n, gap in zip(rows.n, rows.value, strict=True)}


def gap_cells(
    study: Study,
    run: str,
    sets: Mapping[int, Dataset],
    published: Mapping[int, float],
    decoding: Decoding | str = "greedy",
) -> tuple[Cell, ...]:
    """The gaps of one run on the data sets that stand for the paper's sizes; `published` holds the printed ones."""
    return tuple(gap_cell(study, run, dataset, published.get(size), decoding) for size, dataset in sets.items())


def parameters_cell(study: Study, run: str, dataset: Dataset, published: float | None = None) -> Cell:
    """Parameters in millions; LEHD's unused layer counts, as in its advertised size."""
    count = study.value("parameters", run, dataset)
    return Cell(count / 1e6 if count is not None else None, published)


def first_seed_note(study: Study) -> list[str]:
    """For artifacts of the grid that show one training of each model."""
    several = [
        name for name, count in study.scale[ScalingScale].seeds.items() if count > 1 and name.startswith("base_")
    ]
    return [f"Of models trained with several seeds ({', '.join(several)}) this is the first."] if several else []


def range_notes(study: Study, runs: Iterable[str]) -> list[str]:
    """What the ranges of these runs' cells mean."""
    measured = {evaluation.rpartition("/")[0] for evaluation in study.artifact.evaluations}
    counts = {run.rpartition("/")[2]: len(measured.intersection(trainings(study, run))) for run in runs}
    several = {name: count for name, count in counts.items() if count > 1}
    notes = [BOOTSTRAP]
    if several:
        named = ", ".join(f"{name} ({count})" for name, count in several.items())
        notes.append(
            f"Trained with several seeds: {named}. Their greedy gaps are means over the seeds, their ranges the least "
            "and the largest; times and searches are those of the first seed."
        )
    return notes
