"""What may follow a training while it goes on: after each batch, after each validation, with each line of its log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn


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
