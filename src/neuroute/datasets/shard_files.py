"""The files of a label cache: one array of tours per shard, and beside it what is known of how they were made."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.datasets.streams import coordinates
from neuroute.errors import NeurouteError
from neuroute.files import write_json, write_whole
from neuroute.plan.objects import SHARD, Labels
from neuroute.problems.tsp import is_permutation, tour_length

# Solvers whose tours are never longer than the nearest neighbour's.
REFERENCES = ("concorde", "lkh", "lkh3", "hgs")
TOLERANCE = 1e-7  # relative

Facts = dict[str, Any]  # solver, version, seed, optimal, seconds, cores, count, instances_sha256, mean_length


def tour_dtype(n: int) -> np.dtype:
    """The smallest unsigned type that holds a node number."""
    return np.dtype(np.uint8 if n <= 256 else np.uint16 if n <= 65536 else np.uint32)


def stream_part(labels: Labels, shard: int, first: int, stop: int) -> np.ndarray:
    """Coordinates of rows first..stop-1 of a shard: float32 (stop - first, n, 2)."""
    d = labels.dataset
    return coordinates(d.distribution, d.split, d.n, shard * SHARD + first, stop - first)


def check_tours(
    labels: Labels, shard: int, first: int, tours: np.ndarray, where: str, mend: str = "delete it and run again"
) -> np.ndarray:
    """Lengths float64 (rows,) of tours (rows, n), which start at row `first` of the shard.

    Raises NeurouteError, naming `where` and the row, for a row that is no permutation, or, from a reference solver,
    longer than the nearest neighbour's tour: such a tour belongs to another instance.
    """
    bad = np.flatnonzero(~is_permutation(tours))
    if len(bad):
        raise NeurouteError(f"{where}: row {first + bad[0]} does not visit every node once; {mend}")
    coords = stream_part(labels, shard, first, first + len(tours))
    lengths = tour_length(coords, tours)
    if labels.solver in REFERENCES:  # compiles, so only where it is needed
        from neuroute.solvers.nearest import nearest_neighbour_lengths

        bad = np.flatnonzero(lengths > nearest_neighbour_lengths(coords) * (1 + TOLERANCE))
        if len(bad):
            raise NeurouteError(
                f"{where}: row {first + bad[0]} is longer than the nearest-neighbour tour, so it belongs to another "
                f"instance; {mend}"
            )
    return lengths


@dataclass(frozen=True)
class ShardFile:
    """A shard's file in some cache: the tours of the first `len(tours)` instances of the shard, mapped from disk."""

    path: Path
    tours: np.ndarray  # (rows, n)

    @classmethod
    def open(cls, labels: Labels, shard: int, folder: Path) -> "ShardFile | None":
        """None when the folder has no such file.  Raises NeurouteError for a file that is cut short or ill-formed."""
        path = folder / labels.shard_file(shard)
        n, dtype = labels.dataset.n, tour_dtype(labels.dataset.n)
        try:
            tours = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            return None
        except PermissionError:
            raise NeurouteError(f"{path}: cannot be read; check the file's rights") from None
        except (ValueError, EOFError, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else "empty"
            raise NeurouteError(f"{path}: no .npy file, or cut short ({reason}); delete it and run again") from None
        if tours.dtype != dtype or tours.ndim != 2 or tours.shape[1] != n or len(tours) > SHARD:
            raise NeurouteError(
                f"{path}: {tours.dtype} {tours.shape} where {dtype} (up to {SHARD}, {n}) is expected; "
                "delete it and run again"
            )
        return cls(path, tours)

    def facts(self, labels: Labels, shard: int) -> Facts:
        """The sidecar, empty when there is none.  Raises NeurouteError when it speaks of other instances."""
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
                f"{path}: instances_sha256 is not that of rows 0..{count - 1} of this shard, so {self.path.name} may "
                "label other instances; delete both and run again"
            )
        return dict(facts)


def instances_digest(labels: Labels, shard: int, count: int) -> str:
    """SHA-256 of the float32 coordinates of a shard's first `count` instances."""
    return hashlib.sha256(stream_part(labels, shard, 0, count).tobytes()).hexdigest()


def write_shard(path: Path, tours: np.ndarray, facts: Facts) -> None:
    """Replace a shard's file and its sidecar, each as a whole."""
    write_whole(path, lambda file: np.save(file, tours))
    write_json(path.with_suffix(".json"), facts)
