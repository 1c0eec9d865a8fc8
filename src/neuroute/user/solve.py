"""Solve an instance: by a network, which may also improve a solution, or by a solver; from file to file, too."""

import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.device import memory_budget_gb
from neuroute.core.errors import NeurouteError
from neuroute.datasets.tsplib import read_tour
from neuroute.datasets.vrplib import read_solution
from neuroute.decoding.decode import decode, solve_with
from neuroute.plan.objects import Decoding
from neuroute.problems.vrp import from_routes
from neuroute.user.improve import CLASSICAL, goes_on_from_others, improve, solve_for
from neuroute.user.instance import Instance
from neuroute.user.instances import TOLERANCE
from neuroute.user.model import Model, load_model
from neuroute.user.options import check_decoding
from neuroute.user.outputs import PICTURES, check_writable
from neuroute.user.solution import ENDINGS, Solution
from neuroute.user.sources import as_instance, load
from neuroute.user.usual import usual_decoding
from neuroute.user.zoo import Card, choose

SECONDS = 10.0
LONGEST = 50  # stops of a sub-path: longer ones cost more and are improved less often (docs/choices.md)
NOUNS = {"tsp": "tour", "cvrp": "routes", "vrp": "routes"}
FILES = (".tsp", ".vrp", ".txt")


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
    classical = searches and goes_on_from_others(model.net, instance.n)
    if classical:
        from neuroute.user.classical import warm_up  # solvers compile when they are imported

        warm_up(CLASSICAL)
    began = time.perf_counter()
    if decoding is None:
        how = default_decoding(model, instance.n)
        other = solve_with(model.problem, CLASSICAL, inputs, 0)[0].numpy() if classical else None
        remaining = max(0.0, seconds - (time.perf_counter() - began))
        stops, trace = solve_for(model.net, inputs, how, budget, instance.cost, remaining, seed, start, other)
        if other is not None and len(trace) > 1 and trace[1][1] == (cost := instance.cost(other)):
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


def read_start(path: Path, instance: Instance) -> np.ndarray:
    """Return the stops of a solution that a user brings (.tour or .sol).

    Raises NeurouteError if it is none, is of another instance, or of an instance whose solutions nothing improves.
    """
    if instance.problem == "vrp":
        raise NeurouteError(f"--from {path}: solutions of {instance.variant} are built, not improved; leave it out")
    if instance.group.tsplib is not None:
        return read_tour(path, instance.group.tsplib)
    routes, file_cost = read_solution(path)
    try:
        cost = instance.cost(routes)
    except NeurouteError as error:
        raise NeurouteError(f"{path}: {error}") from None
    costs = np.array([cost, float(instance.group.lengths(from_routes(routes)[None])[0])])  # rounded, and not
    if file_cost is not None and (np.abs(costs - file_cost) > TOLERANCE * costs).all():
        raise NeurouteError(
            f"{path}: states a cost of {file_cost:g}, but these routes cost {cost:g} in {instance.name}; if it is no "
            "solution of another instance, leave out its line `Cost`"
        )
    return from_routes(routes)


def solve_file(
    path: Path,
    model: Path | str | None,
    decoding: Decoding | None,
    out: Path,
    device: str,
    memory_gb: float | None = None,
    *,
    method: str = "network",
    reference: str | None = None,
    seconds: float | None = None,
    seed: int = 0,
    start: Path | None = None,
    save: Path | None = None,
    trusted: Collection[str] = (),
    say: Callable[[str], None] = lambda line: None,
) -> str:
    """Solve a file, draw the solution to `out`, keep it in `save` (.tour or .sol), and return a line that says it.

    As `solve`; `reference`: a solver, whose solution the gap is to; `say` is called with a line before the search
    begins.  Raises NeurouteError, before anything is solved
    or written, if files and model do not go together, or nothing can be written in a place.
    """
    if out.suffix not in PICTURES:
        raise NeurouteError(f"--out {out}: the drawing must end in .svg, .pdf or .png")
    if start is not None and decoding is not None and (decoding.method != "prc" or decoding.start != "greedy"):
        raise NeurouteError("--from: the solution of a file is improved by --prc, as in --prc 100, without --start")
    if path.suffix not in FILES:
        raise NeurouteError(
            f"{path}: a TSPLIB file (.tsp) or a VRPLIB file (.vrp) is expected, or one of Solomon's (.txt)"
        )
    instance = load(path)
    for option, other in (("--from", start), ("--save", save)):
        if other is not None and other.suffix != ENDINGS[instance.problem]:
            ending = ENDINGS[instance.problem]
            raise NeurouteError(f"{option} {other}: a solution of a {path.suffix} file is a file that ends in {ending}")
    before = None if start is None else read_start(start, instance)
    for solver in {method, reference} - {"network", None}:
        check_method(instance, str(solver))
    loaded = None
    if method == "network":
        loaded = load_model(model or choose_for(instance).name, device, trusted)
        check_fit(instance, loaded)
    for option, target in (("--out", out), ("--save", save)):
        if target is not None:
            check_writable(option, target)
    if loaded is not None and decoding is None:
        time_left = SECONDS if seconds is None else seconds
        say(f"{instance.name}: {instance.variant}, n={instance.n}, with network '{loaded.name}', for {time_left:g} s")
    how: dict[str, Any] = {"model": loaded, "decoding": decoding, "start": before}
    solution = solve(instance, method, seconds=seconds, seed=seed, memory_gb=memory_gb, **how)
    yardstick = None if reference is None else solve(instance, reference, seconds=seconds, seed=seed)
    if save is not None:
        solution.save(save)
    origin = "" if start is None else f" from {start.name}"
    origin = origin if solution.basis is None else f" from {solution.basis[0]}"
    solution.plot(out, f"{instance.name}: {instance.format(solution.cost)}  ({solution.method}{origin})")
    routes = f"{len(solution.routes)} routes, " if instance.problem != "tsp" else ""
    was = f", before {instance.format(instance.cost(before))}" if before is not None else ""
    gap = f", gap {solution.gap:.2f} %" if solution.gap is not None else ""
    if yardstick is not None:
        to = f"{100 * (solution.cost / yardstick.cost - 1):.2f} % to {reference}"
        gap += f", {to} ({instance.format(yardstick.cost)} in {yardstick.seconds:.2f} s)"
    saved_text = f", kept in {save}" if save is not None else ""
    return (
        f"{instance.name}: n={instance.n}, {routes}length {instance.format(solution.cost)} ({instance.distances})"
        f"{was}{gap}, {solution.seconds:.2f} s{solution.origin}; {NOUNS[instance.problem]} in {out}{saved_text}"
    )
