"""Figure 6 of paper `pens`: where a path looks, by scaling factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.pipeline.papers.pens import roles
from neuroute.pipeline.papers.pens.figures_model import Attention
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering import maps, plots, style
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, Drawing, new_figure
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, fixed

LOW, HIGH = 2, 98  # percentiles of a panel's logits between which its colours may lie
MAP = "viridis"


@artifact(
    "Where the origin looks, by scaling factor",
    needs=lambda scale: (need for name in roles.MAPPED for need in roles.attention(scale, name)),
)
def figure6(study: Study) -> Drawing:
    nets = {name: Attention.read(study, roles.run_id(name)) for name in roles.MAPPED}
    columns = max(len(net.array("factors")) for net in nets.values())
    figure = new_figure(height=len(nets) * (5.75 / columns + 0.3) + 0.45)
    panels = figure.subplots(len(nets), columns, squeeze=False)
    for i, (name, net) in enumerate(nets.items()):
        ranges = [_range(net, j) for j in range(len(net.array("factors")))]
        reach = max(1e-9, *(high - low for low, high in ranges))  # below the highest: softmax knows differences alone
        norm = mpl.colors.Normalize(-reach, 0)
        for j in range(columns):
            _draw_map(panels[i, j], net, j, norm)
        panels[i, 0].set_ylabel(roles.NAMES[name], fontweight="bold", fontsize=8)
        bar = figure.colorbar(mpl.cm.ScalarMappable(norm, MAP), ax=panels[i].tolist(), pad=0.015)
        bar.set_label("Logit below the highest", fontsize=6)
        bar.set_ticks([-reach, 0], labels=[f"−{reach:.3g}", "0"], fontsize=6)
        bar.outline.set_visible(False)
    marks = {"origin": maps.MARKS["current"], "destination": maps.MARKS["destination"]}
    handles = [plots.line(name, linestyle="none", **look) for name, look in marks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    alt = "Maps of the origin's mean attention logits over the square for three models and several scaling factors."
    rows = [row for name, net in nets.items() for row in _rows(name, net)]
    texts = notes(study, dataset=roles.held_out(study.scale, max(roles.SIZES)), high=HIGH, low=LOW)
    # What the maps show, as numbers: how local the look is, and whether it finds the destination.
    title = "Where the origin looks"
    looks = tuple(
        Row((roles.NAMES[name], label.replace("best:", "best,")), tuple(Cell(v) for v in measure_look(net, j)))
        for name, net in nets.items()
        for j, label in enumerate(_titles(net))
    )
    heads = (
        Column("nearness", "Nearness", "", fixed(2), title),
        Column("destination_pct", "Destination", "%", fixed(1), title),
    )
    return Drawing(figure, rows, texts, alt, Table(title, ("Model", "Factor"), heads, looks))


def _titles(net: Attention) -> list[str]:
    """Of the factors; the last is the best one."""
    *others, best = (float(factor) for factor in net.array("factors"))
    return [*(f"×{factor:g}" for factor in others), f"best: ×{best:.2f}"]


def _range(net: Attention, column: int) -> tuple[float, float]:
    """The lowest and the highest logit of a panel, but for a few; (0, 0) where none is finite."""
    logits = net.array("logits", float)[column]
    finite = np.isfinite(logits)
    finite[int(net.number("origin"))] = False  # its logit for itself would stretch the colours
    low, high = np.percentile(logits[finite], (LOW, HIGH)) if finite.any() else (0.0, 0.0)
    return float(low), float(high)


def _draw_map(axes: mpl.axes.Axes, net: Attention, column: int, norm: mpl.colors.Normalize) -> None:
    coords, logits = net.array("coords"), np.asarray(net.array("logits")[column], float)
    maps.frame_square(axes, margin=0.03)
    axes.set_title(_titles(net)[column], loc="center", fontsize=7, pad=2)
    finite = np.isfinite(logits)
    finite[int(net.number("origin"))] = False  # its logit for itself would stretch the colours
    if not finite.any():
        style.empty_axes(axes, "not finite")
        return
    low, high = _range(net, column)
    order = np.flatnonzero(finite)[np.argsort(logits[finite], kind="stable")]  # the highest on top
    side = 72 * 6.2 / max(len(net.array("factors")), 1)  # points
    size = float(np.clip((0.9 * side) ** 2 / len(coords) * 0.5, 0.35, 26))
    x, y = coords[order].T
    axes.scatter(x, y, size, logits[order] - high, cmap=MAP, norm=norm, linewidths=0, rasterized=True)
    maps.draw_mark(axes, coords[int(net.number("origin"))], "current", 6.5)
    maps.draw_mark(axes, coords[int(net.number("destination"))], "destination", 9)
    axes.set_xlabel(f"{low:.1f} … {high:.1f}".replace("-", "−"), fontsize=6, labelpad=1.5)


def _rows(name: str, net: Attention) -> list[dict[str, Any]]:
    """A row for each node, a column for each factor: long tables of 10,000 nodes would be several times as large."""
    *others, best = (float(factor) for factor in net.array("factors"))
    keys = [*(f"logit_x{factor:g}" for factor in others), "logit_best"]
    logits = np.round(net.array("logits", float), 4).T.tolist()
    coords = np.round(net.array("coords", float), 6).tolist()
    ends = {int(net.number(end)): end for end in ("origin", "destination")}
    return [
        {"side": MEASURED, "series": roles.NAMES[name], "node": node, "x": x, "y": y}
        | {"place": ends.get(node, "candidate"), **dict(zip(keys, values, strict=True)), "best_factor": best}
        for node, ((x, y), values) in enumerate(zip(coords, logits, strict=True))
    ]


def measure_look(net: Attention, column: int) -> tuple[float | str, float | str]:
    """(rank correlation of logit and nearness, share of nodes whose logit is below the destination's in %)."""
    from scipy.stats import spearmanr

    logits, coords = np.asarray(net.array("logits")[column], float), net.array("coords", float)
    origin, destination = int(net.number("origin")), int(net.number("destination"))
    others = np.isfinite(logits)
    others[[origin, destination]] = False
    if others.sum() < 3 or not np.isfinite(logits[destination]):
        return "not finite", "not finite"
    near = -np.linalg.norm(coords - coords[origin], axis=1)
    below = 100 * float(np.mean(logits[others] < logits[destination]))
    if np.ptp(logits[others]) == 0:
        return "all equal", below
    return float(spearmanr(near[others], logits[others]).statistic), below
