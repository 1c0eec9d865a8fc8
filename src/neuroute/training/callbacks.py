"""What may follow a training while it goes on: after each batch, after each validation, with each line of its log.

Loggers are callbacks that write the log for other tools, each of which is imported when it is asked for.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.files import write_text


@dataclass(frozen=True)
class Progress:
    """Where a training is.

    Attributes:
        batch: how many are trained.
        batches: of the whole training.
        samples: training instances so far.
        seconds: so far, over all attempts.
        loss: of the last batch, on the network's device: to read it is to wait for a GPU; None before the first.
        gaps: in per cent, of all validations so far, on the first validation set.
        net: the network, with the weights in hand.
    """

    batch: int
    batches: int
    samples: int
    seconds: float
    loss: Tensor | None
    gaps: Sequence[float]
    net: nn.Module


@dataclass(frozen=True)
class TrainingStart:
    """A training that begins, or goes on.

    Attributes:
        run: its id.
        settings: its description.
        state: the folder that survives a kill.
        out: where its checkpoint will be.
        lines: of the log so far, as JSON.
    """

    run: str
    settings: Mapping[str, Any]
    state: Path
    out: Path
    lines: Sequence[str]


class Callback:
    """Follows a training; override what you need.

    Only the first of several processes calls it.  Whether a training ends should be a function of the progress alone,
    so that one that was killed ends where it would have.
    """

    def begin(self, training: TrainingStart) -> None:
        """Before the first batch, and before a killed training goes on."""

    def after_batch(self, progress: Progress) -> bool | None:
        """True ends the training here."""
        return None

    def after_validation(self, progress: Progress) -> bool | None:
        """True ends the training here."""
        return None

    def record(self, line: Mapping[str, Any]) -> None:
        """Called with each line of log.jsonl as it is written; of kind `train` or `validation`, or a scheme's own."""

    def end(self) -> None:
        """After the last batch, and where a training is stopped or fails."""


@dataclass(frozen=True)
class StopEarly(Callback):
    """Ends a training once validations get no better.

    Attributes:
        patience: how many validations in a row may be no better than the best before.
        least: by how many points of the gap one has to be better.
    """

    patience: int = 3
    least: float = 0.0

    def after_validation(self, progress: Progress) -> bool:
        best, since = float("inf"), 0
        for gap in progress.gaps:
            since = 0 if gap < best - self.least else since + 1
            best = min(best, gap)
        return since >= self.patience


class CsvLog(Callback):
    """The lines of log.jsonl as log.csv beside it, a column for each number."""

    def begin(self, training: TrainingStart) -> None:
        self.path, self.lines = training.out / "log.csv", [json.loads(line) for line in training.lines]

    def record(self, line: Mapping[str, Any]) -> None:
        self.lines.append(dict(line))

    def end(self) -> None:
        import pandas as pd

        from neuroute.core.text import csv_text

        rows = [{key: value for key, value in line.items() if not isinstance(value, dict)} for line in self.lines]
        write_text(self.path, csv_text(pd.DataFrame(rows)))


class TensorboardLog(Callback):
    """Event files in `tensorboard`, in the folder that survives a kill."""

    def begin(self, training: TrainingStart) -> None:
        from torch.utils.tensorboard import SummaryWriter

        first = json.loads(training.lines[-1])["batch"] + 1 if training.lines else 0
        self.writer: Any = SummaryWriter(str(training.state / "tensorboard"), purge_step=first)

    def record(self, line: Mapping[str, Any]) -> None:
        for name, value in numbers(line).items():
            self.writer.add_scalar(name, value, line["batch"])

    def end(self) -> None:
        self.writer.close()


class WandbLog(Callback):
    """A run of project `neuroute` at Weights & Biases; with WANDB_MODE=offline in its folder."""

    def begin(self, training: TrainingStart) -> None:
        import wandb

        state, name = str(training.state), hashlib.sha256(str(training.state.resolve()).encode()).hexdigest()[:16]
        settings: dict[str, Any] = {"project": os.environ.get("WANDB_PROJECT", "neuroute"), "dir": state}
        settings |= {"id": name, "name": training.run, "config": dict(training.settings), "resume": "allow"}
        try:
            self.run: Any = wandb.init(**settings)
        except Exception as error:  # it has many: no key, no network
            text = " ".join(str(error).split())
            raise NeurouteError(f"wandb: {text}; WANDB_MODE=offline needs neither an account nor a network") from None

    def record(self, line: Mapping[str, Any]) -> None:
        self.run.log(numbers(line), step=line["batch"])

    def end(self) -> None:
        self.run.finish()


class MlflowLog(Callback):
    """A run of experiment `neuroute` in MLflow: at MLFLOW_TRACKING_URI, else in `mlruns` of the working folder."""

    def begin(self, training: TrainingStart) -> None:
        import mlflow

        id_file = training.state / "mlflow_run"  # goes on after a kill
        try:
            mlflow.set_experiment("neuroute")
            again = {"run_id": id_file.read_text()} if id_file.exists() else {"run_name": training.run}
            write_text(id_file, mlflow.start_run(**again).info.run_id)
            mlflow.log_dict(dict(training.settings), "run.json")
        except Exception as error:  # its own, and those of its server
            raise NeurouteError(f"mlflow: {' '.join(str(error).split())}; set MLFLOW_TRACKING_URI") from None
        self.tool: Any = mlflow

    def record(self, line: Mapping[str, Any]) -> None:
        self.tool.log_metrics(numbers(line), step=line["batch"])

    def end(self) -> None:
        self.tool.end_run()


# name -> (class, module that it needs)
LOGGERS: dict[str, tuple[Callable[[], Callback], str]] = {
    "csv": (CsvLog, "pandas"),
    "tensorboard": (TensorboardLog, "tensorboard"),
    "wandb": (WandbLog, "wandb"),
    "mlflow": (MlflowLog, "mlflow"),
}


def make_loggers(names: Sequence[str]) -> list[Callback]:
    """Return loggers by name.  Raises NeurouteError for an unknown one, and for one that is not installed."""
    for name in names:
        if name not in LOGGERS:
            raise NeurouteError(
                f"no logger '{name}'{did_you_mean(near(name, LOGGERS)) or ';'} there are: {', '.join(LOGGERS)}"
            )
        if find_spec(LOGGERS[name][1]) is None:
            raise NeurouteError(f"logger '{name}': is not installed; pip install 'neuroute[{name}]'")
    return [LOGGERS[name][0]() for name in names]


def numbers(line: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a line of the log by <kind>/<name>, but for its place."""
    kind, places = line["kind"], ("batch", "kind")
    return {f"{kind}/{k}": v for k, v in line.items() if k not in places and isinstance(v, int | float)}
