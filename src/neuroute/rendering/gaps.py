"""Measured gaps as table cells, with what sampling the test instances leaves open."""

import math

from neuroute.analysis import power_laws
from neuroute.plan.objects import Dataset, Decoding
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell

BOOTSTRAP = (
    f"Ranges are 95 % bootstrap intervals over test instances ({power_laws.RESAMPLES:,} resamples); they do not cover "
    "the spread between training seeds. The paper gives none."
)


def single_gap_cell(
    study: Study, run: str, dataset: Dataset, published: float | None = None, decoding: Decoding | str = "greedy"
) -> Cell:
    """The gap in % of one training, with its bootstrap interval over the test instances."""
    gap, stored = study.gap(run, dataset, decoding), study.lengths(run, dataset, decoding)
    if gap is None or stored is None:
        return Cell(gap, published)
    interval = power_laws.percentile_interval(power_laws.resampled_gaps(*stored)[:, 0])
    return Cell(gap, published, interval.low, interval.high)


def bounds(cell: Cell) -> tuple[float, float] | None:
    """The bootstrap interval of a measured gap, where there is one."""
    return (cell.low, cell.high) if cell.low is not None and cell.high is not None else None


def drawable(gap: float) -> float:
    """The gap (%) where it has a place on a log axis, else not a number.  Below 1e-6 % it is rounding of means."""
    return gap if gap > 1e-6 else math.nan
