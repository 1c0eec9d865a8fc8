"""What jobs take: as rehearsed on this machine, and what was not by FLOPs and calls, corrected by what was."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median

from neuroute.accounting.calls import CallPrice
from neuroute.accounting.jobs import PROCESS_MB, ByFlops, Cost, ModelPrice, label_mb
from neuroute.accounting.rehearsed import Paces, PiecePace, TrainingPace, kind_of, rehearsal_of
from neuroute.accounting.shortened import Piece, labels_made, pieces, training_key
from neuroute.plan.objects import GivenRun, Run


@dataclass(frozen=True)
class Estimates(ByFlops):
    """Of each job.  FLOPs and calls are off by as much, on the median, as they are for what was rehearsed."""

    @cached_property
    def paces(self) -> Paces:
        """What was rehearsed on the kind of device that networks run on."""
        nothing = Paces(measured="", device="")
        return rehearsal_of(self.plan.config).devices.get(kind_of(self.plan.config), nothing)

    # -- trainings ----------------------------------------------------------------------------------------------

    def train(self, run: str) -> Cost:
        r, by_flops = self.plan.runs[run], super().train(run)
        if isinstance(r, GivenRun):
            return by_flops
        if pace := self._pace(r):
            seconds = self.start_s + self._training_s(r, pace)
            memory = by_flops.memory_mb if by_flops.gpus else max(PROCESS_MB, pace.memory_mb) + label_mb(r)
            return replace(by_flops, seconds=seconds, memory_mb=memory)
        return replace(by_flops, seconds=self.start_s + (by_flops.seconds - self.start_s) * self._off_in_training)

    def _pace(self, run: Run) -> TrainingPace | None:
        return self.paces.trainings.get(training_key(run, kind_of(self.plan.config))) if self.paces.trainings else None

    def _training_s(self, run: Run, pace: TrainingPace) -> float:
        """Seconds without the start of a process; several GPUs share batches, and what they tell each other is free."""
        t = run.training
        ends: list[int] = getattr(t, "ends", [t.batches])
        stages = (end - before for before, end in pairwise([0, *ends]))
        updates = sum(count * each for count, each in zip(stages, pace.batches_s, strict=True))
        work = (updates + labels_made(t) * pace.made_s) / max(1, self.gpus)
        instances = sum(labels.dataset.count for labels in (run.validation, *run.also_validation))
        return pace.rest_s + work + (t.validations + 1) * pace.validation_s * instances / pace.validated

    @cached_property
    def _off_in_training(self) -> float:
        runs = [run for run in self.plan.runs.values() if not isinstance(run, GivenRun)]
        rehearsed = [(run, pace) for run in runs if (pace := self._pace(run))]
        off = [
            self._training_s(run, pace) / max(1e-6, super(Estimates, self).train(run.id).seconds - self.start_s)
            for run, pace in rehearsed
        ]
        return median(off) if off else 1.0

    # -- evaluations --------------------------------------------------------------------------------------------

    def evaluate(self, evaluation: str) -> Cost:
        by_flops = super().evaluate(evaluation)
        if not self.paces.pieces:
            return by_flops
        run = self.plan.runs[self.plan.evaluations[evaluation].run]
        seconds = self.start_s + sum(self.piece_s(run, piece) for piece in self._pieces(evaluation))
        return replace(by_flops, seconds=seconds)

    def piece_s(self, run: Run, piece: Piece) -> float:
        """Seconds of a part of an evaluation: of all of its batches."""
        pace = self._piece_pace(run, piece)
        if pace is not None:
            return pace.seconds(piece.times, piece.iterations)
        return self._piece_by_flops(run, piece) * self._off_in_tests

    def _pieces(self, evaluation: str) -> Iterator[Piece]:
        return pieces(self.plan.evaluations[evaluation], kind_of(self.plan.config))

    def _piece_pace(self, run: Run, piece: Piece) -> PiecePace | None:
        return self.paces.pieces.get(piece.key(run)) if self.paces.pieces else None

    def _piece_by_flops(self, run: Run, piece: Piece) -> float:
        gpus = min(self.gpus, 1)
        calls = 0.0, piece.whole.flops(CallPrice(run, gpus > 0))
        threads = self.plan.scale.evaluate_threads
        return self.network_s(run, piece.whole.flops(ModelPrice(run)), calls, gpus, threads)

    @cached_property
    def _off_in_tests(self) -> float:
        off = []
        for evaluation in self.plan.evaluations:
            run = self.plan.runs[self.plan.evaluations[evaluation].run]
            for piece in self._pieces(evaluation):
                by_flops = self._piece_by_flops(run, piece)
                if by_flops and (pace := self._piece_pace(run, piece)):
                    off.append(pace.seconds(piece.times, piece.iterations) / by_flops)
        return median(off) if off else 1.0
