"""The encoder and the decoder of ICAM and of POMO, drawn from what the live one tells of its modules."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from neuroute.papers.icam.layout_matrices import short
from neuroute.papers.icam.layout_seen import Model, Seen
from neuroute.rendering import style
from neuroute.rendering.diagram import arrow, box, plus, words

LAYER = "layers.0"
LEFT, RIGHT = 1.32, 6.7  # of the boxes, in inches; maps stand at the left
ATTENTION, NORMS, FEED, NODES = 2.93, (3.87, 5.29), 4.58, 6.2  # middles of the encoder's boxes
CONTEXT, SEES, FITS, SOFTMAX = 6.2, 4.93, 3.42, 1.96  # of the decoder's, from right to left
BUS = "#1c5a9c"


@dataclass(frozen=True)
class Words:
    """What the boxes say where the two networks differ."""

    attention: Sequence[str]  # title and lines of the encoder's
    mixing: Sequence[str]  # of the decoder's
    fits: Sequence[str]
    fill: str  # of these boxes


def icam_words(seen: Seen) -> Words:
    model = seen.model
    layers = [float(alpha) for alpha in seen.array("layer_alphas")]
    low, high = short(min(layers)), short(max(layers))
    alpha = f"α = {low}" if low == high else f"α: {low} … {high}"
    return Words(
        ("AAFM", f"q, k, v {model.shape(f'{LAYER}.qkv.weight')}", alpha),
        ("AAFM", f"k, v {model.shape('key_value.weight')}", f"α = {short(seen.number('decoder_alpha'))}"),
        ("compatibility", f"{seen.number('clipping'):g} tanh(· + A)",
         f"α = {short(seen.number('compatibility_alpha'))}"),
        "representatives",
    )  # fmt: skip


def pomo_words(seen: Seen) -> Words:
    model = seen.model
    heads = f"{model.heads} heads of {model.width // model.heads}"
    return Words(
        ("attention", f"q, k, v {model.shape(f'{LAYER}.qkv.weight')}", f"out {model.shape(f'{LAYER}.out.weight')}",
         heads),
        ("attention", f"k, v {model.shape('key_value.weight')}", f"out {model.shape('combine.weight')}", heads),
        ("compatibility", f"{seen.number('clipping'):g} tanh(·)"),
        "nodes",
    )  # fmt: skip


def draw_encoder(axes: Axes, model: Model, n: int, text: Words, y: float) -> None:
    """From coordinates to encoded nodes, from left to right at height y of a canvas of inches."""
    box(axes, 1.72, y, 0.72, 0.42, "input", "linear", model.shape("embed.weight"), "with a bias")
    axes.add_patch(
        FancyBboxPatch(
            (2.3, y - 0.5), 3.34, 1.14, boxstyle="round,pad=0,rounding_size=0.08", facecolor="none",
            edgecolor=style.GREY, linewidth=0.8, linestyle=(0, (3, 2)),
        )
    )  # fmt: skip
    layers = f"{model.depth} layer{'s alike' if model.depth > 1 else ''}, {model.layer_parameters:,} parameters each"
    words(axes, 3.97, y + 0.73, layers, fontsize=6)
    box(axes, ATTENTION, y, 0.98, 0.66, text.fill, *text.attention)
    box(axes, FEED, y, 0.54, 0.56, "feed", "FFN", model.shape(f"{LAYER}.up.weight"), "ReLU",
        model.shape(f"{LAYER}.down.weight"))  # fmt: skip
    for norm in NORMS:
        box(axes, norm, y, 0.44, 0.38, "feed", "norm", "instance")
    sums = (ATTENTION + 0.6, FEED + 0.38)
    for start, end in zip((2.37, NORMS[0] + 0.28), sums, strict=True):
        arrow(axes, (start, y), (start, y + 0.5), (end, y + 0.5), (end, y + 0.06))
        plus(axes, end, y)
    joints = (
        (LEFT - 0.13, 1.36), (2.08, ATTENTION - 0.49), (ATTENTION + 0.49, sums[0] - 0.06),
        (sums[0] + 0.06, NORMS[0] - 0.22), (NORMS[0] + 0.22, FEED - 0.27), (FEED + 0.27, sums[1] - 0.06),
        (sums[1] + 0.06, NORMS[1] - 0.22), (NORMS[1] + 0.22, NODES - 0.38),
    )  # fmt: skip
    for start, end in joints:
        arrow(axes, (start, y), (end, y))
    box(axes, NODES, y, 0.76, 0.36, "input", "H", f"{n:,} × {model.width}")


def draw_decoder(axes: Axes, model: Model, n: int, text: Words, y: float, top: float) -> None:
    """From encoded nodes, at height `top` above, to probabilities, from right to left at height y."""
    box(axes, CONTEXT, y, 0.94, 0.5, "input", "context", "first, current node",
        model.shape("context.ends.weight"))  # fmt: skip
    box(axes, SEES, y, 0.98, 0.66, text.fill, *text.mixing)
    box(axes, FITS, y, 1.02, 0.5, text.fill if text.fill == "representatives" else "feed", *text.fits)
    box(axes, SOFTMAX, y, 0.72, 0.42, "output", "softmax", f"{n:,} tours × {n:,}")
    edges = ((CONTEXT - 0.47, SEES + 0.49), (SEES - 0.49, FITS + 0.51), (FITS - 0.51, SOFTMAX + 0.36),
             (SOFTMAX - 0.36, LEFT - 0.12))  # fmt: skip
    for start, end in edges:
        arrow(axes, (start, y), (end, y))
    below = y + 0.62
    arrow(axes, (CONTEXT, top - 0.18), (CONTEXT, y + 0.25), colour=BUS)
    arrow(axes, (CONTEXT, below), (SEES + 0.25, below), (SEES + 0.25, y + 0.33), colour=BUS)
    arrow(axes, (SEES + 0.25, below), (FITS + 0.25, below), (FITS + 0.25, y + 0.25), colour=BUS)
    words(axes, CONTEXT + 0.04, below + 0.12, "H", ha="left", color=BUS, fontsize=6.5, fontweight="bold")
    words(axes, SEES + 0.29, below - 0.13, "keys,\nvalues", ha="left", color=BUS, fontsize=5.2)
    words(axes, FITS + 0.29, below - 0.13, "nodes", ha="left", color=BUS, fontsize=5.2)


def draw_adaptation(axes: Axes, n: int, log_n: float, y: float, encoder: float, decoder: float) -> None:
    """The adaptation function between the encoder above and the decoder below."""
    x = ATTENTION
    box(axes, x, y, 1.3, 0.36, "representatives", "A = −α log₂(N) d", f"f(N, d), log₂ {n:,} = {log_n:.2f}")
    arrow(axes, (1.62, y), (x - 0.65, y))
    arrow(axes, (x, y + 0.18), (x, encoder - 0.33), colour="#b35a12")
    arrow(axes, (FITS - 0.25, y - 0.18), (FITS - 0.25, decoder + 0.25), colour="#b35a12")
    arrow(axes, (x + 0.65, y), (SEES - 0.25, y), (SEES - 0.25, decoder + 0.33), colour="#b35a12")
