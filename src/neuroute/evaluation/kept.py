"""What an evaluation has measured so far: kept on disk while it runs, so that a killed one goes on where it was."""

import hashlib
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from neuroute.core.files import write_whole
from neuroute.evaluation.records import Arrays, Rows

KEEP_EVERY_S = 60.0  # between two visits to the disk; a short evaluation keeps nothing


@dataclass
class MeasuredSteps:
    """Arrays by name, in a folder that belongs to one evaluation of one model on one kind of machine.

    What is held goes to the disk together, once in `KEEP_EVERY_S`: a kill costs no more than that, and the step at
    hand.  Without a folder nothing is kept.
    """

    folder: Path | None = None
    part: tuple[int, int] = (0, 1)  # (k, of): of what can be split, only every `of`-th from the k-th on is measured
    _unsaved: dict[str, Arrays] = field(default_factory=dict)
    _saved: float = field(default_factory=time.monotonic)
    _units: int = 0

    def once(self, name: str, measure: Callable[[], tuple[Rows, Arrays]], splits: bool = True) -> tuple[Rows, Arrays]:
        """Return what `measure` does, or did before a kill.

        Of a part of an evaluation only its share is measured, the rest is empty; what does not split is its first's.
        """
        mine = self._units % self.part[1] == self.part[0] if splits else self.part[0] == 0
        self._units += splits
        if arrays := self.load(name):
            rows = json.loads(str(arrays.pop("rows")))
            return rows, {key.removeprefix("array|"): array for key, array in arrays.items()}
        if not mine:
            return [], {}
        rows, arrays = measure()
        for step in [key for key in self._unsaved if key.startswith(f"{name}|")]:  # on the way here
            del self._unsaved[step]
        self.hold(name, {"rows": np.array(json.dumps(rows)), **{f"array|{key}": a for key, a in arrays.items()}})
        return rows, arrays

    def load(self, name: str) -> Arrays | None:
        """Return the arrays of that name; None if they are not there, or of no use."""
        if self.folder is None or name in self._unsaved:
            return dict(self._unsaved[name]) if name in self._unsaved else None
        try:
            with np.load(self._path(name), allow_pickle=False) as file:
                return dict(file)
        except (OSError, ValueError, EOFError, BadZipFile):
            return None  # measured again

    def hold(self, name: str, arrays: Arrays) -> None:
        """Keep the arrays under that name; on the disk when the time has come, or with `save`."""
        if self.folder is not None:
            self._unsaved[name] = arrays
            if self.due():
                self.save()

    def due(self) -> bool:
        """Whether it is time to save again."""
        return self.folder is not None and time.monotonic() - self._saved >= KEEP_EVERY_S

    def save(self) -> None:
        """Write all that is held.  Raises NeurouteError when the disk is full."""
        for name, arrays in self._unsaved.items():
            write_whole(self._path(name), lambda file, a=arrays: np.savez(file, **a))  # type: ignore[misc]
        self._unsaved.clear()
        self._saved = time.monotonic()

    def finish(self) -> None:
        """Forget all: the records are written."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.npz"


@dataclass
class KeptDecoding:
    """One decoding's place in `MeasuredSteps` (`decoding.decode.Keeper`)."""

    steps: MeasuredSteps
    name: str

    def due(self) -> bool:
        return self.steps.due()

    def load(self) -> Arrays | None:
        return self.steps.load(self.name)

    def hold(self, arrays: Arrays) -> None:
        self.steps.hold(self.name, arrays)
