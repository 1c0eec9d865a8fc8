"""What the structure probe has kept of ICAM or POMO, as the figures read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroute.core.lazy import mpl
from neuroute.evaluation.snapshot import NetworkSnapshot
from neuroute.pipeline.papers.icam import paper as icam
from neuroute.pipeline.rendering import maps, style
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED


@dataclass(frozen=True)
class Structure(NetworkSnapshot):
    """A run, its modules and the arrays of its structure evaluation."""

    name, weight = "structure", "layers.0.qkv.weight"

    @classmethod
    def of_icam(cls, study: Study) -> Structure:
        return cls.read(study, icam.run_id(icam.OWN["tsp"]))

    @property
    def n(self) -> int:
        return len(self.array("coords"))

    @property
    def coords(self) -> maps.Array:
        return self.array("coords", float)

    @property
    def decision(self) -> maps.Decision:
        """The tour's first node is where it will end."""
        visited = self.array("visited", int)
        return maps.Decision.of_tour(self.coords, visited, self.array("probabilities", float), int(visited[0]))

    @property
    def order(self) -> maps.Array:
        """(n,) nodes along the greedy tour from node 0: near ones are neighbours in matrices."""
        return np.asarray(self.array("tours")[0], int)

    @property
    def alphas(self) -> dict[str, float]:
        """What ICAM has learnt, by where it is used."""
        layers = {f"layer {i}": float(alpha) for i, alpha in enumerate(self.array("layer_alphas"), 1)}
        return layers | {where: self.number(f"{where}_alpha") for where in ("decoder", "compatibility")}

    def alpha_rows(self, panel: str) -> list[dict[str, Any]]:
        about = {"panel": panel, "side": MEASURED}
        return [about | {"where": where, "alpha": alpha} for where, alpha in self.alphas.items()]

    def decision_rows(self) -> list[dict[str, Any]]:
        stop = {int(node): i for i, node in enumerate(self.array("visited"))}
        names = ("logits", "probabilities", "fits", "bias")
        numbers = {name: self.arrays[name] for name in names if name in self.arrays}
        return maps.node_rows(self.coords, {"panel": "decision", "side": MEASURED}, {"stop": stop, **numbers})

    def distances(self) -> maps.Array:
        """(n, n) of the instance, nodes along the greedy tour."""
        return maps.pairwise_distances(self.coords[self.order])


def adaptation_slope(alpha: float, nodes: int) -> float:
    """The adaptation function is this times the distance: -alpha log2(N) (icam, Eq. 12)."""
    return -alpha * float(np.log2(nodes))


def draw_alphas(axes: mpl.axes.Axes, alphas: dict[str, float]) -> None:
    """What was learnt, layer by layer, then in the decoder; the line is where all started."""
    values, layers = list(alphas.values()), len(alphas) - 2
    colours = [style.RAMPS["blue"][1]] * layers + [style.RAMPS["orange"][1], style.RAMPS["orange"][2]]
    step = 1 if layers <= 6 else 3
    labels = [str(i + 1) if i % step == 0 else "" for i in range(layers)]
    maps.draw_bars(axes, values, [*labels, "D", "C"], color=colours)
    axes.axhline(1, color=style.GREY, linewidth=0.7, linestyle=(0, (2, 2)))
    if min(values) < 0:
        axes.axhline(0, color=style.INK, linewidth=0.6)
    axes.tick_params(axis="x", length=0)
