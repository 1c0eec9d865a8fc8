"""A process that answers for methods, one instance at a time; it is killed when one takes too long or too much memory.

Methods load and compile before the clock starts.
"""

import os
import resource
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

import neuroute
from neuroute.core import limited
from neuroute.core.dotted import resolve, search_working_folder
from neuroute.core.errors import NeurouteError
from neuroute.pipeline import papers
from neuroute_compare.methods import Method

wall = time.perf_counter  # whatever becomes of that name in the process
LOADS = (1.0, 20.0)  # least and most that a machine's load stretches a solver's time by
FEW_NODES, WARM_UP_NODES = 8, 100  # of an instance to warm up by: of solvers and functions; of networks, at most
WARM_UP_S = 60.0  # at most, for a process that builds to load
OWN_BYTES = 2**30  # bytes for the process itself, beside `memory_gb`


@dataclass(frozen=True)
class Machine:
    """On what methods run."""

    device: str = "cpu"
    threads: int = 1
    memory_gb: float | None = None
    clock: Literal["wall", "cpu"] = "wall"  # by which searches end


@dataclass(frozen=True)
class Answer:
    """What came of a method on an instance: a solution's cost, or why there is none (`time`, `memory`, or a line)."""

    cost: float | None
    seconds: float | None  # wall-clock
    cpu_seconds: float | None  # user and system, of the process and of those that it has started
    gflops: float | None = None
    unsolved: str = ""


class Worker:
    """The process, which is started when it is needed, and anew after it was killed."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._process = limited.Process({"OMP_NUM_THREADS": str(machine.threads)})
        self._ready = set[Method]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.end()

    def answer(self, method: Method, instance: neuroute.Instance, seed: int, limit: float) -> Answer:
        """Solve an instance, for `limit` seconds at most without what is loaded and counted for it.

        Raises NeurouteError if the method cannot even be loaded.
        """
        if method not in self._ready:
            reply = self._ask("load", None, self._machine, method, instance, [*papers.__path__])
            if isinstance(reply, Answer):  # it died, or says why not
                raise NeurouteError(f"{method.name}: cannot be loaded: {reply.unsolved}")
            self._ready.add(method)
        gflops = self._ask("prepare", None, method, instance)
        if isinstance(gflops, Answer):  # it died
            return gflops
        answer: Answer = self._ask("solve", limit, method, instance, seed)
        return replace(answer, gflops=None if answer.cost is None else gflops)

    def _ask(self, function: str, limit: float | None, *arguments: Any) -> Any:
        began = wall()
        try:
            return self._process.call(f"{__name__}:{function}", limit, *arguments)
        except TimeoutError:
            why = "time"
        except NeurouteError as error:  # it died
            status = str(error).partition(" died with ")[2].partition(":")[0]
            killed = status == f"exit status {-signal.SIGKILL}"  # by the kernel, as nothing here did it
            why = "memory" if killed else f"its process died with {status}"
        self._ready.clear()
        return Answer(None, wall() - began, None, unsolved=why)


# -- in the process ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Loaded:
    """A method that is ready."""

    stops: Callable[[neuroute.Instance, int], np.ndarray]  # of an instance and a seed
    gflops: Callable[[neuroute.Instance], float | None] = lambda instance: None
    warm_up: Callable[[], object] = lambda: None  # what it needs again before the clock of an answer starts


_methods: dict[Method, _Loaded] = {}
_load_of_machine = 1.0  # wall-clock time over CPU time of the last answer


def load(machine: Machine, method: Method, instance: neuroute.Instance, folders: Iterable[str] = ()) -> bool | Answer:
    """Make a method ready, by a small instance of the same problem as this one; folders: of papers."""
    if not _methods:
        # Set threads, memory and clock, before anything looks at them, and where modules of the user's own lie.
        import torch

        os.environ.pop(
            limited.FOLDER, None
        )  # solvers have their own clocks here, and what they load is not of the time
        search_working_folder()
        papers.__path__.extend(folder for folder in folders if folder not in papers.__path__)
        torch.set_num_threads(machine.threads)
        if machine.memory_gb is not None and machine.device == "cpu":  # CUDA reserves addresses without end
            most = int(machine.memory_gb * 1e9) + OWN_BYTES
            resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))
        if machine.clock == "cpu":
            time.perf_counter = time.process_time  # networks and pyvrp look at it; hgs and lkh at CPU time anyway
    loaders = {"network": _load_network, "solver": _load_solver, "function": _load_function}
    try:
        _methods[method] = loaders[method.kind](machine, method, instance)
    except Exception as error:  # whatever a method raises
        return Answer(None, None, None, unsolved=str(error) if isinstance(error, NeurouteError) else repr(error))
    return True


def _load_network(machine: Machine, method: Method, instance: neuroute.Instance) -> _Loaded:
    model = neuroute.load_model(method.source, machine.device, method.trusted)
    budget, memory = method.seconds, machine.memory_gb

    def run(instance: neuroute.Instance, seed: int) -> np.ndarray:
        how = model.decoding.model_copy(update={"draw": seed}) if budget is None else None
        about: dict[str, Any] = {"memory_gb": memory, "threads": machine.threads}
        return neuroute.solve(instance, model=model, decoding=how, seconds=budget, seed=seed, **about).stops

    nodes = min(model.net.train_nodes, WARM_UP_NODES)  # of which it may look at many as the nearest ones
    neuroute.solve(_small(instance, nodes), model=model, decoding=model.decoding, memory_gb=memory)
    if budget is None:
        return _Loaded(run, model.gflops)
    from neuroute.api import within_time

    def warm_up() -> None:  # the process that builds what a search begins with
        with limited.borrow() as process:
            process.call(f"{within_time.__name__}:start_of_search", WARM_UP_S, _small(instance))

    return _Loaded(run, warm_up=warm_up)


def _load_solver(machine: Machine, method: Method, instance: neuroute.Instance) -> _Loaded:
    from neuroute.api.classical import solve_with

    def run(instance: neuroute.Instance, seed: int) -> np.ndarray:
        seconds = method.seconds
        if seconds is not None and machine.clock == "cpu" and method.source.startswith("ortools"):
            seconds *= _load_of_machine  # it looks at nothing but the wall clock
        return solve_with(method.source, instance, seconds, seed).stops

    solve_with(method.source, _small(instance), None if method.seconds is None else 0.1)
    return _Loaded(run)


def _load_function(machine: Machine, method: Method, instance: neuroute.Instance) -> _Loaded:
    function = resolve(method.source)
    return _Loaded(lambda instance, seed: instance.stops_of(function(instance, method.seconds)))


def prepare(method: Method, instance: neuroute.Instance) -> float | None:
    """Do for an answer what is not of its time, and return the GFLOPs of a solution."""
    _methods[method].warm_up()
    return _methods[method].gflops(instance)


def solve(method: Method, instance: neuroute.Instance, seed: int) -> Answer:
    """Answer for a method that is loaded."""
    global _load_of_machine
    began, busy = wall(), _cpu()
    try:
        stops = _methods[method].stops(instance, seed)
        seconds, cpu = wall() - began, _cpu() - busy
        if cpu > 0.2:
            _load_of_machine = min(max(seconds / cpu, LOADS[0]), LOADS[1])
        cost = instance.cost(stops)  # which refuses what is no solution
        return Answer(cost, seconds, cpu)
    except Exception as error:  # whatever a method raises is no solution of this instance
        memory = isinstance(error, MemoryError) or any(word in str(error) for word in ("memory", "alloc"))
        text = str(error).removeprefix(f"{instance.name}: ") if isinstance(error, NeurouteError) else repr(error)
        why = "memory" if memory else " ".join(text.split())[:200]
        return Answer(None, wall() - began, _cpu() - busy, unsolved=why)


def _cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in used)


def _small(instance: neuroute.Instance, nodes: int = FEW_NODES) -> neuroute.Instance:
    """Return an instance of so many nodes, at least FEW_NODES, of the same problem, in coordinates."""
    points = np.random.default_rng(0).random((max(nodes, FEW_NODES), 2))
    if instance.problem == "tsp":
        return neuroute.Instance.from_arrays(points)
    return neuroute.Instance.from_arrays(points, np.array([0] + [1] * (len(points) - 1)), 3)
