"""Shares of resamples in which something holds, as a sheet of cells: what stands, and what is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neuroute.analysis.bootstrap import Array
from neuroute.core.lazy import mpl
from neuroute.rendering import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SURE = 0.975  # share of resamples from which on an order stands


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
