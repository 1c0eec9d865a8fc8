"""Build the plan: what the chosen papers declare at a scale, each thing once; and who solves for whom."""

import fnmatch
import itertools
import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from neuroute.core.dotted import code_in, place_of
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.datasets.store import rows_missing
from neuroute.pipeline.plan.changes import (
    can_be_met,
    change_networks,
    give_weights,
    left_out,
    short_scale,
    unreachable_runs,
    with_seed,
)
from neuroute.pipeline.plan.config import Config, load_scale
from neuroute.pipeline.plan.needs import Log, Need, Solved
from neuroute.pipeline.plan.paper import Paper, load_paper
from neuroute.pipeline.plan.plan import Plan
from neuroute.pipeline.plan.scale import Scale, changed, find_test_files
from neuroute.pipeline.plan.shapes import SWEEP
from neuroute.solvers.base import fitting_workers
from neuroute.solvers.registry import get, is_installed, stand_in
from neuroute.specs.objects import LAST_SEED, Artifact, BenchmarkEvaluation, Labels, RescalingEvaluation, Run, Test
from neuroute.specs.trainings import Reconstruction, Supervised


def count_seeds(config: Config, scale: Scale, run: str) -> int:
    """Return how many trainings a run (its id) has, by config.yaml, else by the scale; of given weights as many."""
    change = config.runs.get(run)
    if change is None or (change.seeds is None and change.weights is None):
        fitting = [count for name, count in scale.seeds.items() if fnmatch.fnmatchcase(run, name)]
        return scale.seeds.get(run) or next(iter(fitting), 1)
    return change.seeds or next(i for i in itertools.count(1) if with_seed(run, i) not in config.runs)


def repeat_runs(config: Config, scale: Scale, runs: Iterable[Run]) -> Iterator[Run]:
    """Yield each run and its further trainings.

    What starts from a run of several trainings starts from the one of its own seed, or, where there is none, the first.
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
            start = run.start
            if start is not None and i < count_seeds(config, scale, start.partition("@")[0]):
                start = with_seed(start, i)
            copy = run.model_copy(update={"name": with_seed(run.name, i), "seed": run.seed + i, "start": start})
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
            if isinstance(need, Test | BenchmarkEvaluation):
                yield need.model_copy(update={"run": copy})
            elif isinstance(need, Log) and need.all_seeds:
                yield replace(need, run=copy)


def _copies(config: Config, scale: Scale, run: str) -> list[str]:
    return [with_seed(run, i) for i in range(1, count_seeds(config, scale, run))]


def build_plan(config: Config) -> Plan:
    """The plan of a config.  Raises NeurouteError for an unknown scale, paper or run, and for nothing to make."""
    substitutes = config.substitutes or {}
    # With a block and seeds for what config.yaml sweeps, and the block of the run that is swept.
    changes, chosen = config.scale_changes, config.papers
    if config.sweep:
        added = {SWEEP: config.sweep.model_dump(), "seeds": {f"{SWEEP}/*": config.sweep.seeds}}
        changes = changed(changes, added)
        chosen = chosen and [*chosen, SWEEP, config.sweep.run.partition("/")[0]]
    elif SWEEP in (chosen or ()):
        raise NeurouteError(f"{config.where}: papers: sweep: nothing to sweep; add a block `sweep`")
    scale = load_scale(config.scale, chosen, changes, config.where).with_solvers(substitutes)
    if config.rehearse:
        scale = short_scale(scale)
    test_files = find_test_files(config.test_sets, config.testsets_dir, Path(config.work_dir) / "labels", config.where)
    scale = scale.model_copy(update={"test_files": test_files})
    keys = config.papers or [key for key in scale.blocks if key not in scale.apart]
    papers = {key: load_paper(key) for key in ([*keys, SWEEP] if config.sweep else keys)}
    parts = [_of_paper(config, scale, paper) for paper in papers.values()]
    label_jobs, runs, evaluations, artifacts, needs, unreachable = (
        {name: value for part in parts for name, value in part[number].items()} for number in range(6)
    )
    for kind in ("seeds", "printed_times"):
        for pattern in getattr(scale, kind):
            if pattern.partition("/")[0] in papers and not fnmatch.filter(runs, pattern):
                raise NeurouteError(f"scale {scale.name}: {kind}.{pattern}: no such run; `neuroute plan` lists them")
    if not artifacts:
        raise NeurouteError(
            f"{config.where}: papers: scale {scale.name} has nothing of {', '.join(papers)}; take another scale"
        )
    plan = Plan(config, scale, label_jobs, runs, evaluations, artifacts, papers, needs, frozenset(unreachable))
    _check(plan)
    files = {labels.dataset.file or "" for labels in label_jobs.values()}
    used = {test for test in test_files if any(file.endswith(f"_{test.source.stem}.npz") for file in files)}
    for test in test_files:
        if test.stem is not None and test not in used:
            raise NeurouteError(
                f"{config.where}: test_sets.{test.stem}: no test set of this plan; `neuroute plan --all` lists all"
            )
    if config.test_sets == "published" and not used:
        raise NeurouteError(
            f"{config.where}: test_sets: {config.testsets_dir} has no set of a size of scale {scale.name}; add files, "
            "or set `test_sets: drawn`"
        )
    if substitutes:
        plan = replace(plan, artifacts={a.id: _with_stand_ins(plan, a) for a in artifacts.values()})
    for name in config.runs:
        if name not in plan.runs and not (config.sweep and config.sweep.run == name):
            meant = did_you_mean(near(name, plan.runs)) or ";"
            raise NeurouteError(f"{config.where}: runs.{name}: no such run{meant} `neuroute plan --all` lists all")
    return plan


def _of_paper(config: Config, scale: Scale, paper: Paper) -> tuple[dict[str, Any], ...]:
    """Return a paper's label jobs, runs, evaluations, artifacts, needs and unreachable runs, by id.

    It does not look at what another one brings: which are chosen changes nothing of a paper.  Raises NeurouteError for
    two runs of one name, for what is no run, and for labels that are not those of its samples.
    """
    with code_in(paper.folder):
        own_runs: Any = paper.runs(config, scale)
    if not isinstance(own_runs, list | tuple) or not all(isinstance(run, Run) for run in own_runs):
        raise NeurouteError(f"{place_of(paper.runs)}: runs are {own_runs!s:.100}; return a list of Run")
    for run in own_runs:
        labelled = sum(labels.dataset.count for labels in run.data)
        if isinstance(run.training, Supervised | Reconstruction) and labelled != run.training.samples:
            raise NeurouteError(
                f"{place_of(paper.runs)}: {run.id}: labels for {labelled} samples, {run.training.samples} are needed"
            )
    changed_runs = change_networks(config, own_runs)
    declared = [give_weights(config, run) for run in repeat_runs(config, scale, changed_runs)]
    runs = {run.id: run for run in declared}
    if other := [run.id for run in declared if runs[run.id] != run]:
        raise NeurouteError(f"{paper.key}: two of its runs are called {other[0]}; rename one")
    all_needs = {d: list(repeat_needs(config, scale, each)) for d, each in paper.needs(scale).items()}
    unreachable = unreachable_runs(runs.values())
    absent = unreachable | left_out((need for each in all_needs.values() for need in each), runs)
    needs = {d: [need for need in each if can_be_met(need, runs, absent)] for d, each in all_needs.items()}
    trainings = [run for run in runs.values() if run.id not in unreachable]
    wanted = [(d.name, need) for d, each in needs.items() for need in each]
    # Searches for the best scaling factor of further trainings, whose tests read what is found.
    sweeps = [(name, need) for name, need in wanted if isinstance(need, RescalingEvaluation)]
    for name, sweep in sweeps:
        wanted += [(name, sweep.model_copy(update={"run": run})) for run in _copies(config, scale, sweep.run)]
    evaluations = paper.evaluations(scale, (pair for pair in wanted if can_be_met(pair[1], runs, unreachable)))
    labels = paper.labels(scale, trainings, evaluations, needs)
    artifacts = paper.artifacts(scale, labels, needs)
    by_id = ({each.id: each for each in of_kind} for of_kind in (labels, trainings, evaluations, artifacts))
    return *by_id, {f"{paper.key}/{d.name}": each for d, each in needs.items()}, dict.fromkeys(unreachable)


def _with_stand_ins(plan: Plan, artifact: Artifact) -> Artifact:
    """The artifact, which knows whose labels, behind whatever it shows, another solver made."""
    runs = {*artifact.runs, *(plan.evaluations[e].run for e in artifact.evaluations)}
    jobs = {*artifact.label_jobs, *(job for run in runs for job in plan.label_jobs_of_run(run))}
    jobs |= {job for e in artifact.evaluations for job in plan.label_jobs_of_evaluation(e)}
    used = {plan.label_jobs[job].solver for job in jobs}
    stand_ins = {name: other for name, other in (plan.config.substitutes or {}).items() if other in used}
    return artifact.model_copy(update={"stand_ins": stand_ins})


def _check(plan: Plan) -> None:
    """Raises NeurouteError that names the artifact and which run of its needs is not there."""
    for a in plan.artifacts.values():
        for each in a.evaluations:
            if (run := plan.evaluations[each].run) not in plan.runs:
                raise NeurouteError(f"{a.id}: needs {each}, but no paper declares run {run}; add it to its runs")
        for run in a.runs:
            if run not in plan.runs:
                raise NeurouteError(f"{a.id}: needs the log of {run}, which no paper declares; add it to its runs")
    for e in plan.evaluations.values():
        if e.reads_best_factor() and (rescaling := f"{e.run}/rescaling") not in plan.evaluations:
            raise NeurouteError(f"{e.id}: needs the best scaling factor; let an artifact need {rescaling}, too")


log = logging.getLogger("neuroute.pipeline.plan")


def settle(plan: Plan) -> Plan:
    """Return the plan with the next best solver for each one that is missing and has labels yet to make.

    Where config.yaml names substitutes, or the scale wants none (`paper`), the plan stays as it is.
    """
    if plan.config.substitutes is not None or not plan.scale.substitute_solvers:
        return plan
    # The solvers that are not installed and have labels yet to make
    of: dict[str, list[Labels]] = {}
    for job, labels in plan.label_jobs.items():
        if not plan.manifest(job).exists():
            of.setdefault(labels.solver, []).append(labels)
    lacking = [
        name
        for name, waiting in of.items()
        if not is_installed(name) and any(_rows_missing(plan, labels) for labels in waiting)
    ]
    substitutes = {name: other for name in lacking if (other := stand_in(name))}
    if not substitutes:
        return plan
    for name, other in substitutes.items():
        log.info(
            "%s is not installed and labels are missing, so %s makes them; `substitutes: {}` in %s uses existing "
            "labels only", name, other, plan.config.where,
        )  # fmt: skip
    return build_plan(plan.config.model_copy(update={"substitutes": substitutes}))


def check_solvers(plan: Plan, job: str, here: bool = True) -> None:
    """Check that the labels of a label job that have yet to be solved can be; `here`: in this machine's memory.

    Raises NeurouteError if their solver is not installed, or if an instance does not fit.
    """
    labels = plan.label_jobs[job]
    if _rows_missing(plan, labels):
        try:
            get(labels.solver).version()
        except NeurouteError as error:
            other, solver = stand_in(labels.solver), labels.solver
            choice = (
                f"; or set `substitutes: {{{solver}: {other}}}` in {plan.config.where}: {other} then solves instead"
            )
            raise NeurouteError(f"{error}{choice if other else ''}") from None
    if here:
        workers_that_fit(plan, job, 1)


def workers_that_fit(plan: Plan, job: str, workers: int) -> int:
    """Return how many of so many workers can solve what is left of a label job at once, in this machine's memory.

    Raises NeurouteError if not even one can.
    """
    labels = plan.label_jobs[job]
    if not _rows_missing(plan, labels):
        return workers
    return fitting_workers(get(labels.solver), labels.dataset.nodes, workers)


def _rows_missing(plan: Plan, labels: Labels) -> int:
    """Count the rows that are yet to be solved: no cache that the config names has them."""
    return rows_missing(labels, [plan.label_store, *map(Path, plan.config.label_caches)])
