"""A trained model, ready to be measured; what it is measured on; and the rows that its measurements become."""

import csv
import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroute.analysis.rescaling import factor_for, read_best
from neuroute.core import device as devices
from neuroute.core.arrays import read_arrays
from neuroute.core.errors import NeurouteError
from neuroute.core.files import check_writable, write_whole
from neuroute.core.lazy import pd
from neuroute.core.text import csv_text
from neuroute.decoding.decode import Keeper, instances_per_batch
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.weights import check_weights, describe_source, load_checkpoint, parameters
from neuroute.specs.objects import Dataset, Decoding, Run

# weights: where they come from if they were not trained here; precision: of the network's products.
COLUMNS = (
    "paper", "run", "group", "seed", "test", "distribution", "n", "n_instances", "reference", "decoding", "method",
    "beam", "log_n", "batch_size", "metric", "value", "unit", "device", "threads", "torch", "scale", "code",
    "wall_time_s", "weights", "precision",
)  # fmt: skip
UNITS = {
    "gap_pct": "%",
    "gap_mean_of_ratios_pct": "%",
    "gap_rounded_pct": "%",
    "gap_spread_pct": "%",
    "reference_feasible_pct": "%",
    "rescale_factor": "",
    "length": "",
    "time_s": "s",
    "peak_memory_mb": "MiB",
    "gflops_paper": "GFLOP",
    "gflops_shrinking": "GFLOP",
    "parameters": "",
    "success_pct": "%",
    "decisions": "",
    "out_of_memory": "",
    "share_at_once": "",
}
CLOCKS = ("time_s", "peak_memory_mb")  # metrics that another run of the same measures anew
CLOCK_ARRAYS = re.compile("seconds|^efficiency/")  # names of arrays, likewise
VALUES = (
    "run", "group", "seed", "test", "distribution", "n", "n_instances", "reference", "decoding", "metric", "value",
    "unit", "weights", "precision",
)  # fmt: skip
Rows = list[dict[str, Any]]  # one record each, keys of COLUMNS
Arrays = dict[str, np.ndarray]  # what does not fit a row


def describe_test(dataset: Dataset, reference: str = "none", instances: int | None = None) -> dict[str, Any]:
    """Return the columns that name what is measured: a data set, or some instances of it, against a reference."""
    count = dataset.count if instances is None else instances
    about = {"test": dataset.id, "distribution": dataset.distribution, "n": dataset.n}
    return {**about, "n_instances": count, "reference": reference}


def write_records(out: Path, rows: Rows, arrays: Mapping[str, np.ndarray]) -> None:
    """Write `out` (.csv, one row per number) and its .npz twin (the arrays), each whole."""
    table = csv_text(pd.DataFrame(rows, columns=list(COLUMNS)))
    write_whole(out.with_suffix(".npz"), lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]
    write_whole(out, lambda file: file.write(table.encode()))


RECORDS = ",".join(COLUMNS[:4]).encode()  # that a file of them begins with


def check_records(option: str, path: Path) -> None:
    """Raises NeurouteError if records cannot be written: `path` (.csv), and the lengths beside it (.npz).

    Files of these names that are no records, such as the user's instances, are not overwritten: arrays of lengths are
    called "<test>|<decoding>", as `write_records` calls them.
    """
    twin = path.with_suffix(".npz")
    for each in (path, twin):
        check_writable(option, each)
    if path.exists() and path.read_bytes()[: len(RECORDS)] != RECORDS:
        raise NeurouteError(f"{option} {path}: is there, and holds no records; choose another name")
    if not twin.exists():
        return
    try:
        is_ours = all("|" in key for key in read_arrays(twin))
    except NeurouteError:
        is_ours = False
    if not is_ours:
        raise NeurouteError(
            f"{option} {path}: lengths would be written to {twin}, which is another file; choose another name"
        )


def values_digest(table: Path) -> str:
    """Return a sha256 of the values of a table and its .npz: without times, and without machine, versions and code."""
    digest = hashlib.sha256()
    with table.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["metric"] not in CLOCKS:
                digest.update(repr([row[column] for column in VALUES]).encode())
    for name, array in sorted(read_arrays(table.with_suffix(".npz")).items()):
        if not CLOCK_ARRAYS.search(name):
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


# -- What an evaluation has measured so far: kept on disk while it runs, so that a killed one goes on where it was

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

    def measure_once(
        self, name: str, measure: Callable[[], tuple[Rows, Arrays]], splits: bool = True, shared: bool = False
    ) -> tuple[Rows, Arrays]:
        """Return what `measure` does, or did before a kill.

        Of a part of an evaluation only its share is measured, the rest is empty; what does not split is its first's,
        and what is shared every one's.
        """
        mine = shared or (self._units % self.part[1] == self.part[0] if splits else self.part[0] == 0)
        self._units += splits
        if arrays := self.load(name):
            rows = json.loads(str(arrays.pop("rows")))
            return rows, {key.removeprefix("array|"): array for key, array in arrays.items()}
        if not mine:
            return [], {}
        rows, arrays = measure()
        for step in [key for key in self._unsaved if key.startswith(f"{name}|")]:  # on the way here
            del self._unsaved[step]
        self.put(name, {"rows": np.array(json.dumps(rows)), **{f"array|{key}": a for key, a in arrays.items()}})
        return rows, arrays

    def load(self, name: str) -> Arrays | None:
        """Return the arrays of that name; None if they are not there, or of no use."""
        if self.folder is None or name in self._unsaved:
            return dict(self._unsaved[name]) if name in self._unsaved else None
        try:
            return read_arrays(self._path(name))
        except NeurouteError:
            return None  # measured again

    def put(self, name: str, arrays: Arrays) -> None:
        """Keep the arrays under that name; on the disk when the time has come, or with `flush`."""
        if self.folder is not None:
            self._unsaved[name] = arrays
            if self.is_due():
                self.flush()

    def is_due(self) -> bool:
        """Whether it is time to save again."""
        return self.folder is not None and time.monotonic() - self._saved >= KEEP_EVERY_S

    def flush(self) -> None:
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


@dataclass(frozen=True)
class RunContext:
    """On what a model is measured, and where its data lie.  Times depend on it; solutions do not."""

    scale: str
    code: str  # digest of the evaluation's code
    network_code: str  # digest of the network's code
    device: str = "auto"
    threads: int | None = None
    memory_gb: float | None = None
    jobs_per_gpu: int = 1
    tf32: bool = True
    label_dirs: Sequence[Path] = ()
    benchmarks: Mapping[str, Path] = field(default_factory=dict)  # name of a fetched benchmark -> its manifest
    data: str = ""  # digest of the labels
    stages: Path | None = None  # the ends of the run's stages
    rescaling: Path | None = None  # arrays of the model's rescaling: its best factors


@dataclass(frozen=True)
class LoadedModel:
    """A trained run, ready on its device."""

    net: RoutingNetwork
    run: Run
    checkpoint: Path
    place: torch.device
    memory_gb: float
    context: RunContext
    steps: MeasuredSteps = field(default_factory=MeasuredSteps)
    best_factors: tuple[np.ndarray, np.ndarray] | None = None  # sizes (k,), factors (k,); None: context.rescaling's
    weights: str | None = None  # where they come from, if they were not trained here
    warm: set[tuple[str, Decoding]] = field(default_factory=set)  # problems and decodings that have run here
    auto: bool = False  # whether decodings choose their precision; the run's is fp32 until they have

    @property
    def device(self) -> str:
        """On what it is measured, for the records."""
        return devices.name(self.place)

    def keeper(self, name: str | None, decoding: Decoding) -> Keeper | None:
        """Return where an interrupted decoding is kept, with what is measured under that name."""
        key, steps = f"{name}|{decoding.name}", self.steps
        return Keeper(steps.is_due, partial(steps.load, key), partial(steps.put, key)) if name else None

    def resolve_decoding(self, decoding: Decoding, nodes: int) -> Decoding:
        """Return the decoding for instances of so many nodes: with the best scaling factor, and repeated only where
        repeats differ.

        Raises NeurouteError if the best factor is asked for and has not been measured.
        """
        change: dict[str, Any] = {}
        if decoding.rescale == "best":
            sizes, best = self.best_factors or read_best(self.context.rescaling, self.run.id)
            change["rescale"] = factor_for(nodes, sizes, best)
        if not (self.net.random_embeddings or self.net.single_start):
            change["repeats"] = 1
        return decoding.model_copy(update=change)

    def rows(
        self,
        group: str,
        test: Mapping[str, Any],
        decoding: Decoding,
        values: Mapping[str, float],
        wall_time_s: float,
        batch_size: int | None = None,
    ) -> Rows:
        """Return one record per value; `test` as of `describe_test`, `batch_size` what memory holds unless given."""
        seed = self.run.seed if self.weights is None else None
        shared = {"paper": self.run.paper, "run": self.run.id, "group": group, "seed": seed, **test}
        shared |= {"weights": self.weights, "precision": self.run.training.precision}
        shared["batch_size"] = batch_size or instances_per_batch(self.net, test["n"], decoding, self.memory_gb)
        return make_rows(shared, decoding, values, self.device, self.context.scale, self.context.code, wall_time_s)


def make_rows(
    shared: Mapping[str, Any],
    decoding: Decoding,
    values: Mapping[str, float],
    device: str,
    scale: str,
    code: str,
    wall_time_s: float,
) -> Rows:
    """Return one record per value; `shared` holds the columns that neither the decoding nor the machine gives."""
    columns = {
        **shared,
        "decoding": decoding.name,
        "method": decoding.method,
        "beam": decoding.beam,
        "log_n": decoding.log_n,
        "device": device,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "scale": scale,
        "code": code,
        "wall_time_s": round(wall_time_s, 4),
    }
    return [{**columns, "metric": name, "value": float(v), "unit": UNITS[name]} for name, v in values.items()]


def load_run(run: Run, checkpoint: Path, context: RunContext) -> LoadedModel:
    """Load a run's weights.

    Raises NeurouteError if the checkpoint holds another architecture or no finite numbers, was written by other network
    code, or has other weights than run.json states, where it does.
    """
    place = devices.claim(context.device, context.jobs_per_gpu, context.tf32)
    if context.threads:
        torch.set_num_threads(context.threads)
    net, about = load_checkpoint(checkpoint, expected=run.network)
    if about["code"] != context.network_code:
        raise NeurouteError(
            f"{checkpoint}: written by another version of the network; retrain (`neuroute train {run.id}`), or run "
            "`neuroute import-weights`, if its arithmetic is the same"
        )
    check_weights(checkpoint, net, about["run"])
    net.to(place)
    budget = devices.memory_budget_gb(place, context.memory_gb, context.jobs_per_gpu)
    weights = describe_source(about["source"]) if "source" in about else None
    auto = run.training.precision == "auto"
    run = run.in_precision("fp32") if auto else run
    return LoadedModel(net, run, checkpoint, place, budget, context, weights=weights, auto=auto)


def wrong_network(probe: str, purpose: str, loaded: LoadedModel) -> NeurouteError:
    """The error for a network that a probe is not made for; wanted: "rounds are drawn of SIT"."""
    network = f"{type(loaded.net).__name__} {json.dumps(loaded.run.network.arguments)}"
    return NeurouteError(f"{probe}: {purpose}, not of {network}; choose such a run")


def parameter_rows(
    loaded: LoadedModel, group: str, *datasets: Dataset, instances: int | None = 1, decoding: Decoding | None = None
) -> Rows:
    """Return a record for each data set: the parameters of the model, so that drawings say what they were probed on.

    instances: of each data set; None: all of them.
    """
    values = {"parameters": parameters(loaded.net)}
    tests = (describe_test(dataset, instances=instances) for dataset in datasets)
    return [row for test in tests for row in loaded.rows(group, test, decoding or Decoding(), values, 0.0)]


def to_arrays(tensors: Mapping[str, Tensor]) -> Arrays:
    """float32 on the CPU."""
    return {name: tensor.float().cpu().numpy() for name, tensor in tensors.items()}
