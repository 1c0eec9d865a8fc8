"""Rows of solvers: mean lengths and times from the manifests of label jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.plan.objects import Dataset, Labels
from neuroute.rendering.cells import UNTRAINED, number, solver_name
from neuroute.rendering.columns import described
from neuroute.rendering.table import Cell

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from neuroute.rendering.study import Study


@dataclass(frozen=True)
class Solvers:
    """What the label manifests of an artifact's bundles tell, by labels id."""

    study: Study
    entries: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, study: Study) -> Solvers:
        bundles = study.artifact.bundles
        return cls(study, {e["labels"]: e for bundle in bundles for e in study.manifest(bundle)["labels"]})

    def entry(self, dataset: Dataset, solver: str) -> Mapping[str, Any] | None:
        """What was made of this data set, else of one whose first instances it is (papers share labels)."""
        exact = Labels(dataset=dataset, solver=solver).id
        if exact in self.entries:
            return self.entries[exact]
        for labels, entry in self.entries.items():
            count = int(entry["count"])
            if count > dataset.count:
                held = dataset.model_copy(update={"count": count})
                if labels == Labels(dataset=held, solver=solver).id:
                    return entry
        return None

    def seconds(self, dataset: Dataset, solver: str) -> float | None:
        """Seconds of the solver's calls for one instance, on one core."""
        entry = self.entry(dataset, solver)
        return entry["seconds"] / entry["count"] if entry and entry.get("seconds") is not None else None

    def mean(self, dataset: Dataset, solver: str) -> float | None:
        """Mean length, of exactly these instances."""
        entry = self.entries.get(Labels(dataset=dataset, solver=solver).id)
        return entry.get("mean_length") if entry else None

    def lengths(self, dataset: Dataset, solver: str) -> NDArray[np.float64] | None:
        """Length of each instance (count,); None where it was not solved."""
        entry = self.entry(dataset, solver)
        return np.array(entry["lengths"][: dataset.count]) if entry and "lengths" in entry else None

    def cells(
        self,
        reference: Labels,
        run: str,
        names: Sequence[str],
        rows: pd.DataFrame,
        size: int,
        *,
        total: bool = False,
    ) -> tuple[Cell, Cell, Cell]:
        """Mean length, gap in % and seconds of the first of the solvers `names` that solved the set of `reference`.

        The reference solver's gap is 0 by construction; its lengths are kept with those of the model `run`.
        """
        dataset, best = reference.dataset, self.reference_mean(reference, run)
        at, published = described(dataset), [number(rows, size, metric) for metric in ("obj", "gap_pct", "time_s")]
        for solver in names:
            if solver == reference.solver:
                mean, gap = best, 0.0 if best is not None else None
            else:
                mean = self.mean(dataset, solver)
                gap = 100 * (mean / best - 1) if mean is not None and best is not None else None
            if mean is not None:
                seconds = self.seconds(dataset, solver)
                if seconds is not None and total:
                    seconds *= dataset.count
                values = (mean, gap, seconds)
                obj, gap_cell, time = (Cell(v, p, at=at) for v, p in zip(values, published, strict=True))
                return obj, gap_cell, time
        obj, gap_cell, time = (Cell(None, p) for p in published)
        return obj, gap_cell, time

    def reference_mean(self, reference: Labels, run: str) -> float | None:
        """Mean length of the reference solutions, as a model's evaluation has kept them, else from the manifest."""
        stored = self.study.lengths(run, reference.dataset)
        return float(stored[1].mean()) if stored else self.mean(reference.dataset, reference.solver)

    def here(self, references: Sequence[Labels], names: Sequence[str]) -> str:
        """The solvers that `cells` shows of a row, with their versions; a dash for none."""
        found: dict[str, None] = {}
        for reference in references:
            for solver in names:
                if solver == reference.solver or self.mean(reference.dataset, solver) is not None:
                    entry = self.entry(reference.dataset, solver)
                    version = entry.get("version") if entry else None
                    found[_named(solver_name(solver), str(version or ""))] = None
                    break
        return ", ".join(found) or UNTRAINED


def _named(name: str, version: str) -> str:
    """LKH (elkai 2.0.1); Concorde (ml4co-kit 0.5.7), whose version says its name already."""
    return version if version.startswith(name) else f"{name} ({version})" if version else name


TIMES = "A solver's time is that of its calls on one core, where the label job has measured it."
