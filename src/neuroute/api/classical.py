"""Solvers for users: which can solve an instance, and their answers, checked.

Each ends by its own budget, which its module states, or after so many seconds; `QUICK` ones by themselves.
Files are solved in their own distances, rounded as the libraries round them; arrays in distances that are not rounded.
"""

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, cast

import numpy as np

from neuroute.api.solution import Solution
from neuroute.core import limited
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.datasets.problem_spec import SPEC
from neuroute.problems.instances.distances import all_distances, fills_unit_square, in_unit_square, scale_points
from neuroute.problems.instances.instance import Instance
from neuroute.problems.instances.tsplib import format_instance
from neuroute.problems.registry import entries
from neuroute.problems.tsp import check_coordinates
from neuroute.problems.vrp import SWITCHES, Variant, check_instances, from_routes
from neuroute.solvers import concorde, lkh, lkh3, matrix
from neuroute.solvers.base import Solver, check_size
from neuroute.solvers.registry import SOLVERS, entry, get, is_installed

QUICK = ("insertion", "nearest", "savings")  # families that take no time, and compile when first called
SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])


def available(problem: str, instance: Instance | None = None) -> list[str]:
    """List the installed solvers of `tsp`, `cvrp`, one of the 16 VRPs by name (`OVRPTW`), or `vrp`: all of these.

    instance: list those that take it, if it is in distances.  Raises NeurouteError for an unknown problem.
    """
    problems = ("tsp", "vrp", *(name.lower() for name in SWITCHES))
    if problem.lower() not in problems:
        meant = did_you_mean(near(problem.lower(), problems)) or ";"
        raise NeurouteError(f"no routing problem '{problem}'{meant} there are: {', '.join(problems)}")
    able = [name for name in _able(problem) if instance is None or _takes_ways(name, instance)]
    return [name for name in able if is_installed(name)]


def known() -> list[str]:
    """Return the names of all solvers, installed or not."""
    return list(SOLVERS)


def version(name: str) -> str:
    """Return the version of a solver.  Raises NeurouteError, saying how to get it, where it is not installed."""
    return get(name).version()


def definitions(name: str) -> tuple[str, ...]:
    """Return the definitions by which a solver answers for a TSP or a CVRP, for `neuroute.api.model.digest_of`."""
    return (f"{__name__}:solve_with", entry(name), *entries(("tsp", "vrp"), "spec"))


def without_presets(names: Sequence[str]) -> list[str]:
    """Return the solvers without the papers' settings of them, such as `hgs-long` beside `hgs`."""
    return [name for name in names if name == _family(name) or _family(name) not in names]


def check_solver(name: str, instance: Instance) -> Solver:
    """Return an installed solver of an instance.

    Raises NeurouteError, naming those that serve, if it is unknown, missing or not made for the problem, or if memory
    does not hold the distances of so many nodes.
    """
    problem, has_ways = problem_of(instance), instance.ways is not None
    if name not in _able(problem) or not _takes_ways(name, instance):
        what = f"{problem.upper()}{' in distances' if has_ways else ''}"
        what = what if instance.is_symmetric else f"asymmetric {what}"
        names = ", ".join(without_presets(available(problem, instance))) or "none is installed"
        if name not in SOLVERS:
            meant = did_you_mean(near(name, ("network", *SOLVERS))) or ";"
            raise NeurouteError(f"no solver '{name}'{meant} solvers of the {what}: {names}")
        raise NeurouteError(f"{name} does not solve the {what}; take one of: {names}")
    solver = get(name)
    solver.version()
    check_size(name, instance.nodes)
    if _family(name) == "lkh3":
        lkh3.check_nodes(instance.nodes)
    return solver


def solve_with(name: str, instance: Instance, seconds: float | None = None, seed: int = 0) -> Solution:
    """Solve an instance in its own distances, rounded as its library rounds them.

    Its seconds are of the solver, without what it loads and compiles first.

    seconds: bounds the search, None: the solver's own budget; hgs, ortools and pyvrp use all of it, hgs in CPU time,
    and lkh ends with the trial that it is at.  Raises NeurouteError, before anything is solved, for what `check_solver`
    and `check_seconds` refuse and an instance that is none; and if the solver finds no solution.

    A limited process says when it is `ready`, and what is `found` on the way, where the solver tells.
    """
    check_seconds(seconds)
    solver = check_solver(name, instance)
    warm_up(name, problem_of(instance))
    run = _prepare(solver, instance, seed)
    limited.say("ready")
    began = time.perf_counter()
    solution = run(None if _family(name) in ("insertion", "nearest") else seconds)
    took = time.perf_counter() - began
    try:
        return Solution(instance, solution, name, took)
    except NeurouteError:
        raise NeurouteError(
            f"{name} returned no solution of this instance; take another solver, or reinstall it"
        ) from None


def describe_search(name: str, seed: int) -> str:
    """Return how often a solver searches an instance, and by which seed: on another, its answer may be another."""
    runs = int(_settings(get(name).solve).get("runs", 1))
    return f"{runs} run{'s' * (runs > 1)}, seed {seed}"


def check_seconds(seconds: float | None) -> None:
    """Raises NeurouteError for a time that is none."""
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        raise NeurouteError(f"seconds: {seconds:g} is no time for a search; give a number above 0, or leave it out")


def problem_of(instance: Instance) -> str:
    """Return the problem as `available` takes it."""
    return instance.problem if instance.problem != "vrp" else instance.variant.removeprefix("A").replace("CVRP", "cvrp")


def _prepare(solver: Solver, instance: Instance, seed: int) -> Callable[[float | None], np.ndarray]:
    """Return what solves within so many seconds."""
    family, settings = _family(solver.name), _settings(solver.solve)
    if instance.ways is not None:
        return _prepare_ways(solver, instance, instance.ways, seed)
    if instance.distances == "EXACT_2D":
        return _prepare_plane(solver, instance, seed)
    if instance.problem == "tsp" and family in ("concorde", "lkh", "lkh3"):  # which know TSPLIB's distances
        if family == "concorde":
            from neuroute.solvers import nearest  # which compiles when it is imported

            concorde.check_length(instance.length(nearest.solve(instance.coords, 0)))
            return partial(concorde.solve_text, format_instance(instance), instance.n, seed)
        if instance.distances != "GEO":  # far from the origin LKH loses digits; what is too large for it is scaled down
            points = instance.coords - instance.coords.min(axis=0)
            points *= min(1.0, lkh.MOST / float(np.hypot(*points.max(axis=0))))
            instance = replace(instance, points=points)
        largest = float(np.hypot(*np.ptp(instance.coords, axis=0)))
        of_text = lkh.solve_text if family == "lkh" else lkh3.tour_of_text
        return partial(of_text, format_instance(instance), instance.n, seed, largest=largest, **settings)
    # nearer in the plane is nearer by the others' distances
    if family not in matrix.SOLVERS or family == "lkh3" or (family in QUICK and instance.distances != "GEO"):
        return _prepare_plane(solver, instance, seed)
    return _prepare_ways(solver, instance, all_distances(instance.coords, instance.distances), seed)


def _prepare_plane(solver: Solver, instance: Instance, seed: int) -> Callable[[float | None], np.ndarray]:
    """Solve in distances that are not rounded but to the solver's grid."""
    inputs: Any
    if instance.problem == "tsp":
        check_coordinates(instance.coords, "the instance")
        fills = fills_unit_square(instance.coords)
        kind, inputs = "tsp", (instance.coords if fills else scale_points(instance.coords))[None]
    else:
        check_instances(instance.vrp, "the instance")
        kind, inputs = "vrp", in_unit_square(instance.vrp, np.float64)
    parts = [part for part in ("solve", "solve_cvrp", "solve_vrp") if getattr(solver, part) is not None]
    spec = SPEC.of(kind)  # which loads what the plan needs: no time of the search

    def run(seconds: float | None) -> np.ndarray:
        timed = solver if seconds is None else solver.variant(solver.name, *parts, seconds=seconds)
        solution: np.ndarray = spec.solve(timed, inputs, seed)
        return solution

    return run


def _prepare_ways(
    solver: Solver, instance: Instance, ways: np.ndarray, seed: int
) -> Callable[[float | None], np.ndarray]:
    """Solve in whole distances (n, n); coordinates, if known, help some solvers with vehicles."""
    by = matrix.SOLVERS[_family(solver.name)]
    if instance.demand is None:
        return partial(by.tour, ways, seed, **_settings(solver.solve))
    assert by.routes is not None
    settings = _settings(solver.solve_cvrp or solver.solve_vrp)
    settings |= {"coords": instance.points} if by.takes_coords else {}
    settings |= {"windows": instance.windows, "service": instance.service} if instance.windows is not None else {}
    routes = partial(by.routes, ways, instance.demand, instance.capacity, seed, **settings)
    return lambda seconds: from_routes(routes(seconds))


def _settings(function: Any) -> dict[str, Any]:
    """Return what a variant of a solver fixes."""
    return dict(function.keywords) if isinstance(function, partial) else {}


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


def _takes_ways(name: str, instance: Instance) -> bool:
    """Whether a solver takes the distances of an instance, if it is in distances."""
    if instance.ways is None:
        return True
    by = matrix.SOLVERS.get(_family(name))
    if by is None or not (by.asymmetric or instance.is_symmetric):
        return False
    return instance.problem == "tsp" or (by.routes is not None and (instance.windows is None or by.takes_windows))


@cache
def warm_up(name: str, problem: str) -> None:
    """Load a solver, and compile what it has for a problem: that is not an instance's time."""
    if _family(name) in QUICK:
        _load_compiler()
    solver = get(name)
    if _family(name) in QUICK and problem != "tsp" and solver.solve_cvrp is not None:
        solver.solve_cvrp(SQUARE, np.array([0, 1, 1, 1]), 3, 0)
    else:
        solver.solve(SQUARE, 0)


def _load_compiler() -> None:
    """Load numba without scipy's linear algebra, which nothing here calls: a third of the time that this takes."""
    blas = "scipy.linalg.cython_blas"
    if blas in sys.modules:
        return
    sys.modules[blas] = cast(Any, None)  # it looks whether this can be imported
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        del sys.modules[blas]
