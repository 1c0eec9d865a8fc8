"""What a probe keeps of a live network for drawings of it: the shapes of its modules, and arrays that it computed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from neuroute.core.errors import NeurouteError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from torch import nn

    from neuroute.specs.objects import Run

Array = NDArray[Any]


def describe_modules(net: nn.Module, layers: str) -> Array:
    """JSON of a list, as an array without axes: {"name", "kind", "shapes": {parameter: shape}} of the network itself
    (name "") and its modules, in order.

    `layers` is the name of the list of its layers, of which the first stands for all; its entry says how many these
    are ("copies").  The last entry is {"parameters": total}.
    """
    first, entries = f"{layers}.0", []
    for name, module in net.named_modules():
        if name.startswith(f"{layers}.") and name != first and not name.startswith(f"{first}."):
            continue
        shapes = {key: list(p.shape) for key, p in module.named_parameters(recurse=False)}
        entry: dict[str, Any] = {"name": name, "kind": type(module).__name__, "shapes": shapes}
        copies = {"copies": sum(1 for _ in module.children())} if type(module).__name__ == "ModuleList" else {}
        entries.append(entry | copies)
    return np.array(json.dumps([*entries, {"parameters": sum(p.numel() for p in net.parameters())}]))


@contextmanager
def tap_inputs(modules: Iterable[nn.Module], convert: Callable[[Any, tuple[Any, ...]], Any]) -> Iterator[list[Any]]:
    """While it is open, each call of a module adds what `convert` makes of it and of its inputs, before it computes."""
    values: list[Any] = []
    hooks = [m.register_forward_pre_hook(lambda m, inputs: values.append(convert(m, inputs))) for m in modules]
    try:
        yield values
    finally:
        for hook in hooks:
            hook.remove()


@dataclass(frozen=True)
class ModuleShapes:
    """A network by the shapes of its parameters; its layers are alike, and the first stands for all."""

    layers: str  # name of the list of layers
    shapes: Mapping[str, tuple[int, ...]]  # full name of a parameter -> shape
    parameters: int  # of the whole network
    depth: int
    heads: int
    width: int

    @classmethod
    def read(cls, text: str, arguments: Mapping[str, Any], weight: str, group: str) -> Self:
        """`text`: what `describe_modules` returns; `arguments`: the network's, for what has no shape.

        weight: a weight of the first layer, (..., width).  group: of the evaluation that kept the text.
        Raises NeurouteError when the network has no such weight.
        """
        shapes: dict[str, tuple[int, ...]] = {}
        layers = weight.partition(".0.")[0]
        total, depth = 0, int(arguments.get("depth", 0))
        for entry in json.loads(text):
            total = int(entry.get("parameters", total))
            if entry.get("name") == layers:
                depth = int(entry.get("copies", depth))
            for name, shape in entry.get("shapes", {}).items():
                shapes[".".join(part for part in (entry["name"], name) if part)] = tuple(shape)
        if weight not in shapes:
            raise NeurouteError(
                f"the modules of the network name no {weight.removesuffix('.weight')}; evaluate its {group} again"
            )
        return cls(layers, shapes, total, depth, int(arguments.get("heads", 1)), shapes[weight][-1])

    @property
    def layer_parameters(self) -> int:
        """Parameters of one of the layers."""
        return self.count(f"{self.layers}.0.")

    @property
    def heads_text(self) -> str:
        """8 heads of 16"""
        return f"{self.heads} head{'s' * (self.heads > 1)} of {self.width // self.heads}"

    @property
    def layers_text(self) -> str:
        """3 layers alike, 1,641 parameters each"""
        return f"{self.depth} layer{'s alike' if self.depth > 1 else ''}, {self.layer_parameters:,} parameters each"

    def count(self, prefix: str) -> int:
        """Parameters whose names begin so; of the layers those of one."""
        return sum(math.prod(shape) for name, shape in self.shapes.items() if name.startswith(prefix))

    def shape(self, name: str, label: str = "") -> str:
        """label 576 × 192, of a weight or another parameter that is there; else nothing."""
        shape = self.shapes.get(f"{name}.weight", self.shapes.get(name))
        return "" if shape is None else f"{label} {' × '.join(f'{n:,}' for n in shape)}".strip()

    def rows(self, panel: str = "b") -> list[dict[str, Any]]:
        """What a figure's CSV says of it: a line for each parameter, and the total."""
        about = {"panel": panel, "side": "measured"}
        layer = f"{self.layers}.0."
        each = [
            {"parameter": name, "shape": "x".join(map(str, s)), "copies": self.depth if name.startswith(layer) else 1}
            for name, s in self.shapes.items()
        ]
        return [about | row for row in [*each, {"parameter": "all", "count": self.parameters}]]


@dataclass(frozen=True)
class NetworkSnapshot:
    """A run, its modules and the arrays of one of its evaluations; subclasses say which."""

    name: ClassVar[str]  # of what was measured of it
    weight: ClassVar[str]  # of the first layer, whose last axis is the width

    run: Run
    model: ModuleShapes
    arrays: Mapping[str, Array]

    @classmethod
    def read(cls, study: Any, run_id: str) -> Self:
        """`study`: what the artifact is drawn from.

        Raises NeurouteError when the evaluation is missing or does not say what the modules are.
        """
        run, arrays = study.runs[run_id], study.arrays(f"{run_id}/{cls.name}")
        if "modules" not in arrays:
            raise NeurouteError(f"{study.artifact.id}: {run_id}/{cls.name} names no modules; evaluate it again")
        model = ModuleShapes.read(str(arrays["modules"][()]), run.network.arguments, cls.weight, cls.name)
        return cls(run, model, arrays)

    def array(self, name: str, dtype: Any = None) -> Array:
        """Raises NeurouteError when there is no such array."""
        if name not in self.arrays:
            raise NeurouteError(f"{self.run.id}/{self.name}: no array {name}; evaluate it again")
        return np.asarray(self.arrays[name], dtype)

    def number(self, name: str) -> float:
        return float(self.array(name))

    def text(self, name: str) -> str:
        return str(self.array(name)[()])
