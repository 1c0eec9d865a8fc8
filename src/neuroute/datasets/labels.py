"""The label store: solutions of instance streams, taken from caches or solved, verified, and extended in place.

A cache is a folder with one array per shard (`Labels.shard_file`): the solutions of the shard's first instances.  TSP
tours go from node 0 on, its smaller neighbour second; for CVRP see `problem_specs`.  A `.json` file of the same stem,
which may be missing, says how they were made (`shard_files.Facts`).
"""

import hashlib
import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from neuroute.core.files import check_folder, exclusive, lock, open_lock, write_whole
from neuroute.datasets.chunks import Chunk, Pool, chunks, solve_chunks, solver_pool
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.progress import Progress
from neuroute.datasets.shard_files import (
    Facts,
    ShardFile,
    check_solutions,
    instances_digest,
    merge_facts,
    share_facts,
    write_shard,
)
from neuroute.datasets.stored_labels import rows_at_hand, rows_missing
from neuroute.plan.objects import SHARD, Labels
from neuroute.solvers.registry import get

# -- what is solved of a shard that is not done: pages of chunks in a folder of its own, one once in a while ---------

KEEP_EVERY_S = 60.0  # between two pages of a process
Solved = tuple[np.ndarray, float]  # solutions (rows, ...) and solver seconds


@dataclass
class Pages:
    """Solved chunks of a shard, of several processes perhaps.

    `mark` says how solutions were made: those of another mark are of no use.
    """

    folder: Path
    mark: str
    _unsaved: dict[Chunk, Solved] = field(default_factory=dict)
    _saved: float = field(default_factory=time.monotonic)

    def read(self, shard: int) -> dict[Chunk, tuple[Path, Solved]]:
        """Return what is kept, and in which file; a file that is cut short counts for nothing."""
        solved: dict[Chunk, tuple[Path, Solved]] = {}
        for path in sorted(self.folder.glob("[0-9]*.npz")):
            try:
                with np.load(path, allow_pickle=False) as file:
                    if str(file["mark"]) != self.mark:
                        continue
                    solutions, seconds = file["tours"], np.atleast_1d(file["seconds"])
                    # Without rows it is a file of one chunk, as there once were; its name tells them.
                    rows = file["rows"] if "rows" in file else np.array([path.stem.split("_")], dtype=np.int64)
            except (OSError, ValueError, KeyError, EOFError, BadZipFile):
                continue
            cuts = np.cumsum(rows[:, 1] - rows[:, 0])
            if len(solutions) != cuts[-1]:
                continue
            for (first, stop), part, took in zip(rows, np.split(solutions, cuts[:-1]), seconds, strict=True):
                solved[Chunk(shard, int(first), int(stop))] = path, (part, float(took))
        return solved

    def hold(self, chunk: Chunk, solutions: np.ndarray, seconds: float) -> None:
        """Keep a chunk; on the disk when the time has come."""
        self._unsaved[chunk] = solutions, seconds
        if time.monotonic() - self._saved >= KEEP_EVERY_S:
            self.save()

    def save(self) -> None:
        """Write what is held as a page.  Raises NeurouteError when the disk is full."""
        if self._unsaved:
            rows = np.array([(chunk.first, chunk.stop) for chunk in self._unsaved])
            solutions, seconds = zip(*self._unsaved.values(), strict=True)
            arrays: Any = {"tours": np.concatenate(solutions), "seconds": np.array(seconds), "rows": rows}
            path = self.folder / f"{rows[0, 0]:05d}_{rows[0, 1]:05d}.npz"  # nobody else has its first chunk
            write_whole(path, lambda file: np.savez(file, mark=np.array(self.mark), **arrays))
        self._unsaved.clear()
        self._saved = time.monotonic()


log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Part:
    """What the manifest says of one shard; its solutions are dropped, so that memory stays that of one shard."""

    shard: int
    rows: int  # of the data set
    sha256: str
    lengths: np.ndarray  # (rows,)
    facts: Facts
    rows_there: int  # rows of the shard that were looked at
    solved: int  # in this call


def make_labels(
    labels: Labels,
    store: Path,
    caches: Sequence[Path],
    workers: int,
    seed: int = 0,
    progress: bool = True,
    pool: Pool = None,
) -> dict[str, Any]:
    """Make sure that the store holds the solutions of a data set, and return its manifest.

    Rows come from the store, else from the longest file among the caches, else from the solver, in `workers`
    processes, those of `pool` if it is given.  A killed call goes on where it stopped and ends with the same bytes; a
    second process waits for the first.  Manifest: labels, solver, version, optimal, seed, count, seconds (solver
    seconds of the data set's rows, None when some are unknown), solved and cached (rows), mean_length, lengths (of test
    sets: each instance's, for gaps that are means over instances), shards [{shard, rows, sha256}].

    Raises NeurouteError if the solver is missing, a file does not fit, the disk is full, or a worker dies.
    """
    solver = get(labels.solver)
    check_folder(store)
    parts = labels.dataset.shards()
    absent = rows_missing(labels, [store, *caches])
    facts: Facts = {"solver": solver.name, "seed": seed, "optimal": solver.optimal, "cores": workers}
    if absent:
        facts["version"] = solver.version()
    job_parts: list[_Part] = []
    most_chunks = len(chunks(0, 0, min(absent, SHARD), labels.dataset.n, labels.solver))
    few = most_chunks <= 1  # for which starting processes would take longer
    with (
        solver_pool(1 if few or pool else workers) as own_pool,
        Progress(absent, labels.id, progress) as bar,
    ):
        for shard, first, stop in parts:
            with _turn(store, labels, shard):
                shard_pool = None if few else pool or own_pool
                job_parts.append(_ensure(labels, shard, first, stop, store, caches, facts, shard_pool, bar))
    return _manifest(labels, job_parts)


def solve_part(labels: Labels, store: Path, caches: Sequence[Path], part: tuple[int, int], pool: Pool = None) -> int:
    """Solve a part (k, of) of what a data set lacks, for `make_labels` to take; return how many instances.

    Several processes, on several machines that share the store, each make another part: every `of`-th chunk from the
    k-th on.  Raises NeurouteError as `make_labels` does, and if another process makes the same part.
    """
    solver = get(labels.solver)
    check_folder(store)
    facts: Facts = {"seed": 0, "version": solver.version()}
    count = before = 0
    for shard, _, stop in labels.dataset.shards():
        stem = Path(labels.shard_file(shard)).stem
        at_hand = rows_at_hand(labels, shard, [store, *caches])
        here = chunks(shard, at_hand, stop, labels.dataset.n, labels.solver)
        mine = [chunk for number, chunk in enumerate(here, before) if number % part[1] == part[0]]
        before += len(here)
        pages = Pages(store / ".partial" / stem, _mark(facts))
        name = f"part {part[0] + 1} of {part[1]} of {stem}"
        with exclusive(store / ".partial" / f"{stem}.{part[0]}.lock", name):
            solved_chunks = pages.read(shard)
            waiting = [chunk for chunk in mine if chunk not in solved_chunks]
            with Progress(sum(c.stop - c.first for c in waiting), name, show=True) as bar:
                for chunk, rows, _took in _solved(labels, facts, pages, pool, waiting, bar):
                    check_solutions(
                        labels, shard, chunk.first, rows, f"{labels.solver}, {stem}", "reinstall the solver"
                    )
                    count += len(rows)
            pages.save()
    return count


def _ensure(
    labels: Labels,
    shard: int,
    first: int,
    stop: int,
    store: Path,
    caches: Sequence[Path],
    solver_facts: Facts,
    pool: Pool,
    bar: Progress,
) -> _Part:
    """Have the store hold rows 0..stop-1 of a shard, and describe those from `first` on, the data set's.

    Rows that it had stay as they are.
    """
    path = store / labels.shard_file(shard)
    kind, n = spec_of(labels), labels.dataset.n
    solutions = np.empty((0, *kind.shape(n)), dtype=kind.dtype(n))
    lengths = np.empty(0)
    sources: list[Facts] = []

    def reuse(file: ShardFile) -> None:
        nonlocal solutions, lengths
        rows = np.array(file.solutions[len(solutions) : stop])
        lengths = np.append(lengths, check_solutions(labels, shard, len(solutions), rows, str(file.path)))
        solutions = np.concatenate([solutions, kind.canonical(rows)])
        sources.append(share_facts({"solver": labels.solver, **file.facts(labels, shard)}, len(rows)))

    def describe(solved: int) -> _Part:
        used = np.ascontiguousarray(solutions[first:])
        digest, part_facts = hashlib.sha256(used.tobytes()).hexdigest(), share_facts(merge_facts(sources), len(used))
        return _Part(shard, len(used), digest, lengths[first:], part_facts, len(solutions), solved)

    if store_file := ShardFile.open(labels, shard, store):
        reuse(store_file)
    if len(solutions) == stop:
        return describe(solved=0)
    for leftover in store.glob(f".{path.name}.*.tmp"):  # of a killed call; the lock is ours
        leftover.unlink()
    cached = [file for cache in caches if (file := ShardFile.open(labels, shard, cache))]
    longest = max(cached, key=lambda file: len(file.solutions), default=None)
    if longest and len(longest.solutions) > len(solutions):
        reuse(longest)
    fresh = stop - len(solutions)
    partial = store / ".partial" / path.stem
    if fresh:
        rows, new_lengths, seconds = _solve(labels, shard, len(solutions), stop, solver_facts, partial, pool, bar)
        solutions, lengths = np.concatenate([solutions, rows]), np.append(lengths, new_lengths)
        sources.append({**solver_facts, "seconds": seconds, "count": fresh})
    digest, mean = instances_digest(labels, shard, stop), float(lengths.mean())
    write_shard(path, solutions, {**merge_facts(sources), "instances_sha256": digest, "mean_length": mean})
    shutil.rmtree(partial, ignore_errors=True)
    return describe(solved=fresh)


def _solve(
    labels: Labels,
    shard: int,
    first: int,
    stop: int,
    facts: Facts,
    partial: Path,
    pool: Pool,
    bar: Progress,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return solutions of rows first..stop-1, their lengths, solver seconds.

    Solved chunks are kept in the folder `partial`, for a later call to pick up.
    """
    kind, n = spec_of(labels), labels.dataset.n
    solutions = np.empty((stop - first, *kind.shape(n)), dtype=kind.dtype(n))
    lengths = np.empty(stop - first)
    seconds = 0.0
    pages = Pages(partial, _mark(facts))

    def put(chunk: Chunk, rows: np.ndarray, took: float, where: str, mend: str) -> None:
        nonlocal seconds
        place = slice(chunk.first - first, chunk.stop - first)
        lengths[place] = check_solutions(labels, shard, chunk.first, rows, where, mend)
        solutions[place] = rows
        seconds += took

    waiting, solved_chunks = chunks(shard, first, stop, n, labels.solver), pages.read(shard)
    for chunk in [each for each in waiting if each in solved_chunks]:
        path, (rows, took) = solved_chunks[chunk]
        if rows.shape[1:] == kind.shape(n):
            put(chunk, rows, took, str(path), "delete it and run again")
            bar.skip(len(rows))
            waiting.remove(chunk)
    for chunk, rows, took in _solved(labels, facts, pages, pool, waiting, bar):
        put(chunk, rows, took, f"{labels.solver}, shard {shard} of {labels.id}", "reinstall the solver")
    return solutions, lengths, seconds


def _solved(
    labels: Labels, facts: Facts, pages: Pages, pool: Pool, waiting: list[Chunk], bar: Progress
) -> Iterator[tuple[Chunk, np.ndarray, float]]:
    """Yield what `solve_chunks` does, and keep it."""
    try:
        for chunk, rows, took in solve_chunks(pool, labels, facts["seed"], waiting, pages.folder):
            yield chunk, rows, took
            pages.hold(chunk, rows, took)
            bar.add(len(rows))
    except BaseException:
        pages.save()
        raise


def _mark(facts: Facts) -> str:
    """How chunks are made: one of another making is solved again."""
    return f"{facts['version']}, seed {facts['seed']}"


def _manifest(labels: Labels, job_parts: Sequence[_Part]) -> dict[str, Any]:
    solver = get(labels.solver)
    facts = merge_facts([part.facts for part in job_parts])
    fresh = sum(part.solved for part in job_parts)
    lengths = np.concatenate([part.lengths for part in job_parts])
    return {
        "labels": labels.id,
        "solver": solver.name,
        "version": facts["version"],
        "optimal": solver.optimal,
        "seed": facts["seed"],
        "cores": facts["cores"],
        "count": labels.dataset.count,
        "seconds": facts["seconds"],
        "solved": fresh,
        "cached": sum(part.rows_there for part in job_parts) - fresh,
        "mean_length": float(lengths.sum()) / labels.dataset.count,
        **({"lengths": lengths.tolist()} if labels.dataset.split == "test" else {}),
        "shards": [{"shard": part.shard, "rows": part.rows, "sha256": part.sha256} for part in job_parts],
    }


@contextmanager
def _turn(store: Path, labels: Labels, shard: int) -> Iterator[None]:
    """Hold a shard's lock; a second process waits here and then finds the rows done."""
    stem = Path(labels.shard_file(shard)).stem
    locks = store / ".partial"
    locks.mkdir(exist_ok=True)
    with open_lock(locks / f"{stem}.lock") as file:
        if not lock(file):
            log.info("%s: another process is making this shard; waiting for it", stem)
            lock(file, waits=True)
        yield
