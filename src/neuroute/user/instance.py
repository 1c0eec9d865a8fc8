"""One instance and one solution, in the instance's own units: what users of `import neuroute` hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_whole
from neuroute.datasets.benchmarks import Library, library
from neuroute.datasets.libraries import cut_cost
from neuroute.datasets.solomon import SolomonInstance
from neuroute.datasets.tsplib import TsplibInstance, write_tour
from neuroute.datasets.vrplib import VrplibInstance, check_served, write_solution
from neuroute.problems.tsp import is_permutation, tour_length
from neuroute.problems.vrp import Vrp, from_routes, to_routes
from neuroute.problems.vrp import lengths as vrp_lengths
from neuroute.problems.vrp_checker import fault
from neuroute.user.data import parse_arrays
from neuroute.user.instances import Group
from neuroute.user.vrp_data import LATE

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LIBRARIES: dict[type, str] = {TsplibInstance: "tsplib", VrplibInstance: "cvrplib", SolomonInstance: "solomon"}
PICTURES = (".svg", ".pdf", ".png")
ENDINGS = {"tsp": ".tour", "cvrp": ".sol", "vrp": ".sol"}  # of solution files


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem to solve: a TSP, a CVRP, or one of the 16 vehicle routing problems.

    Make one with `neuroute.load` (a file), `neuroute.generate` (random) or `Instance.from_arrays`.  Coordinates, costs
    and times are in the instance's own units.
    """

    group: Group  # of one

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
        name: str = "instance",
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
            name: for messages and drawings.

        Raises:
            NeurouteError: if the arrays are no instance, with the first reason.
        """
        given = {"demand": demand, "capacity": capacity, "limit": limit, "windows": windows, "service": service}
        arrays = {key: np.asarray(value)[None] for key, value in given.items() if value is not None}
        if open is not None:
            arrays["open"] = np.asarray(open)
        group = parse_arrays(Path(name), {"coords": np.asarray(coords)[None], **arrays}).groups[0]
        return cls(group)

    @property
    def name(self) -> str:
        return self.group.name if self.group.file is None else self.group.file.name

    @property
    def problem(self) -> str:
        """`tsp`, `cvrp` or `vrp`."""
        return self.group.problem

    @property
    def variant(self) -> str:
        """`TSP`, or the name of the vehicle routing problem, such as `CVRP` or `OVRPTW`."""
        return "TSP" if self.problem == "tsp" else str(self.vrp.variant)

    @property
    def coords(self) -> np.ndarray:
        """float64 (n, 2); with vehicles (1 + n, 2), the depot first."""
        coords: np.ndarray = self.group.coords[0]
        return coords

    @property
    def n(self) -> int:
        """How many nodes there are; with vehicles, how many customers."""
        return self.group.n

    @property
    def distances(self) -> str:
        """How distances are rounded, in TSPLIB's words: `EUC_2D`, `CEIL_2D`, `ATT`, `GEO`; `EXACT_2D`: not at all."""
        return "EXACT_2D" if self.group.file is None else self.group.file.edge_type

    @property
    def best_known(self) -> float | None:
        """The least cost known, in the instance's own distances; None if no solution is known."""
        return None if self.group.reference is None else float(self.group.reference[0])

    @property
    def vrp(self) -> Vrp:
        """Coordinates, demands, capacity and constraints, as a batch of one.  Raises NeurouteError for a TSP."""
        if self.problem == "tsp":
            raise NeurouteError(f"{self.name}: is a TSP, which has no vehicles; see `problem`")
        return self.group.cvrp(self.group.coords) if self.group.vrp is None else self.group.vrp

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems whose networks take this instance."""
        return ("cvrp", "vrp") if self.problem == "cvrp" else (self.problem,)

    def inputs(self, problem: str) -> np.ndarray | Vrp:
        """Return the instance as networks of one of its `problems` take it, as a batch of one in the unit square."""
        if self._library is None:
            return self.group.inputs()
        inputs: np.ndarray | Vrp = self._library.inputs_for(problem)(self.group.file, False)
        return inputs

    def check(self, solution: Any) -> None:
        """Refuse what is no solution of this instance.

        Args:
            solution: a tour, (n,) node numbers from 0; with vehicles a list of routes of customers, numbered from 1,
                or customers and flags (2, n) as `Solution.stops` has them.

        Raises:
            NeurouteError: with the first node or route that is at fault.
        """
        self._length(self.stops_of(solution), rounded=False)

    def cost(self, solution: Any) -> float:
        """Return the cost of a solution (see `check`) in the instance's own distances; Solomon's are not rounded.

        Raises:
            NeurouteError: if it is no solution.
        """
        return self._length(self.stops_of(solution), rounded=self.problem != "vrp")

    def gap(self, solution: Any) -> float | None:
        """Return by how many per cent a solution costs more than the best one known; None where none is known.

        Solomon's best costs are of distances cut after one decimal, and so is the solution's here.
        """
        if self.best_known is None:
            return None
        return 100 * (self._length(self.stops_of(solution), rounded=True) / self.best_known - 1)

    def plot(self, solution: Any = None, path: str | Path | None = None, title: str | None = None) -> "Figure":
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
        from neuroute.user.drawing import draw_nodes, draw_routes, draw_tour

        if path is not None and Path(path).suffix not in PICTURES:
            raise NeurouteError(f"{path}: the drawing must end in {', '.join(PICTURES[:-1])} or {PICTURES[-1]}")
        if solution is None:
            figure = draw_nodes(self.coords, self.name if title is None else title, depot=self.problem != "tsp")
        else:
            stops = self.stops_of(solution)
            title = f"{self.name}: {self.format(self.cost(stops))}" if title is None else title
            if self.problem == "tsp":
                figure = draw_tour(self.coords, stops, title)
            else:
                figure = draw_routes(self.coords, to_routes(stops), title, home=not self.vrp.open)
        if path is not None:
            target = Path(path)
            write_whole(target, lambda opened: figure.savefig(opened, format=target.suffix[1:]))
        return figure

    def format(self, cost: float) -> str:
        """Return a cost as text, whole where distances are."""
        if self.distances != "EXACT_2D":
            return f"{cost:,.0f}"
        return f"{cost:,.2f}" if cost >= 100 else f"{cost:.5f}"

    def stops_of(self, solution: Any) -> np.ndarray:
        """Return a solution (see `check`) as an array: a tour (n,), or customers and flags (2, n).

        Raises:
            NeurouteError: if it is of another shape.
        """
        if isinstance(solution, Solution):
            return solution.stops
        if self.problem != "tsp" and isinstance(solution, list | tuple):
            routes = _whole_routes(solution, self.name)
            check_served(routes, self.n, self.name)
            solution = from_routes(routes)
        stops = np.asarray(solution)
        shape = (self.n,) if self.problem == "tsp" else (2, self.n)
        if stops.shape != shape or stops.dtype.kind not in "iu":
            what = "a tour of whole numbers (n,)" if self.problem == "tsp" else "routes, or customers and flags (2, n)"
            raise NeurouteError(
                f"{self.name}: {what} with n = {self.n} is expected, not {stops.dtype} of shape {stops.shape}; "
                "visit every one once"
            )
        return stops.astype(np.int64)

    @cached_property
    def _library(self) -> Library | None:
        """What files like this instance's are like; None of arrays."""
        return None if self.group.file is None else library(LIBRARIES[type(self.group.file)])

    def _length(self, stops: np.ndarray, rounded: bool) -> float:
        """Raises NeurouteError if these stops are no solution."""
        file, vrp, seen = self.group.file, self.group.vrp, self.group.seen
        if vrp is not None and seen is not None:
            why = fault(seen, 0, stops, "free start", LATE)  # solvers' are a little late, and begin with any load
            if why is not None:
                raise NeurouteError(f"{self.name}: {why}")
            if rounded and isinstance(file, SolomonInstance):
                return cut_cost(file, to_routes(stops))
            return float(vrp_lengths(vrp, stops[None])[0])
        if self._library is not None:
            return self._library.length(file, stops, rounded)
        if self.problem == "tsp":
            if not is_permutation(stops[None]).all():
                raise NeurouteError(
                    f"{self.name}: not a tour of its {self.n} nodes; visit each of 0..{self.n - 1} once"
                )
            return float(tour_length(self.coords, stops))
        own = VrplibInstance(self.name, "EXACT_2D", self.coords, self.vrp.demand[0], int(self.vrp.capacity[0]))
        own.check(to_routes(stops), self.name)
        return own.cost(to_routes(stops))


@dataclass(frozen=True, eq=False)
class Solution:
    """A solution of an instance, which is checked when it is made.

    Attributes:
        instance: what it solves.
        stops: int64; a tour (n,) of nodes from 0, or (2, n): the customers from 1 in visiting order, and 1 for each
            that is reached through the depot.
        method: what made it: a network's name, or a solver's.
        seconds: wall-clock time that it took, without loading the network.
        trace: (seconds, cost) of each improvement, where the method tells.

    Raises:
        NeurouteError: if it is no solution of the instance.
    """

    instance: Instance
    stops: np.ndarray
    method: str = ""
    seconds: float = 0.0
    trace: tuple[tuple[float, float], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stops", self.instance.stops_of(self.stops))
        self.check()

    @property
    def tour(self) -> list[int]:
        """The nodes from 0 in visiting order.  Raises NeurouteError for a problem with vehicles."""
        if self.instance.problem != "tsp":
            raise NeurouteError(f"{self.instance.name}: has vehicles; its solution is `routes`")
        return [int(node) for node in self.stops]

    @property
    def routes(self) -> list[list[int]]:
        """The customers, from 1, of each vehicle.  Raises NeurouteError for a TSP."""
        if self.instance.problem == "tsp":
            raise NeurouteError(f"{self.instance.name}: is a TSP; its solution is `tour`")
        return to_routes(self.stops)

    @cached_property
    def cost(self) -> float:
        """In the instance's own distances."""
        return self.instance.cost(self.stops)

    @cached_property
    def gap(self) -> float | None:
        """By how many per cent it costs more than the best solution known; None where none is known."""
        return self.instance.gap(self.stops)

    def check(self) -> None:
        """Raises NeurouteError if it is no solution of the instance."""
        self.instance.check(self.stops)

    def plot(self, path: str | Path | None = None, title: str | None = None) -> "Figure":
        """Draw it (see `Instance.plot`)."""
        return self.instance.plot(self, path, title)

    def save(self, path: str | Path) -> None:
        """Write it: a TSP's as TSPLIB's .tour, others as VRPLIB's .sol.

        Raises:
            NeurouteError: for another ending, or if the file cannot be written.
        """
        target, ending, file = Path(path), ENDINGS[self.instance.problem], self.instance.group.file
        if target.suffix != ending:
            raise NeurouteError(f"{target}: a solution of {self.instance.name} is a file that ends in {ending}")
        if self.instance.problem == "tsp":
            own = TsplibInstance(self.instance.name, self.instance.distances, self.instance.coords)
            write_tour(target, file if isinstance(file, TsplibInstance) else own, self.stops)
        else:
            write_solution(target, self.routes, self.cost)

    def __str__(self) -> str:
        routes = f"{len(self.routes)} routes, " if self.instance.problem != "tsp" else ""
        gap = "" if self.gap is None else f", gap {self.gap:.2f} %"
        return (
            f"{self.instance.name}: n={self.instance.n}, {routes}length {self.instance.format(self.cost)} "
            f"({self.instance.distances}){gap}, {self.seconds:.2f} s, {self.method}"
        )


def _whole_routes(routes: Sequence[Any], name: str) -> list[list[int]]:
    try:
        return [[int(customer) for customer in route] for route in routes]
    except (TypeError, ValueError):
        raise NeurouteError(f"{name}: a list of routes is expected, each a list of customers from 1 on") from None
