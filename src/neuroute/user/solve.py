"""Solve an instance: by a network, which may also improve a solution, or by a solver."""

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.device import memory_budget_gb
from neuroute.core.errors import NeurouteError
from neuroute.decoding.decode import decode, solve_with
from neuroute.plan.objects import Decoding
from neuroute.user.improve import CLASSICAL, MOST_OWN, goes_on_from_others, improve, solve_for
from neuroute.user.instance import Instance
from neuroute.user.model import Model, load_model
from neuroute.user.options import check_decoding
from neuroute.user.solution import Solution
from neuroute.user.sources import as_instance
from neuroute.user.usual import usual_decoding
from neuroute.user.zoo import Card, choose

SECONDS = 10.0
LONGEST = 50  # stops of a sub-path: longer ones cost more and are improved less often (docs/choices.md)


def solve(
    instance: Instance | str | Path | np.ndarray,
    method: str = "network",
    *,
    model: Model | str | Path | None = None,
    seconds: float | None = None,
    decoding: Decoding | None = None,
    start: Any = None,
    seed: int = 0,
    device: str = "auto",
    memory_gb: float | None = None,
    trusted: Collection[str] = (),
) -> Solution:
    """Solve an instance.

    Args:
        instance: the problem, a file that `neuroute.load` reads, or coordinates (n, 2) of a TSP.
        method: `network`, or a solver (`neuroute.methods`).
        model: of method `network`: a loaded one, the name of a shipped one (`neuroute.models`) or a checkpoint; None:
            the shipped one for the instance's problem and size.
        seconds: of wall-clock time; None: 10 for a network, whose first solution is built whatever that takes, and
            for a solver what its module says.
        decoding: instead of a time, how a network builds its solution.
        start: a solution to improve (see `Instance.check`), which never gets longer in the instance's own distances.
        seed: of what is drawn; a search that ends by the clock still differs from run to run.
        device: `auto` (a GPU where there is one), `cpu` or `cuda`.
        memory_gb: for activations; None: 4 on a CPU, 60 % of what a GPU has free.
        trusted: kinds of networks outside this package that a checkpoint may name, as "module:Class".

    Returns:
        The best solution found, which is checked.

    Raises:
        NeurouteError: if the method or the model is unknown, or is not for this instance.
    """
    instance = as_instance(instance)
    if seconds is not None and not (seconds >= 0 and np.isfinite(seconds)):
        raise NeurouteError(f"seconds: {seconds:g} is no time; give a number from 0 on")
    if method != "network":
        if model is not None or decoding is not None or start is not None:
            raise NeurouteError(f"method '{method}': model, decoding and start are of method 'network'; leave them out")
        return _solve_by_solver(instance, method, seconds, seed)
    if model is None:
        model = choose_for(instance).name
    if not isinstance(model, Model):
        model = load_model(model, device, trusted)
    stops = None if start is None else Solution(instance, instance.stops_of(start)).stops
    time_left = SECONDS if seconds is None else seconds
    return solve_by_network(instance, model, decoding, seconds=time_left, start=stops, seed=seed, memory_gb=memory_gb)


def choose_for(instance: Instance) -> Card:
    """Return the shipped network for an instance.  Raises NeurouteError if there is none."""
    _check_coordinates(instance)
    return choose(instance.problems, instance.variant, instance.n, instance.name)


def methods(problem: str = "tsp") -> list[str]:
    """Return the methods of `solve` that are installed.

    Args:
        problem: `tsp`, `cvrp`, one of the 16 vehicle routing problems, such as `ovrptw`, or `vrp`: all of these.

    Raises:
        NeurouteError: for an unknown problem.
    """
    from neuroute.user.classical import available  # solvers compile when they are imported

    return ["network", *available(problem)]


def check_method(instance: Instance, name: str) -> None:
    """Raises NeurouteError, naming those that there are, if no installed solver of this name is for the instance."""
    from neuroute.user.classical import available

    if instance.matrix is not None:
        names = available(instance.problem, instance.matrix)
    else:
        names = methods(instance.variant.lower())
    if name not in names:
        there = ", ".join(names)
        raise NeurouteError(f"{instance.name}: no method '{name}' for {instance.variant}; there are: {there}")


def _check_coordinates(instance: Instance) -> None:
    """Raises NeurouteError, naming solvers, for an instance in distances, which networks do not take."""
    if instance.matrix is not None:
        from neuroute.user.classical import available

        names = [name for name in available(instance.problem, instance.matrix) if "-" not in name]
        raise NeurouteError(
            f"{instance.name}: holds distances, not coordinates, which networks need; solve it with --solver "
            f"{names[0]} (or {', '.join(names[1:])})"
        )


def _solve_by_solver(instance: Instance, name: str, seconds: float | None, seed: int) -> Solution:
    from neuroute.user.classical import solve_with

    check_method(instance, name)
    answer = solve_with(name, instance.for_solvers(), seconds, seed)
    return Solution(instance, answer.solution, name, answer.seconds)


def solve_by_network(
    instance: Instance,
    model: Model,
    decoding: Decoding | None = None,
    *,
    seconds: float = SECONDS,
    start: np.ndarray | None = None,
    seed: int = 0,
    memory_gb: float | None = None,
) -> Solution:
    """Return the best solution that a network finds.

    Args:
        instance: the problem.
        model: a network for it.
        decoding: how solutions are built; None: as well as goes in so many `seconds`.
        seconds: wall-clock time; the first solution is built whatever it takes.
        start: a solution to improve, which never gets longer in the instance's own distances.
        seed: of what is drawn.
        memory_gb: for activations; None: 4 on a CPU, 60 % of what a GPU has free.

    Raises:
        NeurouteError: if model, instance and decoding do not go together.
    """
    check_fit(instance, model)
    if start is not None and model.net.multi_start and model.problem != "tsp":
        raise NeurouteError(f"{model.name} builds solutions and improves none; leave the start out")
    budget = memory_budget_gb(model.place, memory_gb)
    inputs = instance.inputs(model.problem)
    trace: tuple[tuple[float, float], ...] = ()
    basis, searches = None, start is None and decoding is None and seconds > 0
    classical = searches and goes_on_from_others(model.net)
    if classical:
        from neuroute.user.classical import warm_up  # solvers compile when they are imported

        warm_up(CLASSICAL)
    began = time.perf_counter()
    if decoding is None:
        how = default_decoding(model, instance.n)
        other = solve_with(model.problem, CLASSICAL, inputs, 0)[0].numpy() if classical else None
        remaining = max(0.0, seconds - (time.perf_counter() - began))
        stops, trace = solve_for(model.net, inputs, how, budget, instance.cost, remaining, seed, start, other)
        place = 0 if instance.n > MOST_OWN else 1  # of the other solution, behind the network's own
        if other is not None and len(trace) > place and trace[place][1] == (cost := instance.cost(other)):
            basis = CLASSICAL, cost
    else:
        decoding = usual_decoding(model.net, decoding)
        check_decoding(model.problem, instance.n, decoding, instance.name)
        if start is None:
            stops = decode(model.problem, model.net, inputs, decoding, budget)[0].numpy()
        else:
            stops = improve(model.net, inputs, start, decoding, budget, instance.cost)
    passed = time.perf_counter() - began
    name = model.name if decoding is None else f"{model.name}, {decoding.id}"
    return Solution(instance, stops, name, passed, trace, basis)


def default_decoding(model: Model, n: int) -> Decoding:
    """How solutions of n stops are improved: as the card of a shipped network says, else by short sub-paths."""
    how = Decoding(method="prc", longest=LONGEST)
    if model.card is not None and model.card.decoding.method in ("rrc", "prc"):
        how = model.card.decoding
    return how if how.longest is None else how.model_copy(update={"longest": min(how.longest, n)})


def check_fit(instance: Instance, model: Model) -> None:
    """Raises NeurouteError if a network is not for an instance's problem."""
    _check_coordinates(instance)
    variant = model.card.variants if model.card else None
    if model.problem not in instance.problems or (variant is not None and instance.variant not in variant):
        raise NeurouteError(
            f"{instance.name}: is a {instance.variant}, but {model.name} solves "
            f"{', '.join(variant) if variant else model.problem.upper()}; take a network for {instance.variant}"
        )
