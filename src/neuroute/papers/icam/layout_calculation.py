"""Eq. 3 of paper `icam` as matrices of a real instance, from left to right (Figure 5)."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from neuroute.papers.icam.layout_matrices import matrix, span
from neuroute.papers.icam.layout_seen import Array, Seen
from neuroute.rendering import style
from neuroute.rendering.diagram import Sheet, arrow, words

NODES, CHANNELS = 24, 16  # of the matrices, that are drawn
SIDE, TALL = 0.72, 0.6  # of a matrix, in inches
COLUMNS = (0.12, 1.27, 2.42, 3.57, 4.72, 5.87)  # left edges
ROWS = (2.78, 1.9, 1.02, 0.14)  # lower edges


@dataclass(frozen=True)
class Term:
    """A matrix of the calculation and its place in the drawing."""

    key: str
    title: str
    values: Array  # (n, n) or (n, W)
    column: int
    row: float
    colours: str = ""


def terms(seen: Seen) -> list[Term]:
    """Of each channel's keys the largest is subtracted: that cancels, and exp(K) has 1 as its largest."""
    query, key, value, bias, above, below, output = (
        np.asarray(seen.array(name), float)
        for name in ("query", "key", "value", "adaptation", "numerator", "denominator", "output")
    )
    keys = np.exp(key - key.max(axis=0))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return [
            Term("query", "Q", query, 0, 0),
            Term("value", "V", value, 0, 1),
            Term("key", "K", key, 0, 2),
            Term("adaptation", "A", bias, 0, 3),
            Term("sigmoid_query", "σ(Q)", 1 / (1 + np.exp(-query)), 1, 0),
            Term("exp_key", "exp(K)", keys, 1, 2),
            Term("exp_adaptation", "exp(A)", np.exp(bias), 1, 3, "Oranges"),
            Term("weighed_value", "exp(K) ⊙ V", keys * value, 2, 1),
            Term("numerator", "exp(A)·(exp(K) ⊙ V)", above, 3, 1),
            Term("denominator", "exp(A)·exp(K)", below, 3, 2),
            Term("ratio", "ratio", above / below, 4, 1),
            Term("output", "Y", output, 5, 0),
        ]


def draw_calculation(sheet: Sheet, seen: Seen, found: list[Term]) -> None:
    """All matrices, and the operations between them."""
    canvas = sheet.canvas(0, 0, sheet.width, sheet.height)
    nodes = seen.order[:NODES]
    for term in found:
        square = term.values.shape[1] == seen.n and term.key.endswith("adaptation")
        part = term.values[np.ix_(nodes, nodes)] if square else term.values[nodes, :CHANNELS]
        axes = sheet.panel(COLUMNS[term.column], ROWS[int(term.row)], SIDE, TALL)
        matrix(axes, part, term.title, span(term.values), colours=term.colours, fontsize=6.5)
    _operations(canvas)


def _at(column: int, row: int) -> tuple[float, float, float]:
    """Left and right edge of a matrix, and its middle height."""
    left = COLUMNS[column]
    return left, left + SIDE, ROWS[row] + TALL / 2


def _operations(axes: Axes) -> None:
    for row, name in ((0, "sigmoid"), (2, "exp"), (3, "exp")):
        (_, start, y), (end, _, _) = _at(0, row), _at(1, row)
        arrow(axes, (start + 0.04, y), (end - 0.04, y))
        words(axes, (start + end) / 2, y + 0.08, name, fontsize=5.6)
    _join(axes, (2, 1), "⊙", straight=(0, 1), turned=(1, 2))
    _product(axes)
    _join(axes, (4, 1), "÷", straight=(3, 1), turned=(3, 2))
    _join(axes, (5, 0), "⊙", straight=(1, 0), turned=(4, 1))


def _join(axes: Axes, to: tuple[int, int], sign: str, straight: tuple[int, int], turned: tuple[int, int]) -> None:
    """Two matrices into a third by a sign before it: one straight on, the other from below."""
    left, _, y = _at(*to)
    x = left - 0.22
    arrow(axes, (_at(*straight)[1] + 0.04, y), (x - 0.09, y))
    _, start, low = _at(*turned)
    arrow(axes, (start + 0.04, low), (x, low), (x, y - 0.09))
    arrow(axes, (x + 0.09, y), (left - 0.03, y))
    _sign(axes, x, y, sign)


def _product(axes: Axes) -> None:
    """exp(A) from below into both sums over the nodes."""
    left, _, _ = _at(3, 1)
    x = left - 0.22
    (_, of_a, low), (_, of_kv, upper), (_, of_k, lower) = _at(1, 3), _at(2, 1), _at(1, 2)
    arrow(axes, (of_a + 0.04, low), (x, low), (x, lower - 0.09), colour="#b35a12")
    arrow(axes, (x, lower + 0.09), (x, upper - 0.09), colour="#b35a12")
    for start, y in ((of_kv, upper), (of_k, lower)):
        arrow(axes, (start + 0.04, y), (x - 0.09, y))
        arrow(axes, (x + 0.09, y), (left - 0.03, y))
        _sign(axes, x, y, "·")
    words(
        axes,
        x + 0.08,
        low,
        "matrix product: a sum over the nodes, weighed by how far they are",
        ha="left",
        color="#b35a12",
        fontsize=6,
    )


def _sign(axes: Axes, x: float, y: float, sign: str) -> None:
    ring = {"boxstyle": "circle,pad=0.1", "facecolor": "white", "edgecolor": style.INK, "linewidth": 0.7}
    axes.text(x, y, sign, ha="center", va="center", fontsize=6.5, fontweight="bold", bbox=ring, zorder=5)
