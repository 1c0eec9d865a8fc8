"""What figures with data axes share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from neuroute.analysis.intervals import Array
from neuroute.core.lazy import mpl
from neuroute.pipeline.rendering import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SURE = 0.975  # share of resamples from which on an order stands


def drawable(gap: float) -> float:
    """Return the gap (%) where it has a place on a log axis, else nan.  Below 1e-6 % it is rounding of means."""
    return gap if gap > 1e-6 else math.nan


def hidden_note(gaps: Iterable[float], what: str = "") -> list[str]:
    """Say how many of the gaps (%) have no place on a log axis; `what` they are: "validation"."""
    values = list(gaps)
    hidden = sum(math.isnan(drawable(gap)) for gap in values)
    kind = f"{what} gaps" if what else "gaps"
    return [f"{hidden} of {len(values)} {kind} are not positive: not drawn; they are in the CSV."] if hidden else []


def mark(label: str, marker: str, color: str, **look: Any) -> mpl.lines.Line2D:
    """Return a legend's entry of a marker without a line."""
    return line(label, linestyle="none", marker=marker, color=color, **look)


def line(label: str, **look: Any) -> mpl.lines.Line2D:
    """Return an entry of a legend."""
    return mpl.lines.Line2D([], [], label=label, **look)


def running_mean(values: Sequence[float], window: int) -> list[float]:
    """Means over up to so many neighbours of each value, itself in the middle; fewer at the ends."""
    half = window // 2
    around = (values[max(0, i - half) : i + half + 1] for i in range(len(values)))
    return [fmean(near) for near in around]


def batches_axis(axes: Axes, last: int) -> None:
    """Tick a training's batches, from none to the last."""
    axes.set_xlim(0, last * 1.02)
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(style.plain_number))


def share_cells(axes: Axes, shares: Array, rows: Sequence[str], columns: Sequence[str], title: str = "") -> None:
    """Draw shares (rows, columns) in per cent, blue where they stand, one way or the other; NaN: no cell."""
    for i, line in enumerate(shares):
        for j, share in enumerate(line):
            if share != share:
                continue
            color = style.RAMPS["blue" if max(share, 1 - share) >= SURE else "orange"][0]
            axes.add_patch(mpl.patches.Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=color, edgecolor="white"))
            axes.text(j, i, f"{100 * share:.0f}", ha="center", va="center", fontsize=6.5)
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set_title(title)
