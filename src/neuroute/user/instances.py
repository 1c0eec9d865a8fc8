"""Instances in groups of one size, with the lengths of reference solutions, and what is checked of both."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.text import printable
from neuroute.datasets.solomon import SolomonInstance
from neuroute.datasets.tsplib import TsplibInstance
from neuroute.datasets.vrplib import VrplibInstance
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.tsp import FARTHEST, check_coordinates, is_permutation, tour_length
from neuroute.problems.vrp import Vrp
from neuroute.problems.vrp import lengths as vrp_lengths
from neuroute.problems.vrp_checker import valid

TOLERANCE = 1e-4  # relative, between a stated length and the one of the coordinates: some formats keep few digits

File = TsplibInstance | VrplibInstance | SolomonInstance  # of one instance, in coordinates
ARRAYS = ("coords", "reference", "demand", "capacity", "solutions")  # of a group, by instances


@dataclass(frozen=True)
class Group:
    """Instances of one size; coordinates and lengths in their own units."""

    name: str
    coords: np.ndarray  # (count, n, 2) float64; with vehicles (count, n + 1, 2), row 0 the depot
    reference: np.ndarray | None = None  # (count,) lengths of known solutions
    demand: np.ndarray | None = None  # (count, n + 1) int64
    capacity: np.ndarray | None = None  # (count,) int64
    file: File | None = None  # the one instance, when a library has it
    vrp: Vrp | None = None  # all of it, where the problem is one of the 16 VRPs
    seen: Vrp | None = None  # and as a network takes it
    solutions: np.ndarray | None = None  # those of `reference`: int64 tours (count, n), or (count, 2, n)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", printable(self.name))  # of a file, whose name may be any bytes

    @property
    def problem(self) -> Literal["tsp", "cvrp", "vrp"]:
        return "vrp" if self.vrp is not None else "tsp" if self.demand is None else "cvrp"

    @property
    def count(self) -> int:
        return len(self.coords)

    @property
    def n(self) -> int:
        """Nodes (TSP) or customers."""
        return int(self.coords.shape[1]) - (self.demand is not None)

    @property
    def tsplib(self) -> TsplibInstance | None:
        return self.file if isinstance(self.file, TsplibInstance) else None

    def unit_square(self) -> np.ndarray:
        """Return float32 coordinates for a network.

        Instances in the unit square stay as they are; others, and TSPLIB's, are moved and scaled into it, by one offset
        and one scale for both axes.
        """
        low, high = (f(self.coords, axis=(1, 2), keepdims=True) for f in (np.min, np.max))
        scaled = (self.coords - low) / (high - low)
        stays = (low >= 0) & (high <= 1) & (self.tsplib is None)
        return np.where(stays, self.coords, scaled).astype(np.float32)

    def cvrp(self, coords: np.ndarray) -> Vrp:
        """Return the instances as CVRP over these coordinates, in whatever units."""
        assert self.demand is not None
        assert self.capacity is not None
        return Vrp(coords, self.demand, self.capacity)

    def inputs(self) -> np.ndarray | Vrp:
        """Return the instances as networks take them."""
        if self.seen is not None:
            return self.seen
        points = self.unit_square()
        if self.demand is None:
            return points
        return self.cvrp(points)

    def lengths(self, solutions: np.ndarray) -> np.ndarray:
        """Return the unrounded lengths (count,) of what decoding built, in the group's own units.

        Raises AssertionError if it is no solution, which is a bug, never the user's fault.
        """
        if self.vrp is not None and self.seen is not None:
            feasible, values = valid(self.seen, solutions), vrp_lengths(self.vrp, solutions)
        elif self.demand is not None:
            instances = self.cvrp(self.coords)
            feasible, values = is_feasible(instances, solutions), cost(instances, solutions)
        else:
            feasible, values = is_permutation(solutions), tour_length(self.coords, solutions)
        if not feasible.all():
            raise AssertionError(f"{self.name}: decoding returned no feasible solution")
        if self.tsplib is not None:
            return np.array([self.tsplib.length(solutions[0], rounded=False)])
        return values

    @classmethod
    def joined(cls, groups: Sequence["Group"], name: str) -> Self:
        """Return the instances of several groups of one size, problem and variant as one; a single one as it is."""
        first = groups[0]
        if len(groups) == 1 and isinstance(first, cls):
            return first

        def stacked(key: str) -> Any:
            parts = [getattr(group, key) for group in groups]
            return None if parts[0] is None else np.concatenate(parts)

        arrays = {key: stacked(key) for key in ARRAYS}
        vrps, scaled = (_joined([getattr(group, key) for group in groups]) for key in ("vrp", "seen"))
        return cls(name, **arrays, vrp=vrps, seen=scaled)

    def slice(self, first: int, stop: int) -> "Group":
        parts = {k: getattr(self, k) for k in (*ARRAYS, "vrp", "seen")}
        return replace(self, **{k: v[first:stop] for k, v in parts.items() if v is not None})


def _joined(parts: Sequence[Vrp | None]) -> Vrp | None:
    """Batches of one variant, one after the other."""
    present = [part for part in parts if part is not None]
    if not present:
        return None

    def stacked(key: str) -> Any:
        arrays = [getattr(part, key) for part in present]
        return None if arrays[0] is None else np.concatenate(arrays)

    keys = ("coords", "demand", "capacity", "limit", "windows", "service")
    return replace(present[0], **{key: stacked(key) for key in keys})


@dataclass(frozen=True)
class Instances:
    problem: Literal["tsp", "cvrp", "vrp"]
    name: str
    groups: tuple[Group, ...]  # one per size; one per file for TSPLIB and VRPLIB

    def first(self, count: int) -> "Instances":
        """Return the first instances, in the order of the groups."""
        groups, remaining = [], count
        for group in self.groups:
            if remaining > 0:
                groups.append(group.slice(0, remaining))
                remaining -= groups[-1].count
        return replace(self, groups=tuple(groups))


def check_instances(coords: np.ndarray, path: Path, numbers: Iterable[int] | None = None) -> None:
    """Raises NeurouteError for an instance of coords (count, n, 2) that is none; `numbers` are those in the file, where
    they differ from 0, 1, ..."""
    if coords.ndim != 3 or coords.shape[-1] != 2:
        raise NeurouteError(f"{path}: 'coords' has shape {coords.shape}; (count, n, 2) is expected")
    if not len(coords):
        raise NeurouteError(f"{path}: no instances in it: 'coords' has shape {coords.shape}; give at least one")
    bad = ~(np.abs(coords) <= FARTHEST).all((1, 2)) | (coords == coords[:, :1]).all((1, 2))
    worst = int(np.argmax(bad))  # the first bad one, or instance 0: its number of nodes is checked as well
    check_coordinates(coords[worst], f"{path}, instance {_number(worst, numbers)}")


def check_tours(coords: np.ndarray, tours: np.ndarray, path: Path, numbers: Iterable[int] | None = None) -> np.ndarray:
    """Return the lengths (count,) of tours.  Raises NeurouteError if one is no tour."""
    refuse(~is_permutation(tours), path, "its tour does not visit every node once", numbers)
    return tour_length(coords, tours)


def agree(lengths: np.ndarray | None, file_lengths: Any, path: Path) -> np.ndarray | None:
    """Return the lengths (count,) of the solutions, else the stated ones.  Raises NeurouteError if the two differ."""
    if file_lengths is None:
        return lengths
    values = np.asarray(file_lengths, dtype=np.float64)
    refuse(~(np.isfinite(values) & (values > 0)), path, "its stated length is not a number above 0")
    if lengths is None:
        return values
    off = np.abs(values / lengths - 1)
    refuse(off > TOLERANCE, path, f"its stated length differs from its solution's by up to {100 * off.max():.3g} %")
    return lengths


def refuse(bad: np.ndarray, path: Path, why: str, numbers: Iterable[int] | None = None) -> None:
    """Raises NeurouteError for the first instance that is bad (count,)."""
    if bad.any():
        raise NeurouteError(f"{path}, instance {_number(int(np.argmax(bad)), numbers)}: {why}")


def _number(position: int, numbers: Iterable[int] | None) -> int:
    return position if numbers is None else list(numbers)[position]
