"""The best solution so far of a search, and the one loop that ends a search when its time is over."""

import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

import numpy as np

from neuroute.api.solution import Solution
from neuroute.problems.instances.instance import Instance

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

    def begin(self) -> None:
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
