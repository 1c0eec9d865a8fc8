"""Lengths, gaps and times of classical solvers, from the manifests of label jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuroute.plan.objects import Dataset, Labels, Problem
from neuroute.rendering.cells import UNTRAINED, solver_name
from neuroute.rendering.study import Study

TIMES = "A solver's time is that of its calls on one core, where the label job has measured it."


@dataclass(frozen=True)
class Solvers:
    """What the label manifests of an artifact tell, by labels id."""

    study: Study
    entries: Mapping[str, Mapping[str, Any]]

    @classmethod
    def of(cls, study: Study) -> Solvers:
        return cls(study, {job: study.manifest(job) for job in study.artifact.label_jobs})

    def entry(self, dataset: Dataset, solver: str) -> Mapping[str, Any] | None:
        """Return what was made of this data set."""
        return self.entries.get(Labels(dataset=dataset, solver=solver).id)

    def first(self, reference: Labels, names: Sequence[str]) -> str | None:
        """Return the first of the solvers `names` whose lengths of the set of `reference` are known."""
        return next((solver for solver in names if self.mean(reference, solver) is not None), None)

    def mean(self, reference: Labels, solver: str) -> float | None:
        """Return the mean length of exactly these instances; the reference solver's perhaps as evaluations keep it."""
        if solver == reference.solver and (lengths := self.study.reference_lengths(reference.dataset)) is not None:
            return float(lengths.mean())
        entry = self.entry(reference.dataset, solver)
        if entry and entry.get("mean_length") is not None:
            return float(entry["mean_length"])
        return None

    def gap(self, reference: Labels, solver: str) -> float | None:
        """Return the gap in %, as ratio of mean lengths; the reference solver's is 0 by construction."""
        mean, best = self.mean(reference, solver), self.mean(reference, reference.solver)
        return 100 * (mean / best - 1) if mean is not None and best is not None else None

    def mean_of_gaps(self, reference: Labels, solver: str) -> float | None:
        """Return the mean of the instances' gaps in %."""
        lengths, best = (self.lengths(reference, name) for name in (solver, reference.solver))
        return 100 * float((lengths / best - 1).mean()) if lengths is not None and best is not None else None

    def lengths(self, reference: Labels, solver: str) -> NDArray[np.float64] | None:
        """Return the length of each instance (count,); None where it was not solved."""
        if solver == reference.solver and (stored := self.study.reference_lengths(reference.dataset)) is not None:
            return stored
        entry = self.entry(reference.dataset, solver)
        return np.array(entry["lengths"]) if entry and "lengths" in entry else None

    def seconds(self, reference: Labels, solver: str) -> float | None:
        """Return the seconds of the solver's calls for one instance, on one core."""
        entry = self.entry(reference.dataset, solver)
        return entry["seconds"] / entry["count"] if entry and entry.get("seconds") is not None else None

    def total_seconds(self, reference: Labels, solver: str) -> float | None:
        """Return the seconds of the solver's calls for the whole set."""
        seconds = self.seconds(reference, solver)
        return None if seconds is None else seconds * reference.dataset.count

    def here(self, references: Iterable[Labels], names: Sequence[str]) -> str:
        """Name the solvers that play a row's role, with their versions; a dash for none."""
        names_here: dict[str, None] = {}
        for reference in references:
            solvers_here = (s for s in names if s == reference.solver or self.mean(reference, s) is not None)
            if (solver := next(solvers_here, None)) is not None:
                entry = self.entry(reference.dataset, solver)
                names_here[_with_version(solver_name(solver), str(entry.get("version") or "") if entry else "")] = None
        return ", ".join(names_here) or UNTRAINED


def _with_version(name: str, version: str) -> str:
    """Join them: LKH (elkai 2.0.1); Concorde (ml4co-kit 0.5.7), whose version says its name already."""
    return version if version.startswith(name) else f"{name} ({version})" if version else name


def references_by_problem(
    tests: Mapping[Problem, Mapping[int, Labels]], published: Mapping[Problem, str], name: Callable[[int], str] = str
) -> str:
    """Say against whose solutions gaps are, by problem and size (`name` of one), here and in print."""
    parts = []
    for problem, sets in tests.items():
        sizes: dict[str, list[str]] = {}
        for size, labels in sets.items():
            sizes.setdefault(solver_name(labels.solver), []).append(name(size))
        names = [solver if len(sizes) == 1 else f"{solver} ({', '.join(at)})" for solver, at in sizes.items()]
        parts.append(f"{problem.upper()} by {', '.join(names)}; the paper's by {published[problem]}")
    return f"Gaps are ratios of mean lengths, against solutions of the {'. Of the '.join(parts)}."
