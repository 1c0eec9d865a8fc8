"""One instance, in its own units: what users of `import neuroute` hold."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.text import printable
from neuroute.datasets.benchmarks import Library, library
from neuroute.datasets.explicit import MatrixInstance, matrix_instance
from neuroute.datasets.libraries import cut_cost
from neuroute.datasets.solomon import SolomonInstance
from neuroute.datasets.tsplib import TsplibInstance
from neuroute.datasets.vrplib import VrplibInstance, check_served
from neuroute.problems.tsp import is_permutation, tour_length
from neuroute.problems.vrp import Vrp, from_routes, to_routes
from neuroute.problems.vrp import lengths as vrp_lengths
from neuroute.problems.vrp_checker import fault
from neuroute.user.arrays import parse_arrays
from neuroute.user.instances import File, Group
from neuroute.user.vrp_data import LATE

if TYPE_CHECKING:
    from neuroute.user.drawing import Drawing


LIBRARIES: dict[type, str] = {TsplibInstance: "tsplib", VrplibInstance: "cvrplib", SolomonInstance: "solomon"}


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem to solve: a TSP, a CVRP, or one of the 16 vehicle routing problems.

    Make one with `neuroute.load` (a file), `neuroute.generate` (random), `Instance.from_arrays` or, where there are no
    coordinates, `Instance.from_distances`.  Coordinates, costs and times are in the instance's own units.
    """

    content: Group | MatrixInstance  # a group of one

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
        arrays = {key: np.asarray(value)[None] for key, value in fields.items() if value is not None}
        if open is not None:
            arrays["open"] = np.asarray(open)
        group = parse_arrays(Path(name or "arrays"), {"coords": np.asarray(coords)[None], **arrays}).groups[0]
        variant = group.problem if group.vrp is None else str(group.vrp.variant).lower()
        return cls(replace(group, name=name or f"{variant}{group.n}"))

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
        return cls(matrix_instance(distances, demand, capacity, name))

    def __repr__(self) -> str:
        return f"<Instance {self.name}: {self.variant}, n={self.n}, {self.distances}>"

    @property
    def group(self) -> Group:
        """A group of one.  Raises NeurouteError for an instance in distances."""
        if isinstance(self.content, MatrixInstance):
            raise NeurouteError(f"{self.name}: holds distances, not coordinates, which networks and drawings need")
        return self.content

    @property
    def matrix(self) -> MatrixInstance | None:
        """The distances of an instance without coordinates."""
        return self.content if isinstance(self.content, MatrixInstance) else None

    @property
    def name(self) -> str:
        if isinstance(self.content, Group) and self.content.file is not None:
            return printable(self.content.file.name)
        return self.content.name

    @property
    def problem(self) -> str:
        """`tsp`, `cvrp` or `vrp`."""
        return self.content.problem

    @property
    def variant(self) -> str:
        """`TSP`, or the name of the vehicle routing problem, such as `CVRP` or `OVRPTW`.

        Of distances that differ there and back, `ATSP` or `ACVRP`.
        """
        if self.matrix is not None:
            return f"{'' if self.matrix.symmetric else 'A'}{self.problem.upper()}"
        return "TSP" if self.problem == "tsp" else str(self.vrp.variant)

    @property
    def coords(self) -> np.ndarray:
        """float64 (n, 2); with vehicles (1 + n, 2), the depot first.  Raises NeurouteError where there are none."""
        coords: np.ndarray = self.group.coords[0]
        return coords

    @property
    def n(self) -> int:
        """How many nodes there are; with vehicles, how many customers."""
        return self.content.n

    @property
    def distances(self) -> str:
        """How distances are rounded, in TSPLIB's words: `EUC_2D`, `CEIL_2D`, `ATT`, `GEO`; `EXACT_2D`: not at all.

        `EXPLICIT`: they are given one by one.
        """
        if isinstance(self.content, MatrixInstance):
            return "EXPLICIT"
        return "EXACT_2D" if self.content.file is None else self.content.file.edge_type

    @property
    def best_known(self) -> float | None:
        """The least cost known, in the instance's own distances; None if no solution is known."""
        if isinstance(self.content, MatrixInstance) or self.content.reference is None:
            return None
        return float(self.content.reference[0])

    @property
    def vrp(self) -> Vrp:
        """Coordinates, demands, capacity and constraints, as a batch of one.  Raises NeurouteError for a TSP."""
        if self.problem == "tsp":
            raise NeurouteError(f"{self.name}: is a TSP, which has no vehicles; see `problem`")
        return self.group.cvrp(self.group.coords) if self.group.vrp is None else self.group.vrp

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems whose networks take this instance."""
        if self.matrix is not None:
            return ()
        return ("cvrp", "vrp") if self.problem == "cvrp" else (self.problem,)

    def inputs(self, problem: str) -> np.ndarray | Vrp:
        """Return the instance as networks of one of its `problems` take it, as a batch of one in the unit square."""
        if self._library is None:
            return self.group.inputs()
        inputs: np.ndarray | Vrp = self._library.inputs_for(problem)(self.group.file, False)
        return inputs

    def for_solvers(self) -> np.ndarray | Vrp | File | MatrixInstance:
        """Return the instance as solvers take it: what its file holds, else coordinates (n, 2) or a batch of one."""
        if isinstance(self.content, MatrixInstance):
            return self.content
        return self.content.file or (self.coords if self.problem == "tsp" else self.vrp)

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
        from neuroute.user.drawing import draw

        return draw(self, solution, path, title)

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
        solution = getattr(solution, "stops", solution)  # of a `Solution`
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
        if self.matrix is not None:
            return self.matrix.length(stops)
        file, vrp, scaled = self.group.file, self.group.vrp, self.group.seen
        if vrp is not None and scaled is not None:
            why = fault(scaled, 0, stops, "free start", LATE)  # solvers' are a little late, and begin with any load
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
        instance = VrplibInstance(self.name, "EXACT_2D", self.coords, self.vrp.demand[0], int(self.vrp.capacity[0]))
        instance.check(to_routes(stops), self.name)
        return instance.cost(to_routes(stops))


def _whole_routes(routes: Sequence[Any], name: str) -> list[list[int]]:
    try:
        return [[int(customer) for customer in route] for route in routes]
    except (TypeError, ValueError):
        raise NeurouteError(f"{name}: a list of routes is expected, each a list of customers from 1 on") from None
