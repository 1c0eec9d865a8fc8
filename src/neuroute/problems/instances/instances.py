"""A set of instances of one problem, and its parts of one size in arrays, as networks solve them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.arrays import row
from neuroute.problems.instances.instance import Instance
from neuroute.problems.vrp import Vrp

MANY = 100  # files of one size from which on they are a set (XML100), not a benchmark whose instances have rows


@dataclass(frozen=True)
class Instances:
    """Instances of one problem; those of `groups` are of one size, and have what is asked for in arrays."""

    name: str
    members: tuple[Instance, ...]

    @classmethod
    def of_arrays(cls, name: str, arrays: Mapping[str, Any]) -> Self:
        """Make an instance of each row of what `check_arrays` returns; they are numbered if there are several."""
        count = len(arrays["points"])
        names = [f"{name}_{i}" if count > 1 else name for i in range(count)]
        return cls(name, tuple(Instance(each, **row(arrays, i)) for i, each in enumerate(names)))

    @classmethod
    def of_batch(cls, name: str, batch: np.ndarray | Vrp, problem: str) -> Self:
        """Make an instance of each of coordinates (count, n, 2), or of a `Vrp`: of `vrp` one of the 16, even a CVRP."""
        if not isinstance(batch, Vrp):
            return cls.of_arrays(name, {"points": batch.astype(np.float64)})
        arrays = {key: getattr(batch, key) for key in ("demand", "capacity", "open", "limit", "windows", "service")}
        arrays |= {"points": batch.coords.astype(np.float64), "is_vrp": problem == "vrp"}
        return cls.of_arrays(name, arrays)

    @property
    def problem(self) -> str:
        return self.members[0].problem

    @property
    def count(self) -> int:
        return len(self.members)

    @property
    def n(self) -> int:
        """Nodes (TSP) or customers."""
        return self.members[0].n

    @property
    def library(self) -> str:
        return self.members[0].library

    @cached_property
    def groups(self) -> tuple["Instances", ...]:
        """Those of one size together, smallest first, but for files of their own, and with references or without."""
        alike: dict[tuple[int, str, bool], list[Instance]] = {}
        sizes = Counter(each.n for each in self.members)
        for each in self.members:
            alike.setdefault((each.n, each.file * (sizes[each.n] <= MANY), each.best_known is None), []).append(each)
        names = [
            (file or self.name)
            + f"_n{n}" * (len({size for size, other, _ in alike if other == file}) > 1)
            + "_without_reference" * (unknown and (n, file, False) in alike)
            for n, file, unknown in alike
        ]
        groups = [Instances(name, tuple(each)) for name, each in zip(names, alike.values(), strict=True)]
        return tuple(sorted(groups, key=lambda group: (group.n, group.name)))

    def first(self, count: int) -> "Instances":
        """Return the first instances, in the order of the groups."""
        members = [each for group in self.groups for each in group.members]
        return replace(self, members=tuple(members[:count]))

    def slice(self, first: int, stop: int) -> "Instances":
        return replace(self, members=self.members[first:stop])

    @property
    def coords(self) -> np.ndarray:
        """float64 (count, n, 2); with vehicles (count, 1 + n, 2).  Raises NeurouteError where there are none."""
        return np.stack([each.coords for each in self.members])

    @property
    def reference(self) -> np.ndarray | None:
        """(count,) lengths of known solutions."""
        return self.stacked("best_known")

    @property
    def solutions(self) -> np.ndarray | None:
        """Those that came with the instances: int64 tours (count, n), or (count, 2, n)."""
        return self.stacked("solution")

    def stacked(self, field: str) -> np.ndarray | None:
        """Return a field of all instances (count, ...); None if one has none."""
        parts = [getattr(each, field) for each in self.members]
        return None if any(part is None for part in parts) else np.array(parts)

    @property
    def vrp(self) -> Vrp | None:
        """All of them, where they are of one of the 16 VRPs."""
        return _batch([each.vrp for each in self.members]) if self.problem == "vrp" else None

    def inputs(self, problem: str | None = None) -> Any:
        """Return the instances as networks of a problem take them (see `Instance.inputs`)."""
        parts: list[Any] = [each.inputs(problem) for each in self.members]
        return np.concatenate(parts) if self.problem == "tsp" else _batch(parts)

    def lengths(self, solutions: np.ndarray, rounded: bool = False) -> np.ndarray:
        """Return the lengths (count,) of what decoding built.  Raises NeurouteError if it is no solution."""
        try:
            pairs = zip(self.members, solutions, strict=True)
            return np.array([each.length(solution, rounded, "network") for each, solution in pairs])
        except NeurouteError as error:
            raise NeurouteError(f"decoding returned no solution: {error}") from error

    def with_solutions(self, solutions: Iterable[np.ndarray], costs: Sequence[float] | None = None) -> "Instances":
        """Return the instances with solutions, and their costs as references."""
        solutions = list(solutions)
        costs = costs or [each.cost(stops) for each, stops in zip(self.members, solutions, strict=True)]
        rows = zip(self.members, solutions, costs, strict=True)
        return replace(self, members=tuple(replace(each, solution=s, best_known=float(c)) for each, s, c in rows))


def _batch(parts: Sequence[Any]) -> Vrp:
    """Return batches of one variant, one after the other, as one."""
    keys = ("coords", "demand", "capacity", "limit", "windows", "service")
    columns = {key: [getattr(part, key) for part in parts] for key in keys}
    whole = {key: None if column[0] is None else np.concatenate(column) for key, column in columns.items()}
    batch: Vrp = replace(parts[0], **whole)
    return batch
