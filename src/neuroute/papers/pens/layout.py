"""The layout of PENS, drawn from what the live network tells of its modules (pens, Figure 2b)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.core.lazy import mpl
from neuroute.rendering import style
from neuroute.rendering.modules import Modules

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 13.4, 5.5  # of the drawing, in its own units
MIDDLE = 3.25  # height of the way through
FILLS = {"input": "#f3f4f6", "attention": "#dcebf7", "feed": "#fbe7d3", "norm": "#e9ecf0", "output": "#e4f3ec"}


class Model(Modules):
    """PENS by the shapes of its parameters."""

    layers, needed = "layers", "qkv.weight"
    lacking = "the modules of the network name no layers.0.qkv; evaluate its attention again"


def draw_model(axes: Axes, model: Model) -> None:
    """Inputs, one of the equal layers, and the pointer that scores candidates, from left to right."""
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(0, HEIGHT)
    axes.axis("off")
    markers = f"({model.shape('ends')})" if model.shape("ends") else ""
    _box(axes, 0.05, 2.3, 2.3, 1.9, "input", "embeddings",
         f"x ~ N(0, I), {model.width:,} wide,\n+ markers of origin\nand destination", markers)  # fmt: skip
    _layer(axes, model)
    _positions(axes)
    for start, end in ((2.35, 3.05), (3.95, 4.2), (6.45, 6.85), (7.75, 8.0), (9.45, 9.95), (10.85, 11.15)):
        _arrow(axes, start, MIDDLE, end, MIDDLE)
    _residual(axes, 2.9, 6.62)
    _residual(axes, 6.62, 9.62)
    _box(axes, 9.95, 2.65, 0.9, 1.2, "norm", "RMS\nnorm", "", model.shape("norm.weight"))
    scored = (
        f"query of the origin\n{model.shape('query.weight')}\n·\nkeys of the candidates\n{model.shape('key.weight')}"
    )
    _box(axes, 11.15, 1.75, 2.2, 3.0, "output", "pointer", scored, "softmax: next city")


def _layer(axes: Axes, model: Model) -> None:
    left, right, bottom, top = 2.7, 9.82, 1.75, 5.35
    axes.add_patch(
        mpl.patches.FancyBboxPatch(
            (left, bottom), right - left, top - bottom, boxstyle="round,pad=0,rounding_size=0.15", facecolor="none",
            edgecolor=style.GREY, linewidth=0.8, linestyle=(0, (3, 2)),
        )
    )  # fmt: skip
    words = f"{model.depth} layers alike, {model.layer_parameters:,} parameters each"
    axes.text(left + 0.15, top - 0.12, words, fontsize=6.5, va="top", fontweight="bold")
    _box(axes, 3.05, 2.65, 0.9, 1.2, "norm", "RMS\nnorm", "", model.shape("layers.0.attention_norm.weight"))
    out = model.shape("layers.0.out.weight")
    _box(axes, 4.2, 2.2, 2.25, 2.1, "attention", "attention",
         f"{model.heads} heads of {model.width // model.heads}\nSSMax: × log(N + 1)\nq, k, v: "
         + model.shape("layers.0.qkv.weight"), f"out: {out}" if out else "")  # fmt: skip
    _box(axes, 6.85, 2.65, 0.9, 1.2, "norm", "RMS\nnorm", "", model.shape("layers.0.feed_forward_norm.weight"))
    up, down = (model.shape(f"layers.0.{name}.weight") for name in ("up", "down"))
    _box(axes, 8.0, 2.4, 1.45, 1.7, "feed", "FFN", f"{up}\nReLU\n{down}")


def _positions(axes: Axes) -> None:
    """Coordinates enter by way of attention only."""
    _box(axes, 0.05, 0.15, 2.3, 0.95, "input", "coordinates", "times the scaling factor")
    _box(axes, 2.95, 0.15, 2.35, 0.95, "attention", "ALiBi", "bias: −slope × distance")
    _box(axes, 5.75, 0.15, 2.35, 0.95, "input", "RoPE", "turns q, k (PENS-R, -AR)", dashed=True)
    _arrow(axes, 2.35, 0.62, 2.95, 0.62)
    _arrow(axes, 4.8, 1.1, 4.8, 2.2)
    axes.plot([5.3, 5.75], [0.62, 0.62], color=style.GREY, linewidth=0.8, linestyle=":")
    _arrow(axes, 6.05, 1.1, 6.05, 2.2, dashed=True)


def _box(
    axes: Axes, x: float, y: float, width: float, height: float, fill: str, title: str, text: str, shape: str = "",
    *, dashed: bool = False,
) -> None:  # fmt: skip
    """A rounded box with a title, words and the shapes of its parameters."""
    axes.add_patch(
        mpl.patches.FancyBboxPatch(
            (x, y), width, height, boxstyle="round,pad=0,rounding_size=0.08", facecolor=FILLS[fill],
            edgecolor=style.INK, linewidth=0.7, linestyle=(0, (2, 1.5)) if dashed else "-",
        )
    )  # fmt: skip
    body = "\n".join(part for part in (text, shape) if part)
    lines, heading = (body.count("\n") + 1 if body else 0), title.count("\n") + 1
    top = y + (height + 0.24 * heading + 0.19 * lines + (0.08 if body else 0)) / 2  # heights of lines as drawn
    middle = x + width / 2
    axes.text(middle, top, title, ha="center", va="top", fontsize=6.5, fontweight="bold", linespacing=1.1)
    if body:
        below = top - 0.24 * heading - 0.08
        axes.text(middle, below, body, ha="center", va="top", fontsize=5.6, linespacing=1.15)


def _arrow(axes: Axes, x0: float, y0: float, x1: float, y1: float, *, dashed: bool = False) -> None:
    axes.annotate(
        "", (x1, y1), (x0, y0),
        arrowprops={
            "arrowstyle": "-|>,head_width=0.16,head_length=0.3", "color": style.GREY if dashed else style.INK,
            "linewidth": 0.8, "linestyle": ":" if dashed else "-", "shrinkA": 0, "shrinkB": 0,
        },
    )  # fmt: skip


def _residual(axes: Axes, x0: float, x1: float) -> None:
    """The way around a block, back in where its output is added."""
    above = MIDDLE + 1.3
    axes.plot([x0, x0, x1], [MIDDLE, above, above], color=style.INK, linewidth=0.8, solid_joinstyle="round")
    _arrow(axes, x1, above, x1, MIDDLE + 0.12)
    ring = {"boxstyle": "circle,pad=0.08", "facecolor": "white", "edgecolor": style.INK, "linewidth": 0.7}
    axes.text(x1, MIDDLE, "+", ha="center", va="center", fontsize=7, fontweight="bold", bbox=ring)
