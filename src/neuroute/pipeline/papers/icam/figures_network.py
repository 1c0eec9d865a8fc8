"""Figures 3, 5 and 6 of paper `icam`: the network, its module's calculation, and its attention-free layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.pipeline.papers.icam import paper as icam
from neuroute.pipeline.papers.icam.snapshot import Structure, draw_alphas
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering import diagram as dg
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, Drawing

STARTS = 3  # tours that are drawn
LAYER = "layers.0"
POMO = icam.run_id(icam.ORIGINAL["tsp"])


@artifact("The network, drawn from its modules", needs=icam.structure_needs)
def figure3(study: Study) -> Drawing:
    net = Structure.of_icam(study)
    model, alpha = net.model, {key: maps.short(net.alphas[key]) for key in ("decoder", "compatibility")}
    sheet = _sheet(study, net, layer_alphas=alphas_of_layers(net, "α: "), log_n=net.number("log_n"), **alpha)
    maps.draw_matrix(sheet.axes["distances"], net.distances(), colours="Greys")
    draw_alphas(sheet.axes["alphas"], net.alphas)
    rows = [*model.rows(), *net.decision_rows(), *net.alpha_rows("α")]
    alt = "The encoder and the decoder of ICAM with their shapes between an instance and the next node's probabilities."
    return Drawing(sheet.figure, rows, notes(study, net=net, visited=len(net.decision.path), bias=_bias_note(net)), alt)


def alphas_of_layers(net: Structure, several: str = "α = ") -> str:
    """α = 0.5 where all are alike, else their range."""
    values = net.array("layer_alphas")
    text = maps.format_range(values)
    low, _, high = text.partition(" … ")
    return f"α = {low}" if low == high or not high else several + text


def _sheet(study: Study, net: Structure, **values: Any) -> dg.Sheet:
    sheet = dg.Sheet.of(study, net.model, net=net, clipping=net.number("clipping"), **values)
    maps.draw_state(sheet.axes["instance"], net.decision)
    maps.draw_probabilities(sheet.axes["probabilities"], net.decision)
    return sheet


def _bias_note(net: Structure) -> str:
    """What the bias does to this decision."""
    choice = net.decision.choice
    open_nodes = np.flatnonzero(np.isfinite(net.array("logits", float)))
    fits, bias = (net.array(name, float)[open_nodes] for name in ("fits", "bias"))
    if not len(open_nodes) or not np.isfinite(fits).all() or choice is None:
        return "The logits of this decision are not finite."
    without, nearest = int(open_nodes[fits.argmax()]), int(open_nodes[bias.argmax()])
    preferred = "also prefer the chosen node" if without == choice else "prefer another node than the chosen one"
    return (
        f"At this decision the products alone, without their bias, {preferred}; the chosen node "
        f"{'is' if nearest == choice else 'is not'} the one that the bias favours."
    )


@artifact("POMO, drawn from its modules", needs=lambda scale: [icam.structure(scale, POMO)])
def figure6(study: Study) -> Drawing:
    """POMO with its shapes (a), where its heads look (b), and tours from several starts with all lengths (c, d)."""
    net = Structure.read(study, POMO)
    model, starts = net.model, _starts(net)
    lengths = net.array("lengths", float)
    titles = {start: f"{'best: ' if start == lengths.argmin() else ''}{lengths[start]:.3f}" for start in starts}
    tours = [dg.panel(f"tour{s}", 0.92, 0.92, text, bold=text.startswith("best")) for s, text in titles.items()]
    sheet = _sheet(study, net, tours=tours, drawn=len(starts))
    _draw_heads(sheet.axes["heads"], net)
    for start in starts:
        _draw_tour(sheet.axes[f"tour{start}"], net, start)
    axes = sheet.axes["lengths"]
    axes.hist(lengths, bins=min(15, max(4, len(lengths) // 3)), color=style.RAMPS["blue"][1])
    axes.axvline(lengths.min(), color=style.GREEN, linewidth=1.2)
    maps.label_small(axes, "tour length", "starts")
    rows = [*model.rows(), *net.decision_rows(), *_tour_rows(net)]
    alt = "POMO's encoder and decoder with their shapes; the heads' attention; tours from several starts."
    of_tours = {"first": lengths[0], "best": lengths.min(), "mean": lengths.mean()}
    return Drawing(sheet.figure, rows, notes(study, net=net, visited=len(net.decision.path), **of_tours), alt)


def _starts(net: Structure) -> list[int]:
    """The starts of the shortest and the longest tour, and between them that of the median."""
    order = np.argsort(net.array("lengths"), kind="stable")
    places = np.linspace(0, len(order) - 1, min(STARTS, len(order))).round().astype(int)
    return [int(order[place]) for place in places]


def _draw_heads(axes: mpl.axes.Axes, net: Structure) -> None:
    """A row for each head, the nodes that are left from near to far."""
    attention = net.array("attention", float)
    nodes = [node for node in net.decision.nearest_first() if np.isfinite(net.array("logits")[node])]
    if not nodes:
        style.empty_axes(axes, "not finite")
        return
    maps.draw_matrix(axes, attention[:, nodes], colours="Blues")
    maps.label_small(axes, "unvisited nodes, near to far", "head")
    axes.set_yticks([0, len(attention) - 1], ["1", str(len(attention))])
    axes.tick_params(length=0)


def _draw_tour(axes: mpl.axes.Axes, net: Structure, start: int) -> None:
    tour, best = net.array("tours")[start], start == int(np.argmin(net.array("lengths")))
    axes.plot(*net.coords[[*tour, tour[0]]].T, color=style.GREEN if best else style.GREY, linewidth=0.8)
    maps.draw_mark(axes, net.coords[start], "destination", 7)
    maps.frame_square(axes, net.coords)


def _tour_rows(net: Structure) -> list[dict[str, Any]]:
    about = {name: {"panel": name, "side": MEASURED} for name in "bcd"}
    lengths = [about["d"] | {"start": i, "length": float(length)} for i, length in enumerate(net.array("lengths"))]
    tours = [
        about["c"] | {"start": start, "stop": i, "node": int(node)}
        for start in _starts(net)
        for i, node in enumerate(net.array("tours")[start])
    ]
    looks = [
        about["b"] | {"head": head, "node": node, "weight": float(weight)}
        for head, weights in enumerate(net.array("attention"), 1)
        for node, weight in enumerate(weights)
    ]
    return [*lengths, *tours, *looks]


NODES, CHANNELS = 24, 16  # of the matrices, that are drawn
TITLES = {  # of the calculation's matrices
    "query": "Q", "sigmoid_query": "σ(Q)", "output": "Y", "value": "V", "weighed_value": "exp(K) ⊙ V",
    "numerator": "exp(A)·\n(exp(K) ⊙ V)", "ratio": "ratio", "key": "K", "exp_key": "exp(K)",
    "denominator": "exp(A)·exp(K)", "adaptation": "A", "exp_adaptation": "exp(A)",
}  # fmt: skip
GRID = (  # matrices, and where they meet
    ("query", "", "sigmoid_query", "", "", "", "", "", "", "⊙ output", "output"),
    ("value", "", "", "⊙ value", "weighed_value", "· value", "numerator", "÷ ratio", "ratio", "", ""),
    ("key", "", "exp_key", "", "", "· key", "denominator", "", "", "", ""),
    ("adaptation", "", "exp_adaptation", "", "", "", "", "", "", "", ""),
)


@artifact("The module's calculation, with its own numbers", needs=icam.structure_needs)
def figure5(study: Study) -> Drawing:
    """Every term of Eq. 3 on a real instance."""
    net = Structure.of_icam(study)
    terms = calculation_terms(net)

    def cell(name: str, i: int) -> dg.Element:
        if name in TITLES:
            return dg.panel(name, 0.72, 0.6, TITLES[name], below=0.12, bold=True)
        return dg.sign(name, name[0]) if name else dg.space(0.15 if i % 2 else 0.72)

    rows = [dg.row(*map(cell, names, range(len(names))), gap=0.07) for names in GRID]
    sheet = dg.Sheet.of(study, net.model, rows=rows)
    nodes = net.order[:NODES]
    for name, values in terms.items():
        part = values[np.ix_(nodes, nodes)] if name.endswith("adaptation") else values[nodes, :CHANNELS]
        palette = "Oranges" if name == "exp_adaptation" else ""
        maps.draw_matrix(sheet.axes[name], part, maps.format_range(values), colours=palette)
    text = "matrix product: a sum over the nodes, weighed by how far they are"
    sheet.write(
        sheet.places["· key"].x + 0.08, sheet.places["exp_adaptation"].y, text, ha="left", color=dg.ORANGE, fontsize=6
    )
    alt = (
        "Queries, keys, values and adaptation bias of a real instance, and what the module makes of them step by step."
    )
    return Drawing(sheet.figure, _calculation_rows(net, terms), _calculation_notes(study, net, terms), alt)


def calculation_terms(net: Structure) -> dict[str, maps.Array]:
    """(n, W) or (n, n) of each term.

    Of each channel's keys the largest is subtracted: that cancels, and exp(K) has 1 as its largest.
    """
    names = ("query", "value", "key", "adaptation", "numerator", "denominator", "output")
    t = {name: net.array(name, float) for name in names}
    keys = np.exp(t["key"] - t["key"].max(axis=0))
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return {
            **{name: t[name] for name in names[:4]},
            "sigmoid_query": 1 / (1 + np.exp(-t["query"])),
            "exp_key": keys,
            "exp_adaptation": np.exp(t["adaptation"]),
            "weighed_value": keys * t["value"],
            "numerator": t["numerator"],
            "denominator": t["denominator"],
            "ratio": t["numerator"] / t["denominator"],
            "output": t["output"],
        }


def _calculation_rows(net: Structure, terms: dict[str, maps.Array]) -> list[dict[str, Any]]:
    """The part that is drawn, value by value."""
    nodes = net.order[:NODES]
    return [
        {"side": MEASURED, "matrix": name, "node": int(i), "column": int(j), "value": float(values[i, j])}
        for name, values in terms.items()
        for i in nodes
        for j in (nodes if name.endswith("adaptation") else range(min(CHANNELS, values.shape[1])))
    ]


def _calculation_notes(study: Study, net: Structure, terms: dict[str, maps.Array]) -> tuple[str, ...]:
    with np.errstate(invalid="ignore"):
        difference = float(np.abs(terms["sigmoid_query"] * terms["ratio"] - terms["output"]).max())
    width = net.model.width
    return notes(
        study,
        net=net,
        layer=int(net.number("layer")) + 1,
        nodes=min(NODES, net.n),
        channels=min(CHANNELS, width),
        width=width,
        difference=difference,
    )
