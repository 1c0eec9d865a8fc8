"""Matrices of a live network as small maps of colour."""

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, TwoSlopeNorm

from neuroute.papers.icam.layout_seen import Array
from neuroute.rendering import style

SIGNED, POSITIVE, BIAS = "RdBu_r", "Blues", "Oranges_r"  # values of both signs, positive ones, and those up to 0
TAIL = 1  # percent of the values at either end that colours do not tell apart


def matrix(
    axes: Axes, values: Array, title: str = "", below: str = "", *, colours: str = "", fontsize: float = 6.0
) -> None:
    """Rows from top to bottom; colours of both signs where there are both, else from 0 on."""
    shown, palette, norm = _scaled(np.asarray(values, float), colours)
    axes.imshow(shown, cmap=colormaps[palette].with_extremes(bad="#e6e8ec"), norm=norm, aspect="auto",
                interpolation="nearest")  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color("#9aa2ae")
    if title:
        axes.set_title(title, loc="center", fontsize=fontsize, fontweight="bold", pad=2)
    if below:
        axes.set_xlabel(below, fontsize=5.3, labelpad=1.5)


def _scaled(values: Array, colours: str) -> tuple[Array, str, Any]:
    """What is drawn, the palette and how colours follow values; what is not finite stays grey."""
    known = values[np.isfinite(values)]
    shown = np.ma.masked_invalid(values)
    if not len(known):
        return shown, colours or POSITIVE, Normalize(0, 1)
    low, high = (float(v) for v in np.percentile(known, (TAIL, 100 - TAIL)))
    if known.min() < 0 < known.max():
        reach = max(abs(low), abs(high)) or 1.0
        return shown, colours or SIGNED, TwoSlopeNorm(0, -reach, reach)
    if known.max() <= 0:
        return shown, colours or BIAS, Normalize(min(low, -1e-12), 0)
    return shown, colours or POSITIVE, Normalize(0, high or 1.0)


def span(values: Array) -> str:
    """−1.2 … 3.4"""
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    if not len(known):
        return "not finite"
    return " … ".join(short(float(v)) for v in (known.min(), known.max()))


def short(value: float) -> str:
    """Two digits or so, with a real minus."""
    if abs(value) < 5e-5:  # also -0.0
        return "0"
    text = f"{value:.0f}" if abs(value) >= 99.5 else f"{value:.1f}" if abs(value) >= 9.95 else f"{value:.2g}"
    text = f"{value:.1e}" if abs(value) >= 1e5 or abs(value) < 1e-3 else text
    return text.replace("-", "−")


def alpha_bars(axes: Axes, alphas: dict[str, float]) -> None:
    """What was learnt, layer by layer, then in the decoder; the line is where all started."""
    values = np.array(list(alphas.values()))
    layers = len(values) - 2
    colours = [style.RAMPS["blue"][1]] * layers + [style.RAMPS["orange"][1], style.RAMPS["orange"][2]]
    axes.bar(range(len(values)), values, color=colours, width=0.75)
    axes.axhline(1, color=style.GREY, linewidth=0.7, linestyle=(0, (2, 2)))
    if values.min() < 0:
        axes.axhline(0, color=style.INK, linewidth=0.6)
    step = 1 if layers <= 6 else 3
    ticks = [i for i in range(layers) if i % step == 0]
    axes.set_xticks([*ticks, layers, layers + 1], [*(str(i + 1) for i in ticks), "D", "C"], fontsize=5.5)
    axes.tick_params(axis="y", labelsize=5.5, pad=1)
    axes.tick_params(axis="x", length=0, pad=1.5)
    axes.grid(visible=False, axis="x")
