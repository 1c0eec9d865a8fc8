"""SIT's network, drawn from what the live one tells of its modules (sit, Figure 1)."""

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from neuroute.papers.sit.state import State
from neuroute.rendering import style
from neuroute.rendering.modules import Modules
from neuroute.rendering.sketch import arrow, box, plus, words

LAYER = "decoder.layers.0"
BLUE, ORANGE = "#3f8fc6", "#dd6b20"  # nodes, representatives
GRID_TOKENS = 60  # up to so many the single products are ruled


class Model(Modules):
    """SIT by the shapes of its parameters."""

    layers, needed = "decoder.layers", "gather.query.weight"
    lacking = f"the modules of the network name no {LAYER}.gather, a cross-attention module; evaluate its round again"


# -- (a) products ---------------------------------------------------------------------------------------------------


def draw_products(axes: Axes, state: State, side: float) -> None:
    """All products of self-attention beside those of cross-attention, to scale: a side is all tokens.

    On a canvas of inches, 2 side + 0.62 wide and side + 0.62 high.
    """
    t, m = state.tokens, state.representatives
    own, cross = state.products
    few = side * m / t
    low, left = 0.3, 0.14
    _products(axes, left, low, side, side, t, t, BLUE)
    right = left + side + 0.3
    _products(axes, right, low + side - few, side, few, t, m, ORANGE)
    _products(axes, right, low, few, max(side - few - 0.06, 0.1 * side), m, t, ORANGE, missing=few + 0.06)
    words(axes, left + side / 2, low + side + 0.1, f"keys: all {t:,} tokens")
    words(axes, right + side / 2, low + side + 0.1, f"keys: all {t:,} tokens")
    words(axes, left - 0.07, low + side / 2, "queries: all tokens", rotation=90)
    words(axes, right - 0.07, low + side - few / 2, f"{m}", ha="right" if few < 0.2 else "center")
    inside = (right + few + (side - few) / 2, low + (side - few) / 2)
    words(axes, inside[0], inside[1] + 0.12, f"1. {m} representatives", fontsize=5.4)
    words(axes, inside[0], inside[1], "look at all tokens;", fontsize=5.4)
    words(axes, inside[0], inside[1] - 0.12, "2. all look at them", fontsize=5.4)
    words(axes, left + side / 2, 0.17, "self-attention", fontsize=6.5, fontweight="bold")
    words(axes, left + side / 2, 0.05, f"{t:,}² = {own:,} products")
    words(axes, right + side / 2, 0.17, "cross-attention", fontsize=6.5, fontweight="bold")
    words(axes, right + side / 2, 0.05, f"2 × {m} × {t:,} = {cross:,} ({_share(cross, own)})")


def _share(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 9.5 else f"{share:.1f} %"


def _products(
    axes: Axes, x: float, y: float, width: float, height: float, columns: int, rows: int, colour: str,
    *, missing: float = 0.0,
) -> None:  # fmt: skip
    """A cell for each product, ruled where they can be told apart.  `missing`: of the height, not drawn here."""
    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, alpha=0.55, linewidth=0))
    if max(columns, rows) <= GRID_TOKENS:
        pitch = (height + missing) / rows
        for i in range(1, columns):
            axes.plot([x + width * i / columns] * 2, [y, y + height], color="white", linewidth=0.5)
        for i in range(1, rows):
            if pitch * i < height:
                axes.plot([x, x + width], [y + pitch * i] * 2, color="white", linewidth=0.5)


# -- (b) a module ---------------------------------------------------------------------------------------------------


def draw_module(axes: Axes, model: Model, state: State) -> None:
    """A module's two halves: Z looks at H, then H at Z.  On a canvas 3.75 wide and 1.95 high, in inches."""
    z, h = 1.38, 0.5
    words(axes, 0.2, z + 0.07, "Z", fontsize=7.5, fontweight="bold", color="#83290a")
    words(axes, 0.2, z - 0.07, f"{state.representatives} × {model.width}")
    words(axes, 0.2, h + 0.07, "H", fontsize=7.5, fontweight="bold", color="#1c5a9c")
    words(axes, 0.2, h - 0.07, f"{state.tokens:,} × {model.width}")
    arrow(axes, (0.42, z), (0.62, z))
    _half(axes, model, "gather", 0.95, z, "representatives", "Eq. 3", above=True)
    arrow(axes, (0.42, h), (1.93, h))
    arrow(axes, (0.95, h), (0.95, z - 0.37), colour="#1c5a9c")
    words(axes, 0.98, (z + h) / 2 - 0.06, "keys, values", ha="left", color="#1c5a9c")
    arrow(axes, (2.2, z), (3.55, z))
    arrow(axes, (2.28, z), (2.28, h + 0.37), colour="#83290a")
    words(axes, 2.31, (z + h) / 2 + 0.1, "keys, values", ha="left", color="#83290a")
    words(axes, 3.63, z, "Z′", fontsize=7.5, fontweight="bold", color="#83290a")
    _half(axes, model, "spread", 2.28, h, "nodes", "Eq. 4", above=False)
    words(axes, 3.69, h, "H′", fontsize=7.5, fontweight="bold", color="#1c5a9c")


def _half(
    axes: Axes, model: Model, name: str, x: float, y: float, fill: str, equation: str, *, above: bool
) -> None:  # fmt: skip
    """Attention and FFN around (x, y), the middle of the attention, each with its way around."""
    at = f"{LAYER}.{name}"
    heads = f"{model.heads} head{'s' * (model.heads > 1)} of {model.width // model.heads}"
    box(axes, x, y, 0.7, 0.74, fill, "attention", heads,
        f"q {model.shape(f'{at}.query.weight')}", f"k, v {model.shape(f'{at}.key_value.weight')}",
        f"out {model.shape(f'{at}.out.weight')}")  # fmt: skip
    feed = x + 0.88
    box(axes, feed, y, 0.48, 0.56, "feed", "FFN", model.shape(f"{at}.up.weight"), "ReLU",
        model.shape(f"{at}.down.weight"))  # fmt: skip
    side = 1 if above else -1
    for left, right, reach in ((x - 0.42, x + 0.46, 0.46), (x + 0.56, x + 1.21, 0.38)):
        arrow(axes, (left, y), (left, y + side * reach), (right, y + side * reach), (right, y + side * 0.06))
        plus(axes, right, y)
    arrow(axes, (x + 0.35, y), (feed - 0.24, y))
    arrow(axes, (feed + 0.24, y), (x + 1.33, y))
    words(axes, x + 0.37, y + side * 0.53, f"{equation}: {model.count(at + '.'):,} parameters", color=style.GREY)


# -- (c) the network ------------------------------------------------------------------------------------------------


def draw_network(axes: Axes, model: Model, state: State, width: float, y: float) -> None:
    """From coordinates to probabilities, from left to right at height y of a canvas of inches."""
    current, end = (model.shape(f"decoder.{name}.weight") for name in ("current", "start"))
    linears = model.count("decoder.current.") + model.count("decoder.start.")
    parts: list[tuple[float, str, str, tuple[str, ...]]] = [
        (0.72, "input", "embedding", (model.shape("embed.weight"), f"{model.count('embed.'):,} parameters")),
        (1.04, "representatives", f"{state.representatives} representatives",
         (f"current: {current}", f"destination: {end}", f"{linears:,} parameters")),
        (0.94, "nodes", f"{model.depth} module{'s' * (model.depth > 1)} (b)",
         (f"H: {state.tokens:,} × {model.width}", f"{model.count(f'{LAYER}.'):,} parameters", "each")),
        (0.74, "output", "head", (model.shape("head.weight"), f"{model.count('head.'):,} parameters", "softmax")),
    ]  # fmt: skip
    gap = (width - sum(part[0] for part in parts)) / (len(parts) + 1)
    x = gap
    for wide, fill, title, lines in parts:
        box(axes, x + wide / 2, y, wide, 0.58, fill, title, *lines)
        arrow(axes, (x - gap, y), (x, y))
        x += wide + gap
    arrow(axes, (width - gap, y), (width, y))
