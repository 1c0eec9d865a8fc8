"""A process that answers for methods, one instance at a time; it is killed when one takes too long or too much memory.

It reads pickled requests from standard input, and writes pickled answers.
Methods load and compile before the clock starts.
"""

import ctypes
import os
import pickle
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np

from neuroute.comparison.methods import Method
from neuroute.core.dotted import resolve, search_working_folder
from neuroute.core.errors import NeurouteError
from neuroute.instances.instance import Instance

PR_SET_PDEATHSIG = 1
wall = time.perf_counter  # whatever becomes of that name in the process
LOADS = (1.0, 20.0)  # least and most that a machine's load stretches a solver's time by
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

    def time_by(self, clock: str) -> float | None:
        """Return the time by a clock: `wall` or `cpu`."""
        return self.cpu_seconds if clock == "cpu" else self.seconds


class Worker:
    """The process, which is started when it is needed, and anew after it was killed."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = set[Method]()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def answer(self, method: Method, instance: Instance, seed: int, limit: float) -> Answer:
        """Solve an instance, for `limit` seconds at most.  Raises NeurouteError if the method cannot even be loaded."""
        if self._process is None:
            command = [sys.executable, "-c", f"from {__name__} import main; main()", str(os.getpid())]
            environment = os.environ | {"OMP_NUM_THREADS": str(self._machine.threads)}
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
            )
            self._ready.clear()
            self._ask(("machine", self._machine), None)
        if method not in self._ready:
            reply = self._ask(("load", method, instance), None)
            if isinstance(reply, Answer):  # it died, or says why not
                raise NeurouteError(f"{method.name}: cannot be loaded: {reply.unsolved}")
            self._ready.add(method)
        answer: Answer = self._ask(("solve", method, instance, seed), limit)
        return answer

    def _ask(self, request: tuple[Any, ...], limit: float | None) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        began = wall()
        try:
            _write(self._process.stdin, pickle.dumps(request))
            with selectors.DefaultSelector() as waiting:
                waiting.register(self._process.stdout, selectors.EVENT_READ)
                if not waiting.select(limit):
                    self._end()
                    return Answer(None, wall() - began, None, unsolved="time")
            return pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            status = self._process.wait()
            self._end()
            killed = status == -signal.SIGKILL  # by the kernel, as nothing here did it
            why = "memory" if killed else f"its process died with exit status {status}"
            return Answer(None, wall() - began, None, unsolved=why)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
            self._process = None


def _write(pipe: Any, data: bytes) -> None:
    while data:
        data = data[pipe.write(data) :]


# -- in the process ----------------------------------------------------------------------------------------------------


def main() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(sys.argv[1]):  # it had ended before
            return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what solvers print is no answer
    process = _Process(Machine())
    while True:
        try:
            kind, *arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if kind == "machine":
            process = _Process(arguments[0])
            process.set_up()
            reply: Any = True
        elif kind == "load":
            reply = process.load(*arguments)
        else:
            reply = process.solve(*arguments)
        pickle.dump(reply, answers)
        answers.flush()


@dataclass
class _Process:
    """What the process has loaded."""

    machine: Machine
    methods: dict[Method, Callable[[Instance, int], np.ndarray]] = field(default_factory=dict)
    counts: dict[Method, Callable[[Instance], float | None]] = field(default_factory=dict)
    load_of_machine: float = 1.0  # wall-clock time over CPU time of the last answer

    def set_up(self) -> None:
        """Set threads, memory and clock, before anything looks at them."""
        import torch

        search_working_folder()  # where methods of the user's own may lie
        torch.set_num_threads(self.machine.threads)
        if self.machine.memory_gb is not None and self.machine.device == "cpu":  # CUDA reserves addresses without end
            most = int(self.machine.memory_gb * 1e9) + OWN_BYTES
            resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))
        if self.machine.clock == "cpu":
            time.perf_counter = time.process_time  # networks and pyvrp look at it; hgs and lkh at CPU time anyway

    def load(self, method: Method, instance: Instance) -> bool | Answer:
        """Make a method ready, by a small instance of the same problem."""
        try:
            getattr(self, f"_load_{method.kind}")(method, _small(instance))
        except NeurouteError as error:
            return Answer(None, None, None, unsolved=str(error))
        return True

    def _load_network(self, method: Method, small: Instance) -> None:
        from neuroute.comparison.construct import build, gflops
        from neuroute.user.by_network import solve_by_network
        from neuroute.user.model import load_model

        model = load_model(method.source, self.machine.device, method.trusted)
        budget, memory = method.seconds, self.machine.memory_gb
        build(small, model, 0, memory)
        if budget is None:
            self.methods[method] = lambda instance, seed: build(instance, model, seed, memory)
            self.counts[method] = lambda instance: gflops(instance, model)
        else:
            self.methods[method] = lambda instance, seed: (
                solve_by_network(instance, model, seconds=budget, seed=seed, memory_gb=memory).stops
            )

    def _load_solver(self, method: Method, small: Instance) -> None:
        from neuroute.user.classical import solve_with

        def solve(instance: Instance, seed: int) -> np.ndarray:
            seconds = method.seconds
            if seconds is not None and self.machine.clock == "cpu" and method.source.startswith("ortools"):
                seconds *= self.load_of_machine  # it looks at nothing but the wall clock
            return solve_with(method.source, instance, seconds, seed).solution

        solve_with(method.source, small, None if method.seconds is None else 0.1)
        self.methods[method] = solve

    def _load_function(self, method: Method, small: Instance) -> None:
        function = resolve(method.source)
        self.methods[method] = lambda instance, seed: instance.stops_of(function(instance, method.seconds))

    def solve(self, method: Method, instance: Instance, seed: int) -> Answer:
        began, busy = wall(), _cpu()
        try:
            stops = self.methods[method](instance, seed)
            seconds, cpu = wall() - began, _cpu() - busy
            if cpu > 0.2:
                self.load_of_machine = min(max(seconds / cpu, LOADS[0]), LOADS[1])
            cost = instance.cost(stops)  # which refuses what is no solution
            count = self.counts.get(method)
            return Answer(cost, seconds, cpu, count(instance) if count else None)
        except Exception as error:  # whatever a method raises is no solution of this instance
            memory = isinstance(error, MemoryError) or any(word in str(error) for word in ("memory", "alloc"))
            why = "memory" if memory else " ".join(str(error).split())[:200] or repr(error)
            return Answer(None, wall() - began, _cpu() - busy, unsolved=why)


def _cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in used)


def _small(instance: Instance) -> Instance:
    """Return an instance of few nodes of the same problem, in coordinates."""
    points = np.random.default_rng(0).random((8, 2))
    if instance.problem == "tsp":
        return Instance.from_arrays(points)
    return Instance.from_arrays(points, np.array([0] + [1] * 7), 3)
