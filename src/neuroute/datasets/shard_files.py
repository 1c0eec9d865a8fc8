"""The files of a label cache: one array of solutions per shard, and beside it how they were made.

What a solution is, and what an instance, is the problem's (`ProblemSpec`): TSP tours (rows, n), CVRP solutions
(rows, 2, n).
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_json, write_whole
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
                f"{path}: instances_sha256 is not that of rows 0..{count - 1} of this shard, so {self.path.name} may "
                "label other instances; delete both and run again"
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
