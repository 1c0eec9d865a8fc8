"""Further trainings of a run, which differ by their seed: `runs: {pens/pens_a: {seeds: 5}}` in config.yaml."""

from collections.abc import Sequence

from neuroute.core.errors import NeurouteError
from neuroute.plan.changes import give_weights, with_seed
from neuroute.plan.config import Config
from neuroute.plan.evaluations import BenchmarkEvaluation, Evaluation, RescalingEvaluation, RunEvaluation
from neuroute.plan.objects import Run

# Of a further training only gaps are measured: what `neuroute difference` reads, and what that hangs on.
MEASURED = (Evaluation, BenchmarkEvaluation, RescalingEvaluation)


def repeat_runs(
    config: Config, runs: Sequence[Run], evaluations: Sequence[RunEvaluation]
) -> tuple[list[Run], list[RunEvaluation]]:
    """Return the further trainings of these runs that config.yaml asks for, and what is measured of them.

    They start where the run starts; what starts from the run starts from its first training.
    Raises NeurouteError if the scale repeats the run already, or if one of several is to be changed.
    """
    declared = {run.id for run in runs}
    further: dict[str, list[Run]] = {}
    for run in runs:
        count = config.runs[run.id].seeds if run.id in config.runs else 1
        copies = [
            run.model_copy(update={"name": with_seed(run.name, i), "seed": run.seed + i}) for i in range(1, count)
        ]
        for copy in copies:
            _check(config, run, copy, declared)
        further[run.id] = [give_weights(config, copy) for copy in copies]
    return [copy for copies in further.values() for copy in copies], [
        evaluation.model_copy(update={"run": copy.id})
        for evaluation in evaluations
        if isinstance(evaluation, MEASURED)
        for copy in further.get(evaluation.run, ())
    ]


def _check(config: Config, run: Run, copy: Run, declared: set[str]) -> None:
    if copy.id in declared:
        raise NeurouteError(
            f"{config.where}: runs.{run.id}.seeds: the scale trains it with several seeds; change the scale's `seeds`"
        )
    if copy.id in config.runs and config.runs[copy.id].weights is None:
        raise NeurouteError(f"{config.where}: runs.{copy.id}: changes hold for all seeds; make them to {run.id}")
