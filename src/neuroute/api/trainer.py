"""A run and where its files go: as a job of the DAG trains it, and as Python does."""

import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuroute.api.model import Model, digest_of
from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_json
from neuroute.datasets.chunks import solver_pool
from neuroute.datasets.labels import make_labels
from neuroute.datasets.store import labels_digest
from neuroute.decoding.memory import in_precision_of_device
from neuroute.networks.weights import LAST, unpacked_stages
from neuroute.specs.objects import Run, training_entries
from neuroute.training.callbacks import Callback
from neuroute.training.train import CHECKPOINT, SUMMARY, Settings, describe_checkpoint, train

log = logging.getLogger("neuroute.train")


@dataclass(frozen=True)
class Trainer:
    """Trains a run, or goes on where it was killed, to the same weights.

    Attributes:
        run: what is trained on what, and how.
        work: folder of its files: `runs/<run>` (checkpoint, log and summary), `state/<run>`, `labels` (manifests).
        label_dirs: folders of label shards; the first is where missing ones go.
        settings: on which device, in how many threads.
        callbacks: follow the training, and may end it.
        start: of the run that this one starts from, where it does, the checkpoint, and the ends of its stages if any.
        states: folder of what a killed training goes on from; None: `state` of `work`.
    """

    run: Run
    work: Path
    label_dirs: Sequence[Path]
    settings: Settings = field(default_factory=Settings)
    callbacks: Sequence[Callback] = ()
    start: Sequence[Path] = ()
    states: Path | None = None

    @property
    def out(self) -> Path:
        """The folder of the checkpoint."""
        return self.work / "runs" / self.run.id

    def label(self, workers: int | None = None) -> None:
        """Solve what the run learns from and is validated on, as far as it is not there.

        Args:
            workers: processes of the solver; None: as many as there are cores.

        Raises:
            NeurouteError: if the solver is not installed, or is not for the problem.
        """
        n_workers = workers or os.cpu_count() or 1
        with solver_pool(n_workers) as pool:
            for labels in dict.fromkeys(self.run.labels):
                manifest = self._manifest(labels.id)
                if not manifest.exists():
                    log.info("%s: solve %d instances by %s", labels.id, labels.dataset.count, labels.solver)
                    write_json(manifest, make_labels(labels, self.label_dirs[0], [], n_workers, pool=pool))

    def train(self) -> Model:
        """Train the run; one that is trained is only loaded.

        Raises:
            NeurouteError: before the first batch, or at it, for labels that are missing, for a network or a loss that
                does not fit, and for numbers that are not finite.
        """
        run = in_precision_of_device(self.run, self.settings)
        log.info("%s: train for %d batches; results go to %s", run.id, run.training.batches, self.out)
        self._warn_of_another(run)
        try:
            code, network_code = digest_of(*training_entries(run)), digest_of(run.network.kind)
        except (LookupError, SyntaxError, ValueError) as error:
            raise NeurouteError(f"{run.id}: {error}; define it in a module, at its top level") from None
        labels = labels_digest(self._manifest(job) for job in dict.fromkeys(labels.id for labels in run.labels))
        parts = [run.canonical(), code, labels]
        for path in self.start:
            if not path.exists():
                first = (run.start or "").partition("@")[0]
                raise NeurouteError(f"{path}: missing; train it with `neuroute train {first}`")
            parts.append(hashlib.sha256(path.read_bytes()).hexdigest())
        parts += [] if self.settings.tf32 else ["no TF32"]
        key = hashlib.sha256("|".join(parts).encode()).hexdigest()
        state = (self.states or self.work / "state") / run.id / key[:16]
        codes: dict[str, Any] = {"code": code, "network_code": network_code}
        with self._starting() as (start, moments):
            more: dict[str, Any] = {"start": start, "moments": moments, "callbacks": self.callbacks}
            net = train(run, self.out, state, list(self.label_dirs), self.settings, **codes, **more)
        place = next(net.parameters()).device
        return Model(net, describe_checkpoint(run, network_code), place, path=self.out / CHECKPOINT)

    def _warn_of_another(self, run: Run) -> None:
        """Say which settings differ where the folder holds a model that this training replaces."""
        if not (self.out / SUMMARY).is_file():
            return
        before = read_json(self.out / SUMMARY, "train it again", "spec")["spec"]
        if changed := _differences(before, run.model_dump(mode="json")):
            text = ", ".join(changed[:3]) + (" ..." if len(changed) > 3 else "")
            log.warning(
                "%s: replaces the model of other settings (%s); give another `name` to keep both", self.out, text
            )

    @contextmanager
    def _starting(self) -> Iterator[tuple[Path | None, Path | None]]:
        """The checkpoint that the run starts from, and the moments to go on with, while the block runs."""
        if len(self.start) < 2:
            yield next(iter(self.start), None), None
            return
        stage = (self.run.start or "").partition("@")[2]
        with unpacked_stages(self.start[1]) as folder:
            checkpoint = folder / f"{stage}.safetensors" if stage else self.start[0]
            yield checkpoint, folder / f"{stage or LAST}.moments.safetensors"

    def _manifest(self, job: str) -> Path:
        return self.work / "labels" / f"{job}.json"


def _differences(before: Any, now: Any, path: str = "") -> list[str]:
    """Return which settings differ, with the value that each had before."""
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        before, now = dict(enumerate(before)), dict(enumerate(now))
    if isinstance(before, dict) and isinstance(now, dict):
        return [line for key in now for line in _differences(before.get(key), now[key], f"{path}.{key}".strip("."))]
    return [] if before == now else [f"{path}: {before}"]
