"""Trainings of a run that differ by their seed: `runs: {pens/pens_a: {seeds: 5}}` in config.yaml, or the scale."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from neuroute.core.errors import NeurouteError
from neuroute.plan.changes import with_seed
from neuroute.plan.config import LAST_SEED, Config
from neuroute.plan.evaluations import BenchmarkEvaluation, RescalingEvaluation, RunEvaluation, StageEvaluation
from neuroute.plan.needs import Log, Need, Solved, Tested
from neuroute.plan.objects import Run
from neuroute.plan.scale import Scale


def count_seeds(config: Config, scale: Scale, run: str) -> int:
    """Return how many trainings a run (its id) has, by config.yaml, else by the scale; of given weights one."""
    change = config.runs.get(run)
    if change is not None and (change.seeds is not None or change.weights is not None):
        return change.seeds or 1
    return scale.seeds_of(run)


def repeat_runs(config: Config, scale: Scale, runs: Iterable[Run]) -> Iterator[Run]:
    """Yield each run and its further trainings.

    They start where the run starts; what starts from the run starts from its first training.
    Raises NeurouteError if one of several is to be changed, or for seeds beyond the last.
    """
    for run in runs:
        yield run
        count = count_seeds(config, scale, run.id)
        if run.seed + count - 1 > LAST_SEED:
            raise NeurouteError(
                f"{run.id}: {count} seeds from {run.seed} on go beyond the last, {LAST_SEED}; begin lower"
            )
        for i in range(1, count):
            copy = run.model_copy(update={"name": with_seed(run.name, i), "seed": run.seed + i})
            if copy.id in config.runs and config.runs[copy.id].weights is None:
                raise NeurouteError(
                    f"{config.where}: runs.{copy.id}: changes hold for all seeds; make them to {run.id}"
                )
            yield copy


def repeat_needs(config: Config, scale: Scale, needs: Iterable[Need]) -> Iterator[Need]:
    """Yield each need, and the same of a run's further trainings: gaps and times, and logs of which all are shown."""
    for need in needs:
        yield need
        if isinstance(need, Solved):
            continue
        for copy in _copies(config, scale, need.run):
            if isinstance(need, Tested):
                yield need._replace(run=copy)
            elif isinstance(need, BenchmarkEvaluation | StageEvaluation):
                yield need.model_copy(update={"run": copy})
            elif isinstance(need, Log) and need.all_seeds:
                yield replace(need, run=copy)


def repeat_factors(config: Config, scale: Scale, evaluations: Iterable[RunEvaluation]) -> Iterator[RunEvaluation]:
    """Yield searches for the best scaling factor of further trainings: their tests read what is found."""
    for each in evaluations:
        if isinstance(each, RescalingEvaluation):
            yield from (each.model_copy(update={"run": copy}) for copy in _copies(config, scale, each.run))


def _copies(config: Config, scale: Scale, run: str) -> list[str]:
    return [with_seed(run, i) for i in range(1, count_seeds(config, scale, run))]


def check_seeds(scale: Scale, runs: Iterable[str], papers: Iterable[str]) -> None:
    """Raise NeurouteError if the scale's `seeds` names a run of these papers that is not there."""
    ids, keys = list(runs), set(papers)
    for name in scale.seeds:
        if name.partition("/")[0] in keys and not scale.matching(name, ids):
            raise NeurouteError(f"scale {scale.name}: seeds.{name}: no such run; `neuroute plan` lists them")
