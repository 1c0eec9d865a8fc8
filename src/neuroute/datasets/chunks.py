"""Solving a shard in chunks, here or in worker processes; what comes out depends on neither."""

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError, Temporary
from neuroute.core.limited import process_pool
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.store import stream_part
from neuroute.solvers.base import Solver
from neuroute.solvers.lkh import spent_in
from neuroute.solvers.registry import get
from neuroute.specs.objects import SHARD, Labels

SEED = 0  # of what solvers draw
Pool = ProcessPoolExecutor | None  # None: solve in this process
FAILING = ("lkh3", "lkh3-short")  # solvers that find no routes for some instances, or are killed after a time


@dataclass(frozen=True)
class Chunk:
    """Rows first..stop-1 of a shard."""

    shard: int
    first: int
    stop: int


def chunks(shard: int, first: int, stop: int, n: int, solver: str = "concorde") -> list[Chunk]:
    """Return rows first..stop-1 of a shard, cut at fixed places: a second or two of Concorde's time each.

    A solver that may fail on an instance has a chunk for each: a bad answer costs no other one.
    """
    size = 1 if solver in FAILING else max(1, min(100, 1_000 // n))
    starts = range(first // size * size, stop, size)
    return [Chunk(shard, max(start, first), min(start + size, stop)) for start in starts]


def solve_chunk(labels: Labels, chunk: Chunk, folder: Path | None = None) -> tuple[np.ndarray, float]:
    """Return canonical solutions (rows, ...) and solver seconds; seeds are of SEED and the instance's number.

    folder: in which a solver keeps how far it is with a large instance.
    """
    solver, kind, n = _load_solver(labels.solver), spec_of(labels), labels.dataset.n
    instances = kind.instances(stream_part(labels, chunk.shard, chunk.first, chunk.stop))
    solutions = np.empty((len(instances), *kind.shape(n)), dtype=kind.dtype(n))
    seconds = 0.0
    for row in range(len(instances)):
        instance = chunk.shard * SHARD + chunk.first + row
        of_row = solver
        if folder and solver.large and n >= solver.large:
            place = folder / str(chunk.first + row)
            of_row = solver.variant(solver.name, "solve", folder=place)
            seconds += spent_in(place)
        start = time.perf_counter()
        try:
            solutions[row] = kind.solve(of_row, instances[row : row + 1], zlib.crc32(f"{SEED} {instance}".encode()))
        except OSError as error:
            raise NeurouteError(
                f"{labels.solver} could not work in {tempfile.gettempdir()} ({error.strerror}); free some space there, "
                "or set TMPDIR, and run again"
            ) from None
        except NeurouteError as error:
            raise NeurouteError(f"instance {instance} of {labels.id}: {error}") from None
        seconds += time.perf_counter() - start
    return kind.canonical(solutions), seconds


@cache
def _load_solver(name: str) -> Solver:
    """Return a solver that has solved something: what it loads and compiles first is not an instance's time."""
    solver, square = get(name), np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    solver.solve(square, 0)
    if solver.solve_cvrp is not None:
        solver.solve_cvrp(square, np.array([0, 1, 1, 1]), 3, 0)
    return solver


@contextmanager
def solver_pool(workers: int) -> Iterator[Pool]:
    """Worker processes for any solver, started when first needed; with one worker, none.  Raises as `process_pool`."""
    if workers <= 1:
        yield None
        return
    # Spawned, not forked: nothing of this process (threads, CUDA, open locks) leaks into the workers.
    pool = process_pool(workers, _Context(), _start_worker)
    try:
        yield pool
    except KeyboardInterrupt:  # an instance at hand may take hours yet
        for process in [*pool._processes.values()]:
            process.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Worker(SpawnProcess):
    """A spawned process that does not run the user's script again, as those of a script without a main guard do."""

    @staticmethod
    def _Popen(process: Any) -> Any:
        main = sys.modules["__main__"]
        hidden: dict[str, Any] = {name: vars(main).pop(name) for name in ("__file__", "__spec__") if name in vars(main)}
        main.__spec__ = None
        try:
            return SpawnProcess._Popen(process)
        finally:
            vars(main).update(hidden)


class _Context(SpawnContext):
    Process = _Worker


def _start_worker() -> None:
    for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is the parent's to handle; and ends what this one starts

    def end_with_parent() -> None:
        """A worker whose parent was killed would wait for tasks forever."""
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


def solve_chunks(
    pool: Pool, labels: Labels, chunks: Sequence[Chunk], folder: Path | None = None
) -> Iterator[tuple[Chunk, np.ndarray, float]]:
    """Yield each chunk with its solutions and solver seconds, in the order in which they are done.

    Raises NeurouteError if a worker dies; and, when all others are solved, if a solver has failed on an instance.
    """
    failed: list[NeurouteError] = []
    if pool is None:
        for chunk in chunks:
            try:
                answer = solve_chunk(labels, chunk, folder)
            except NeurouteError as error:
                failed.append(error)
            else:
                yield chunk, *answer
    else:
        try:
            futures = {pool.submit(solve_chunk, labels, chunk, folder): chunk for chunk in chunks}
            for future in as_completed(futures):
                if isinstance(fault := future.exception(), NeurouteError):
                    failed.append(fault)
                else:
                    yield futures[future], *future.result()
        except BrokenProcessPool:
            raise Temporary(
                f"a {labels.solver} worker died (killed, or out of memory) in shard {chunks[0].shard} of {labels.id}; "
                "run again to resume, with fewer workers if memory is short"
            ) from None
    if failed:  # one bad answer of a solver does not cost the others
        more = f" (and {len(failed) - 1} more like it)" if len(failed) > 1 else ""
        raise NeurouteError(f"{failed[0]}{more}; all else is solved and kept")
