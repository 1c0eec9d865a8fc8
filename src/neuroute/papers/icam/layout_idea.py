"""Distances and the number of nodes turned into a bias, at two sizes, and where it enters (icam, Figure 2)."""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from neuroute.papers.icam.layout_matrices import matrix, short
from neuroute.papers.icam.layout_seen import Array, Seen, apart, strength
from neuroute.rendering import style
from neuroute.rendering.diagram import arrow, box, words
from neuroute.rendering.diagram_nodes import RED, bare_square

DRAWN = 100  # nodes of a matrix at most, along the tour


def instances(seen: Seen) -> list[tuple[int, Array, Array]]:
    """(n, coords (n, 2), tour (n,)), smallest first: those with optimal tours, else the one of the decision."""
    if "sizes" not in seen.arrays:
        return [(seen.n, np.asarray(seen.array("coords"), float), seen.order)]
    sizes = sorted(int(n) for n in seen.array("sizes"))
    return [(n, np.asarray(seen.array(f"coords_{n}"), float), np.asarray(seen.array(f"tour_{n}"), int)) for n in sizes]


def middle_node(coords: Array) -> int:
    return int(np.square(coords - coords.mean(axis=0)).sum(axis=1).argmin())


def draw_instance(axes: Axes, coords: Array) -> None:
    axes.scatter(coords[:, 0], coords[:, 1], s=float(np.clip(700 / len(coords), 0.8, 9)), c=style.INK, linewidths=0)
    bare_square(axes, 0.5, 0.5, 0.54)


def draw_distances(axes: Axes, coords: Array, tour: Array) -> None:
    kept = tour[:DRAWN]
    matrix(axes, apart(coords[kept]), "", "", colours="Greys")


def draw_function(axes: Axes, sizes: list[int], alpha: float) -> None:
    """f(N, d) of each size with a learnt alpha."""
    reach = np.array([0, np.sqrt(2)])
    for n, colour in zip(sizes, style.ramp("orange", len(sizes) + 1)[1:], strict=True):
        axes.plot(reach, strength(alpha, n) * reach, color=colour, label=f"N = {n:,}")
    axes.set_xlim(0, 1.42)
    axes.set_xlabel("distance d", fontsize=6, labelpad=1)
    axes.tick_params(labelsize=5.5, pad=1)
    axes.legend(fontsize=5.8, loc="best", handlelength=1.2)


def draw_weights(axes: Axes, coords: Array, alpha: float) -> None:
    """Nodes by exp(A) of the node in the middle: what they count."""
    n, current = len(coords), middle_node(coords)
    weights = np.exp(strength(alpha, n) * apart(coords)[current])
    weights /= weights.max() or 1
    order = np.argsort(weights, kind="stable")
    area = float(np.clip(1100 / n, 1.6, 15))
    colours = colormaps["Oranges"](Normalize(-0.12, 1)(weights[order]))
    x, y = coords[order].T
    axes.scatter(x, y, s=area, c=colours, linewidths=0.25, edgecolors="#b5651d66")
    axes.plot(*coords[current], "o", markerfacecolor="none", color=RED, markersize=6, markeredgewidth=1)
    bare_square(axes, 0.5, 0.5, 0.54)


def draw_model(axes: Axes, seen: Seen) -> None:
    """Where the function enters: a canvas 4.7 wide and 0.95 high, in inches."""
    model, y, top = seen.model, 0.28, 0.78
    layers = f"{model.depth} layer{'s' * (model.depth > 1)}: AAFM, FFN"
    own = (f"{name}: α = {short(seen.number(key))}" for name, key in
           (("AAFM", "decoder_alpha"), ("compatibility", "compatibility_alpha")))  # fmt: skip
    parts: tuple[tuple[float, float, str, str, tuple[str, ...]], ...] = (
        (0.34, 0.6, "input", "instance", ("N × 2",)),
        (1.5, 1.2, "nodes", "encoder", (layers, _alphas(seen))),
        (2.68, 0.62, "input", "H", (f"N × {model.width}",)),
        (3.98, 1.4, "nodes", "decoder", tuple(own)),
    )
    for i, (x, wide, fill, title, lines) in enumerate(parts):
        box(axes, x, y, wide, 0.46, fill, title, *lines)
        if i:
            arrow(axes, (parts[i - 1][0] + parts[i - 1][1] / 2, y), (x - wide / 2, y))
    encoder, middle, decoder = (parts[i][0] for i in (1, 2, 3))
    box(axes, middle, top, 0.76, 0.26, "representatives", "A = f(N, d)")
    for side, x in ((-0.38, encoder), (0.38, decoder)):
        arrow(axes, (middle + side, top), (x, top), (x, y + 0.24))
    words(axes, (encoder + middle - 0.38) / 2, top + 0.08, "in every layer")
    words(axes, (decoder + middle + 0.38) / 2, top + 0.08, "twice per decision")


def _alphas(seen: Seen) -> str:
    found = np.asarray(seen.array("layer_alphas"), float)
    low, high = short(float(found.min())), short(float(found.max()))
    return f"α = {low}" if low == high else f"α = {low} … {high}"
