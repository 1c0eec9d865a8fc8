"""A process that has loaded everything once and forks itself for each job that it is handed (`core/job.py`).

At a small scale a job takes a second or two, and to load torch, pandas and the plan takes as long.  So what a job would
load when it first needs it is loaded here, too: an optimizer's first step alone loads 900 modules.  A job ends with the
process that waits for it, and all end with this one, which ends with the Snakemake that holds its standard input.
"""

import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neuroute.core.dotted import resolve
from neuroute.core.errors import may_pass
from neuroute.core.job import SPENT, TEMPORARY
from neuroute.pipeline.cli.options import load_plan

if TYPE_CHECKING:
    from neuroute.pipeline.plan.plan import Plan

PR_SET_PDEATHSIG = 1  # <sys/prctl.h>
LOADED = (  # what jobs load when they first need it
    "neuroute.api.train", "neuroute.training.callbacks", "neuroute.evaluation.driver",
    "neuroute.datasets.labels", "neuroute.datasets.benchmarks", "neuroute.pipeline.rendering.render",
    "neuroute.pipeline.rendering.report", "neuroute.pipeline.rendering.verdicts",
    # behind `core/lazy.py`, and what optimizers and backends load at their first use
    "pandas", "torch._dynamo", "matplotlib.pyplot", "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_pdf", "matplotlib.backends.backend_svg", "PIL.PngImagePlugin",
)  # fmt: skip


def warm(path: Annotated[Path, typer.Argument(help="socket to listen on")]) -> None:
    """Run jobs of the workflow in copies of this process, until standard input ends."""
    load_what_jobs_use(load_plan(None, None))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        try:
            listener.listen(64)
            _Server(listener).serve()
        finally:
            path.unlink(missing_ok=True)


def load_what_jobs_use(plan: "Plan") -> None:
    """Import what the jobs of a plan use, and look up their code digests."""
    from neuroute.problems.registry import PARTS

    entries = {entry for parts in PARTS.values() for entry in parts.values()}
    entries |= {run.network.kind for run in plan.runs.values()}
    entries |= {artifact.function for artifact in plan.artifacts.values()}
    entries |= {each.entry for evaluation in plan.evaluations.values() for each in evaluation.measurements}
    for name in (*LOADED, *sorted({entry.partition(":")[0] for entry in entries})):
        importlib.import_module(name)
    for run in plan.runs:  # parsed once, where planning has not kept them
        plan.network_code(run), plan.train_code(run)
    for evaluation in plan.evaluations:
        plan.evaluate_code(evaluation)
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()  # what a compiled function needs before it is loaded
    gc.collect()
    gc.freeze()  # a copy neither looks through what it shares with the others, nor copies its pages to do so


@dataclass
class _Server:
    listener: socket.socket
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    running: dict[int, socket.socket] = field(default_factory=dict)  # by process: who waits for it

    def serve(self) -> None:
        """Until standard input ends; then what still runs is ended too."""
        self.selector.register(0, selectors.EVENT_READ)
        self.selector.register(self.listener, selectors.EVENT_READ)
        while True:
            for key, _ in self.selector.select():
                if key.fd == 0:
                    for process in self.running:
                        _end(process)
                    return
                if key.fileobj is self.listener:
                    self._start(self.listener.accept()[0])
                elif isinstance(key.fileobj, int):
                    self.selector.unregister(key.fileobj)
                    os.close(key.fileobj)
                    status = os.waitstatus_to_exitcode(os.waitpid(key.data, 0)[1])
                    waiting = self.running.pop(key.data)
                    with suppress(KeyError):
                        self.selector.unregister(waiting)
                    with suppress(OSError):
                        waiting.send(bytes([status if status >= 0 else 128 - status]))
                    waiting.close()
                else:
                    self.selector.unregister(key.fileobj)  # nobody waits any more
                    _end(key.data)

    def _start(self, waiting: socket.socket) -> None:
        size, outputs, _, _ = socket.recv_fds(waiting, 4, 2)
        with waiting.makefile("rb") as stream:
            data = stream.read(int.from_bytes(size)) if len(size) == 4 else b""
        if len(outputs) < 2 or not data:  # killed while it asked
            waiting.close()
            return
        process = os.fork()
        if process == 0:
            _run(json.loads(data), outputs)
        with suppress(OSError):
            os.setpgid(process, process)  # so does the copy: whoever comes first
        for output in outputs:
            os.close(output)
        self.running[process] = waiting
        self.selector.register(os.pidfd_open(process), selectors.EVENT_READ, process)
        self.selector.register(waiting, selectors.EVENT_READ, process)


def _end(process: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGTERM)


def _run(request: dict[str, Any], outputs: list[int]) -> None:
    """In the copy: run the command as a process of its own would, and end."""
    status = 1
    try:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for output, place in zip(outputs, (1, 2), strict=True):
            os.dup2(output, place)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        status = _command(request["arguments"])
        print(f"{SPENT} {sum(os.times()[:4]):.1f} s", file=sys.stderr)  # this job's and its solvers'
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _command(arguments: list[str]) -> int:
    try:
        resolve("neuroute.pipeline.cli:app")(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        traceback.print_exc()
        return TEMPORARY if may_pass(error) else 1
    return 0
