"""What the logs of trainings say: losses and validation gaps over batches, of each seed and on average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroute.analysis.convergence import first_failure
from neuroute.papers.scaling.curves import HERE
from neuroute.rendering.study import Study

Points = list[tuple[int, float]]  # (batch, loss or gap)


@dataclass(frozen=True)
class Trace:
    """One seed's log; its curves end where the loss stops being finite, as what follows is a broken network."""

    run: str
    seed: int
    train: list[dict[str, Any]]
    validation: list[dict[str, Any]]

    @classmethod
    def read(cls, study: Study, run: str) -> Trace:
        train, validation = (study.log(run, kind).to_dict("records") for kind in ("train", "validation"))
        return cls(run, study.runs[run].seed, train, validation)  # type: ignore[arg-type]

    @property
    def losses(self) -> list[float]:
        return [float(line["loss"]) for line in self.train]

    @property
    def peaks(self) -> list[float]:
        """Largest loss of a batch since the line before; of logs without it the line's mean."""
        return [float(line.get("loss_max", line["loss"])) for line in self.train]

    @property
    def failure(self) -> int | None:
        """Batch at which the logged loss was not finite for the first time."""
        at = first_failure(self.losses)
        return None if at is None else int(self.train[at]["batch"])

    def points(self, panel: str) -> Points:
        """(batch, loss), (batch, peak) or (batch, gap in %) that are drawn: from batch 1 on, until the failure."""
        lines = self.validation if panel == "gap" else self.train
        values = {"loss": self.losses, "peak": self.peaks}.get(panel) or [float(x["gap_pct"]) for x in lines]
        end = self.failure
        return [
            (int(x["batch"]), value)
            for x, value in zip(lines, values, strict=True)
            if x["batch"] > 0 and (end is None or x["batch"] < end)
        ]

    def end(self, panel: str) -> float | None:
        """The last loss or gap (%); None for a broken network."""
        points = self.points(panel)
        return points[-1][1] if points and self.failure is None else None


@dataclass(frozen=True)
class Variant:
    """One of the trainings that a figure compares."""

    label: str
    printed: float | None  # the paper's TSP100 gap of the trained model, %
    seeds: list[Trace]
    colour: str
    marker: str

    def rows(self) -> list[dict[str, Any]]:
        """Every line of the logs, with those that are not drawn."""
        keys = ("batch", "updates", "samples", "loss", "loss_max", "gap_pct")
        return [
            {"panel": panel, "side": HERE, "series": self.label, "run": trace.run, "seed": trace.seed}
            | {key: line.get(key) for key in keys}
            for trace in self.seeds
            for panel, lines in (("loss", trace.train), ("gap", trace.validation))
            for line in lines
        ]

    def mean(self, panel: str) -> Points:
        """The mean over the seeds at each batch that every curve reaches."""
        curves = [dict(trace.points(panel)) for trace in self.seeds]
        shared = sorted(set.intersection(*map(set, curves)))
        return [(x, float(np.mean([curve[x] for curve in curves]))) for x in shared]

    def mean_rows(self) -> list[dict[str, Any]]:
        """What is drawn of several seeds together."""
        return [
            {"panel": panel, "side": HERE, "series": self.label, "seed": "mean", "batch": x, key: y}
            for panel, key in (("loss", "loss"), ("gap", "gap_pct"))
            for x, y in (self.mean(panel) if len(self.seeds) > 1 else ())
        ]
