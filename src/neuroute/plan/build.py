"""Build the plan: what the chosen papers declare at a scale, each thing once."""

from dataclasses import replace
from pathlib import Path

from neuroute.core.errors import NeurouteError
from neuroute.plan.changes import can_be_met, change_networks, give_weights, left_out, lost_runs
from neuroute.plan.config import Config, load_scale
from neuroute.plan.label_blocks import drop_repeated, separate
from neuroute.plan.objects import (
    Artifact,
    CombinedEvaluation,
    Evaluation,
    LabelJob,
    RescalingEvaluation,
    Run,
    RunEvaluation,
)
from neuroute.plan.paper import Needs
from neuroute.plan.papers import load_paper
from neuroute.plan.plan import Plan
from neuroute.plan.repetitions import check_seeds, repeat_factors, repeat_needs, repeat_runs
from neuroute.plan.scale import TestFile, find_test_files

__all__ = ["Plan", "build_plan"]


def build_plan(config: Config) -> Plan:
    """The plan of a config.  Raises NeurouteError for an unknown scale, paper or run."""
    substitutes = config.substitutes or {}
    scale = load_scale(config.scale, config.papers).with_solvers(substitutes)
    test_files = find_test_files(config.test_sets, config.testsets_dir, Path(config.work_dir) / "labels")
    scale = scale.model_copy(update={"test_files": test_files})
    papers = {key: load_paper(key) for key in config.papers or scale.blocks}
    label_jobs: list[LabelJob] = []
    runs: list[Run] = []
    evaluations: list[RunEvaluation] = []
    artifacts: list[Artifact] = []
    needs: dict[str, Needs] = {}
    lost: set[str] = set()
    lost_optional: set[str] = set()
    for paper in papers.values():
        changed_runs = change_networks(config, paper.runs(config, scale))
        paper_runs = [give_weights(config, run) for run in repeat_runs(config, scale, changed_runs)]
        of_paper = {run.id: run for run in paper_runs}
        lost |= lost_runs(paper_runs)
        runs += [run for run in paper_runs if run.id not in lost]
        label_jobs += paper.label_jobs(scale, paper_runs)
        declared = {d: list(repeat_needs(config, scale, each)) for d, each in paper.needs(scale).items()}
        lost_optional |= left_out((need for each in declared.values() for need in each), of_paper)
        absent = lost | lost_optional
        needs[paper.key] = {
            d: [need for need in each if can_be_met(need, of_paper, absent)] for d, each in declared.items()
        }
        declared_evaluations = paper.evaluations(scale, needs[paper.key])
        declared_evaluations += repeat_factors(config, scale, declared_evaluations)
        evaluations += [e for e in declared_evaluations if can_be_met(e, of_paper, lost)]
    check_seeds(scale, (run.id for run in runs), papers)
    labels = drop_repeated(separate(label_jobs, scale.evaluate_together))
    for paper in papers.values():
        artifacts += paper.artifacts(scale, labels, needs[paper.key])
    if scale.evaluate_together:
        evaluations, artifacts = _combine(evaluations, artifacts)
    plan = Plan(
        config=config,
        scale=scale,
        label_jobs={b.id: b for b in labels},
        runs={r.id: r for r in runs},
        evaluations={e.id: e for e in evaluations},
        artifacts={a.id: a for a in artifacts},
        papers=papers,
        needs={f"{key}/{d.name}": each for key, of_key in needs.items() for d, each in of_key.items()},
        lost=frozenset(lost),
    )
    _check(plan)
    _check_test_files(plan)
    if substitutes:
        plan = replace(plan, artifacts={a.id: _with_stand_ins(plan, a) for a in artifacts})
    for changed in config.runs:
        plan.find(plan.runs, changed, f"run in `runs` of {config.where}")
    return plan


def _with_stand_ins(plan: Plan, artifact: Artifact) -> Artifact:
    """The artifact, which knows whose labels, behind whatever it shows, another solver made."""
    runs = {*artifact.runs, *(plan.evaluations[e].run for e in artifact.evaluations)}
    jobs = {*artifact.label_jobs, *(job for run in runs for job in plan.label_jobs_of_run(run))}
    jobs |= {job for e in artifact.evaluations for job in plan.label_jobs_of_evaluation(e)}
    used = {labels.solver for job in jobs for labels in plan.label_jobs[job].labels}
    stand_ins = {name: other for name, other in (plan.config.substitutes or {}).items() if other in used}
    return artifact.model_copy(update={"stand_ins": stand_ins})


def _check_test_files(plan: Plan) -> None:
    """Raises NeurouteError if `test_sets` names a set that no paper tests on, or no file is one that any tests on."""
    files = {labels.dataset.file for job in plan.label_jobs.values() for labels in job.labels}
    used = {test for test in plan.scale.test_files if any(_is_of(test, file) for file in files if file)}
    for test in plan.scale.test_files:
        if test.stem is not None and test not in used:
            raise NeurouteError(
                f"{plan.config.where}: test_sets.{test.stem}: no test set of this plan; `neuroute plan` lists them"
            )
    if plan.config.test_sets == "published" and not used:
        raise NeurouteError(
            f"{plan.config.where}: test_sets: {plan.config.testsets_dir} holds no test set of the sizes of scale "
            f"{plan.scale.name}; give others, or `test_sets: drawn`"
        )


def _is_of(test: TestFile, file: str) -> bool:
    return file.endswith(f"_{test.source.stem}.npz")


def _check(plan: Plan) -> None:
    """Raises NeurouteError that names the artifact and what of its needs is not there."""
    needed = [(a.id, e) for a in plan.artifacts.values() for e in a.evaluations]
    needed += [(e, e) for e in plan.evaluations]
    for artifact, each in needed:
        if each not in plan.evaluations:
            raise NeurouteError(f"{artifact}: needs evaluation {each}, which no paper declares")
        if (run := plan.evaluations[each].run) not in plan.runs:
            raise NeurouteError(f"{artifact}: needs {each}, but no paper declares run {run}")
        try:
            plan.label_jobs_of_evaluation(each)
        except LookupError as error:
            raise NeurouteError(f"{artifact}: needs {each}, but {error}") from None
    for a in plan.artifacts.values():
        for run in a.runs:
            if run not in plan.runs:
                raise NeurouteError(f"{a.id}: needs the log of {run}, which no paper declares")
        for job in a.label_jobs:
            if job not in plan.label_jobs:
                raise NeurouteError(f"{a.id}: needs label job {job}, which no paper declares")
    for e in plan.evaluations.values():
        if e.reads_best_factor() and f"{e.run}/rescaling" not in plan.evaluations:
            raise NeurouteError(f"{e.id}: needs the best scaling factor, but nothing measures {e.run}/rescaling")


def _combine(evaluations: list[RunEvaluation], artifacts: list[Artifact]) -> tuple[list[RunEvaluation], list[Artifact]]:
    """All evaluations of a model as one, and artifacts that read it instead of its parts."""
    of_run: dict[str, list[RunEvaluation]] = {}
    for e in evaluations:
        of_run.setdefault(e.run, []).append(e)
    combined = {run: _one(run, each) for run, each in of_run.items()}
    return list(combined.values()), [
        a.model_copy(
            update={"evaluations": tuple(dict.fromkeys(combined[e.rpartition("/")[0]].id for e in a.evaluations))}
        )
        for a in artifacts
    ]


def _one(run: str, evaluations: list[RunEvaluation]) -> RunEvaluation:
    """One evaluation for several of a model; scaling factors come first, as others may ask for the best."""
    tests = dict.fromkeys(t for e in evaluations if isinstance(e, Evaluation) for t in e.tests)
    tested = [Evaluation(run=run, group="all", tests=tuple(tests))] if tests else []
    others = [e for e in evaluations if not isinstance(e, Evaluation | CombinedEvaluation)]
    first = [e for e in others if isinstance(e, RescalingEvaluation)]
    parts = (*first, *tested, *(e for e in others if e not in first))
    return tested[0] if parts == tuple(tested) else CombinedEvaluation(run=run, parts=parts)
