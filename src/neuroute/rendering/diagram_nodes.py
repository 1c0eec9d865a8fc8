"""How the models of paper `pens` look in its figures, and what several of them say."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING

from neuroute.analysis import power_laws
from neuroute.papers.pens import roles
from neuroute.papers.pens.cells import printed
from neuroute.papers.pens.scale import PensScale
from neuroute.rendering import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from neuroute.plan.objects import Dataset, Decoding
    from neuroute.rendering.study import Study
    from neuroute.rendering.table import Cell

COLOUR = {
    "coordns": style.GREEN,
    "pens_a": style.RAMPS["blue"][2],
    "pens_r": style.RAMPS["orange"][1],
    "pens_ar": style.RAMPS["cool-warm"][2],
}
RED = "#d1342f"  # origin and destination, as in the paper
MARKER = {"coordns": "s", "pens_a": "o", "pens_r": "D", "pens_ar": "^"}


def printed_gaps(study: Study, table: str, **where: object) -> dict[int, float]:
    """The paper's n -> its printed gap in % on uniform instances, of the rows whose columns hold `where`."""
    rows = printed(study, table, metric="gap_pct", distribution="uniform", **where)
    return {int(n): float(value) for n, value in zip(rows.n, rows.value, strict=True)}


def bounds(cell: Cell) -> tuple[float, float] | None:
    """The bootstrap interval of a measured gap, where there is one."""
    return (cell.low, cell.high) if cell.low is not None and cell.high is not None else None


def drawable(gap: float) -> float:
    """The gap (%) where it has a place on a log axis, else not a number.  Below 1e-6 % it is rounding of means."""
    return gap if gap > 1e-6 else math.nan


def bare_square(axes: Axes, x: float, y: float, half: float) -> None:
    """A framed square around a point, without ticks."""
    axes.set_xlim(x - half, x + half)
    axes.set_ylim(y - half, y + half)
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color("#d4d8de")


def small_name(name: str) -> str:
    """What a small model of Figure 5 is called: PENS-A from zeros."""
    positions, initial = roles.SMALL[name]
    own = next(key for key, value in roles.POSITIONS.items() if value == positions)
    return f"{roles.NAMES[own]} from {'zeros' if initial == 'zero' else 'Gaussian embeddings'}"


def size_label(study: Study, size: int) -> str:
    """The nodes here that stand for the paper's size, with that size where it differs: 50 (500)."""
    here = study.scale[PensScale].sizes[size]
    return f"{here:,}" if here == size else f"{here:,} ({size:,})"


def repeats_note(study: Study) -> str:
    """How gaps were measured, for figures that show them."""
    repeats = study.scale[PensScale].repeats
    several = f", models with random embeddings {repeats} times with different ones" if repeats > 1 else ""
    return (
        f"Each instance is solved greedily{several}; gaps are of mean lengths. Thin lines: 95 % bootstrap intervals "
        f"over the test instances ({power_laws.RESAMPLES:,} resamples). One training seed of each model."
    )


def spread_note(study: Study, names: Iterable[str], datasets: Iterable[Dataset], *decodings: Decoding) -> list[str]:
    """How far apart the repeats of these cells are, at most; nothing where each was solved once."""
    found = [
        (value, name, dataset)
        for name, dataset, decoding in product(names, datasets, decodings)
        if (value := study.value("gap_spread_pct", roles.run_id(name), dataset, decoding)) is not None
    ]
    if not found:
        return []
    value, name, dataset = max(found, key=lambda each: each[0])
    where = f"{roles.NAMES.get(name) or small_name(name)}, TSP{dataset.n:,}"
    return [f"Between repeats the gap's standard deviation is at most {value:.2g} percentage points ({where})."]


def decimal(value: float, decimals: int = 2) -> str:
    """A number in running text, with a real minus."""
    return f"{value:z.{decimals}f}".replace("-", "−")
