"""What every solver offers, and the integer grid that the exact and local-search codes work on.

Distances, services and opening times of a VRP are rounded up, closing times and limits down, so that what holds on the
grid holds in the plane.  The published references truncate on a grid of 1e-5 and are up to 5e-5 late.
"""

import math
import os
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.problems.vrp import EPS, Vrp

GRID = 1e6  # grid units per unit of length
# Bytes for each pair of nodes, measured on 2,000 to 3,000 nodes (x86-64): how many nodes fit into memory.
PAIR_BYTES = {"hgs": 10, "lkh": 3, "ortools": 57, "pyvrp": 40}
GROUPS, LIMITS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")  # of this process; and what they may use


@dataclass(frozen=True)
class Solver:
    """A solver of the TSP, and perhaps of the CVRP and of the VRP.

    `version()` is cheap and raises NeurouteError, saying how to get the solver, if it is missing.
    `solve(coords (n, 2), seed)` returns a tour (n,) int64 of n >= 4 nodes; equal arguments give equal tours.
    `solve_cvrp(coords (n + 1, 2), demand (n + 1,), capacity, seed)`, depot first, returns routes of customers 1..n.
    `solve_vrp(instance, seed)` takes a batch of one instance and returns a solution (2, n); it raises NeurouteError for
    a variant that the solver is not made for.  Where `solve_cvrp` is None, it is for the CVRP, too.
    From `large` nodes on `solve` takes a `folder`, too, in which an interrupted call left what it had.
    `memory(nodes)` is what it needs of an instance, in bytes, where that grows with the square; `limit(nodes)` is when
    it ends, in seconds, where a clock may end it.
    """

    name: str
    optimal: bool  # tours are proven optimal on the integer grid
    how_to_get: str
    version: Callable[[], str]
    solve: Callable[[np.ndarray, int], np.ndarray]
    solve_cvrp: Callable[[np.ndarray, np.ndarray, int, int], list[list[int]]] | None = None
    solve_vrp: Callable[[Vrp, int], np.ndarray] | None = None
    large: int | None = None
    memory: Callable[[int], float] | None = None
    limit: Callable[[int], float] | None = None

    def variant(self, name: str, *functions: str, **settings: Any) -> "Solver":
        """Return the solver under another name, these of its functions called with these settings."""
        changes: dict[str, Any] = {f: partial(getattr(self, f), **settings) for f in functions}
        return replace(self, name=name, **changes)


def machine_memory() -> float:
    """Return the bytes of this machine, or of the smallest of the control groups that this process is in."""
    limits = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    for line in GROUPS.read_text().splitlines() if GROUPS.is_file() else ():
        _, kind, path = line.split(":", 2)
        # Version 1 has a tree for memory; version 2 has one for all, and says no kind.
        tree, name = (LIMITS / "memory", "memory.limit_in_bytes") if kind == "memory" else (LIMITS, "memory.max")
        group = tree / path.lstrip("/")
        files = (each / name for each in (group, *group.parents))
        limits += [float(text) for file in files if file.is_file() and (text := file.read_text().strip()).isdigit()]
    return min(limits)


def check_size(name: str, nodes: int) -> None:
    """Raises NeurouteError if a solver needs more memory for so many nodes than this machine has."""
    each = PAIR_BYTES.get(name.partition("-")[0], 0)
    meminfo = Path("/proc/meminfo")
    lines = meminfo.read_text().splitlines() if meminfo.is_file() else []
    available = [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    memory = min([machine_memory(), *available])
    if nodes * nodes * each > memory:
        most = math.isqrt(int(memory) // each)
        raise NeurouteError(
            f"{name}: {nodes:,} nodes need about {nodes * nodes * each / 1e9:,.0f} GB for distances; "
            f"{memory / 1e9:,.0f} GB are free, enough for {most:,}; 'insertion' and 'nearest' take any number"
        )


def fitting_workers(solver: Solver, nodes: int, workers: int) -> int:
    """Return how many of so many workers can solve instances of that size at once.

    Raises NeurouteError if this machine's memory holds not even one.
    """
    if solver.memory is None:
        return workers
    needed, there = solver.memory(nodes), machine_memory()
    if needed > there:
        raise NeurouteError(
            f"{solver.name}: {nodes:,} nodes take {needed / 1e9:.0f} GB, this machine has {there / 1e9:.0f}; label on "
            "a larger one (docs/how-to/offline.md), or set solver insertion-angle (CVRP) in the scale file"
        )
    return max(1, min(workers, int(there / needed)))


def at_size(points: Mapping[int, float], n: float) -> float:
    """Interpolate on log-log axes, and go on so for larger sizes; smaller ones take what the smallest takes."""
    sizes = sorted(points)
    if len(sizes) == 1 or n <= sizes[0]:
        return points[sizes[0]]
    right = min(bisect_left(sizes, n), len(sizes) - 1)
    low, high = sizes[right - 1], sizes[right]
    slope = math.log(points[high] / points[low]) / math.log(high / low)
    return points[low] * math.exp(slope * math.log(n / low))


def missing(name: str, how_to_get: str) -> NeurouteError:
    return NeurouteError(f"solver '{name}' is not installed; {how_to_get}")


def installed_version(package: str, name: str, how_to_get: str) -> Callable[[], str]:
    """Return what says a distribution's version, or raises NeurouteError, naming the solver, if it is missing."""

    def version() -> str:
        try:
            return f"{package} {package_version(package)}"
        except PackageNotFoundError:
            raise missing(name, how_to_get) from None

    return version


def on_grid(coords: np.ndarray) -> np.ndarray:
    """Return coordinates (n, 2) as int64: those in the unit square rounded to 1e-6, others first fitted to it."""
    coords = np.asarray(coords, dtype=np.float64)
    low, high = coords.min(), coords.max()
    if low < 0 or high > 1:
        coords = (coords - coords.min(axis=0)) / np.ptp(coords, axis=0).max()
    return np.rint(coords * GRID).astype(np.int64)


def tsplib_text(coords: np.ndarray) -> str:
    """Return coords (n, 2), put on the grid, as a TSPLIB problem with distances rounded to whole grid units."""
    nodes = "\n".join(f"{i} {x} {y}" for i, (x, y) in enumerate(on_grid(coords).tolist(), 1))
    return (
        f"NAME : instance\nTYPE : TSP\nDIMENSION : {len(coords)}\nEDGE_WEIGHT_TYPE : EUC_2D\n"
        f"NODE_COORD_SECTION\n{nodes}\nEOF\n"
    )


def matrix_rows(ways: np.ndarray) -> str:
    """Return whole distances (n, n) as the fields and the section that a TSPLIB or VRPLIB problem has of them."""
    rows = "\n".join(" ".join(map(str, row)) for row in ways.tolist())
    return f"EDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n{rows}\n"


def matrix_text(ways: np.ndarray) -> str:
    """Return whole distances (n, n) as a TSPLIB problem: a TSP if they are symmetric, else an ATSP."""
    kind = "TSP" if (ways == ways.T).all() else "ATSP"
    return f"NAME : instance\nTYPE : {kind}\nDIMENSION : {len(ways)}\n{matrix_rows(ways)}EOF\n"


def positive_seed(seed: int) -> int:
    """Return a seed from 1 to 2**31 - 1: zero asks Concorde and LKH for the time of day."""
    return seed % (2**31 - 1) + 1


def check_demands(name: str, demand: np.ndarray, capacity: int) -> None:
    """Raises NeurouteError, naming the solver, if a customer of demand (n + 1,) demands more than the capacity."""
    if demand[1:].max(initial=0) > capacity:
        who = 1 + int(demand[1:].argmax())
        raise NeurouteError(f"{name}: customer {who} demands more than the capacity {capacity}; split it")


def check_map(heat: np.ndarray) -> None:
    """Raises NeurouteError if a map of edges is not finite."""
    if not np.isfinite(heat).all():
        raise NeurouteError("the map of edges has numbers that are not finite: its network diverged")


# A limit that the way there and back just meets must not be missed by rounding; the checker allows more than this.
SLACK = int(0.8 * EPS * GRID)


@dataclass(frozen=True)
class GridVrp:
    """One instance of V customers, depot first, in grid units.  `closing` of an open problem bounds no way home."""

    ways: np.ndarray  # (1 + V, 1 + V) int64
    demand: np.ndarray  # (1 + V,) int64, in goods
    capacity: int
    open: bool
    limit: int | None
    windows: np.ndarray | None  # (1 + V, 2) int64
    service: np.ndarray  # (1 + V,) int64, 0 without windows

    @property
    def customers(self) -> int:
        return len(self.ways) - 1

    @property
    def closing(self) -> int:
        """Return when the last window closes: nothing that counts happens later, as closed routes are home by then."""
        assert self.windows is not None
        return int(self.windows[:, 1].max())

    def with_end(self, ways: np.ndarray) -> np.ndarray:
        """Return distances (1 + V, 1 + V); for open routes with one more node, the end, which costs nothing."""
        return np.pad(ways, (0, 1)) if self.open else ways


def on_vrp_grid(instance: Vrp) -> GridVrp:
    """Return the instance of a batch of one on the grid."""
    points = instance.coords[0].astype(np.float64)
    step = points[:, None] - points
    windows, service = None, np.zeros(len(points), dtype=np.int64)
    if instance.windows is not None and instance.service is not None:
        opens, closes = instance.windows[0].T
        windows = np.stack([_up(opens), _down(closes)], axis=1)
        service = _up(instance.service[0])
    return GridVrp(
        ways=_up(np.sqrt((step * step).sum(-1))),
        demand=instance.demand[0].astype(np.int64),
        capacity=int(instance.capacity[0]),
        open=instance.open,
        limit=None if instance.limit is None else int(_down(instance.limit[0])),
        windows=windows,
        service=service,
    )


def ways_grid(ways: np.ndarray, demand: np.ndarray | None = None, capacity: int = 0) -> GridVrp:
    """Return whole distances (n, n) as an instance; without demands of one tour."""
    loads = np.zeros(len(ways)) if demand is None else demand
    return GridVrp(ways, loads.astype(np.int64), capacity, False, None, None, np.zeros(len(ways), dtype=np.int64))


def plane_grid(coords: np.ndarray) -> GridVrp:
    """Return coordinates (n, 2) as an instance of one tour."""
    return on_vrp_grid(Vrp(coords[None], np.zeros((1, len(coords)), dtype=np.int64), np.array([0])))


def _up(lengths: np.ndarray) -> np.ndarray:
    return np.ceil(np.asarray(lengths, dtype=np.float64) * GRID).astype(np.int64)


def _down(lengths: np.ndarray) -> np.ndarray:
    return np.floor(np.asarray(lengths, dtype=np.float64) * GRID).astype(np.int64) + SLACK
