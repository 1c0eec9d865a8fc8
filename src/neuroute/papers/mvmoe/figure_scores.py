"""Figure 3 of paper `mvmoe`: a gate's scores of real nodes, and what input choice and expert choice make of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.papers.mvmoe.roles import experts_routing
from neuroute.papers.mvmoe.snapshot import Routing, chosen_weights
from neuroute.plan.needs import artifact
from neuroute.rendering import diagram as dg
from neuroute.rendering import maps, style
from neuroute.rendering.columns import decimal
from neuroute.rendering.notes import notes
from neuroute.rendering.study import Study
from neuroute.rendering.style import MEASURED, Drawing

MOST_NODES = 12  # nodes of a score matrix
COLOURS = {"input": style.RAMPS["blue"], "expert": style.RAMPS["orange"]}


@dataclass(frozen=True)
class Choices:
    """Scores of N nodes and what is chosen by them."""

    scores: maps.Array  # (N, m)
    weights: dict[str, maps.Array]  # by "input" and by "expert" choice: (N, m), 0 where a pair is not chosen
    taken: int  # nodes that each expert takes, where experts choose

    @classmethod
    def of(cls, net: Routing) -> Choices:
        scores, nodes = net.array("scores", float), net.array("expert_nodes")
        weights = {
            "input": chosen_weights(scores, net.array("input_experts"), net.array("input_weights"), 1),
            "expert": chosen_weights(scores, nodes, net.array("expert_weights"), 0),
        }
        return cls(scores, weights, len(nodes))

    @property
    def rows_drawn(self) -> int:
        """The first nodes, the depot being the first of all."""
        return min(MOST_NODES, len(self.scores))

    def loads(self, way: str) -> maps.Array:
        """(m,) how many nodes each expert gets."""
        return np.asarray((self.weights[way] > 0).sum(axis=0))

    def experts(self, way: str) -> maps.Array:
        """(N,) how many experts each node has."""
        return np.asarray((self.weights[way] > 0).sum(axis=1))


@artifact("Nodes that choose experts, experts that choose nodes", needs=experts_routing)
def figure3(study: Study) -> Drawing:
    """Scores of a gate on real nodes, by which nodes choose experts (a) or experts choose nodes (b); loads (c, d)."""
    net = Routing.of_model(study)
    choices = Choices.of(net)
    legend = {f"{way} choice": {"marker": "s", "color": ramp[1], "markersize": 5} for way, ramp in COLOURS.items()}
    sheet = dg.Sheet(
        dg.row(
            dg.column(dg.heading("(a) Input choice"), dg.Panel("input", 2.4, 2.9), top=True),
            dg.column(dg.heading("(b) Expert choice"), dg.Panel("expert", 2.4, 2.9), top=True),
            dg.column(
                dg.heading("(c) Load of experts"), dg.Panel("loads", 1.1, 0.95, before=0.38, below=0.12),
                dg.heading("(d) Experts of nodes"), dg.Panel("counts", 1.1, 0.75, before=0.38, below=0.28),
                dg.legend(legend),
                top=True, gap=0.14,
            ),
            gap=0.05,
        )
    )  # fmt: skip
    for way in COLOURS:
        _draw_matrix(sheet.axes[way], choices, way)
    columns = choices.scores.shape[1]
    names = [f"E{j + 1}" for j in range(columns)]
    _draw_pairs(sheet.axes["loads"], {way: choices.loads(way) for way in COLOURS}, names)
    counts = {way: np.bincount(choices.experts(way), minlength=columns + 1) for way in COLOURS}
    _draw_pairs(sheet.axes["counts"], counts, [str(i) for i in range(columns + 1)], "experts of a node")
    alt = "Score matrices of nodes and experts with the chosen entries in colour, and how many nodes each expert gets."
    return dg.drawing(sheet.figure, _rows(choices), _notes(study, net, choices), alt)


def _draw_matrix(axes: mpl.axes.Axes, choices: Choices, way: str) -> None:
    """A row for each node, a column for each expert, the chosen in colour; units of the axes are cells."""
    rows, columns = choices.rows_drawn, choices.scores.shape[1]
    is_choice = choices.weights[way][:rows] > 0
    colours = mpl.colors.ListedColormap(["white", COLOURS[way][0]])
    axes.pcolormesh(np.arange(columns + 1), np.arange(rows + 1), is_choice, cmap=colours, vmin=0, vmax=1,
                    edgecolors="#c3c8d0", linewidth=0.3)  # fmt: skip
    for i, j in np.ndindex(rows, columns):
        weight, colour = ("bold", style.INK) if is_choice[i, j] else ("normal", style.GREY)
        dg.write(
            axes, j + 0.5, i + 0.52, _score(float(choices.scores[i, j])), fontsize=5.4, fontweight=weight, color=colour
        )
    for i in range(rows):
        dg.write(axes, -0.12, i + 0.52, f"customer {i}" if i else "depot", fontsize=5.4, ha="right")
    for j in range(columns):
        dg.write(axes, j + 0.5, -0.42, f"E{j + 1}", fontsize=6, fontweight="bold")
    if way == "input":
        dg.draw_arrow(axes, (columns + 0.25, 0.5), (columns + 1.05, 0.5))
        dg.write(axes, columns + 0.2, 1.15, "each node\nits best", fontsize=5.2, ha="left", va="top")
    else:
        dg.draw_arrow(axes, (columns + 0.3, 0.2), (columns + 0.3, 1.5))
        dg.write(axes, columns + 0.5, 0.85, "each expert\nits best", fontsize=5.2, ha="left")
    axes.set_xlim(-2.0, columns + 1.6)
    axes.set_ylim(rows + 0.1, -0.9)
    axes.axis("off")


def _score(value: float) -> str:
    return decimal(value, 2 if abs(value) < 9.995 else 1) if np.isfinite(value) else "–"


def _draw_pairs(axes: mpl.axes.Axes, counts: dict[str, maps.Array], labels: list[str], x: str = "") -> None:
    """Both ways' numbers of nodes side by side."""
    for way, shift in (("input", -0.2), ("expert", 0.2)):
        maps.draw_bars(axes, counts[way], labels, x=x, y="nodes", width=0.38, color=COLOURS[way][1], shift=shift)


def _rows(choices: Choices) -> list[dict[str, Any]]:
    """All nodes, also those that are not drawn."""
    return [
        {
            "node": i, "expert": j + 1, "score": float(choices.scores[i, j]),
            **{f"{way}_choice_weight": float(weights[i, j]) for way, weights in choices.weights.items()},
            "drawn": i < choices.rows_drawn, "side": MEASURED,
        }
        for i, j in np.ndindex(choices.scores.shape)
    ]  # fmt: skip


def _notes(study: Study, net: Routing, choices: Choices) -> tuple[str, ...]:
    nodes, columns = choices.scores.shape
    without, rows = int((choices.experts("expert") == 0).sum()), choices.rows_drawn
    cut = f" The first {rows} of {nodes} nodes are drawn; (c, d) and the CSV have all." if rows < nodes else ""
    loads = ", ".join(str(n) for n in choices.loads("input"))
    return notes(study, net=net, choices=choices, nodes=nodes, cut=cut, loads=loads, columns=columns, without=without)
