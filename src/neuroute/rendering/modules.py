"""A network as an evaluation has described its live modules: the shapes of its parameters, for drawings of it."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from neuroute.core.errors import NeurouteError
from neuroute.rendering.style import MEASURED


@dataclass(frozen=True)
class Modules:
    """A network by the shapes of its parameters; its layers are alike, and the first stands for all.

    A drawing's own network says where its layers are, which of their parameters it needs, and what is missing without.
    """

    layers: ClassVar[str]  # name of the list of layers
    needed: ClassVar[str]  # a weight of a layer, (..., width)
    lacking: ClassVar[str]  # what to say, and to do, when there is none

    shapes: Mapping[str, tuple[int, ...]]  # full name of a parameter -> shape
    parameters: int  # of the whole network
    depth: int
    heads: int

    @classmethod
    def read(cls, text: str, arguments: Mapping[str, Any]) -> Self:
        """`text`: the JSON that the evaluation keeps; `arguments`: the network's, for what has no shape.

        Raises NeurouteError when the needed weight is not among its modules.
        """
        shapes: dict[str, tuple[int, ...]] = {}
        total, depth = 0, int(arguments["depth"])
        for entry in json.loads(text):
            total = int(entry.get("parameters", total))
            if entry.get("name") == cls.layers:
                depth = int(entry.get("copies", depth))
            for name, shape in entry.get("shapes", {}).items():
                shapes[".".join(part for part in (entry["name"], name) if part)] = tuple(shape)
        if f"{cls.layers}.0.{cls.needed}" not in shapes:
            raise NeurouteError(cls.lacking)
        return cls(shapes, total, depth, int(arguments["heads"]))

    @property
    def width(self) -> int:
        return self.shapes[f"{self.layers}.0.{self.needed}"][-1]

    @property
    def layer_parameters(self) -> int:
        """Parameters of one of the layers."""
        return self.count(f"{self.layers}.0.")

    def count(self, prefix: str) -> int:
        """Parameters whose names begin so; of the layers those of one."""
        return sum(math.prod(shape) for name, shape in self.shapes.items() if name.startswith(prefix))

    def shape(self, name: str) -> str:
        """576 × 192, of a parameter that is there; else nothing."""
        return " × ".join(f"{n:,}" for n in self.shapes[name]) if name in self.shapes else ""

    def rows(self) -> list[dict[str, Any]]:
        """What a figure's CSV says of it: a line for each parameter, and the total."""
        every: list[dict[str, Any]] = [
            {
                "panel": "b",
                "side": MEASURED,
                "parameter": name,
                "shape": "x".join(map(str, shape)),
                "copies": self.depth if name.startswith(f"{self.layers}.0.") else 1,
            }
            for name, shape in self.shapes.items()
        ]
        return [*every, {"panel": "b", "side": MEASURED, "parameter": "all", "count": self.parameters}]
