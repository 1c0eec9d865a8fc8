"""What a rehearsal has found, and how it is said."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from neuroute.accounting.estimate import costs, totals
from neuroute.accounting.rehearsed import PiecePace, TrainingPace
from neuroute.plan.plan import Plan


@dataclass
class Findings:
    """What came of the trials."""

    trainings: dict[str, TrainingPace] = field(default_factory=dict)
    pieces: dict[str, PiecePace] = field(default_factory=dict)
    solvers: dict[str, dict[int, float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    all: int = 0  # trials
    left: int = 0  # not tried to their end, as time was up
    too_long: list[str] = field(default_factory=list)  # of these: ended before

    def add(self, key: str, answer: Any) -> None:
        if isinstance(answer, TrainingPace):
            self.trainings[key] = answer
        elif isinstance(answer, PiecePace):
            self.pieces[key] = answer
        else:
            self.solvers.setdefault(key, {}).update([answer])


def report(plan: Plan, findings: Findings) -> Iterator[str]:
    """What failed, a line each; seconds a batch and memory of each training; the hours that follow."""
    hours = {c.id: c.seconds / 3600 for c in costs(plan, None)}
    trainings = sorted(findings.trainings.values(), key=lambda pace: -hours.get(pace.of, 0.0))
    if trainings:
        yield f"{'training':28} {'s a batch':>20} {'s a validation':>14} {'peak MB':>8} {'hours':>8}"
    for pace in trainings:
        batches = ", ".join(f"{seconds:.3g}" for seconds in pace.batches_s)
        yield (
            f"{pace.of:28} {batches:>20} {pace.validation_s:14.3g} {pace.memory_mb:8.0f} {hours.get(pace.of, 0.0):8.2g}"
        )
    for solver, points in sorted(findings.solvers.items()):
        yield f"{solver}: " + ", ".join(f"{n} nodes {seconds:.3g} s" for n, seconds in sorted(points.items()))
    if findings.pieces:
        most = max(pace.memory_mb for pace in findings.pieces.values())
        yield f"{len(findings.pieces)} batches of evaluations, {most:.0f} MB at most"
    yield ""
    yield from totals(plan, costs(plan, None), anew=True)
    yield ""
    if findings.left:
        yield f"{findings.left} of {findings.all} trials were left when time was up: reckoned from the others"
    if findings.too_long:
        yield f"{len(findings.too_long)} of them were ended, as they took long: {', '.join(findings.too_long)}"
    yield f"{len(findings.failures)} failed" + (":" if findings.failures else "")
    yield from findings.failures
