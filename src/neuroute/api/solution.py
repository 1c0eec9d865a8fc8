"""A solution of one instance, which is checked when it is made."""

import math
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.analysis.intervals import gap_pct
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_text
from neuroute.core.lazy import pd
from neuroute.core.text import html_table
from neuroute.problems.instances.distances import distances
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.tsplib import format_solution, format_tour
from neuroute.problems.vrp import to_routes

if TYPE_CHECKING:
    from neuroute.problems.instances.drawing import Drawing

ENDINGS = {"tsp": ".tour", "cvrp": ".sol", "vrp": ".sol"}  # of solution files


@dataclass(frozen=True, eq=False)
class Solution:
    """A solution of an instance, which is checked when it is made.

    Attributes:
        instance: what it solves.
        stops: int64; a tour (n,) of nodes from 0, or (2, n): the customers from 1 in visiting order, and 1 for each
            that is reached through the depot.
        method: what made it: a network's name, or a solver's.
        seconds: wall-clock time of the search.
        startup_s: wall-clock time before it: importing, loading, starting a process, compiling.
        wall_s: wall-clock time of the whole call.
        trace: (seconds, cost) of each improvement, where the method tells.
        basis: what else than its own first solution a network went on from, the cost of that, and of its own if it
            built one: ("savings", 812.0, None).
        note: what else there is to say of how it came about, such as that the search was interrupted.
        fallback: why it is not by the method that was asked for: `method` stands in for it; empty where it is.

    Raises:
        NeurouteError: if it is no solution of the instance.
    """

    instance: Instance
    stops: np.ndarray
    method: str = ""
    seconds: float = 0.0
    trace: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    basis: tuple[str, float, float | None] | None = None
    note: str = ""
    startup_s: float = 0.0
    wall_s: float = 0.0
    fallback: str = ""

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

    def to_frame(self) -> "pd.DataFrame":
        """Return a row for each stop, in visiting order.

        `node` (a TSP's from 0, customers from 1; the depot, 0, ends routes that lead back) and `driven` since the
        route's start, in the instance's distances, not rounded; with vehicles the `route`, from 0.  With time windows
        `arrival`, `start` of service and `departure`: a vehicle leaves the depot at 0, drives at speed 1, and waits
        for a window to open.

        Raises:
            NeurouteError: for an instance in distances, which has no coordinates.
        """
        instance, rows = self.instance, list[dict[str, Any]]()
        is_tsp = instance.problem == "tsp"
        for number, route in enumerate([self.tour] if is_tsp else self.routes):
            at, driven, clock = (route[0] if is_tsp else 0), 0.0, 0.0
            for node in route if is_tsp or instance.open else [*route, 0]:
                ends = instance.coords[[at]], instance.coords[[node]]
                way = float(distances(*ends, instance.distances, rounded=False)[0])
                at, driven = node, driven + way
                row = {"node": node, "driven": driven} if is_tsp else {"route": number, "node": node, "driven": driven}
                if instance.windows is not None and instance.service is not None:
                    start = max(clock + way, float(instance.windows[node, 0]))
                    row |= {"arrival": clock + way, "start": start}
                    clock = start + float(instance.service[node])
                    row["departure"] = clock
                rows.append(row)
        return pd.DataFrame(rows)

    def _repr_html_(self) -> str:
        return html_table(str(self), self.to_frame()) if self.instance.points is not None else f"<p>{escape(str(self))}"

    @property
    def origin(self) -> str:
        """What it went on from, in words, where that is not the network's own first solution; and how it ended."""
        note = self.note and f", {self.note}"
        if self.basis is None:
            return note
        name, cost, own_cost = self.basis
        of_network = "" if own_cost is None else f"the network's own: {self.instance.format(own_cost)}"
        if self.cost < cost:
            return f", improved from {name} ({self.instance.format(cost)}{of_network and '; '}{of_network}){note}"
        return f", by {name}, which the network did not shorten{of_network and f' ({of_network})'}{note}"

    def check(self) -> None:
        """Check that it solves the instance.

        Raises:
            NeurouteError: if it does not.
        """
        self.instance.check(self.stops)

    def plot(self, path: str | Path | None = None, title: str | None = None) -> "Drawing":
        """Draw it (see `Instance.plot`).

        Args:
            path: a file to write (.svg, .pdf, .png); None: none.
            title: above the drawing; None: name, size and length.
        """
        return self.instance.plot(self, path, title)

    def save(self, path: str | Path) -> None:
        """Write it: a TSP's as TSPLIB's .tour, others as VRPLIB's .sol.

        Raises:
            NeurouteError: for another ending, or if the file cannot be written.
        """
        target, ending = Path(path), ENDINGS[self.instance.problem]
        if target.suffix != ending:
            raise NeurouteError(f"{target}: a solution of {self.instance.name} is a file that ends in {ending}")
        if self.instance.problem == "tsp":
            write_text(target, format_tour(target.name, self.instance, self.stops))
        else:
            write_text(target, format_solution(self.routes, self.cost))

    def __repr__(self) -> str:
        return f"<Solution {self}>"

    def __str__(self) -> str:
        return describe(self)


def without(instance: Instance) -> str:
    """Return what of the instance's file was left out on request, in words."""
    return f", without {', '.join(instance.ignored)}" if instance.ignored else ""


def describe(
    solution: Solution, before: float | None = None, yardstick: Solution | None = None, search: str = ""
) -> str:
    """Return a line on a solution, with the cost `before` it was improved, and its gap to another one of a `search`.

    Where another method stands in for the one that was asked for, a line before it begins with WARNING and says why.
    """
    instance = solution.instance
    routes = f"{len(solution.routes)} routes, " if instance.problem != "tsp" else ""
    was = "" if before is None else f", before {instance.format(before)}"
    gap = "" if solution.gap is None else f", gap {solution.gap:.2f} %"
    if yardstick is not None:
        to = f"{gap_pct(solution.cost, yardstick.cost):.2f} % to {yardstick.method}"
        how = f"{yardstick.seconds:.2f} s{search and f', {search}'}{yardstick.origin}"
        gap += f", {to} ({instance.format(yardstick.cost)} in {how})"
    startup = f" + {solution.startup_s:.1f} s to start" if solution.wall_s else ""
    return (
        f"{_warn(solution)}{'' if yardstick is None else _warn(yardstick)}"
        f"{instance.name}: n={instance.n}, {routes}length {instance.format(solution.cost)} ({instance.distances})"
        f"{without(instance)}{was}{gap}, {solution.seconds:.2f} s{startup}, {solution.method}{solution.origin}"
    )


def _warn(solution: Solution) -> str:
    return f"WARNING: {solution.fallback}; showing {solution.method} instead\n" if solution.fallback else ""


MOST = {"seed": 2**32 - 1, "threads": 1024}  # that all solvers, and torch, take


def check_numbers(memory_gb: float | None = None, **whole: int | None) -> None:
    """Raises NeurouteError for a seed below 0, threads below 1, one that is too large, and memory that is no number."""
    for name, value in whole.items():
        least = int(name == "threads")
        if value is not None and not (isinstance(value, int | np.integer) and least <= value <= MOST[name]):
            raise NeurouteError(f"{name}: {value}: give a whole number from {least} to {MOST[name]:,}")
    if memory_gb is not None and not 0 < memory_gb < math.inf:
        raise NeurouteError(f"memory_gb: {memory_gb:g}: give a number above 0, or leave it out")


PATIENCE_S = 60.0  # that a first solution is waited for beyond the time
TELL_S = 0.1  # between two calls of `follow` where nothing gets better


class Best:
    """The shortest solution so far, in the instance's own distances; it outlives an interrupted search.

    Attributes:
        instance: what is solved.
        stops: of the solution (see `Solution.stops`); None before there is one.
        cost: its cost; infinite before there is one.
        iterations: solutions that the search has made so far.
        trace: (seconds, cost) of each that was the shortest.
        startup_s: what came before the search.
    """

    def __init__(self, instance: Instance, follow: Callable[["Best"], object] | None = None) -> None:
        self.instance, self.cost, self.iterations, self.startup_s = instance, float("inf"), 0, 0.0
        self.stops: np.ndarray | None = None
        self.trace: tuple[tuple[float, float], ...] = ()
        self._follow, self._began, self._told = follow, time.perf_counter(), float("-inf")

    def start_clock(self) -> None:
        """Start the clock of the search: what was done before was loading."""
        self.startup_s += self.seconds
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall-clock time since the search began."""
        return time.perf_counter() - self._began

    @property
    def times(self) -> dict[str, Any]:
        """As `Solution` has them."""
        seconds = self.seconds
        return {"seconds": seconds, "startup_s": self.startup_s, "wall_s": self.startup_s + seconds}

    def solution(self, method: str, **more: Any) -> Solution:
        """Return it, with what else a `Solution` has.  There has to be one."""
        assert self.stops is not None
        return Solution(self.instance, self.stops, method, trace=self.trace, **self.times, **more)

    def offer(self, stops: np.ndarray) -> float:
        """Take a solution if it is shorter, and return its cost.  Raises NeurouteError if it is none."""
        cost = self.instance.cost(stops)
        if self.stops is None or cost < self.cost:
            self.stops, self.cost, self._told = stops, cost, float("-inf")
            self.trace += ((self.seconds, cost),)
        return cost

    def tell(self) -> None:
        """Let whoever follows see how far it is."""
        if self._follow is not None and self.stops is not None and self.seconds - self._told >= TELL_S:
            self._told = self.seconds
            self._follow(self)


Found = Generator[np.ndarray | None, None, None]  # a search, which yields None where it has nothing new


def keep_best(search: Found, best: Best, seconds: float | None = None) -> None:
    """Offer the solutions of a search to `best`, until its time is over, but not before it has brought one.

    One that brings nothing is given up PATIENCE_S later.
    """
    with closing(search):
        for stops in search:
            if stops is not None:
                best.offer(stops)
                best.iterations += 1
            best.tell()
            if seconds is not None and best.seconds >= seconds + (0.0 if best.iterations else PATIENCE_S):
                return
