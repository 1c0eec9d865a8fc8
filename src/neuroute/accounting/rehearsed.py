"""What a rehearsal has measured on this machine, kept in one file that plan, requests and the progress line read."""

from functools import cache
from pathlib import Path
from typing import Literal

from neuroute.accounting.shortened import ITERATIONS
from neuroute.core.files import read_json, write_text
from neuroute.plan.config import Config
from neuroute.plan.preflight import gpus
from neuroute.plan.specs import Spec
from neuroute.plan.yaml_files import validate

Kind = Literal["cpu", "cuda"]
BySize = dict[int, float]
FILE = "rehearsal.json"
MEND = "rehearse again: neuroute rehearse"


class TrainingPace(Spec):
    """Of trainings that are equal but for how many batches they have."""

    of: str  # the run that was rehearsed
    batches_s: tuple[float, ...]  # a batch of each stage
    made_s: float = 0.0  # to make labels of an instance, for each iteration of a search (`shortened.labels_made`)
    validation_s: float
    validated: int  # instances of that validation
    rest_s: float  # what comes once: data, files
    memory_mb: float


class PiecePace(Spec):
    """Of one batch of a test: what is built first and each iteration of a search, and what comes once beside them."""

    of: str  # the evaluation that it was rehearsed in
    rest_s: float
    first_s: float
    each_s: float = 0.0
    memory_mb: float

    def seconds(self, times: float, iterations: int) -> float:
        return self.rest_s + times * (self.first_s + max(0, iterations - ITERATIONS[0]) * self.each_s)


class Paces(Spec):
    """All that was rehearsed on one kind of device, by the keys of `shortened`."""

    measured: str  # when
    device: str
    trainings: dict[str, TrainingPace] = {}
    pieces: dict[str, PiecePace] = {}


class Rehearsal(Spec):
    """Of a machine.  `solvers`: seconds of one core for one instance of n nodes."""

    start_s: float | None = None  # from the start of a process to its first batch
    devices: dict[Kind, Paces] = {}
    solvers: dict[str, BySize] = {}


def rehearsal_file(config: Config) -> Path:
    return Path(config.work_dir) / FILE


def kind_of(config: Config) -> Kind:
    """The kind of device that networks run on."""
    return "cuda" if gpus(config) else "cpu"


def rehearsal_of(config: Config) -> Rehearsal:
    """What was rehearsed; nothing yet where there is no file.  Raises NeurouteError for a damaged one."""
    path = rehearsal_file(config)
    return _read(path, path.stat().st_mtime_ns) if path.exists() else Rehearsal()


@cache
def _read(path: Path, _changed: int) -> Rehearsal:
    return validate(Rehearsal, read_json(path, MEND), str(path))


def keep_rehearsal(config: Config, kind: Kind, paces: Paces, solvers: dict[str, BySize], start_s: float) -> Path:
    """Write it; what was rehearsed before, at another scale or on another kind of device, stays beside it."""
    before = rehearsal_of(config)
    earlier = before.devices.get(kind)
    if earlier is not None and earlier.device == paces.device:
        update = {"trainings": earlier.trainings | paces.trainings, "pieces": earlier.pieces | paces.pieces}
        paces = paces.model_copy(update=update)
    points = {name: before.solvers.get(name, {}) | points for name, points in solvers.items()}
    everything = Rehearsal(start_s=start_s, devices=before.devices | {kind: paces}, solvers=before.solvers | points)
    path = rehearsal_file(config)
    write_text(path, everything.model_dump_json(indent=1) + "\n")
    return path
