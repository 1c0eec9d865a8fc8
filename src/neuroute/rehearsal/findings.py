"""What a rehearsal has found, and how it is said."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuroute.accounting.flops import RunFlops
from neuroute.core.files import write_text
from neuroute.plan.config import Config
from neuroute.plan.estimates import LEAST_S, Estimates, evaluation_key, typical_ratio
from neuroute.plan.overview import costs, totals
from neuroute.plan.plan import Plan
from neuroute.plan.rates import FILE, BySize, JobTime, Kind, OnDevice, Rehearsal, rehearsal_of
from neuroute.rehearsal.short import PiecePace, TrainingPace, pieces, training_key
from neuroute.specs.objects import GivenRun


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


def job_times(plan: Plan, findings: Findings) -> dict[str, JobTime]:
    """Times of whole trainings and evaluations, for the file.

    Of an evaluation a part that was not tried takes as long for its FLOPs as those that were.
    """
    estimates, jobs = Estimates(plan), dict[str, JobTime]()
    for run in plan.runs.values():
        pace = None if isinstance(run, GivenRun) else findings.trainings.get(training_key(run, estimates.kind))
        if pace:
            seconds = pace.seconds(run, estimates.gpus)
            jobs[run.digest()] = JobTime(of=run.id, seconds=seconds, memory_mb=pace.memory_mb)
    parts: dict[str, list[tuple[float | None, float]]] = {}  # by evaluation: as tried, and by FLOPs
    for evaluation in plan.evaluations.values():
        run = plan.runs[evaluation.run]
        for piece in pieces(evaluation, estimates.kind):
            part = findings.pieces.get(piece.key(run))
            part_s = part.seconds(piece) if part else None
            reckoned = estimates.evaluation_s(RunFlops(run).evaluate(piece.whole))
            parts.setdefault(evaluation.id, []).append((part_s, reckoned))
    tried = ((s, reckoned) for each in parts.values() for s, reckoned in each if s is not None)
    typical = typical_ratio(tried, LEAST_S[estimates.kind])
    for id, each in parts.items():
        evaluation = plan.evaluations[id]
        if any(s is not None for s, _ in each):
            seconds = sum(reckoned * typical if s is None else s for s, reckoned in each)
            jobs[evaluation_key(plan.runs[evaluation.run], evaluation)] = JobTime(of=id, seconds=seconds)
    return jobs


def keep_rehearsal(config: Config, kind: Kind, fresh: OnDevice, solvers: dict[str, BySize], start_s: float) -> Path:
    """Write it; what was rehearsed before, at another scale or on another kind of device, stays beside it."""
    before = rehearsal_of(config)
    earlier = before.devices.get(kind)
    if earlier is not None and earlier.device == fresh.device:
        fresh = fresh.model_copy(update={"jobs": earlier.jobs | fresh.jobs})
    points = {name: before.solvers.get(name, {}) | sizes for name, sizes in solvers.items()}
    whole = Rehearsal(start_s=start_s, devices=before.devices | {kind: fresh}, solvers=before.solvers | points)
    path = Path(config.work_dir) / FILE
    write_text(path, whole.model_dump_json(indent=1) + "\n")
    return path


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
