"""Solvers for users: which can solve an instance, and their answers, checked.

Each ends by its own budget, which its module states, or after so many seconds; `QUICK` ones by themselves.
Files are solved in their own distances, rounded as the libraries round them; arrays in distances that are not rounded.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, cast

import numpy as np

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.datasets.explicit import MatrixInstance
from neuroute.datasets.problem_spec import SPEC
from neuroute.datasets.solomon import SolomonInstance
from neuroute.datasets.tsplib import TsplibInstance, all_distances, format_tsplib
from neuroute.datasets.vrplib import VrplibInstance
from neuroute.problems.tsp import check_coordinates
from neuroute.problems.vrp import Vrp, from_routes
from neuroute.problems.vrp_servable import check_instances
from neuroute.problems.vrp_variants import SWITCHES, Variant
from neuroute.solvers import concorde, limited, lkh, lkh3, matrix
from neuroute.solvers.base import Solver, check_size
from neuroute.solvers.registry import SOLVERS, get
from neuroute.user.instances import File
from neuroute.user.vrp_data import in_unit_square

SolverInput = np.ndarray | Vrp | File | MatrixInstance  # as `Instance.for_solvers` returns it

QUICK = ("insertion", "nearest", "savings")  # families that take no time, and compile when first called
CPU_CLOCKED = ("concorde", "hgs", "lkh", "lkh3")  # families whose limit is in processor time
SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])


@dataclass(frozen=True)
class Answer:
    """What a solver found: a tour (n,), or customers and flags (2, V)."""

    solver: str  # or, where it had none, what stands in: "savings for concorde"
    solution: np.ndarray
    seconds: float  # of the solver, without what it loads and compiles first
    note: str = ""  # how it was cut short, in words


def available(problem: str, ways: MatrixInstance | None = None) -> list[str]:
    """List the installed solvers of `tsp`, `cvrp`, one of the 16 VRPs by name (`OVRPTW`), or `vrp`: all of these.

    ways: list those of an instance in distances.  Raises NeurouteError for an unknown problem.
    """
    problems = ("tsp", "vrp", *(name.lower() for name in SWITCHES))
    if problem.lower() not in problems:
        meant = did_you_mean(near(problem.lower(), problems)) or ";"
        raise NeurouteError(f"no routing problem '{problem}'{meant} there are: {', '.join(problems)}")
    able = [name for name in _able(problem) if ways is None or _takes_ways(name, ways)]
    return [name for name in able if _is_installed(name)]


def check_solver(name: str, instance: SolverInput) -> Solver:
    """Return an installed solver of an instance.

    Raises NeurouteError, naming those that serve, if it is unknown, missing or not made for the problem, or if memory
    does not hold the distances of so many nodes.
    """
    problem, nodes, ways = _problem(instance)
    if name not in _able(problem) or (ways is not None and not _takes_ways(name, ways)):
        what = f"{problem.upper()}{' in distances' if ways is not None else ''}"
        what = f"asymmetric {what}" if ways is not None and not ways.symmetric else what
        able = available(problem, ways)
        names = ", ".join(n for n in able if n == _family(n) or _family(n) not in able) or "none is installed"
        if name not in SOLVERS:
            meant = did_you_mean(near(name, SOLVERS)) or ";"
            raise NeurouteError(f"no solver '{name}'{meant} of the {what} there are: {names}")
        raise NeurouteError(f"{name} does not solve the {what}; take one of: {names}")
    solver = get(name)
    solver.version()
    check_size(name, nodes)
    return solver


def solve_with(name: str, instance: SolverInput, seconds: float | None = None, seed: int = 0) -> Answer:
    """Solve coordinates (n, 2) or (1, n, 2) as a TSP, a batch of one `Vrp` in any units, or what a file holds.

    seconds: bounds the search, None: the solver's own budget; hgs, ortools and pyvrp use all of it, hgs in CPU time,
    and lkh ends with the trial that it is at.  Raises NeurouteError, before anything is solved, for what `check_solver`
    and `check_seconds` refuse and an instance that is none; and if the solver finds no solution.

    In a limited process the time is for what is prepared, too, and is wall-clock time whatever the solver counts.
    """
    check_seconds(seconds)
    solver = check_solver(name, instance)
    warm_up(name, _problem(instance)[0])
    began = time.perf_counter()
    run, valid = _prepare(solver, instance, seed)
    if _family(name) in ("insertion", "nearest"):
        seconds = None
    if seconds is not None and limited.folder() is not None:
        seconds = max(seconds - (time.perf_counter() - began), seconds / 10)
        seconds = limited.slowed(seconds) if _family(name) in CPU_CLOCKED else seconds
    began = time.perf_counter()
    solution = run(seconds)
    took = time.perf_counter() - began
    if not valid(solution):
        raise NeurouteError(f"{name} returned no solution of this instance; take another solver, or reinstall it")
    return Answer(name, solution, took)


def check_seconds(seconds: float | None) -> None:
    """Raises NeurouteError for a time that is none."""
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        raise NeurouteError(f"seconds: {seconds:g} is no time for a search; give a number above 0, or leave it out")


def _problem(instance: SolverInput) -> tuple[str, int, MatrixInstance | None]:
    """Return the problem, the number of nodes, and the instance itself if it is in distances."""
    if isinstance(instance, MatrixInstance):
        return instance.problem, len(instance.ways), instance
    if isinstance(instance, Vrp):
        return str(instance.variant).replace("CVRP", "cvrp"), instance.customers + 1, None
    if isinstance(instance, np.ndarray):
        return "tsp", instance.shape[-2] if instance.ndim > 1 else 0, None
    problem = {TsplibInstance: "tsp", VrplibInstance: "cvrp", SolomonInstance: "VRPTW"}[type(instance)]
    return problem, len(instance.coords), None


# What solves, within so many seconds, and whether it did.
Prepared = tuple[Callable[[float | None], np.ndarray], Callable[[np.ndarray], bool]]


def _prepare(solver: Solver, instance: SolverInput, seed: int) -> Prepared:
    family = _family(solver.name)
    if isinstance(instance, TsplibInstance):
        n = len(instance.coords)
        if family in ("concorde", "lkh", "lkh3"):  # which know TSPLIB's distances
            text = format_tsplib(instance)
            if family == "concorde":
                from neuroute.solvers import nearest  # which compiles when it is imported

                length = instance.length(nearest.solve(instance.coords, 0))
                run = partial(concorde.solve_text, text, n, seed, length=length)
            else:
                largest = float(np.hypot(*np.ptp(instance.coords, axis=0)))
                of_text = lkh.solve_text if family == "lkh" else lkh3.tour_of_text
                run = partial(of_text, text, n, seed, largest=largest, **_settings(solver.solve))
            return run, partial(_is_tour, n)
        if family not in matrix.SOLVERS or (family in QUICK and instance.edge_type != "GEO"):
            # nearer in the plane is nearer by the others' distances
            return _prepare_plane(solver, instance.coords, seed)
        instance = MatrixInstance(instance.name, all_distances(instance.coords, instance.edge_type))
        return _prepare_ways(solver, instance, None, seed)
    if isinstance(instance, MatrixInstance):
        return _prepare_ways(solver, instance, None, seed)
    if isinstance(instance, SolomonInstance):
        return _prepare_plane(solver, instance.unscaled(), seed)
    if isinstance(instance, VrplibInstance):
        if instance.edge_type == "EXACT_2D" or family in (*QUICK, "lkh3") or family not in matrix.SOLVERS:
            plane = Vrp(instance.coords[None], instance.demand[None], np.array([instance.capacity]))
            return _prepare_plane(solver, plane, seed)
        ways = all_distances(instance.coords, instance.edge_type)
        whole = MatrixInstance(instance.name, ways, instance.demand, instance.capacity)
        return _prepare_ways(solver, whole, instance.coords, seed)
    return _prepare_plane(solver, instance, seed)


def _prepare_plane(solver: Solver, instance: np.ndarray | Vrp, seed: int) -> Prepared:
    """Solve in distances that are not rounded but to the solver's grid."""
    if isinstance(instance, Vrp):
        check_instances(instance, "the instance")
        kind, inputs = "vrp", cast(Any, in_unit_square(instance, np.float64))
    else:
        check_coordinates(instance, "the instance")
        kind, inputs = "tsp", instance.reshape(1, *instance.shape[-2:]).astype(np.float64)
    spec = SPEC.of(kind)
    parts = [part for part in ("solve", "solve_cvrp", "solve_vrp") if getattr(solver, part) is not None]

    def run(seconds: float | None) -> np.ndarray:
        timed = solver if seconds is None else solver.variant(solver.name, *parts, seconds=seconds)
        solution: np.ndarray = spec.solve(timed, inputs, seed)
        return solution

    return run, lambda solution: bool(spec.valid(inputs, solution[None])[0])


def _prepare_ways(solver: Solver, instance: MatrixInstance, coords: np.ndarray | None, seed: int) -> Prepared:
    """Solve in whole distances; coords (n, 2), if known, help some solvers."""
    by = matrix.SOLVERS[_family(solver.name)]
    if instance.demand is None or instance.capacity is None:
        n = len(instance.ways)
        return partial(by.tour, instance.ways, seed, **_settings(solver.solve)), partial(_is_tour, n)
    assert by.routes is not None
    settings = _settings(solver.solve_cvrp) | ({"coords": coords} if by.takes_coords else {})
    routes = partial(by.routes, instance.ways, instance.demand, instance.capacity, seed, **settings)
    return lambda seconds: from_routes(routes(seconds)), lambda solution: instance.length(solution) >= 0  # or it raises


def _settings(function: Any) -> dict[str, Any]:
    """Return what a variant of a solver fixes."""
    return dict(function.keywords) if isinstance(function, partial) else {}


def _is_tour(n: int, tour: np.ndarray) -> bool:
    return bool((np.sort(tour) == np.arange(n)).all()) if tour.shape == (n,) else False


def _family(name: str) -> str:
    return name.partition("-")[0]


def _able(problem: str) -> list[str]:
    """List the solvers, installed or not, that are made for a problem."""
    if problem == "tsp":
        return list(SOLVERS)
    variant = Variant("OVRPBLTW" if problem == "vrp" else problem.upper())
    return [name for name in SOLVERS if _is_made_for(get(name), variant)]


def _is_made_for(solver: Solver, variant: Variant) -> bool:
    if not any(variant.switches):
        return solver.solve_cvrp is not None or solver.solve_vrp is not None
    if variant.switches.backhaul:
        return solver.name == "ortools-network"  # the others keep to another rule than networks and `Instance.check`
    return solver.solve_vrp is not None and (_family(solver.name) != "lkh3" or variant in lkh3.TYPES)


def _takes_ways(name: str, instance: MatrixInstance) -> bool:
    by = matrix.SOLVERS.get(_family(name))
    if by is None or not (by.asymmetric or instance.symmetric):
        return False
    return instance.problem == "tsp" or by.routes is not None


def _is_installed(name: str) -> bool:
    try:
        get(name).version()
    except NeurouteError:
        return False
    return True


@cache
def warm_up(name: str, problem: str) -> None:
    """Load a solver, and compile what it has for a problem: that is not an instance's time."""
    solver = get(name)
    if _family(name) in QUICK and problem != "tsp" and solver.solve_cvrp is not None:
        solver.solve_cvrp(SQUARE, np.array([0, 1, 1, 1]), 3, 0)
    else:
        solver.solve(SQUARE, 0)
