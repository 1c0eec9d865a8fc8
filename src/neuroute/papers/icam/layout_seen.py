"""What the structure evaluation has kept of a network of many starts, as the figures read it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuroute.papers.sit.state import State
from neuroute.rendering import seen
from neuroute.rendering.modules import Modules

Array = NDArray[Any]


class Model(Modules):
    """ICAM or POMO by the shapes of its parameters."""

    layers, needed = "layers", "qkv.weight"
    lacking = "the modules of the network name no layers.0.qkv; evaluate its structure again"


@dataclass(frozen=True)
class Seen(seen.Seen):
    """A run, its modules and the arrays of its structure evaluation."""

    group, modules = "structure", Model

    model: Model

    @property
    def n(self) -> int:
        return len(self.array("coords"))

    @property
    def state(self) -> State:
        """The decision, for drawing: the tour's first node is where it will end."""
        visited = np.asarray(self.array("visited"), int)
        looks = np.empty((0, 0, self.n))
        coords, chances = np.asarray(self.array("coords"), float), np.asarray(self.array("probabilities"), float)
        return State(coords, visited, int(visited[0]), chances, looks)

    @property
    def order(self) -> Array:
        """(n,) nodes along the greedy tour from node 0: near ones are neighbours in matrices."""
        return np.asarray(self.array("tours")[0], int)

    @property
    def distances(self) -> Array:
        """(n, n) between the nodes of the instance."""
        return apart(self.array("coords"))

    @property
    def alphas(self) -> dict[str, float]:
        """What ICAM has learnt, by where it is used."""
        layers = {f"layer {i}": float(alpha) for i, alpha in enumerate(self.array("layer_alphas"), 1)}
        own = {"decoder": self.number("decoder_alpha"), "compatibility": self.number("compatibility_alpha")}
        return layers | own


def apart(coords: Array) -> Array:
    """coords (n, 2) -> distances (n, n)."""
    points = np.asarray(coords, float)
    return np.linalg.norm(points[:, None] - points[None], axis=-1)


def strength(alpha: float, nodes: int) -> float:
    """The adaptation function is this times the distance: -alpha log2(N) (icam, Eq. 12)."""
    return -alpha * float(np.log2(nodes))
