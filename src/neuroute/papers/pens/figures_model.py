"""Figures 2 and 6 of paper `pens`: a path-TSP solved by the live network, its layout, and where its origin looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.core.lazy import mpl, pd
from neuroute.papers.pens import roles
from neuroute.papers.pens.layout import Model, draw_model
from neuroute.papers.pens.walk import Walk, draw_chances, draw_step, step_legend
from neuroute.plan.needs import Need, artifact
from neuroute.rendering import style
from neuroute.rendering.diagram_nodes import RED, bare_square
from neuroute.rendering.style import MEASURED, Drawing, new_figure
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study

LOW, HIGH = 2, 98  # percentiles of a panel's logits that its colours reach over
MAP = "viridis"


def _figure2_needs(scale: Scale) -> list[Need]:
    return roles.attention(scale, "pens_a")


@artifact("Path-TSP and the model, drawn from the live network", needs=_figure2_needs)
def figure2(study: Study) -> Drawing:
    """One path-TSP step by step (a), and the model that solves it (b)."""
    run = study.runs[roles.run_id("pens_a")]
    seen = study.arrays(f"{run.id}/attention")
    walk = Walk(seen["small_coords"], seen["small_tour"], seen["small_probabilities"])
    model = Model.read(str(seen["modules"][()]), run.network.arguments)
    width, height = style.TWO_COLUMNS, 4.95
    figure = new_figure(width, height)
    figure.set_layout_engine("none")  # laid out here, in inches
    columns = len(walk.probabilities) + 1
    pitch = (width - 0.45) / columns
    side, top = pitch - 0.1, 0.42

    def panel(left: float, down: float, wide: float, high: float) -> Axes:
        return figure.add_axes((left / width, 1 - (down + high) / height, wide / width, high / height))

    figure.text(0.05 / width, 1 - 0.08 / height, f"(a) A tour of {len(walk.coords)} cities as path-TSPs", **HEADING)
    for k in range(columns):
        draw_step(panel(0.4 + k * pitch, top, side, side), walk, k)
        if k < len(walk.probabilities):
            bars = panel(0.4 + k * pitch, top + side + 0.06, side, 0.42)
            draw_chances(bars, walk, k)
            if k == 0:
                bars.set_yticks([0, 1])
                bars.set_ylabel("probability", fontsize=5.5)
                bars.yaxis.set_label_coords(-0.13, 0.5)
                bars.tick_params(axis="y", pad=1)
        else:
            step_legend(panel(0.4 + k * pitch, top + side + 0.06, side, 0.42))
    bottom = top + side + 0.8
    figure.text(
        0.05 / width, 1 - bottom / height, f"(b) PENS-A as it is here: {model.parameters:,} parameters", **HEADING
    )
    draw_model(panel(0.05, bottom + 0.15, width - 0.1, height - bottom - 0.2), model)
    rows = [*walk.rows(), *model.rows()]
    alt = "Steps of a path-TSP with the probabilities of its candidates, and the network's modules with their shapes."
    return Drawing(figure, pd.DataFrame(rows), tuple(_model_notes(study, walk, model)), alt)


HEADING: dict[str, Any] = {"fontsize": 8, "fontweight": "bold", "va": "top"}


def _model_notes(study: Study, walk: Walk, model: Model) -> list[str]:
    run = study.runs[roles.run_id("pens_a")]
    return [
        f"(a) Solved by the PENS-A trained here, on TSP{run.n:,}: a tour is a path from a city back to itself. Bars "
        "and blue: the probabilities of the candidates; dotted: the choice, the likeliest. Length "
        f"{walk.length:.3f}, which need not be the shortest.",
        f"(b) Read from the loaded network: shapes (outputs × inputs) and counts are its own, {model.depth} layers of "
        f"width {model.width} with {model.heads} heads; one layer has {model.layer_parameters:,} parameters. Rotation "
        "(RoPE) is what PENS-R uses instead and PENS-AR besides; it has no parameters, nor has ALiBi's bias.",
        "The paper prints a diagram and no numbers.",
    ]


# -- Figure 6 -------------------------------------------------------------------------------------------------------


def _figure6_needs(scale: Scale) -> list[Need]:
    return [need for name in roles.MAPPED for need in roles.attention(scale, name)]


@artifact("Where the origin looks, by scaling factor", needs=_figure6_needs)
def figure6(study: Study) -> Drawing:
    """Attention logits from the origin to all nodes: a row for each model, a column for each scaling factor."""
    seen = {name: study.arrays(f"{roles.run_id(name)}/attention") for name in roles.MAPPED}
    columns = max(len(each["factors"]) for each in seen.values())
    wide = 5.75 / columns
    figure = new_figure(height=len(seen) * (wide + 0.3) + 0.45)
    panels = figure.subplots(len(seen), columns, squeeze=False)
    for i, (name, each) in enumerate(seen.items()):
        for j in range(columns):
            _draw_map(panels[i, j], each, j, best=j == len(each["factors"]) - 1)
        panels[i, 0].set_ylabel(roles.NAMES[name], fontweight="bold", fontsize=8)
    bar = figure.colorbar(
        mpl.cm.ScalarMappable(mpl.colors.Normalize(0, 1), MAP), ax=panels.ravel().tolist(), shrink=0.6, pad=0.015
    )
    bar.set_ticks([0, 1], labels=["low", "high"])
    bar.set_label("Mean attention logit of the origin", labelpad=-8)
    bar.outline.set_visible(False)  # type: ignore[operator]
    handles = [
        mpl.lines.Line2D(
            [], [], linestyle="none", marker="o", markerfacecolor="none", color=RED, markersize=6, label="origin"
        ),
        mpl.lines.Line2D(
            [], [], linestyle="none", marker="*", color=RED, markersize=8, markeredgecolor="white", label="destination"
        ),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    alt = "Maps of the origin's mean attention logits over the square for three models and several scaling factors."
    points = pd.concat([_map_rows(name, each) for name, each in seen.items()], ignore_index=True)
    return Drawing(figure, points, tuple(_map_notes(study)), alt, _trends(seen))


def _draw_map(axes: Axes, seen: Mapping[str, NDArray[Any]], column: int, *, best: bool) -> None:
    coords, factor = seen["coords"], float(seen["factors"][column])
    logits = np.asarray(seen["logits"][column], float)
    bare_square(axes, 0.5, 0.5, 0.53)
    axes.set_title(f"best: ×{factor:.2f}" if best else f"×{factor:g}", loc="center", fontsize=7, pad=2)
    there = np.isfinite(logits)
    there[int(seen["origin"])] = False  # its logit for itself would stretch the colours
    if not there.any():
        style.empty_axes(axes, "not finite")
        return
    low, high = np.percentile(logits[there], (LOW, HIGH))
    order = np.flatnonzero(there)[np.argsort(logits[there], kind="stable")]  # the highest on top
    side = 72 * 6.2 / max(len(seen["factors"]), 1)  # points
    size = float(np.clip((0.9 * side) ** 2 / len(coords) * 0.5, 0.35, 26))
    x, y = coords[order].T
    norm = mpl.colors.Normalize(low, max(high, low + 1e-9))
    axes.scatter(x, y, size, logits[order], cmap=MAP, norm=norm, linewidths=0, rasterized=True)
    axes.plot(*coords[int(seen["origin"])], "o", markerfacecolor="none", color=RED, markersize=6.5, markeredgewidth=1.3)
    axes.plot(
        *coords[int(seen["destination"])], "*", color=RED, markersize=9, markeredgecolor="white", markeredgewidth=0.6
    )
    axes.set_xlabel(f"{low:.1f} … {high:.1f}".replace("-", "−"), fontsize=6, labelpad=1.5)


def _map_rows(name: str, seen: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    """A row for each node, a column for each factor: long tables of 10,000 nodes would be several times as large."""
    nodes, factors = np.arange(len(seen["coords"])), [float(f) for f in seen["factors"]]
    place = np.full(len(nodes), "candidate", dtype=object)
    place[[int(seen["origin"]), int(seen["destination"])]] = ["origin", "destination"]
    x, y = np.round(seen["coords"].astype(float), 6).T
    columns: dict[str, Any] = {
        "side": MEASURED,
        "series": roles.NAMES[name],
        "node": nodes,
        "x": x,
        "y": y,
        "place": place,
    }
    for j, factor in enumerate(factors):
        key = "logit_best" if j == len(factors) - 1 else f"logit_x{factor:g}"
        columns[key] = np.round(np.asarray(seen["logits"][j], float), 4)
    return pd.DataFrame(columns | {"best_factor": factors[-1]})


def _map_notes(study: Study) -> list[str]:
    dataset = roles.held_out(study.scale, max(roles.SIZES))
    return [
        f"One held-out instance of TSP{dataset.n:,} (the paper: TSP-10,000), the same path for all models: first "
        "decision, all other nodes are candidates. Logits are those before the softmax, with SSMax's factor and "
        "ALiBi's bias, means over layers and heads; one draw of the embeddings, one training seed.",
        f"Colours reach from the {LOW}nd to the {HIGH}th percentile of each panel, printed below it: they show where, "
        "not how much. The origin's logit for itself is left out of the colours; it is in the CSV.",
        "The last column has each model's best factor at this size, from its own sweep (Figure 3). Coordinates are "
        "drawn unscaled. The paper gives neither instance nor numbers.",
        "Nearness: Spearman's rank correlation between a node's logit and its nearness to the origin, 1 is a look that "
        "fades with the distance alone. Destination: the share of the other nodes with a lower logit, 100 % is a look "
        "at the destination first of all.",
    ]


def _trends(seen: Mapping[str, Mapping[str, NDArray[Any]]]) -> Table:
    """What the maps show, as numbers: how local the look is, and whether it finds the destination."""
    rows = []
    for name, each in seen.items():
        factors = [float(f) for f in each["factors"]]
        for j, factor in enumerate(factors):
            label = f"best, ×{factor:.2f}" if j == len(factors) - 1 else f"×{factor:g}"
            rows.append(Row((roles.NAMES[name], label), tuple(Cell(v) for v in _look(each, j))))
    columns = (
        Column("nearness", "Nearness", "", fixed(2), "Where the origin looks"),
        Column("destination_pct", "Destination", "%", fixed(1), "Where the origin looks"),
    )
    return Table("Where the origin looks", ("Model", "Factor"), columns, tuple(rows))


def _look(seen: Mapping[str, NDArray[Any]], column: int) -> tuple[float | str, float | str]:
    """(rank correlation of logit and nearness, share of nodes whose logit is below the destination's in %)."""
    logits, coords = np.asarray(seen["logits"][column], float), np.asarray(seen["coords"], float)
    origin, destination = int(seen["origin"]), int(seen["destination"])
    others = np.isfinite(logits)
    others[[origin, destination]] = False
    if others.sum() < 3 or not np.isfinite(logits[destination]):
        return "not finite", "not finite"
    near = -np.linalg.norm(coords - coords[origin], axis=1)
    below = 100 * float(np.mean(logits[others] < logits[destination]))
    if np.ptp(logits[others]) == 0:
        return "all equal", below
    from scipy.stats import spearmanr

    return float(spearmanr(near[others], logits[others]).statistic), below
