"""Searches by solvers, and constructions, in processes of their own: they end by the clock and at Ctrl-C.

Native code hears neither, and code that is compiled at its first call loses a Ctrl-C.  The processes are kept for later
calls; what is loaded, started and compiled before a search is not of its time.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import numpy as np

from neuroute.api import classical
from neuroute.api.classical import QUICK, available, check_seconds, check_solver, solve_with
from neuroute.api.solution import Best, Found, Solution, check_numbers, keep_best
from neuroute.core import limited
from neuroute.core.errors import Interrupted, NeurouteError
from neuroute.problems.instances.distances import in_unit_square
from neuroute.problems.instances.instance import Instance
from neuroute.problems.vrp import from_routes, to_routes
from neuroute.solvers import lkh, lkh3, matrix, pyvrp
from neuroute.solvers.base import on_vrp_grid

CONSTRUCTIONS = {"tsp": ("savings", "insertion"), "cvrp": ("savings", "insertion-angle")}  # quick to compile first
TINY_S = 1e-9
MOST_DESCENT = 2000  # customers, whose local search takes 0.6 s
LOOK_S = 0.05  # between two looks at the clock, and at what LKH has left
LATE = 0.02, 0.1  # that a search may be before it is ended: a share of its time, and seconds


def solve_within(
    name: str,
    instance: Instance,
    seconds: float | None = None,
    seed: int = 0,
    follow: Callable[[Best], object] | None = None,
    stands_in: bool = True,
) -> Solution:
    """Do what `solve_with` does, for so many seconds from when the solver is ready; its best so far is the answer.

    It has a minute more for its first solution.  Where it has none by then, or crashes, the best construction is the
    answer, and its `fallback` says why; without `stands_in` that is an error.  Raises Interrupted, with the best so
    far or None, at Ctrl-C, and NeurouteError as `solve_with` does.
    """
    check_seconds(seconds)
    check_numbers(seed=seed)
    check_solver(name, instance)
    is_quick = name.partition("-")[0] in QUICK  # which end by themselves
    limit = None if seconds is None or is_quick else seconds * (1 + LATE[0]) + LATE[1]
    best, failure = Best(instance, follow), ""
    with limited.borrow() as process:
        try:
            keep_best(_search(process, name, instance, seconds, seed, best), best, limit)
        except limited.CrashedError as crash:
            failure = f"{name} crashed:{str(crash).partition(' died with')[2]}"
        except KeyboardInterrupt:
            note = f"interrupted after {best.seconds:.1f} s"
            raise Interrupted(None if best.stops is None else best.solution(name, note=note)) from None
    if best.stops is not None:
        first = best.trace[0][0]
        note = failure
        if seconds is not None and limit is not None and first > limit:
            note = f"its first solution took {first:.1f} s, more than the {seconds:g} asked for"
        return best.solution(name, note=note)
    failure = failure or f"{name} had no solution after {best.seconds:.1f} s"
    if not stands_in:
        raise NeurouteError(failure)
    with limited.borrow() as process:
        built: Solution = process.call(f"{__name__}:construct", None, instance)
    return replace(built, instance=instance, fallback=failure, **best.times)


def _search(
    process: limited.Process, name: str, instance: Instance, seconds: float | None, seed: int, best: Best
) -> Found:
    """Yield what a solver finds, as soon as it tells, and begin the clock when it is ready."""
    file, seen, is_tour = process.folder / lkh.BEST, 0.0, instance.problem == "tsp"
    file.unlink(missing_ok=True)
    process.submit(f"{classical.__name__}:solve_with", name, instance, seconds, seed)
    is_ready = False
    for message in process.messages(LOOK_S):
        kind, value = message or ("", cast(Any, None))
        if kind == "ready":
            best.start_clock()
            is_ready = True
        elif kind == "found" and is_ready:  # no more of what warms up
            yield np.array([0, *value[0]]) if is_tour else from_routes(value)
        elif kind == limited.ANSWER:
            yield value.stops
        elif file.exists() and file.stat().st_mtime != seen:
            seen = file.stat().st_mtime
            nodes = lkh.read_tour(file)
            with suppress(NeurouteError, ValueError):  # LKH writes, too, what breaks constraints less than all before
                if nodes is not None:
                    stops = np.array(nodes) - 1 if is_tour else from_routes(lkh3.routes_of(nodes, instance.n + 1))
                    instance.check(stops)
                    yield stops
        elif is_ready:
            yield None


def construct(instance: Instance, seconds: float = TINY_S, seed: int = 0) -> Solution:
    """Return the shorter of insertion and savings, or, where other constraints than loads are to be kept to, nearest.

    After so many seconds savings try no further shape.  Raises NeurouteError if there is none.
    """
    began = time.perf_counter()
    if instance.ways is not None and instance.windows is not None:
        how = (instance.demand, instance.capacity, seed, None, instance.windows, instance.service)
        stops = {"nearest": from_routes(matrix.nearest_routes(instance.ways, *cast(Any, how)))}
    elif instance.problem == "vrp":
        from neuroute.solvers.nearest import vrp_solutions  # which compiles when it is imported

        stops = {"nearest": vrp_solutions(in_unit_square(instance.vrp, np.float64))[0]}
    else:
        able = available(instance.problem, instance)
        names = [name for name in CONSTRUCTIONS[instance.problem] if name in able] or ["nearest"]
        stops = {name: solve_with(name, instance, seconds, seed).stops for name in names}
    best = min(stops, key=lambda each: instance.cost(stops[each]))
    return Solution(instance, stops[best], best, time.perf_counter() - began)


def start_of_search(instance: Instance, seconds: float = TINY_S, seed: int = 0) -> Solution:
    """Return a construction, that of a CVRP in the plane of up to 2,000 customers after one local search.

    Raises NeurouteError as `construct` does, and if PyVRP is missing.
    """
    began, built = time.perf_counter(), construct(instance, seconds, seed)
    if instance.problem != "cvrp" or instance.ways is not None or instance.n > MOST_DESCENT:
        return built
    grid = on_vrp_grid(in_unit_square(instance.vrp, np.float64))
    stops = from_routes(pyvrp.descend(grid, to_routes(built.stops), seed))
    if instance.cost(stops) >= built.cost:
        return built
    return Solution(instance, stops, f"{built.method} and local search", time.perf_counter() - began)
