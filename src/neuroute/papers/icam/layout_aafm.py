"""The structure of the adaptation attention-free module, in the encoder and in the decoder (icam, Figure 4)."""

import numpy as np
from matplotlib.axes import Axes

from neuroute.papers.icam.layout_matrices import matrix, short
from neuroute.papers.icam.layout_seen import Seen, strength
from neuroute.rendering.diagram import Sheet, arrow, box, words

LAYER = "layers.0"
WIDE, HIGH = 0.86, 0.36  # of a box, in inches
CHANNELS = 16  # of the maps of queries, keys and values


def draw_encoder_module(sheet: Sheet, seen: Seen, x: float, y: float) -> None:
    """All nodes ask all nodes: 3.3 by 2.6 inches from (x, y) on."""
    axes, model, n = sheet.canvas(x, y, 3.3, 2.65), seen.model, seen.n
    linear = f"{model.width} × {model.width}"
    layer = int(seen.number("layer"))
    alpha = float(seen.array("layer_alphas")[layer])
    box(axes, 1.15, 0.2, 2.16, 0.3, "input", f"{_of(layer)}: {n:,} × {model.width}")
    box(axes, 2.82, 0.2, 0.9, 0.3, "input", f"X: {n:,} × 2")
    for k, (letter, name) in enumerate((("Q", "query"), ("K", "key"), ("V", "value"))):
        middle = 0.42 + 0.74 * k
        arrow(axes, (middle, 0.35), (middle, 0.56))
        box(axes, middle, 0.72, 0.64, 0.32, "nodes", "linear", linear)
        arrow(axes, (middle, 0.88), (middle, 1.05))
        values = np.asarray(seen.array(name), float)[seen.order, :CHANNELS]
        matrix(_panel(sheet, x + middle - 0.27, y + 1.06), values)
        words(axes, middle - 0.34, 1.33, letter, fontweight="bold", fontsize=6.5)
        arrow(axes, (middle, 1.61), (middle, 1.83))
    arrow(axes, (2.82, 0.35), (2.82, 0.53))
    box(axes, 2.82, 0.72, 0.9, 0.38, "representatives", "f(N, d)", _function(alpha, seen))
    arrow(axes, (2.82, 0.91), (2.82, 1.05))
    bias = np.asarray(seen.array("adaptation"), float)[np.ix_(seen.order, seen.order)]
    matrix(_panel(sheet, x + 2.82 - 0.27, y + 1.06), bias)
    words(axes, 2.48, 1.33, "A", fontweight="bold", fontsize=6.5)
    arrow(axes, (2.82, 1.61), (2.82, 1.83))
    box(axes, 1.66, 1.99, 3.2, 0.32, "nodes", "adaptation attention-free module",
        f"no heads, no projection behind it; {model.count(f'{LAYER}.qkv') + 1:,} parameters")  # fmt: skip
    arrow(axes, (1.66, 2.15), (1.66, 2.32))
    box(axes, 1.66, 2.47, 1.2, 0.28, "output", f"Y: {n:,} × {model.width}")


def _function(alpha: float, seen: Seen) -> str:
    return f"{short(-alpha)} × {seen.number('log_n'):.2f} × d"


def _of(layer: int) -> str:
    return "embedded nodes" if not layer else f"nodes after layer {layer}"


def draw_decoder_module(sheet: Sheet, seen: Seen, x: float, y: float) -> None:
    """Each tour's context asks all nodes; 3.1 by 2.65 inches from (x, y) on."""
    axes, model, n = sheet.canvas(x, y, 3.1, 2.65), seen.model, seen.n
    width, alpha = model.width, seen.number("decoder_alpha")
    state = seen.state
    box(axes, 0.42, 0.2, 0.8, 0.3, "input", "first, current", f"of {n:,} tours")
    box(axes, 1.36, 0.2, 0.9, 0.3, "input", f"H: {n:,} × {width}")
    box(axes, 2.56, 0.2, 1.0, 0.3, "input", "distances", "from the current node")
    for middle, name, shape in ((0.42, "query", f"2 × {width} × {width}"),
                                (1.36, "key, value", model.shape("key_value.weight"))):  # fmt: skip
        arrow(axes, (middle, 0.35), (middle, 0.56))
        box(axes, middle, 0.72, 0.8, 0.32, "nodes", "linear", shape)
        arrow(axes, (middle, 0.88), (middle, 1.83))
        words(axes, middle, 1.32, f"{name}\n{n:,} × {width}", ground=True)
    arrow(axes, (2.56, 0.35), (2.56, 0.53))
    box(axes, 2.56, 0.72, 1.0, 0.38, "representatives", "f(N, d) + mask",
        _function(alpha, seen))  # fmt: skip
    arrow(axes, (2.56, 0.91), (2.56, 1.12))
    row = strength(alpha, n) * seen.distances[state.current]
    row[state.visited] = np.nan
    matrix(sheet.panel(x + 2.06, y + 1.14, 1.0, 0.3), row[seen.order][None])
    words(axes, 2.56, 1.53, "A of one tour; grey: −∞")
    arrow(axes, (2.56, 1.63), (2.56, 1.83))
    box(axes, 1.55, 1.99, 3.0, 0.32, "nodes", "adaptation attention-free module",
        f"one for all decisions; {_parameters(seen):,} parameters")  # fmt: skip
    arrow(axes, (1.55, 2.15), (1.55, 2.32))
    box(axes, 1.55, 2.47, 1.4, 0.28, "output", f"new context: {n:,} × {width}")


def _parameters(seen: Seen) -> int:
    return seen.model.count("context.") + seen.model.count("key_value.") + 1


def _panel(sheet: Sheet, x: float, y: float) -> Axes:
    return sheet.panel(x, y, 0.54, 0.54)
