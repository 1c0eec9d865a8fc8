"""What figures with data axes share."""

import math

from neuroute.rendering.table import Cell


def bounds(cell: Cell) -> tuple[float, float] | None:
    """Return the bootstrap interval of a measured gap, where there is one."""
    return (cell.low, cell.high) if cell.low is not None and cell.high is not None else None


def drawable(gap: float) -> float:
    """Return the gap (%) where it has a place on a log axis, else nan.  Below 1e-6 % it is rounding of means."""
    return gap if gap > 1e-6 else math.nan
