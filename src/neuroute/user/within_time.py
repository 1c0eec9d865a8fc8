"""A user's searches end by the clock and at Ctrl-C: they run in processes of their own, where constructions do, too.

Native code hears neither, and code that is compiled at its first call loses a Ctrl-C.
"""

import math
import os
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from neuroute.core.errors import Interrupted, NeurouteError
from neuroute.core.files import write_whole
from neuroute.instances.instance import Instance
from neuroute.instances.unit_square import in_unit_square
from neuroute.problems.vrp import angle_order, from_routes
from neuroute.solvers import limited, lkh, lkh3
from neuroute.user import classical
from neuroute.user.classical import QUICK, available, check_seconds, check_solver, solve_with
from neuroute.user.solution import Solution

CONSTRUCTIONS = {"tsp": ("savings", "insertion"), "cvrp": ("savings", "insertion-angle")}  # quick to compile first
BUILT = ".built.npy"  # in the folder of a limited process: what a construction made
TINY_S = 1e-9
BUILD_SHARE = 1 / 10  # of the time, after which constructions are tried no further
BUILD_LIMIT = 1 / 2  # of the time, after which the one at work is ended if another is there
GRACE_S = 0.25  # to answer in, when a search is asked to end
SPARE_S = 0.4  # that a construction is waited for, where a search has nothing
LATEST = 0.1, 0.6  # that a construction asked for by name may be late: a share of the time, and seconds
MANY = 500  # stops of a tour, from which on a first construction is waited for
LOOK_S = 0.02  # between two looks at what is built
LATE = 0.02, 0.1  # that a search may be before it is asked to end: a share of its time, and seconds


class _Searches(threading.local):
    """The process of a thread's searches, by the process that has the thread: others would share its pipes."""

    def __init__(self) -> None:
        self.of = defaultdict[int, limited.Process](limited.Process)


_searches = _Searches()


def solve_within(name: str, instance: Instance, seconds: float | None = None, seed: int = 0) -> Solution:
    """Do what `solve_with` does, in a process of its own, which ends soon after so many seconds, whatever it does.

    Where the solver has nothing by then, what `construct` finds stands in, and the `note` says so.  Raises Interrupted,
    with such a solution, at Ctrl-C, and NeurouteError as `solve_with` does.
    """
    check_seconds(seconds)
    check_solver(name, instance)
    process, began = _searches.of[os.getpid()], time.perf_counter()
    # A construction ends by itself: what a call may be late is for loading its compiler, which takes longer than it.
    is_quick = name.partition("-")[0] in QUICK
    ends = seconds * (1 + LATEST[0]) + LATEST[1] if is_quick and seconds is not None else seconds
    (process.folder / lkh.BEST).unlink(missing_ok=True)
    with limited.Process() as builder:
        build = cache(partial(builder.begin, f"{__name__}:construct", instance))  # once
        try:
            process.call(
                f"{classical.__name__}:warm_up", ends, name, instance.problem, meanwhile=None if is_quick else build
            )
            limit = None
            if seconds is not None and ends is not None:
                passed = time.perf_counter() - began
                limit, seconds = max(ends - passed, ends / 10), max(seconds - passed, seconds / 10)
                limit = limit if is_quick else limit * (1 + LATE[0]) + LATE[1]
            what = (f"{classical.__name__}:solve_with", limit, name, instance, seconds, seed)
            solution: Solution = process.call(*what, grace=GRACE_S, meanwhile=build)
            return replace(solution, instance=instance)
        except TimeoutError:
            return _instead(name, instance, time.perf_counter() - began, process.folder, builder)
        except KeyboardInterrupt as stop:
            passed = time.perf_counter() - began
            answer = getattr(stop, "best", None)  # of Interrupted
            answer = answer or _instead(name, instance, passed, process.folder, builder)
            note = f"interrupted after {passed:.1f} s{'; ' if answer.note else ''}{answer.note}"
            raise Interrupted(replace(answer, note=note, instance=instance)) from None


class Construction:
    """The best construction of an instance for a search of so many seconds, begun at once in a process of its own.

    There is one such process: the last one begun is the one to ask for.
    """

    def __init__(self, instance: Instance, seconds: float, seed: int) -> None:
        self._instance, self._process, self._began = instance, _searches.of[os.getpid()], time.perf_counter()
        for path in self._process.folder.glob(f"*{BUILT}"):
            path.unlink()
        self._process.begin(f"{__name__}:construct", instance, seconds * BUILD_SHARE, seed)

    def answer(self, seconds: float) -> Solution:
        """Return it where it is there in half of so many seconds; else the best that is there by then.

        Where there is none, what takes no time stands in; but of the CVRP, and of many stops, the first is waited for
        nearly all the time, as networks seldom build as good a one sooner: a tenth is left to them.  Raises
        NeurouteError as `construct` does.
        """
        deadline = time.perf_counter() + seconds * (1 - BUILD_SHARE)
        waits = self._instance.problem == "cvrp" or self._instance.n > MANY
        if not self._process.wait(seconds * BUILD_LIMIT) and waits:
            while not self._is_built and not self._process.wait(LOOK_S) and time.perf_counter() < deadline:
                pass
        try:
            built: Solution = self._process.answer(0.0)
        except TimeoutError:
            return self.so_far()
        return replace(built, instance=self._instance, seconds=time.perf_counter() - self._began)

    def so_far(self) -> Solution:
        """Return the best of what is there, or what takes no time."""
        return _built(self._instance, self._process.folder, time.perf_counter() - self._began)

    @property
    def _is_built(self) -> bool:
        return any(self._process.folder.glob(f"*{BUILT}"))


def construct(instance: Instance, seconds: float = 0.0, seed: int = 0) -> Solution:
    """Return the shortest solution of those that are built at once: by insertion and savings, else to the nearest.

    After so many seconds savings try no further shape.  In a limited process each is left in its folder at once.
    Raises NeurouteError if there is none.
    """
    began, stops = time.perf_counter(), dict[str, np.ndarray]()

    def keep(name: str, solution: np.ndarray) -> None:
        stops[name] = solution
        if (folder := limited.folder()) is not None:
            write_whole(folder / f"{name}{BUILT}", lambda file: np.save(file, solution))

    if instance.problem == "vrp":
        from neuroute.solvers.nearest import vrp_solutions  # which compiles when it is imported

        keep("nearest", vrp_solutions(in_unit_square(instance.vrp, np.float64))[0])
    else:
        able = available(instance.problem, instance)
        names = [name for name in CONSTRUCTIONS[instance.problem] if name in able] or ["nearest"]
        for name in names:
            keep(name, solve_with(name, instance, seconds or TINY_S, seed).stops)
    best = min(stops, key=lambda each: instance.cost(stops[each]))
    return Solution(instance, stops[best], best, time.perf_counter() - began)


def _instead(name: str, instance: Instance, passed: float, folder: Path, builder: limited.Process) -> Solution:
    """Return what a killed search left in its folder, else what the builder has in its own."""
    if (nodes := lkh.read_tour(folder / lkh.BEST)) is not None:
        is_tour = instance.problem == "tsp"
        stops = np.array(nodes) - 1 if is_tour else from_routes(lkh3.routes_of(nodes, instance.n + 1))
        with suppress(NeurouteError):  # LKH writes, too, what breaks constraints less than all before
            return Solution(instance, stops, name, passed)
    if not any(builder.folder.glob(f"*{BUILT}")):
        builder.wait(SPARE_S)
    best = _built(instance, builder.folder, passed)
    note = f"by {best.method}, as {name} had found nothing in {passed:.1f} s"
    return replace(best, method=f"{best.method} for {name}", note=note)


def _built(instance: Instance, folder: Path, seconds: float) -> Solution:
    """Return the shortest solution that `construct` left in a folder so far, else one that takes no time."""
    stops = {path.name.removesuffix(BUILT): np.load(path) for path in folder.glob(f"*{BUILT}")}
    stops = stops or {"sweep": _sweep(instance)}
    best = min(stops, key=lambda each: instance.cost(stops[each]))
    return Solution(instance, stops[best], best, seconds)


def _sweep(instance: Instance) -> np.ndarray:
    """Return a tour (n,) up and down through strips of the plane, or routes (2, n) of customers by their angle.

    Where more than loads is to be kept to, each customer has a route.  In distances, nodes come as they are numbered.
    """
    coords = np.zeros((instance.nodes, 2)) if instance.points is None else instance.points
    if instance.demand is None:
        x, y = coords.T
        strips = (x - x.min()) / max(float(np.ptp(x)), TINY_S) * math.sqrt(instance.n / 2)
        return np.lexsort([np.where(strips.astype(int) % 2, -y, y), strips.astype(int)])
    assert instance.capacity is not None
    routes, load = list[list[int]](), 0
    for customer in angle_order(coords).tolist():
        load += int(instance.demand[customer])
        if not routes or load > instance.capacity or instance.problem == "vrp":
            routes.append([])
            load = int(instance.demand[customer])
        routes[-1].append(customer)
    return from_routes(routes)
