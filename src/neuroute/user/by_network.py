"""Solve an instance by a network."""

import time

import numpy as np

from neuroute.core.device import memory_budget_gb
from neuroute.core.errors import Interrupted, NeurouteError
from neuroute.decoding.decode import decode
from neuroute.instances.instance import Instance
from neuroute.plan.decoding_names import name_of
from neuroute.plan.objects import Decoding
from neuroute.user.classical import Answer
from neuroute.user.improve import Best, improve, search_for
from neuroute.user.model import Model, name_of_search, resolve_decoding, search_step
from neuroute.user.options import check_decoding
from neuroute.user.solution import Solution
from neuroute.user.within_time import Construction


def solve_by_network(
    instance: Instance,
    model: Model,
    decoding: Decoding | str | None,
    seconds: float,
    construction: Construction | None,
    start: np.ndarray | None,
    seed: int,
    memory_gb: float | None,
) -> Solution:
    """Return the best solution that a network finds.

    Args:
        instance: the problem.
        model: a network for it.
        decoding: how solutions are built; None: as well as goes in so many `seconds`.
        seconds: wall-clock time, from the best construction on; 0: the network's own first solution, whatever it takes.
        construction: that the search goes on from.
        start: a solution to improve, which never gets longer in the instance's own distances.
        seed: of what is drawn.
        memory_gb: for activations; None: 4 on a CPU, 60 % of what a GPU has free.

    Raises:
        NeurouteError: if model, instance and decoding do not go together.
        Interrupted: at Ctrl-C, with the best solution so far.
    """
    if start is not None and model.net.multi_start and model.problem != "tsp":
        raise NeurouteError(f"{model.name} builds solutions and improves none; leave the start out")
    budget = memory_budget_gb(model.place, memory_gb)
    inputs = instance.inputs(model.problem)
    best, built = Best(instance.cost), None
    if decoding is not None:
        decoding = resolve_decoding(model.net, decoding)
        check_decoding(model.problem, instance.n, decoding, instance.name)
    name = name_of_search(model.net, seconds, start is not None) if decoding is None else name_of(decoding)
    try:
        if decoding is not None and start is not None:
            improve(model.net, inputs, start, decoding, budget, best)
        elif decoding is not None:
            best.offer(decode(model.problem, model.net, inputs, decoding, budget)[0].numpy())
        else:
            if construction is not None:
                built = construction.answer(seconds)
                best.offer(built.solution)
            how = search_step(model, instance.n)
            search_for(model.net, inputs, how, budget, best, seconds, seed, start)
    except KeyboardInterrupt:
        if best.solution is None and construction is not None:
            built = construction.so_far()
            best.offer(built.solution)
        if best.solution is None:
            raise Interrupted from None
        note = f"interrupted after {time.perf_counter() - best.began:.1f} s"
        raise Interrupted(_solution(instance, model.name, name, best, built, note)) from None
    return _solution(instance, model.name, name, best, built)


def _solution(instance: Instance, model: str, name: str, best: Best, built: Answer | None, note: str = "") -> Solution:
    """Return the best solution, and how it came about."""
    assert best.solution is not None
    seconds = time.perf_counter() - best.began
    basis = None if built is None else (built.solver, instance.cost(built.solution), best.own)
    if basis is not None and basis[2] is not None and basis[2] <= basis[1]:
        basis = None  # it went on from its own
    name = name if basis is None else f"{basis[0]} + search"
    return Solution(instance, best.solution, f"{model}, {name}", seconds, best.trace, basis, note)


def check_fit(instance: Instance, model: Model) -> None:
    """Raises NeurouteError if a network is not for an instance's problem."""
    variant = model.card.variants if model.card else None
    if model.problem not in instance.problems or (variant is not None and instance.variant not in variant):
        raise NeurouteError(
            f"{instance.name}: is a {instance.variant}, but {model.name} solves "
            f"{', '.join(variant) if variant else model.problem.upper()}; take a network for {instance.variant}"
        )
