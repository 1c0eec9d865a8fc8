"""What the structure evaluation has kept of a network of many starts, as the figures read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from neuroute.errors import NeurouteError
from neuroute.papers.sit.state import State
from neuroute.plan.objects import Run
from neuroute.rendering.modules import Modules
from neuroute.rendering.study import Study

Array = NDArray[Any]


class Model(Modules):
    """ICAM or POMO by the shapes of its parameters."""

    layers, needed = "layers", "qkv.weight"
    lacking = "the modules of the network name no layers.0.qkv; evaluate its structure again"


@dataclass(frozen=True)
class Seen:
    """A run, its modules and the arrays of its structure evaluation."""

    run: Run
    model: Model
    arrays: Mapping[str, Array]

    @classmethod
    def read(cls, study: Study, run_id: str) -> Self:
        """Raises NeurouteError when the evaluation is missing or does not say what the modules are."""
        run, arrays = study.runs[run_id], study.arrays(f"{run_id}/structure")
        if "modules" not in arrays:
            raise NeurouteError(f"{study.artifact.id}: {run_id}/structure names no modules; evaluate it again")
        arguments = {"depth": 0, "heads": 1, **run.network.arguments}
        return cls(run, Model.read(str(arrays["modules"][()]), arguments), arrays)

    def array(self, name: str) -> Array:
        """Raises NeurouteError when there is no such array."""
        if name not in self.arrays:
            raise NeurouteError(f"{self.run.id}/structure: no array {name}; evaluate it again")
        return np.asarray(self.arrays[name])

    def number(self, name: str) -> float:
        return float(self.array(name))

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
