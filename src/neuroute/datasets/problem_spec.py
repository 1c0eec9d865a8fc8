"""What the label store, training and evaluation have to know of a problem's instances and solutions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.problems.registry import Part
from neuroute.solvers.base import Solver

if TYPE_CHECKING:  # a limited process loads no pydantic
    from neuroute.specs.objects import Dataset, Labels


@dataclass(frozen=True)
class ProblemSpec:
    """`instances` is a batch of `count` instances that slices by rows; `solutions` is one array (count, *shape)."""

    noun: str  # what a solution is called in messages
    meaning: str  # what every solution does
    shape: Callable[[int], tuple[int, ...]]  # of one solution of an instance of size n
    dtype: Callable[[int], np.dtype]  # as stored
    instances: Callable[["Dataset"], Any]
    arrays: Callable[[Any], tuple[np.ndarray, ...]]  # what instances are made of, each (count, ...)
    valid: Callable[[Any, np.ndarray], np.ndarray]  # (instances, solutions) -> bool (count,)
    lengths: Callable[[Any, np.ndarray], np.ndarray]  # (instances, solutions) -> float64 (count,)
    canonical: Callable[[np.ndarray], np.ndarray]  # the form in which solutions are stored
    simple_lengths: Callable[[Any], np.ndarray]  # of the nearest-neighbour rule, which no reference solver exceeds
    solve: Callable[[Solver, Any, int], np.ndarray]  # (solver, one instance as a batch of one, seed) -> a solution
    # Where networks keep to stricter rules than labels have to; None: they do not.
    built: Callable[[Any, np.ndarray], np.ndarray] | None = None  # as `valid`, of what a network has built
    by_networks_rules: Callable[[Any, np.ndarray], np.ndarray] | None = None  # of labels: whether networks may, too
    from_arrays: Callable[[Sequence[np.ndarray]], Any] | None = None  # the inverse of `arrays`, where there is one
    starts: Callable[[Any], int] | None = None  # places where solutions of many starts begin; None: at every stop


SPEC = Part[ProblemSpec]("spec")


def spec_of(labels: "Labels") -> ProblemSpec:
    """Load the spec of the problem that labels are of."""
    return SPEC.of(labels.dataset.problem)
