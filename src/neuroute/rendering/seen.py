"""What an evaluation has kept of a live network for drawings of it: its run, its modules and its arrays."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from neuroute.core.errors import NeurouteError
from neuroute.plan.objects import Run
from neuroute.rendering.modules import Modules
from neuroute.rendering.study import Study

Array = NDArray[Any]


@dataclass(frozen=True)
class Seen:
    """A drawing's own says which evaluation of a run it reads, and how the network's modules are read."""

    group: ClassVar[str]  # of the evaluation
    modules: ClassVar[type[Modules]]

    run: Run
    model: Modules
    arrays: Mapping[str, Array]

    @classmethod
    def read(cls, study: Study, run_id: str) -> Self:
        """Raises NeurouteError when the evaluation is missing or does not say what the modules are."""
        run, arrays = study.runs[run_id], study.arrays(f"{run_id}/{cls.group}")
        if "modules" not in arrays:
            raise NeurouteError(f"{study.artifact.id}: {run_id}/{cls.group} names no modules; evaluate it again")
        arguments = {"depth": 0, "heads": 1, **run.network.arguments}
        return cls(run, cls.modules.read(str(arrays["modules"][()]), arguments), arrays)

    def array(self, name: str) -> Array:
        """Raises NeurouteError when there is no such array."""
        if name not in self.arrays:
            raise NeurouteError(f"{self.run.id}/{self.group}: no array {name}; evaluate it again")
        return np.asarray(self.arrays[name])

    def number(self, name: str) -> float:
        return float(self.array(name))
