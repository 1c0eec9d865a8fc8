"""What is solved of a shard that is not done: pages of chunks in a folder of its own, one once in a while."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from neuroute.core.files import write_whole
from neuroute.datasets.chunks import Chunk

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
