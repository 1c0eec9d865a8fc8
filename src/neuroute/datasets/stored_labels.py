"""Labels that are there: how many, and the solutions themselves, checked when they are read."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import spec_of
from neuroute.datasets.shard_files import ShardFile, stream_part
from neuroute.plan.objects import SHARD, Labels


def rows_missing(labels: Labels, folders: Sequence[Path]) -> int:
    """Count the rows of a data set that none of the folders holds: what is left for the solver."""
    parts = labels.dataset.shards()
    return sum(max(stop - rows_at_hand(labels, shard, folders), 0) for shard, _, stop in parts)


def load_tours(labels: Labels, directories: Sequence[Path], check: bool = True) -> np.ndarray:
    """Return the tours of a data set: (count, n), uint8 for n <= 256; with vehicles solutions (count, 2, n).

    Raises NeurouteError if some are missing, or, unless they have been checked before, are none.
    """
    return np.concatenate([solutions for _, solutions in iterate_shards(labels, directories, check)])


def iterate_shards(labels: Labels, directories: Sequence[Path], check: bool = True) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (number of the first instance, solutions (rows, ...)) of each shard, one in memory at a time.

    The first directory that holds enough rows serves.  Raises NeurouteError if none does, or, with `check`, if a
    solution is none.
    """
    kind = spec_of(labels)
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
                yield shard * SHARD + first, solutions
                break
        else:
            places = ", ".join(map(str, directories))
            raise NeurouteError(
                f"{labels.shard_file(shard)}: no {stop} {kind.noun}s in {places}; make them with `neuroute label` "
                "and the id of their label job (`neuroute plan` lists it)"
            )


def rows_at_hand(labels: Labels, shard: int, folders: Sequence[Path]) -> int:
    """Count the rows of a shard that the folder with the most of them holds."""
    files = [ShardFile.open(labels, shard, folder) for folder in folders]
    return max((len(file.solutions) for file in files if file), default=0)
