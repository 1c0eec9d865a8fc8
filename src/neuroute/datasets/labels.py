"""The label store: solutions of instance streams, taken from caches or solved, verified, and extended in place.

A cache is a folder with one array per shard (`Labels.shard_file`): the solutions of the shard's first instances.  TSP
tours go from node 0 on, its smaller neighbour second; for CVRP see `problem_specs`.  A `.json` file of the same stem,
which may be missing, says how they were made (`store.Facts`).
"""

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.arrays import read_arrays
from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_folder, exclusive, lock, open_lock, write_whole
from neuroute.core.progress import Progress
from neuroute.datasets.chunks import SEED, Chunk, Pool, chunks, solve_chunks, solver_pool
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.store import (
    Facts,
    ShardFile,
    check_solutions,
    instances_digest,
    merge_facts,
    rows_at_hand,
    rows_missing,
    share_facts,
    write_shard,
)
from neuroute.solvers.registry import get
from neuroute.specs.objects import SHARD, Labels

log = logging.getLogger(__name__)


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
        """Return what is kept, and in which file; a file that is cut or damaged counts for nothing."""
        solved: dict[Chunk, tuple[Path, Solved]] = {}
        for path in sorted(self.folder.glob("[0-9]*.npz")):
            try:
                file = read_arrays(path, "", "mark", "tours", "seconds", "rows")
            except NeurouteError:
                continue
            if str(file["mark"]) != self.mark:
                continue
            solutions, seconds, rows = file["tours"], file["seconds"], file["rows"]
            cuts = np.cumsum(rows[:, 1] - rows[:, 0])
            if len(solutions) != cuts[-1]:
                continue
            for (first, stop), part, took in zip(rows, np.split(solutions, cuts[:-1]), seconds, strict=True):
                solved[Chunk(shard, int(first), int(stop))] = path, (part, float(took))
        return solved

    def put(self, chunk: Chunk, solutions: np.ndarray, seconds: float) -> None:
        """Keep a chunk; on the disk when the time has come."""
        self._unsaved[chunk] = solutions, seconds
        if time.monotonic() - self._saved >= KEEP_EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Write what is held as a page.  Raises NeurouteError when the disk is full."""
        if self._unsaved:
            rows = np.array([(chunk.first, chunk.stop) for chunk in self._unsaved])
            solutions, seconds = zip(*self._unsaved.values(), strict=True)
            arrays: Any = {"tours": np.concatenate(solutions), "seconds": np.array(seconds), "rows": rows}
            path = self.folder / f"{rows[0, 0]:05d}_{rows[0, 1]:05d}.npz"  # nobody else has its first chunk
            write_whole(path, lambda file: np.savez(file, mark=np.array(self.mark), **arrays))
        self._unsaved.clear()
        self._saved = time.monotonic()


@dataclass(frozen=True)
class _Part:
    """What the manifest says of one shard; its solutions are dropped, so that memory stays that of one shard."""

    shard: int
    sha256: str
    lengths: np.ndarray  # (rows,) of the data set
    facts: Facts
    rows_there: int  # rows of the shard that were looked at
    solved: int  # in this call


def make_labels(labels: Labels, store: Path, caches: Sequence[Path], workers: int, pool: Pool = None) -> dict[str, Any]:
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
    absent = rows_missing(labels, [store, *caches])
    facts: Facts = {"solver": solver.name, "seed": SEED, "optimal": solver.optimal, "cores": workers}
    if absent:
        facts["version"] = solver.version()
    # With one chunk, starting processes would take longer.
    few = len(chunks(0, 0, min(absent, SHARD), labels.dataset.n, labels.solver)) <= 1
    with solver_pool(1 if few or pool else workers) as own_pool, Progress(absent, labels.id) as bar:
        job = _Job(labels, store, caches, facts, None if few else pool or own_pool, bar)
        return _manifest(labels, [job.ensure(*part) for part in labels.dataset.shards()])


def solve_part(labels: Labels, store: Path, caches: Sequence[Path], part: tuple[int, int], pool: Pool = None) -> int:
    """Solve a part (k, of) of what a data set lacks, for `make_labels` to take; return how many instances.

    Several processes, on several machines that share the store, each make another part: every `of`-th chunk from the
    k-th on.  Raises NeurouteError as `make_labels` does, and if another process makes the same part.
    """
    facts: Facts = {"seed": SEED, "version": get(labels.solver).version()}
    check_folder(store)
    count = before = 0
    for shard, _, stop in labels.dataset.shards():
        stem = Path(labels.shard_file(shard)).stem
        here = chunks(shard, rows_at_hand(labels, shard, [store, *caches]), stop, labels.dataset.n, labels.solver)
        mine = [chunk for number, chunk in enumerate(here, before) if number % part[1] == part[0]]
        before += len(here)
        name = f"part {part[0] + 1} of {part[1]} of {stem}"
        with exclusive(store / ".partial" / f"{stem}.{part[0]}.lock", name):
            pages = _pages(labels, shard, store, facts)
            earlier = pages.read(shard)
            waiting = [chunk for chunk in mine if chunk not in earlier]
            with Progress(sum(c.stop - c.first for c in waiting), name) as bar:
                job = _Job(labels, store, caches, facts, pool, bar)
                count += sum(len(rows) for _, rows, _, _ in job.solve(pages, waiting))
            pages.flush()
    return count


def _pages(labels: Labels, shard: int, store: Path, facts: Facts) -> Pages:
    """Where chunks of a shard are kept that are solved alike."""
    mark = f"{facts.get('version')}, seed {facts['seed']}"
    return Pages(store / ".partial" / Path(labels.shard_file(shard)).stem, mark)


@dataclass(frozen=True)
class _Job:
    """What is labelled, where and how."""

    labels: Labels
    store: Path
    caches: Sequence[Path]
    facts: Facts  # of what is solved
    pool: Pool
    bar: Progress

    def ensure(self, shard: int, first: int, stop: int) -> _Part:
        """Have the store hold rows 0..stop-1 of a shard, and describe those from `first` on, the data set's.

        Rows that it had stay as they are.
        """
        labels, kind, n = self.labels, spec_of(self.labels), self.labels.dataset.n
        path, pages = self.store / labels.shard_file(shard), _pages(labels, shard, self.store, self.facts)
        solutions, lengths = np.empty((0, *kind.shape(n)), dtype=kind.dtype(n)), np.empty(0)
        sources, solved = list[Facts](), 0
        with _turn(path, pages.folder):
            files = [ShardFile.open(labels, shard, self.store)]
            is_there = files[0] is not None and len(files[0].solutions) >= stop
            if not is_there:
                cached = [file for cache in self.caches if (file := ShardFile.open(labels, shard, cache))]
                files.append(max(cached, key=lambda file: len(file.solutions), default=None))
            for file in files:
                if file and len(file.solutions) > len(solutions):
                    rows = np.array(file.solutions[len(solutions) : stop])
                    lengths = np.append(lengths, check_solutions(labels, shard, len(solutions), rows, str(file.path)))
                    solutions = np.concatenate([solutions, kind.canonical(rows)])
                    sources.append(share_facts({"solver": labels.solver, **file.facts(labels, shard)}, len(rows)))
            if not is_there:
                for leftover in self.store.glob(f".{path.name}.*.tmp"):  # of a killed call; the lock is ours
                    leftover.unlink()
                if solved := stop - len(solutions):
                    rows, new_lengths, seconds = self._rest(shard, len(solutions), stop, pages)
                    solutions, lengths = np.concatenate([solutions, rows]), np.append(lengths, new_lengths)
                    sources.append({**self.facts, "seconds": seconds, "count": solved})
                digest, mean = instances_digest(labels, shard, stop), float(lengths.mean())
                write_shard(path, solutions, {**merge_facts(sources), "instances_sha256": digest, "mean_length": mean})
                shutil.rmtree(pages.folder, ignore_errors=True)
        used = np.ascontiguousarray(solutions[first:])
        sha256, facts = hashlib.sha256(used.tobytes()).hexdigest(), share_facts(merge_facts(sources), len(used))
        return _Part(shard, sha256, lengths[first:], facts, len(solutions), solved)

    def _rest(self, shard: int, first: int, stop: int, pages: Pages) -> tuple[np.ndarray, np.ndarray, float]:
        """Return solutions of rows first..stop-1, their lengths, solver seconds: of earlier calls, or solved now."""
        n, shape = self.labels.dataset.n, spec_of(self.labels).shape(self.labels.dataset.n)
        waiting, earlier = chunks(shard, first, stop, n, self.labels.solver), pages.read(shard)
        parts: dict[int, tuple[np.ndarray, np.ndarray, float]] = {}  # by their first row
        for chunk in [each for each in waiting if each in earlier]:
            path, (rows, took) = earlier[chunk]
            if rows.shape[1:] == shape:
                parts[chunk.first] = rows, check_solutions(self.labels, shard, chunk.first, rows, str(path)), took
                self.bar.skip(len(rows))
                waiting.remove(chunk)
        for chunk, rows, lengths, took in self.solve(pages, waiting):
            parts[chunk.first] = rows, lengths, took
        all_rows, all_lengths, seconds = zip(*(parts[key] for key in sorted(parts)), strict=True)
        return np.concatenate(all_rows), np.concatenate(all_lengths), sum(seconds)

    def solve(self, pages: Pages, waiting: list[Chunk]) -> Iterator[tuple[Chunk, np.ndarray, np.ndarray, float]]:
        """Yield each chunk with its solutions, their lengths and solver seconds, and keep it for a later call."""
        try:
            for chunk, rows, took in solve_chunks(self.pool, self.labels, waiting, pages.folder):
                where = f"{self.labels.solver}, shard {chunk.shard} of {self.labels.id}"
                lengths = check_solutions(self.labels, chunk.shard, chunk.first, rows, where, "reinstall the solver")
                yield chunk, rows, lengths, took
                pages.put(chunk, rows, took)
                self.bar.add(len(rows))
        except BaseException:
            pages.flush()
            raise


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
        "shards": [{"shard": part.shard, "rows": len(part.lengths), "sha256": part.sha256} for part in job_parts],
    }


def pack_labels(labels: Labels, store: Path, path: Path) -> None:
    """Write all that the store holds of a data set as one file, for jobs elsewhere; equal solutions, equal bytes."""
    arrays: dict[str, Any] = {}
    for shard, _, stop in labels.dataset.shards():
        file = ShardFile.open(labels, shard, store)
        assert file is not None
        facts = share_facts(file.facts(labels, shard), stop)
        facts |= {"instances_sha256": instances_digest(labels, shard, stop), "mean_length": None}
        facts |= {"seconds": None, "cores": None}  # which differ from call to call
        arrays |= {f"rows{shard}": file.solutions[:stop], f"facts{shard}": np.array(json.dumps(facts, sort_keys=True))}
    write_whole(path, lambda stream: np.savez(stream, **arrays))


def restore_labels(every: Iterable[Labels], store: Path, packed: Callable[[str], Path]) -> None:
    """Put into the store what it lacks of data sets, from the files that their label jobs have left (by id).

    Raises NeurouteError if a file is damaged; what is in it is checked where it is read.
    """
    for labels in dict.fromkeys(every):
        path = packed(labels.id)
        if not rows_missing(labels, [store]) or not path.exists():
            continue
        keys = [f"{key}{shard}" for shard, _, _ in labels.dataset.shards() for key in ("rows", "facts")]
        arrays = read_arrays(path, f"make it again: `neuroute label {labels.id}`", *keys)
        for shard, _, stop in labels.dataset.shards():
            shard_path = store / labels.shard_file(shard)
            store.mkdir(parents=True, exist_ok=True)
            with _turn(shard_path, store / ".partial" / shard_path.stem):
                if rows_at_hand(labels, shard, [store]) < stop:
                    write_shard(shard_path, arrays[f"rows{shard}"], json.loads(str(arrays[f"facts{shard}"])))


@contextmanager
def _turn(path: Path, partial: Path) -> Iterator[None]:
    """Hold a shard's lock; a second process waits here and then finds the rows done."""
    partial.parent.mkdir(exist_ok=True)
    with open_lock(partial.with_name(f"{path.stem}.lock")) as file:
        if not lock(file):
            log.info("%s: another process is making this shard; waiting for it", path.stem)
            lock(file, waits=True)
        yield
