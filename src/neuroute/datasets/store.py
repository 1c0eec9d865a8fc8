"""The store of labels: shards of solutions, addressed by what was solved and by whom."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_json, write_whole
from neuroute.datasets.problem_spec import spec_of
from neuroute.specs.objects import SHARD, Dataset, Labels

# Solvers whose solutions are never longer than the nearest neighbour's.
REFERENCES = ("concorde", "concorde-6h", "lkh", "lkh-long", "lkh3", "hgs", "hgs-short", "hgs-long", "hgs-timed")
TOLERANCE = 1e-7  # relative

Facts = dict[str, Any]  # solver, version, seed, optimal, seconds, cores, count, instances_sha256, mean_length


def stream_part(labels: Labels, shard: int, first: int, stop: int) -> Dataset:
    """Return rows first..stop-1 of a shard."""
    return labels.dataset.model_copy(update={"first": shard * SHARD + first, "count": stop - first})


def check_solutions(
    labels: Labels, shard: int, first: int, solutions: np.ndarray, where: str, mend: str = "delete it and run again"
) -> np.ndarray:
    """Return lengths (rows,) float64 of solutions (rows, ...), which start at row `first` of the shard.

    Raises NeurouteError, naming `where` and the row, if one is no solution, or, from a reference solver, longer than
    the nearest neighbour's and so of another instance.
    """
    kind = spec_of(labels)
    instances = kind.instances(stream_part(labels, shard, first, first + len(solutions)))
    bad = np.flatnonzero(~kind.valid(instances, solutions))
    if len(bad):
        raise NeurouteError(f"{where}: row {first + bad[0]} does not {kind.meaning}; {mend}")
    lengths = kind.lengths(instances, solutions)
    if labels.solver in REFERENCES:
        bad = np.flatnonzero(lengths > kind.simple_lengths(instances) * (1 + TOLERANCE))
        if len(bad):
            raise NeurouteError(
                f"{where}: row {first + bad[0]} is longer than the nearest-neighbour {kind.noun.split()[-1]}, so it "
                f"belongs to another instance; {mend}"
            )
    return lengths


@dataclass(frozen=True)
class ShardFile:
    """A shard's file in some cache: the solutions of the shard's first instances, mapped from disk."""

    path: Path
    solutions: np.ndarray  # (rows, *Kind.shape)

    @classmethod
    def open(cls, labels: Labels, shard: int, folder: Path) -> "ShardFile | None":
        """Open it; None if the folder has no such file.  Raises NeurouteError if it is cut short or ill-formed."""
        path = folder / labels.shard_file(shard)
        kind, n = spec_of(labels), labels.dataset.n
        shape, dtype = kind.shape(n), kind.dtype(n)
        try:
            solutions = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            return None
        except PermissionError:
            raise NeurouteError(f"{path}: cannot be read; check the file's rights") from None
        except (ValueError, EOFError, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else "empty"
            raise NeurouteError(f"{path}: no .npy file, or cut short ({reason}); delete it and run again") from None
        if solutions.dtype != dtype or solutions.shape[1:] != shape or solutions.ndim == 0 or len(solutions) > SHARD:
            expected = ", ".join(map(str, shape))
            raise NeurouteError(
                f"{path}: {solutions.dtype} {solutions.shape} where {dtype} (up to {SHARD}, {expected}) is expected; "
                "delete it and run again"
            )
        return cls(path, solutions)

    def facts(self, labels: Labels, shard: int) -> Facts:
        """Return the sidecar, empty if there is none.  Raises NeurouteError if it is of other instances."""
        path = self.path.with_suffix(".json")
        try:
            facts = json.loads(path.read_text())
            count, digest = (facts.get(key) for key in ("count", "instances_sha256"))
            if digest is None:
                return dict(facts)
            if not isinstance(count, int) or not 0 < count <= SHARD:
                raise ValueError
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError):
            raise NeurouteError(f"{path}: no valid sidecar; delete it and run again") from None
        if digest != instances_digest(labels, shard, count):
            raise NeurouteError(
                f"{path}: instances_sha256 is not that of rows 0..{count - 1}: {self.path.name} may label other "
                "instances; delete both and run again"
            )
        return dict(facts)


def instances_digest(labels: Labels, shard: int, count: int) -> str:
    """Return the SHA-256 of the arrays of a shard's first `count` instances (TSP: their float32 coordinates)."""
    kind = spec_of(labels)
    digest = hashlib.sha256()
    for array in kind.arrays(kind.instances(stream_part(labels, shard, 0, count))):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def write_shard(path: Path, solutions: np.ndarray, facts: Facts) -> None:
    """Replace a shard's sidecar and its file, each as a whole.

    In this order: a kill between them leaves facts of more rows than there are, never rows of unknown making.
    """
    write_json(path.with_suffix(".json"), facts)
    write_whole(path, lambda file: np.save(file, solutions))


def share_facts(facts: Facts, rows: int) -> Facts:
    """Return the facts of only some rows of a file, which take their share of the solver seconds."""
    seconds, count = facts.get("seconds"), facts.get("count")
    return {**facts, "seconds": seconds * rows / count if seconds is not None and count else None, "count": rows}


def merge_facts(sources: Sequence[Facts]) -> Facts:
    """Return the facts of all sources' rows together; None where they differ or one does not say."""
    facts: Facts = {"count": sum(source["count"] for source in sources)}
    for key in ("solver", "version", "seed", "optimal", "cores"):
        values = [source.get(key) for source in sources]
        facts[key] = values[0] if all(v == values[0] for v in values) else None
    seconds = [source.get("seconds") for source in sources]
    facts["seconds"] = None if None in seconds else sum(seconds)
    return facts


def labels_digest(manifests: Iterable[Path]) -> str:
    """Return a digest of the solutions that label jobs have made, from their manifests (<job>.json)."""
    shards = []
    for path in manifests:
        manifest = read_json(path, f"make it with `neuroute label {path.stem}`", "labels", "shards")
        shards += [[manifest["labels"], s["shard"], s["sha256"]] for s in manifest["shards"]]
    return hashlib.sha256(json.dumps(shards, sort_keys=True).encode()).hexdigest()


def label_digests(jobs: Iterable[str], folders: Sequence[Path]) -> dict[str, str]:
    """Return the digest of each job's solutions, of those whose manifest lies in one of the folders."""
    manifests = [path for job in dict.fromkeys(jobs) for folder in folders if (path := folder / f"{job}.json").exists()]
    return {path.stem: labels_digest([path]) for path in reversed(manifests)}


def rows_missing(labels: Labels, folders: Sequence[Path]) -> int:
    """Count the rows of a data set that none of the folders holds: what is left for the solver."""
    parts = labels.dataset.shards()
    return sum(max(stop - rows_at_hand(labels, shard, folders), 0) for shard, _, stop in parts)


def check_made(every: Iterable[Labels], folders: Sequence[Path]) -> None:
    """Raise NeurouteError, in one line, if rows of a data set lie in none of the folders."""
    for labels in every:
        if lacking := rows_missing(labels, folders):
            places = ", ".join(map(str, folders))
            raise NeurouteError(
                f"{labels.id}: {lacking:,} of {labels.dataset.count:,} solutions are not in {places}; make them with "
                f"`neuroute label {labels.id}`"
            )


def load_tours(
    labels: Labels, directories: Sequence[Path], check: bool = True, job: Labels | None = None
) -> np.ndarray:
    """Return the tours of a data set: (count, n), uint8 for n <= 256; with vehicles solutions (count, 2, n).

    Raises NeurouteError if some are missing, or, unless they have been checked before, as `iterate_shards` does.
    """
    return np.concatenate([solutions for _, solutions in iterate_shards(labels, directories, check, job)])


def iterate_shards(
    labels: Labels, directories: Sequence[Path], check: bool = True, job: Labels | None = None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (number of the first instance, solutions (rows, ...)) of each shard, one in memory at a time.

    The first directory that holds enough rows serves; manifests lie in any of them.  job: what made the rows, if they
    are whole shards of a larger data set.  Raises NeurouteError if no directory serves, or, with `check`, if a solution
    is none, or the rows are not those that the job's manifest states, where there is one.
    """
    kind = spec_of(labels)
    job = job or labels
    digests = _digests(job, directories) if check else {}
    for shard, first, stop in labels.dataset.shards():
        for directory in directories:
            file = ShardFile.open(labels, shard, directory)
            if file and len(file.solutions) >= stop:
                solutions = np.array(file.solutions[first:stop])
                instances = kind.instances(stream_part(labels, shard, first, stop)) if check else None
                if instances is not None and not (valid := kind.valid(instances, solutions)).all():
                    raise NeurouteError(
                        f"{file.path}: row {first + int(np.argmin(valid))} is not a {kind.noun}; delete it and rerun "
                        "its `neuroute label`"
                    )
                if shard in digests and digests[shard] not in (_sha256(solutions), _sha256(kind.canonical(solutions))):
                    raise NeurouteError(
                        f"{file.path}: rows {first}..{stop - 1} differ from the manifest of {job.id}; restore it, or "
                        f"delete it and its .json and run `neuroute label {job.id}`"
                    )
                yield shard * SHARD + first, solutions
                break
        else:
            places = ", ".join(map(str, directories))
            raise NeurouteError(
                f"{labels.shard_file(shard)}: no {stop} {kind.noun}s in {places}; run `neuroute label` with its job "
                "(`neuroute plan` lists it)"
            )


def _digests(job: Labels, directories: Sequence[Path]) -> dict[int, str]:
    """Return the sha256 of a job's rows in each shard, as its manifest states them; empty without one."""
    for directory in directories:
        path = directory / f"{job.id}.json"
        if path.exists():
            manifest = read_json(path, f"make it with `neuroute label {job.id}`", "shards")
            return {each["shard"]: each["sha256"] for each in manifest["shards"]}
    return {}


def _sha256(rows: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()


def rows_at_hand(labels: Labels, shard: int, folders: Sequence[Path]) -> int:
    """Count the rows of a shard that the folder with the most of them holds."""
    files = [ShardFile.open(labels, shard, folder) for folder in folders]
    return max((len(file.solutions) for file in files if file), default=0)
