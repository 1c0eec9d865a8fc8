"""A base gate and a hierarchical one at a real decision, with the tours that go to each expert (Figure 4)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from neuroute.papers.mvmoe.layout_seen import Array, Seen, shares
from neuroute.rendering import style
from neuroute.rendering.sketch import arrow, box, plus, words

RING = 0.075  # inches from the middle of a sum to where arrows end


def load(seen: Seen) -> Array:
    """(m,) percent of the tours' choices on each expert at the decision."""
    experts = np.asarray(seen.array("decoder_experts"), int)
    return shares(np.bincount(experts.ravel(), minlength=seen.array("decoder_scores").shape[1]))


def draw_base(axes: Axes, seen: Seen) -> None:
    """Inputs, gate, experts and their sum from bottom to top; 2.6 by 3.1 inches."""
    model, tours = seen.model, len(seen.array("decoder_scores"))
    shape = model.shape(f"{model.mixture}.gate.weight")
    box(axes, 1.3, 0.2, 1.5, 0.32, "input", "X", f"{tours:,} tours × {model.width}")
    arrow(axes, (1.3, 0.36), (1.3, 0.73))
    box(axes, 1.3, 0.9, 1.2, 0.34, "representatives", "gate G", shape)
    _experts(axes, seen, 1.3, 2.5, 1.07, 1.65, 2.3)
    arrow(axes, (1.3, 2.3 + RING), (1.3, 2.66))
    box(axes, 1.3, 2.84, 1.5, 0.34, "output", "Σ G(x) E(x)", f"{tours:,} × {model.width}")


def _experts(axes: Axes, seen: Seen, x: float, width: float, gate: float, y: float, top: float) -> None:
    """Experts side by side around x at height y, arrows to them from the gate at height `gate`, and from them to the
    sum at height `top`; the thicker an arrow the more tours it stands for, and none for none.
    """
    found = load(seen)
    pitch = width / len(found)
    for j, percent in enumerate(found):
        at = x - width / 2 + (j + 0.5) * pitch
        known = np.isfinite(percent)
        thick = _thick(percent / 100)
        fill = "representatives" if known and percent > 0 else "input"
        box(axes, at, y, pitch - 0.08, 0.46, fill, f"E{j + 1}", f"{percent:.0f} %" if known else "–")
        if known and percent > 0:
            arrow(axes, (x + 0.35 * (at - x), gate), (at, y - 0.23), linewidth=thick)
            reach = RING / float(np.hypot(at - x, top - y - 0.23))
            arrow(axes, (at, y + 0.23), (x + reach * (at - x), top - reach * (top - y - 0.23)), linewidth=thick)
    plus(axes, x, top)


def _thick(share: float) -> float:
    """Of an arrow that stands for a share."""
    return 0.4 + 2.2 * share if np.isfinite(share) else 0.4


def draw_hierarchical(axes: Axes, seen: Seen) -> None:
    """The gate over both layers, the sparse one with its own gate, and the dense one; 3.9 by 3.1 inches."""
    model, tours = seen.model, len(seen.array("decoder_scores"))
    sparse, dense = (float(p) for p in seen.array("gate"))
    box(axes, 1.95, 0.2, 1.5, 0.32, "input", "X", f"{tours:,} tours × {model.width}")
    arrow(axes, (1.95, 0.36), (1.95, 0.53))
    box(axes, 1.95, 0.7, 1.7, 0.34, "nodes", "G₁ of the mean of X", model.shape("combine.gate.weight"))
    axes.add_patch(
        FancyBboxPatch(
            (0.06, 1.13), 2.66, 1.24, boxstyle="round,pad=0,rounding_size=0.06", facecolor="none",
            edgecolor=style.GREY, linewidth=0.8, linestyle=(0, (3, 2)),
        )
    )  # fmt: skip
    for x, y, probability in ((1.39, 1.19, sparse), (3.34, 1.55, dense)):
        start = 1.95 + (-0.35 if x < 1.95 else 0.6)
        arrow(axes, (start, 0.87), (x, y), linewidth=_thick(probability))
    words(axes, 0.95, 0.99, f"sparse layer, p₀ = {sparse:.2f}", fontsize=6)
    words(axes, 2.84, 0.97, f"dense layer, p₁ = {dense:.2f}", fontsize=6, ha="left")
    box(axes, 1.39, 1.32, 1.2, 0.26, "representatives", f"gate G₂  {model.shape(f'{model.mixture}.gate.weight')}")
    _experts(axes, seen, 1.39, 2.56, 1.45, 1.9, 2.28)
    box(axes, 3.34, 1.78, 0.9, 0.46, "feed", "D", model.shape("combine.dense.weight"))
    arrow(axes, (1.39, 2.28 + RING), (1.39, 2.66))
    arrow(axes, (3.34, 2.01), (3.34, 2.66))
    box(axes, 1.39, 2.84, 1.9, 0.34, "output", "p₀ Σ G₂(x) E(x)", f"{tours:,} × {model.width}")
    box(axes, 3.34, 2.84, 1.0, 0.34, "output", "p₁ D(X)", f"{tours:,} × {model.width}")
    words(axes, 2.6, 2.84, "or", fontsize=6.5)


def rows(seen: Seen, panel: str) -> list[dict[str, Any]]:
    """Of each tour its scores, and what it chooses; of the hierarchical gate its probabilities."""
    scores = np.asarray(seen.array("decoder_scores"), float)
    experts, weights = (np.asarray(seen.array(f"decoder_{name}")) for name in ("experts", "weights"))
    given = np.zeros_like(scores)
    np.put_along_axis(given, experts.astype(int), weights.astype(float), 1)
    every: list[dict[str, Any]] = [
        {"panel": panel, "tour": i, "expert": j + 1, "score": float(scores[i, j]), "weight": float(given[i, j])}
        for i in range(len(scores))
        for j in range(scores.shape[1])
    ]
    if "gate" in seen.arrays:
        names = ("sparse", "dense")
        every += [
            {"panel": panel, "branch": name, "score": float(score), "probability": float(p)}
            for name, p, score in zip(names, seen.array("gate"), seen.array("gate_scores"), strict=True)
        ]
    return every
