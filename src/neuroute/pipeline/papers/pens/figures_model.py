"""Figure 2 of paper `pens`: a path-TSP solved decision by decision, and the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.evaluation.snapshot import NetworkSnapshot
from neuroute.pipeline.papers.pens import paper as pens
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering import diagram as dg
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.render import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, Drawing, new_figure
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, fixed
from neuroute.problems.tsp import tour_length

SIDE = 0.96  # of the maps, in inches


@dataclass(frozen=True)
class Attention(NetworkSnapshot):
    """A run, its modules and the arrays of its attention evaluation."""

    name, weight = "attention", "layers.0.qkv.weight"

    @property
    def walk(self) -> Walk:
        return Walk(*(self.array(f"small_{name}") for name in ("coords", "tour", "probabilities")))


@dataclass(frozen=True)
class Walk:
    """A small instance that was solved greedily."""

    coords: maps.Array  # (m, 2)
    tour: maps.Array  # (m,) from node 0
    probabilities: maps.Array  # (m - 1, m)

    def name(self, node: int) -> str:
        return chr(ord("A") + node) if len(self.coords) <= 26 else str(node)

    def rows(self) -> list[dict[str, Any]]:
        place, rows = np.argsort(self.tour), []  # stop of the tour
        for k, chances in enumerate(self.probabilities):
            kinds = np.where(place < k, "visited", np.where(place == k, "origin", "candidate"))
            columns = {"place": kinds, "probability": {i: float(chances[i]) for i in np.flatnonzero(place > k)}}
            columns |= {"chosen": place == k + 1}
            for each in maps.node_rows(self.coords, {"panel": "a", "side": MEASURED, "decision": k + 1}, columns):
                x, y = (float(v) for v in self.coords[each["node"]])
                rows.append(each | {"node": self.name(each["node"]), "x": x, "y": y})
        return rows


@artifact("Path-TSP and the model, drawn from the live network", needs=lambda scale: pens.attention(scale, "pens_a"))
def figure2(study: Study) -> Drawing:
    """One path-TSP step by step (a), and the model that solves it (b)."""
    net = Attention.read(study, pens.run_id("pens_a"))
    walk, decisions = net.walk, range(len(net.walk.probabilities))
    panels = [
        (dg.panel(f"map{k}", SIDE, SIDE, f"decision {k + 1}"), dg.panel(f"bars{k}", SIDE, 0.42, below=0.1))
        for k in decisions
    ]
    steps = [dg.column(*pair, top=True, gap=0.06) for pair in panels]
    marks = {"origin": maps.MARKS["current"]} | {name: maps.MARKS[name] for name in ("destination", "visited")}
    sheet = dg.Sheet.of(study, net.model, steps=steps, marks=marks, cities=len(walk.coords))
    for k in decisions:
        _draw_step(sheet.axes[f"map{k}"], walk, k)
        # A bar for each candidate, in the colour that it has on the map.
        axes = sheet.axes[f"bars{k}"]
        chances, nodes = walk.probabilities[k], sorted(int(node) for node in walk.tour[k + 1 :])
        if np.isfinite(chances[nodes]).all():
            colours = [_shade(c) for c in chances[nodes]]
            axes.bar(nodes, chances[nodes], width=0.7, color=colours, edgecolor=style.INK, linewidth=0.5)
        else:
            maps.write_not_finite(axes)
        axes.set_xticks(nodes, [walk.name(node) for node in nodes])
        axes.set(xlim=(-0.6, len(walk.coords) - 0.4), ylim=(0, 1.05), yticks=[])
        axes.tick_params(labelsize=5.5, length=0, pad=1.5)
        axes.grid(visible=False)
    _draw_step(sheet.axes["tour"], walk, len(decisions))
    first = sheet.axes["bars0"]
    first.set_yticks([0, 1])
    first.set_ylabel("probability", fontsize=5.5, labelpad=1)
    first.tick_params(axis="y", pad=1)
    alt = "Steps of a path-TSP with the probabilities of its candidates, and the network's modules with their shapes."
    texts = notes(study, net=net, m=net.model, length=tour_length(walk.coords, walk.tour))
    return Drawing(sheet.figure, [*walk.rows(), *net.model.rows()], texts, alt)


def _draw_step(axes: mpl.axes.Axes, walk: Walk, step: int) -> None:
    """The state before a decision, its candidates coloured by their probability; last the closed tour."""
    is_last = step == len(walk.probabilities)
    path = [*walk.tour, walk.tour[0]] if is_last else walk.tour[: step + 1]
    axes.plot(*walk.coords[path].T, color=style.INK, linewidth=1.3, zorder=2)
    faces: dict[int, Any] = {int(node): maps.VISITED for node in path}
    if not is_last:
        axes.plot(*walk.coords[walk.tour[step : step + 2]].T, color=style.INK, linewidth=0.9, linestyle=":", zorder=1)
        faces |= {int(node): _shade(walk.probabilities[step][node]) for node in walk.tour[step + 1 :]}
        maps.draw_mark(axes, walk.coords[walk.tour[step]], "current", 10.5)
        # at the shoulder of its node, so that both are seen
        axes.annotate("★", walk.coords[walk.tour[0]], (4.4, 4.4), textcoords="offset points", ha="center", va="center",
                      fontsize=7, color=maps.MARKS["destination"]["color"], zorder=6)  # fmt: skip
    for node, face in faces.items():
        at = tuple(walk.coords[node])
        axes.plot(*at, "o", color=face, markersize=7, markeredgecolor=style.INK, markeredgewidth=0.7, zorder=3)
        ink = style.INK if face == maps.VISITED or sum(face[:3]) >= 1.5 else "white"
        axes.annotate(walk.name(node), at, ha="center", va="center_baseline", fontsize=5, color=ink, zorder=4)
    maps.frame_square(axes, walk.coords, margin=0.22)


def _shade(chance: float) -> Any:
    return maps.color_values("Blues", float(chance)) if np.isfinite(chance) else (1.0, 1.0, 1.0, 1.0)


LOW, HIGH = 2, 98  # percentiles of a panel's logits between which its colours may lie
MAP = "viridis"


@artifact(
    "Where the origin looks, by scaling factor",
    needs=lambda scale: (need for name in pens.MAPPED for need in pens.attention(scale, name)),
)
def figure6(study: Study) -> Drawing:
    nets = {name: Attention.read(study, pens.run_id(name)) for name in pens.MAPPED}
    columns = max(len(net.array("factors")) for net in nets.values())
    figure = new_figure(height=len(nets) * (5.75 / columns + 0.3) + 0.45)
    panels = figure.subplots(len(nets), columns, squeeze=False)
    for i, (name, net) in enumerate(nets.items()):
        ranges = [_range(net, j) for j in range(len(net.array("factors")))]
        reach = max(1e-9, *(high - low for low, high in ranges))  # below the highest: softmax knows differences alone
        norm = mpl.colors.Normalize(-reach, 0)
        for j in range(columns):
            _draw_map(panels[i, j], net, j, norm)
        panels[i, 0].set_ylabel(pens.NAMES[name], fontweight="bold", fontsize=8)
        bar = figure.colorbar(mpl.cm.ScalarMappable(norm, MAP), ax=panels[i].tolist(), pad=0.015)
        bar.set_label("Logit below the highest", fontsize=6)
        bar.set_ticks([-reach, 0], labels=[f"−{reach:.3g}", "0"], fontsize=6)
        bar.outline.set_visible(False)
    marks = {"origin": maps.MARKS["current"], "destination": maps.MARKS["destination"]}
    handles = [style.line(name, linestyle="none", **look) for name, look in marks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    alt = "Maps of the origin's mean attention logits over the square for three models and several scaling factors."
    rows = [row for name, net in nets.items() for row in _rows(name, net)]
    texts = notes(study, dataset=pens.held_out(study.scale, max(pens.SIZES)), high=HIGH, low=LOW)
    # What the maps show, as numbers: how local the look is, and whether it finds the destination.
    title = "Where the origin looks"
    looks = tuple(
        Row((pens.NAMES[name], label.replace("best:", "best,")), tuple(Cell(v) for v in measure_look(net, j)))
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
        {"side": MEASURED, "series": pens.NAMES[name], "node": node, "x": x, "y": y}
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
