"""Figure 5 of paper `icam`: every term of Eq. 3 on a real instance, from left to right."""

from typing import Any

import numpy as np

from neuroute.papers.icam.roles import structure_needs
from neuroute.papers.icam.snapshot import Structure
from neuroute.plan.needs import artifact
from neuroute.rendering import diagram as dg
from neuroute.rendering import maps
from neuroute.rendering.notes import notes
from neuroute.rendering.study import Study
from neuroute.rendering.style import MEASURED, Drawing

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
CHAINS = (
    ("sigmoid_query", "⊙ output", "output"), ("value", "⊙ value", "weighed_value", "· value", "numerator", "÷ ratio"),
    ("÷ ratio", "ratio", "⊙ output"), ("exp_key", "⊙ value"), ("exp_key", "· key", "denominator", "÷ ratio"),
)  # fmt: skip


@artifact("The module's calculation, with its own numbers", needs=structure_needs)
def figure5(study: Study) -> Drawing:
    """Every term of Eq. 3 on a real instance."""
    net = Structure.of_icam(study)
    terms = calculation_terms(net)

    def cell(name: str, i: int) -> dg.Element:
        if name in TITLES:
            return dg.Panel(name, 0.72, 0.6, TITLES[name], below=0.12, bold=True)
        return dg.Sign(name, name[0]) if name else dg.space(0.15 if i % 2 else 0.72)

    sheet = dg.Sheet(dg.column(*(dg.row(*map(cell, names, range(len(names))), gap=0.07) for names in GRID), gap=0.1))
    nodes = net.order[:NODES]
    for name, values in terms.items():
        part = values[np.ix_(nodes, nodes)] if name.endswith("adaptation") else values[nodes, :CHANNELS]
        palette = "Oranges" if name == "exp_adaptation" else ""
        maps.draw_matrix(sheet.axes[name], part, maps.format_range(values), colours=palette)
    for names in CHAINS:
        sheet.chain(*names)
    for name, text in (("query", "sigmoid"), ("key", "exp"), ("adaptation", "exp")):
        sheet.arrow(name, f"{text}_{name}", label=text)
    sheet.chain("exp_adaptation", "· key", "· value", colour=dg.ORANGE)
    text = "matrix product: a sum over the nodes, weighed by how far they are"
    sheet.write(
        sheet.places["· key"].x + 0.08, sheet.places["exp_adaptation"].y, text, ha="left", color=dg.ORANGE, fontsize=6
    )
    alt = (
        "Queries, keys, values and adaptation bias of a real instance, and what the module makes of them step by step."
    )
    return dg.drawing(sheet.figure, _calculation_rows(net, terms), _calculation_notes(study, net, terms), alt)


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
