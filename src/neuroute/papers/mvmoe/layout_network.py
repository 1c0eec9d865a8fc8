"""The encoder, the decoder and a mixture of MVMoE, drawn from what the live one tells of its modules (Figure 2)."""

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from neuroute.papers.mvmoe.layout_seen import Array, Model, Seen
from neuroute.rendering import style
from neuroute.rendering.diagram_maps import short
from neuroute.rendering.diagram_nodes import RED, bare_square
from neuroute.rendering.sketch import Sheet, arrow, box, plus, words

LAYER = "layers.0"
LEFT = 1.32  # inches; maps stand at the left
EMBED, ATTENTION, NORMS, FEED, NODES = 1.76, 2.99, (3.95, 5.4), 4.62, 6.27  # middles of the encoder's boxes
CONTEXT, SEES, MIXES, FITS, SOFTMAX = 6.2, 5.0, 3.98, 2.92, 1.86  # of the decoder's, from right to left
BUS, VISITED = "#1c5a9c", "#c3c8d0"


def draw_encoder(axes: Axes, seen: Seen, y: float) -> None:
    """From an instance to encoded nodes, from left to right at height y of a canvas of inches."""
    model = seen.model
    box(axes, EMBED, y, 0.86, 0.56, "input", "linears", f"depot {model.shape('embed.depot.weight')}",
        f"others {model.shape('embed.customers.weight')}", "with biases")  # fmt: skip
    axes.add_patch(
        FancyBboxPatch(
            (2.34, y - 0.5), 3.38, 1.14, boxstyle="round,pad=0,rounding_size=0.08", facecolor="none",
            edgecolor=style.GREY, linewidth=0.8, linestyle=(0, (3, 2)),
        )
    )  # fmt: skip
    layers = f"{model.depth} layer{'s alike' if model.depth > 1 else ''}, {model.layer_parameters:,} parameters each"
    words(axes, 4.03, y + 0.73, layers, fontsize=6)
    box(axes, ATTENTION, y, 0.98, 0.66, "nodes", "attention", f"q, k, v {model.shape(f'{LAYER}.qkv.weight')}",
        f"out {model.shape(f'{LAYER}.out.weight')}", _heads(model))  # fmt: skip
    box(axes, FEED, y, 0.68, 0.66, *_feed(seen))
    for norm in NORMS:
        box(axes, norm, y, 0.44, 0.38, "feed", "norm", str(seen.run.network.arguments.get("norm", "instance")))
    sums = (ATTENTION + 0.6, FEED + 0.43)
    for start, end in zip((2.42, NORMS[0] + 0.28), sums, strict=True):
        arrow(axes, (start, y), (start, y + 0.5), (end, y + 0.5), (end, y + 0.06))
        plus(axes, end, y)
    joints = (
        (LEFT - 0.13, EMBED - 0.43), (EMBED + 0.43, ATTENTION - 0.49), (ATTENTION + 0.49, sums[0] - 0.06),
        (sums[0] + 0.06, NORMS[0] - 0.22), (NORMS[0] + 0.22, FEED - 0.34), (FEED + 0.34, sums[1] - 0.06),
        (sums[1] + 0.06, NORMS[1] - 0.22), (NORMS[1] + 0.22, NODES - 0.34),
    )  # fmt: skip
    for start, end in joints:
        arrow(axes, (start, y), (end, y))
    box(axes, NODES, y, 0.68, 0.36, "input", "H", f"{seen.customers + 1:,} × {model.width}")


def _feed(seen: Seen) -> tuple[str, ...]:
    """Fill, title and lines of what stands behind the attention of the first layer."""
    model = seen.model
    if f"{LAYER}.mixture.gate.weight" not in model.shapes:
        return ("feed", "FFN", model.shape(f"{LAYER}.up.weight"), "ReLU", model.shape(f"{LAYER}.down.weight"))
    hidden = model.shapes[f"{LAYER}.mixture.experts.up.weight"][1]
    return ("representatives", "MoE", f"{seen.experts} FFNs", f"{model.width}–{hidden}–{model.width}",
            f"top {seen.top}")  # fmt: skip


def _heads(model: Model) -> str:
    return f"{model.heads} heads of {model.width // model.heads}"


def draw_decoder(axes: Axes, seen: Seen, y: float, top: float) -> None:
    """From encoded nodes, at height `top` above, to probabilities, from right to left at height y."""
    model = seen.model
    experts = model.shapes.get(f"{model.mixture}.experts.weight")
    box(axes, CONTEXT, y, 0.94, 0.66, "input", "context", "h of the last node,", "load, time,", "length, open",
        model.shape("context.project.weight"))  # fmt: skip
    box(axes, SEES, y, 0.9, 0.56, "nodes", "attention", f"k, v {model.shape('key_value.weight')}", _heads(model))
    if experts is None:
        box(axes, MIXES, y, 0.72, 0.56, "nodes", "linear", model.shape("combine.weight"))
    else:
        box(axes, MIXES, y, 0.72, 0.56, "representatives", "MoE", f"{experts[0]} linears",
            " × ".join(str(n) for n in experts[1:]), f"top {seen.top}")  # fmt: skip
    box(axes, FITS, y, 0.84, 0.5, "feed", "compatibility", f"{seen.number('clipping'):g} tanh(·)", "+ mask")
    tours = len(seen.array("decoder_scores"))
    box(axes, SOFTMAX, y, 0.74, 0.42, "output", "softmax", f"{tours:,} tours × {seen.customers + 1:,}")
    edges = ((CONTEXT - 0.47, SEES + 0.45), (SEES - 0.45, MIXES + 0.36), (MIXES - 0.36, FITS + 0.42),
             (FITS - 0.42, SOFTMAX + 0.37), (SOFTMAX - 0.37, LEFT - 0.12))  # fmt: skip
    for start, end in edges:
        arrow(axes, (start, y), (end, y))
    below = y + 0.62
    arrow(axes, (CONTEXT, top - 0.18), (CONTEXT, y + 0.33), colour=BUS)
    arrow(axes, (CONTEXT, below), (SEES + 0.2, below), (SEES + 0.2, y + 0.28), colour=BUS)
    arrow(axes, (SEES + 0.2, below), (FITS + 0.2, below), (FITS + 0.2, y + 0.25), colour=BUS)
    words(axes, CONTEXT + 0.04, below + 0.12, "H", ha="left", color=BUS, fontsize=6.5, fontweight="bold")
    words(axes, SEES + 0.16, below - 0.13, "keys, values", ha="right", color=BUS, fontsize=5.2)
    words(axes, FITS + 0.16, below - 0.13, "nodes", ha="right", color=BUS, fontsize=5.2)


# -- maps -----------------------------------------------------------------------------------------------------------


def draw_state(axes: Axes, seen: Seen) -> None:
    """The route so far, what it may not go on with (crosses), and what is left."""
    _nodes(axes, seen, "white")


def draw_chances(axes: Axes, seen: Seen) -> None:
    """What may come next in the colour of its probability, and the choice."""
    chances = np.asarray(seen.array("probabilities"), float)
    left = np.flatnonzero(np.isfinite(chances))
    if not len(left):
        _nodes(axes, seen, "white")
        words(axes, 0.5, 0.5, "not finite", transform=axes.transAxes, color=style.GREY)
        return
    best = int(left[chances[left].argmax()])
    _nodes(axes, seen, colormaps["Blues"](chances[left] / chances[best]))
    coords = seen.shown.coords
    axes.plot(*coords[[current(seen), best]].T, color=BUS, linewidth=1.1, linestyle=(0, (1.2, 1)), zorder=2)


def current(seen: Seen) -> int:
    return int(seen.array("prefix")[-1])


def _nodes(axes: Axes, seen: Seen, faces: Any) -> None:
    solved, prefix = seen.shown, np.asarray(seen.array("prefix"), int)
    coords = solved.coords
    left = np.flatnonzero(np.isfinite(np.asarray(seen.array("probabilities"), float)))
    visited = np.setdiff1d(prefix, [0])
    shut = np.setdiff1d(np.arange(1, len(coords)), [*visited, *left])
    area = float(np.clip(420 / len(coords), 2.5, 14))
    ink: dict[str, Any] = {"edgecolors": style.INK, "linewidths": 0.5, "zorder": 3}
    axes.plot(*coords[prefix].T, color=style.INK, linewidth=0.8, zorder=1)
    x, y = coords.T
    axes.scatter(x[visited], y[visited], area, VISITED, **ink)
    axes.scatter(x[shut], y[shut], area, style.GREY, marker="x", linewidths=0.7, zorder=3)
    axes.scatter(x[left], y[left], area, faces, **ink)
    axes.plot(*coords[0], "s", color=RED, markersize=4, markeredgecolor="white", markeredgewidth=0.4, zorder=5)
    axes.plot(*coords[prefix[-1]], "o", markerfacecolor="none", markersize=8, color=RED, markeredgewidth=1.1, zorder=6)
    low, high = coords.min(axis=0), coords.max(axis=0)
    x, y = (low + high) / 2
    bare_square(axes, float(x), float(y), 0.59 * float((high - low).max()) or 0.5)


# -- a mixture ------------------------------------------------------------------------------------------------------


def draw_mixture(sheet: Sheet, seen: Seen, y: float) -> None:
    """How a mixture of the encoder routes one node: 6.6 by 1.35 inches above y."""
    axes = sheet.canvas(0, y, sheet.width, 1.35)
    model, node = seen.model, current(seen)
    scores = np.asarray(seen.array("scores"), float)[node]
    chosen = np.asarray(seen.array("input_experts"), int)[node]
    weights = np.asarray(seen.array("input_weights"), float)[node]
    count, middle = len(scores), 0.66
    name = "depot" if node == 0 else f"customer {node}"
    box(axes, 0.5, middle, 0.84, 0.4, "input", f"x: {name}", f"a row of {model.width}")
    box(axes, 1.55, middle, 0.74, 0.4, "representatives", "gate", f"{count} × {model.width}")
    arrow(axes, (0.92, middle), (1.18, middle))
    arrow(axes, (1.92, middle), (2.17, middle))
    bars = sheet.panel(2.42, y + 0.28, 1.0, 0.76)
    draw_scores(bars, scores, chosen)
    height = min(0.27, 1.3 / count - 0.04)
    places = [1.33 - (i + 0.5) * 1.33 / count for i in range(count)]
    x = 4.62
    given = dict(zip((int(j) for j in chosen), weights, strict=True))
    for j, at in enumerate(places):
        box(axes, x, at, 0.9, height, "representatives" if j in given else "input", f"expert {j + 1}")
        if j in given:
            arrow(axes, (3.5, middle), (x - 0.45, at))
            arrow(axes, (x + 0.45, at), (5.5, middle))
            words(axes, 3.5 + 0.55 * (x - 3.95), middle + 0.55 * (at - middle), f"g = {given[j]:.2f}", ground=True)
    plus(axes, 5.56, middle)
    arrow(axes, (5.63, middle), (5.84, middle))
    box(axes, 6.26, middle, 0.8, 0.4, "output", "Σ g E(x)", f"a row of {model.width}")


def draw_scores(axes: Axes, scores: Array, chosen: Array) -> None:
    """A bar for each expert's score, the chosen ones in colour."""
    colours = [style.RAMPS["orange"][1] if j in chosen else "#cdd2da" for j in range(len(scores))]
    axes.bar(range(1, len(scores) + 1), np.nan_to_num(scores), 0.7, color=colours)
    axes.axhline(0, color=style.INK, linewidth=0.5)
    axes.set_xticks(range(1, len(scores) + 1))
    axes.set_yticks([])
    axes.tick_params(labelsize=5.5, length=0, pad=1.5)
    axes.grid(visible=False)
    low, high = float(np.nan_to_num(scores).min()), float(np.nan_to_num(scores).max())
    axes.set_title(f"scores H: {short(low)} … {short(high)}", loc="center", fontsize=5.6, fontweight="normal", pad=2)
    axes.set_xlabel(f"expert; top {len(chosen)} in colour", fontsize=5.4, labelpad=1)
