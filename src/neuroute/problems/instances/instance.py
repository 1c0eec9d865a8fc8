"""Instances of a routing problem, one or several: what there is to solve, and what a solution of it costs."""

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from neuroute.analysis.intervals import gap_pct
from neuroute.core.arrays import array_of
from neuroute.core.errors import NeurouteError
from neuroute.core.text import printable
from neuroute.problems.cvrp import check_served
from neuroute.problems.instances.arrays import check_arrays, check_distances, row
from neuroute.problems.instances.distances import (
    LATE,
    distances,
    fills_unit_square,
    in_unit_square,
    scale_points,
    square,
)
from neuroute.problems.tsp import is_permutation
from neuroute.problems.vrp import EPS, Rule, Vrp, fault, from_routes, to_routes

if TYPE_CHECKING:
    from neuroute.problems.instances.drawing import Drawing

GRID = 1000.0  # Set X of CVRPLIB lies in [0, 1000] squared


@dataclass(frozen=True, eq=False, repr=False)
class Instance:
    """One problem to solve: a TSP, a CVRP, or one of the 16 vehicle routing problems.

    Make one with `neuroute.load` (a file), `neuroute.generate` (random), `Instance.from_arrays` or, where there are no
    coordinates, `Instance.from_distances`.  Coordinates, costs and times are in the instance's own units.

    Attributes:
        name: for messages and drawings.
        points: float64 (n, 2); with vehicles (1 + n, 2), the depot first.  None where there are distances alone.
        demand: int64 (1 + n,), 0 at the depot; below 0, as much is picked up.  None for a TSP.
        capacity: of each vehicle.
        open: whether routes end at their last customer.
        limit: of the length of a route.
        windows: (1 + n, 2), the earliest and latest beginning of service.
        service: (1 + n,), how long service takes.
        ways: int64 (n, n), with vehicles (1 + n, 1 + n), distances from the row's node to the column's, and with time
            windows how long a vehicle takes.
        distances: how distances are rounded, in TSPLIB's words: `EUC_2D`, `CEIL_2D`, `ATT`, `GEO`; `EXACT_2D`: not at
            all.  `EXPLICIT`: they are given one by one.
        library: whose rules the file keeps to: `tsplib`, `cvrplib`, `solomon`; empty for arrays.
        file: name of the file that holds it alone, without its ending.
        scale: of Solomon's, by which coordinates and times are divided for networks.
        vehicles: how many Solomon's file has, which is not followed.
        ignored: keys and sections of the file that were left out on request.
        numbers: (n,) of the nodes in the file; None: 1 to n.
        is_vrp: whether it was given as one of the 16 VRPs.
        best_known: the least cost known, in the instance's own distances; None if no solution is known.
        solution: one that came with it, as `Solution.stops`.
    """

    name: str
    points: np.ndarray | None = None
    demand: np.ndarray | None = None
    capacity: int | None = None
    open: bool = False
    limit: float | None = None
    windows: np.ndarray | None = None
    service: np.ndarray | None = None
    ways: np.ndarray | None = None
    distances: str = "EXACT_2D"
    library: str = ""
    file: str = ""
    scale: float | None = None
    vehicles: int | None = None
    ignored: tuple[str, ...] = ()
    numbers: np.ndarray | None = None
    is_vrp: bool = False
    best_known: float | None = None
    solution: np.ndarray | None = None

    def __post_init__(self) -> None:
        for key in ("name", "file"):
            object.__setattr__(self, key, printable(getattr(self, key)))  # of a file, whose name may be any bytes

    @classmethod
    def from_arrays(
        cls,
        coords: np.ndarray,
        demand: np.ndarray | None = None,
        capacity: int | None = None,
        *,
        open: bool | None = None,
        limit: float | None = None,
        windows: np.ndarray | None = None,
        service: np.ndarray | None = None,
        name: str | None = None,
    ) -> Self:
        """Make an instance of arrays; distances are Euclidean and not rounded.

        Args:
            coords: (n, 2) of the nodes; with vehicles (1 + n, 2), the depot first.
            demand: (1 + n,) whole numbers, 0 at the depot; below 0, as much is picked up (a backhaul).
            capacity: of each vehicle, a whole number.
            open: whether routes end at their last customer.
            limit: of the length of a route.
            windows: (1 + n, 2), the earliest and latest beginning of service; vehicles drive at speed 1.
            service: (1 + n,), how long service takes.
            name: for messages and drawings; None: problem and size, such as `tsp50`.

        Raises:
            NeurouteError: if the arrays are no instance, with the first reason.
        """
        fields = {"demand": demand, "capacity": capacity, "limit": limit, "windows": windows, "service": service}
        arrays = {key: array_of(value, key)[None] for key, value in fields.items() if value is not None}
        if open is not None:
            arrays["open"] = np.asarray(open)
        checked = check_arrays(Path(name or "arrays"), {"coords": array_of(coords, "coords")[None], **arrays})
        instance = cls(name or "", **row(checked, 0))
        return instance if name else replace(instance, name=f"{instance.variant.lower()}{instance.n}")

    @classmethod
    def from_distances(
        cls,
        distances: np.ndarray,
        demand: np.ndarray | None = None,
        capacity: int | None = None,
        *,
        name: str = "instance",
    ) -> Self:
        """Make a TSP or a CVRP of distances, which solvers take, and networks do not.

        Args:
            distances: (n, n) whole numbers, from the row's node to the column's; with vehicles (1 + n, 1 + n), the
                depot first.  What is on the diagonal does not count.
            demand: (1 + n,) whole numbers, 0 at the depot.
            capacity: of each vehicle, a whole number.
            name: for messages.

        Raises:
            NeurouteError: if the arrays are no instance, with the first reason.
        """
        ways, loads = check_distances(distances, demand, capacity, name)
        whole = None if capacity is None else int(capacity)
        return cls(name, ways=ways, demand=loads, capacity=whole, distances="EXPLICIT")

    def __repr__(self) -> str:
        return f"<Instance {self.name}: {self.variant}, n={self.n}, {self.distances}>"

    @property
    def problem(self) -> Literal["tsp", "cvrp", "vrp"]:
        """`tsp`, `cvrp` or `vrp`."""
        return "tsp" if self.demand is None else "vrp" if self.is_vrp else "cvrp"

    @property
    def variant(self) -> str:
        """`TSP`, or the name of the vehicle routing problem, such as `CVRP` or `OVRPTW`.

        Of distances that differ there and back, `ATSP`, `ACVRP` or `AVRPTW`.
        """
        if self.ways is not None:
            kind = self.problem.upper() if self.windows is None else "VRPTW"
            return f"{'' if self.is_symmetric else 'A'}{kind}"
        return "TSP" if self.problem == "tsp" else str(self.vrp.variant)

    @property
    def is_symmetric(self) -> bool:
        """Whether all ways are as long there as back."""
        return self.ways is None or bool((self.ways == self.ways.T).all())

    @property
    def coords(self) -> np.ndarray:
        """float64 (n, 2); with vehicles (1 + n, 2), the depot first.  Raises NeurouteError where there are none."""
        if self.points is None:
            raise NeurouteError(f"{self.name}: holds distances, not coordinates, which networks and drawings need")
        return self.points

    @property
    def nodes(self) -> int:
        """How many nodes there are, the depot among them."""
        return len(self.coords if self.ways is None else self.ways)

    @property
    def n(self) -> int:
        """How many nodes there are; with vehicles, how many customers."""
        return self.nodes - (self.demand is not None)

    @cached_property
    def vrp(self) -> Vrp:
        """Coordinates, demands, capacity and constraints, as a batch of one.  Raises NeurouteError for a TSP."""
        if self.demand is None or self.capacity is None:
            raise NeurouteError(f"{self.name}: is a TSP, which has no vehicles; see `problem`")
        limit, windows, service = (
            None if part is None else np.asarray(part)[None] for part in (self.limit, self.windows, self.service)
        )
        capacity = np.array([self.capacity], dtype=np.int64)
        return Vrp(self.coords[None], self.demand[None], capacity, self.open, limit, windows, service)

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems whose networks take this instance."""
        of_networks = ("cvrp", "vrp") if self.problem == "cvrp" else (self.problem,)
        return of_networks if self.ways is None else ()

    def inputs(self, problem: str | None = None, per_axis: bool = False) -> np.ndarray | Vrp:
        """Return the instance as networks take it: a batch of one in the unit square, float32.

        Args:
            problem: of the network; None: the instance's own.  For `vrp` set X's grid is divided by its size.
            per_axis: scale each axis of a library's coordinates by its own factor.
        """
        if self.scale is not None:
            if per_axis:
                raise NeurouteError(f"{self.name}: time windows share the distances' scale; leave `per_axis` out")
            return in_unit_square(self.vrp, np.float32, self.scale)
        if self.problem == "vrp":
            return in_unit_square(self.vrp, np.float32)
        low, high = self.coords.min(), self.coords.max()
        if problem == "vrp" and self.library and not per_axis and low >= 0 and GRID / 2 < high <= GRID:
            points = self.coords / GRID
        elif not self.library and fills_unit_square(self.coords):
            points = self.coords
        else:
            points = scale_points(self.coords, per_axis)
        points = points.astype(np.float32)
        return points[None] if self.problem == "tsp" else replace(self.vrp, coords=points[None])

    def check(self, solution: Any, rule: Rule = "free start") -> None:
        """Refuse what is no solution of this instance.

        Args:
            solution: a tour, (n,) node numbers from 0; with vehicles a list of routes of customers, numbered from 1,
                or customers and flags (2, n) as `Solution.stops` has them.
            rule: `network`, what networks build: no later than their environment lets them be, and with its rule of
                backhauls (`problems.vrp`); solvers' may begin with any load, and be a little late.

        Raises:
            NeurouteError: with the first node or route that is at fault.
        """
        stops = self.stops_of(solution)
        if self.problem == "tsp":
            if not is_permutation(stops[None]).all():
                raise NeurouteError(
                    f"{self.name}: not a tour of its {self.n} nodes; visit each of 0..{self.n - 1} once"
                )
        elif (
            self.demand is not None and self.capacity is not None and (self.ways is not None or self.problem == "cvrp")
        ):
            if stops[1, 0] != 1 or not np.isin(stops[1], (0, 1)).all():
                raise NeurouteError(f"{self.name}: the flags are not 0 and 1, beginning with 1")
            routes = to_routes(stops)
            check_served(routes, len(self.demand) - 1, self.name)
            for number, route in enumerate(routes, 1):
                load = int(self.demand[list(route)].sum())
                if load > self.capacity:
                    raise NeurouteError(
                        f"{self.name}: route {number} carries {load}, more than the capacity {self.capacity}"
                    )
                if self.ways is not None and self.windows is not None and self.service is not None:
                    clock, here = 0.0, 0
                    for node in [*route, 0]:
                        clock = max(clock + self.service[here] + self.ways[here, node], self.windows[node, 0])
                        if clock > (closes := self.windows[node, 1]):
                            where = f"customer {node}" if node else "way home"
                            raise NeurouteError(
                                f"{self.name}: route {number}, {where}: reached at {clock:g}, after its window closes "
                                f"at {closes:g}"
                            )
                        here = node
        else:
            scale = self.scale or square(self.vrp)[1].item()
            tolerance = LATE if rule != "network" else EPS if scale == 1 else 2 * EPS  # float32 rounds what is scaled
            if why := fault(self.vrp, 0, stops, rule, tolerance * scale):
                raise NeurouteError(f"{self.name}: {why}")

    def length(self, solution: Any, rounded: bool = True, rule: Rule = "free start") -> float:
        """Return how long a solution is, in the instance's own distances.

        Args:
            solution: a tour, (n,) node numbers from 0; with vehicles routes of customers from 1, or stops (2, n).
            rounded: as its library rounds each way (Solomon: cut after one decimal); False: not at all.
            rule: see `check`.

        Returns:
            The length of the closed tour; with vehicles of all ways from depot to depot, or to the last customer
            where routes are open.  In the units of the coordinates, or of the given distances.

        Raises:
            NeurouteError: if it is no solution, with the first node or route that is at fault.
        """
        self.check(stops := self.stops_of(solution), rule)
        if self.problem == "tsp":
            path = np.append(stops, stops[:1])
        else:  # with the depot before and after each route
            path = np.concatenate([*([0, *route] for route in to_routes(stops)), [0]])
        tails, heads = path[:-1], path[1:]
        if self.open:
            tails, heads = tails[heads > 0], heads[heads > 0]
        if self.ways is not None:
            return float(self.ways[tails, heads].sum())
        ways = distances(self.coords[tails], self.coords[heads], self.distances, rounded)
        return float(np.floor(10 * ways).sum() / 10 if rounded and self.library == "solomon" else ways.sum())

    def cost(self, solution: Any) -> float:
        """Return the cost of a solution (see `check`) in the instance's own distances; Solomon's are not rounded.

        Raises:
            NeurouteError: if it is no solution.
        """
        return self.length(solution, rounded=self.problem != "vrp")

    def gap(self, solution: Any) -> float | None:
        """Return by how many per cent a solution costs more than the best one known; None where none is known.

        Solomon's best costs are of distances cut after one decimal, and so is the solution's here.
        """
        return None if self.best_known is None else gap_pct(self.length(solution), self.best_known)

    def plot(self, solution: Any = None, path: str | Path | None = None, title: str | None = None) -> "Drawing":
        """Draw the nodes, and a solution if one is given.

        Args:
            solution: see `check`.
            path: where the drawing is written (.svg, .pdf or .png); None: nowhere.
            title: above it; None: name and cost.

        Returns:
            A matplotlib figure, which notebooks show.

        Raises:
            NeurouteError: if it is no solution, or the file cannot be written.
        """
        from neuroute.problems.instances.drawing import draw

        stops = None if solution is None else self.stops_of(solution)
        if title is None:
            title = self.name if stops is None else f"{self.name}: {self.format(self.cost(stops))}"
        return draw(self.coords, stops, title, has_depot=self.problem != "tsp", home=not self.open, path=path)

    def format(self, cost: float) -> str:
        """Return a cost as text, whole where distances are."""
        if self.distances != "EXACT_2D":
            return f"{cost:,.0f}"
        return f"{cost:,.2f}" if cost >= 100 else f"{cost:.5f}" if cost >= 0.1 else f"{cost:.5g}"

    def stops_of(self, solution: Any) -> np.ndarray:
        """Return a solution (see `check`) as an array: a tour (n,), or customers and flags (2, n).

        Raises:
            NeurouteError: if it is of another shape.
        """
        solution = getattr(solution, "stops", solution)  # of a `Solution`
        if self.problem != "tsp" and isinstance(solution, list | tuple):
            try:
                routes = [[operator.index(customer) for customer in route] for route in solution]
            except (TypeError, ValueError):
                what = "a list of routes is expected, each a list of whole numbers, customers from 1 on"
                raise NeurouteError(f"{self.name}: {what}") from None
            check_served(routes, self.n, self.name)
            solution = from_routes(routes)
        stops = array_of(solution, self.name)
        shape = (self.n,) if self.problem == "tsp" else (2, self.n)
        if stops.shape != shape or stops.dtype.kind not in "iu":
            what = "a tour of whole numbers (n,)" if self.problem == "tsp" else "routes, or customers and flags (2, n)"
            raise NeurouteError(
                f"{self.name}: {what} with n = {self.n} is expected, not {stops.dtype} of shape {stops.shape}; "
                "visit every one once"
            )
        return stops.astype(np.int64)


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
