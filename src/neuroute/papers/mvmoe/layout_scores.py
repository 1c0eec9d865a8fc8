"""The scores of one gate on real nodes: what input choice and what expert choice make of them (Figure 3)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from neuroute.papers.mvmoe.layout_seen import Array, Seen
from neuroute.rendering import style
from neuroute.rendering.diagram_nodes import decimal
from neuroute.rendering.sketch import arrow, words

DRAWN = 12  # nodes of a score matrix
CHOSEN = {"input": style.RAMPS["blue"], "expert": style.RAMPS["orange"]}


@dataclass(frozen=True)
class Routed:
    """Scores of N nodes and what is chosen by them."""

    scores: Array  # (N, m)
    by_input: Array  # (N, m) weights, 0 where a node does not choose an expert
    by_expert: Array  # (N, m) weights, 0 where an expert does not choose a node
    taken: int  # nodes that each expert takes, where experts choose

    @classmethod
    def of(cls, seen: Seen) -> "Routed":
        scores = np.asarray(seen.array("scores"), float)
        of_node, of_expert = np.zeros_like(scores), np.zeros_like(scores)
        np.put_along_axis(
            of_node, np.asarray(seen.array("input_experts"), int), np.asarray(seen.array("input_weights"), float), 1
        )
        nodes = np.asarray(seen.array("expert_nodes"), int)
        np.put_along_axis(of_expert, nodes, np.asarray(seen.array("expert_weights"), float), 0)
        return cls(scores, of_node, of_expert, len(nodes))

    def of_way(self, way: str) -> Array:
        return self.by_input if way == "input" else self.by_expert

    @property
    def shown(self) -> Array:
        """The first nodes, the depot being the first of all."""
        return np.arange(min(DRAWN, len(self.scores)))

    def loads(self, way: str) -> Array:
        """(m,) how many nodes each expert gets."""
        return (self.of_way(way) > 0).sum(axis=0)

    def experts(self, way: str) -> Array:
        """(N,) how many experts each node has."""
        return (self.of_way(way) > 0).sum(axis=1)


def draw_matrix(axes: Axes, routed: Routed, way: str) -> None:
    """A row for each node, a column for each expert, the chosen in colour; units of the axes are cells."""
    weights, ramp = routed.of_way(way), CHOSEN[way]
    rows, columns = len(routed.shown), routed.scores.shape[1]
    for i, node in enumerate(routed.shown):
        for j in range(columns):
            on = weights[node, j] > 0
            axes.add_patch(
                Rectangle((j, i), 1, 1, facecolor=ramp[0] if on else "white", edgecolor="#c3c8d0", linewidth=0.5)
            )
            words(axes, j + 0.5, i + 0.52, _score(routed.scores[node, j]), fontsize=5.4,
                  fontweight="bold" if on else "normal", color=style.INK if on else style.GREY)  # fmt: skip
        words(axes, -0.12, i + 0.52, "depot" if node == 0 else f"customer {node}", fontsize=5.4, ha="right")
    for j in range(columns):
        words(axes, j + 0.5, -0.42, f"E{j + 1}", fontsize=6, fontweight="bold")
    if way == "input":
        arrow(axes, (columns + 0.25, 0.5), (columns + 1.05, 0.5))
        words(axes, columns + 0.2, 1.15, "each node\nits best", fontsize=5.2, ha="left", va="top")
    else:
        arrow(axes, (columns + 0.3, 0.2), (columns + 0.3, 1.5))
        words(axes, columns + 0.5, 0.85, "each expert\nits best", fontsize=5.2, ha="left")
    axes.set_xlim(-2.0, columns + 1.6)
    axes.set_ylim(rows + 0.1, -0.9)
    axes.axis("off")


def _score(value: float) -> str:
    return decimal(float(value), 2 if abs(value) < 9.995 else 1) if np.isfinite(value) else "–"


def draw_loads(axes: Axes, routed: Routed) -> None:
    """How many of all nodes each expert gets, both ways."""
    columns = routed.scores.shape[1]
    for way, shift in (("input", -0.2), ("expert", 0.2)):
        axes.bar(
            np.arange(1, columns + 1) + shift, routed.loads(way), 0.38, color=CHOSEN[way][1], label=f"{way} choice"
        )
    axes.set_xticks(range(1, columns + 1), [f"E{j + 1}" for j in range(columns)])
    _small(axes, "nodes")


def draw_experts(axes: Axes, routed: Routed) -> None:
    """How many nodes have how many experts, both ways."""
    columns = routed.scores.shape[1]
    for way, shift in (("input", -0.2), ("expert", 0.2)):
        counts = np.bincount(routed.experts(way), minlength=columns + 1)
        axes.bar(np.arange(columns + 1) + shift, counts, 0.38, color=CHOSEN[way][1])
    axes.set_xticks(range(columns + 1))
    axes.set_xlabel("experts of a node", fontsize=6, labelpad=1.5)
    _small(axes, "nodes")


def _small(axes: Axes, label: str) -> None:
    axes.set_ylabel(label, fontsize=6, labelpad=1.5)
    axes.tick_params(labelsize=5.5, pad=1.5)
    axes.grid(visible=False, axis="x")


def rows(routed: Routed) -> list[dict[str, Any]]:
    """All nodes, also those that are not drawn."""
    return [
        {
            "node": i, "expert": j + 1, "score": float(routed.scores[i, j]),
            "input_choice_weight": float(routed.by_input[i, j]), "expert_choice_weight": float(routed.by_expert[i, j]),
            "drawn": bool(i < len(routed.shown)),
        }
        for i in range(len(routed.scores))
        for j in range(routed.scores.shape[1])
    ]  # fmt: skip
