"""Marks and frames of nodes on a map."""

from matplotlib.axes import Axes

from neuroute.rendering.columns import decimal as decimal

RED = "#d1342f"  # origin and destination


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
