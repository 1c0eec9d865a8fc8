"""Solve an instance: by a network, which may also improve a solution, or by a solver.

What networks need, torch above all, is imported when one is asked for.
"""

from collections.abc import Callable, Collection
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from neuroute.api import within_time
from neuroute.api.classical import available, problem_of, without_presets
from neuroute.api.files import as_instance
from neuroute.api.solution import Best, Solution, check_numbers
from neuroute.api.within_time import solve_within
from neuroute.api.zoo import choose
from neuroute.core import limited
from neuroute.core.errors import NeurouteError
from neuroute.problems.instances.instance import Instance
from neuroute.specs.objects import Decoding

if TYPE_CHECKING:
    from neuroute.api.model import Model

SECONDS = 10.0  # of a network's search
BUILD_SHARE = 10  # of the time a tenth, after which savings try no further shape


def solve(
    instance: Instance | str | Path | np.ndarray,
    method: str = "network",
    *,
    model: "Model | str | Path | None" = None,
    seconds: float | None = None,
    decoding: Decoding | str | None = None,
    start: Any = None,
    seed: int = 0,
    device: str = "auto",
    memory_gb: float | None = None,
    trusted: Collection[str] = (),
    follow: Callable[[Best], object] | None = None,
    threads: int | None = None,
) -> Solution:
    """Solve an instance.

    Args:
        instance: the problem, a file that `neuroute.load` reads, or coordinates (n, 2) of a TSP.
        method: `network`, or a solver (`neuroute.methods`).
        model: of method `network`: a loaded one, the name of a shipped one (`neuroute.models`) or a checkpoint; None:
            the shipped one for the instance's problem and size.
        seconds: of wall-clock time for the search, from when network or solver is ready; it makes one solution at
            least, whatever that takes (a solver has a minute more for it).  None: 10 for a network, and for a solver
            what its module says.  0: a network's own first solution.
        decoding: instead of a time, how a network builds its solution, or its name, such as `multistart`.
        start: a solution to improve (see `Instance.check`), which never gets longer in the instance's own distances.
        seed: of what is drawn, below 2**32; a search that ends by the clock still differs from run to run.
        device: `auto` (a GPU where there is one), `cpu` or `cuda`.
        memory_gb: for activations; None: 4 on a CPU, 60 % of what a GPU has free.
        trusted: kinds of networks outside this package that a checkpoint may name, as "module:Class".
        follow: called with the best so far (its `cost`, `seconds`, `iterations`) when it gets better, and now and then.
        threads: of a network on a CPU; None: one or all, by which is faster.

    Returns:
        The best solution found, which is checked.  Where a solver crashed, or had none, a construction stands in, and
        `fallback` says why.

    Raises:
        NeurouteError: if the method or the model is unknown, or is not for this instance.
        Interrupted: a KeyboardInterrupt, at Ctrl-C; its `best` is the best solution so far, or None.
    """
    instance = as_instance(instance)
    if method != "network":
        if model is not None or decoding is not None or start is not None:
            raise NeurouteError(f"method '{method}': model, decoding and start are of method 'network'; leave them out")
        return solve_within(method, instance, seconds, seed, follow)
    stops = None if start is None else Solution(instance, instance.stops_of(start)).stops
    how = (model, seconds, decoding, stops, seed, device, memory_gb, trusted, follow, threads)
    return solve_by_model(instance, *how)


def solve_by_model(
    instance: Instance,
    model: "Model | str | Path | None",
    seconds: float | None,
    decoding: Decoding | str | None,
    start: np.ndarray | None,
    seed: int,
    device: str,
    memory_gb: float | None,
    trusted: Collection[str],
    follow: Callable[[Best], object] | None = None,
    threads: int | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Solution:
    """Do what `solve` does by a network; `say` is called with a line before a search."""
    if seconds is not None and not (seconds >= 0 and np.isfinite(seconds)):
        raise NeurouteError(f"seconds: {seconds:g} is no time; give a number from 0 on")
    check_numbers(memory_gb, seed=seed, threads=threads)
    check_coordinates(instance)
    best, total = Best(instance, follow), SECONDS if seconds is None else seconds
    if model is None:
        model = choose(instance.problems, instance.variant, instance.n, instance.name).name
    is_search = decoding is None and start is None and total > 0
    with limited.borrow() if is_search else nullcontext() as process:
        if process is not None:  # a construction is made while torch is loaded
            process.submit(f"{within_time.__name__}:start_of_search", instance, total / BUILD_SHARE, seed)

        def built() -> Solution | None:
            with suppress(NeurouteError):
                return None if process is None else cast(Solution, process.result(None))
            return None

        from neuroute.api.by_network import check_fit, solve_by_network
        from neuroute.api.model import Model, load_model

        if not isinstance(model, Model):
            model = load_model(model, device, trusted)
        check_fit(instance, model)
        if decoding is None:
            say(f"{instance.name}: {instance.variant}, n={instance.n}, with network '{model.name}', for {total:g} s")
        return solve_by_network(instance, model, decoding, total, built, start, seed, memory_gb, best, threads)


def methods(problem: str = "tsp") -> list[str]:
    """Return the methods of `solve` that are installed.

    The papers' settings of a solver, such as `ortools-x10` (ten times the time), are methods, too: `neuroute doctor`
    lists them.

    Args:
        problem: `tsp`, `cvrp`, one of the 16 vehicle routing problems, such as `ovrptw`, or `vrp`: all of these.

    Raises:
        NeurouteError: for an unknown problem.
    """
    return ["network", *without_presets(available(problem))]


def check_coordinates(instance: Instance) -> None:
    """Raises NeurouteError, naming solvers, for an instance in distances, which networks do not take."""
    if instance.ways is not None:
        names = [name for name in available(problem_of(instance), instance) if "-" not in name]
        raise NeurouteError(
            f"{instance.name}: holds distances, not coordinates, which networks need; solve it with --solver "
            f"{names[0]} (or {', '.join(names[1:])})"
        )
