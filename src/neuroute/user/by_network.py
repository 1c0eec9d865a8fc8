"""Solve an instance by a network."""

import time

import numpy as np

from neuroute.core.device import memory_budget_gb
from neuroute.core.errors import NeurouteError
from neuroute.decoding.decode import decode, solve_with
from neuroute.plan.decoding_names import name_of
from neuroute.plan.objects import Decoding
from neuroute.user.classical import warm_up
from neuroute.user.default_decoding import name_of_search, resolve_decoding, search_step
from neuroute.user.improve import CLASSICAL, MOST_OWN, goes_on_from_others, improve, solve_for
from neuroute.user.instance import Instance
from neuroute.user.model import Model
from neuroute.user.options import check_decoding
from neuroute.user.solution import Solution


def solve_by_network(
    instance: Instance,
    model: Model,
    decoding: Decoding | str | None = None,
    *,
    seconds: float = 0.0,
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
        warm_up(CLASSICAL)
    began = time.perf_counter()
    if decoding is None:
        how = search_step(model, instance.n)
        other = solve_with(model.problem, CLASSICAL, inputs, 0)[0].numpy() if classical else None
        remaining = max(0.0, seconds - (time.perf_counter() - began))
        stops, trace = solve_for(model.net, inputs, how, budget, instance.cost, remaining, seed, start, other)
        place = 0 if instance.n > MOST_OWN else 1  # of the other solution, behind the network's own
        if other is not None and len(trace) > place and trace[place][1] == (cost := instance.cost(other)):
            basis = CLASSICAL, cost
    else:
        decoding = resolve_decoding(model.net, decoding)
        check_decoding(model.problem, instance.n, decoding, instance.name)
        if start is None:
            stops = decode(model.problem, model.net, inputs, decoding, budget)[0].numpy()
        else:
            stops = improve(model.net, inputs, start, decoding, budget, instance.cost)
    passed = time.perf_counter() - began
    name = name_of_search(model.net, seconds, start is not None) if decoding is None else name_of(decoding)
    return Solution(instance, stops, f"{model.name}, {name}", passed, trace, basis)


def check_fit(instance: Instance, model: Model) -> None:
    """Raises NeurouteError if a network is not for an instance's problem."""
    variant = model.card.variants if model.card else None
    if model.problem not in instance.problems or (variant is not None and instance.variant not in variant):
        raise NeurouteError(
            f"{instance.name}: is a {instance.variant}, but {model.name} solves "
            f"{', '.join(variant) if variant else model.problem.upper()}; take a network for {instance.variant}"
        )
