"""Labels that are there: how many, and the solutions themselves, checked when they are read."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.shard_files import ShardFile, stream_part
from neuroute.specs.objects import SHARD, Labels


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
                        f"{file.path}: row {first + int(np.argmin(valid))} is not a {kind.noun}; delete the file and "
                        "run `neuroute label` for its label job"
                    )
                if shard in digests and digests[shard] not in (_sha256(solutions), _sha256(kind.canonical(solutions))):
                    raise NeurouteError(
                        f"{file.path}: rows {first}..{stop - 1} are not those that the manifest of {job.id} states; "
                        f"put the file back, or delete it and its .json and run `neuroute label {job.id}`"
                    )
                yield shard * SHARD + first, solutions
                break
        else:
            places = ", ".join(map(str, directories))
            raise NeurouteError(
                f"{labels.shard_file(shard)}: no {stop} {kind.noun}s in {places}; make them with `neuroute label` "
                "and the id of their label job (`neuroute plan` lists it)"
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
