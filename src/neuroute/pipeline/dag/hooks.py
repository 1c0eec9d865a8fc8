"""What a Snakemake does before its first job and after its last one."""

import math
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from neuroute.core.files import check_folder, exclusive, write_json
from neuroute.core.job import FAILED, SPENT
from neuroute.core.text import printable
from neuroute.pipeline.dag.rules import Rules, evaluation_of, or_workflow_error
from neuroute.pipeline.plan.build import check_solvers
from neuroute.pipeline.plan.config import PLANNED_ENV, check_folders, check_gpus, has_gpu, without_gpu
from neuroute.pipeline.plan.overview import is_replaced
from neuroute.pipeline.plan.slurm import PROFILE, JobRequest, check_jobs, check_orphans, watch_pending


@or_workflow_error
def start(rules: Rules) -> None:
    """Raises WorkflowError for what can be known to be missing before the first job."""
    plan, engine = rules.plan, rules.engine
    needed = engine.needed()
    check_folders(plan.config)
    if engine.is_local:
        engine.start_at_once()
        check_gpus(plan.config, engine.gpus)
        if note := without_gpu(plan.config, engine.command):
            logger.warning(note)
    elif engine.executor == "slurm":
        _check_cluster(rules)
    _say_expected(rules, needed)
    # Stop when models of other settings, or what was measured of them, would pass for these.
    kept_jobs = [] if engine.is_touching else ["/".join(job.wildcards) for job in engine.finished()]
    if replaced := [job for job in kept_jobs if is_replaced(plan, job)]:
        of = {run: plan.checkpoint(run) for run in plan.runs}
        files = [of.get(job) or plan.evaluation_file(job).with_suffix(".json") for job in replaced]
        raise WorkflowError(
            f"{', '.join(replaced)}: made with other settings (`neuroute train --set`); remake: snakemake --forcerun "
            f"{' '.join(map(str, files))}"
        )
    names = {"/".join(job.wildcards) for job in needed}
    # Stop when a solver that is needed now is missing or needs more memory than there is.
    waiting = [job for job in plan.label_jobs if job in names]
    if waiting:
        check_folder(plan.label_store)
    for job in waiting:
        check_solvers(plan, job, here=engine.is_local)
    # Stop when weights that config.yaml gives are not those of their run's network.
    if waiting := [run for run in rules.given if run in names]:
        from neuroute.networks.import_weights import tensors_of  # loads torch, so only where it is needed

        for run in waiting:
            tensors_of(plan.runs[run], plan.network_code(run), plan.config.where)  # type: ignore[arg-type]
    # Stop when a network of the user's own is none for its run.
    own_kinds = {kind for kind in plan.config.networks if not kind.startswith("neuroute.")}
    runs = [r for r in plan.runs.values() if r.network.kind in own_kinds and r.id in names and r.id not in rules.given]
    if runs:
        from neuroute.training.network_checks import check_run  # loads torch, so only where it is needed

        for own in runs:
            check_run(own)
    # Held until this process ends, however it ends: unlike Snakemake's own lock (profiles/default).
    rules.running.enter_context(exclusive(plan.label_store.parent / ".lock", "Snakemake"))
    # Trainings and evaluations stop where an edit meanwhile would make something else than what is planned here.
    os.environ[PLANNED_ENV] = f"{plan.work}/planned.json"
    planned = {job: plan.digested(job) for job in names if job in plan.runs or job in plan.evaluations}
    write_json(Path(os.environ[PLANNED_ENV]), planned)
    for log in (log for job in needed for log in job.log):
        Path(f"{log}{FAILED}").unlink(missing_ok=True)  # of a job that failed under another Snakemake
    rules.start_warm_process()
    engine.go_on_until_last()


@or_workflow_error
def succeed(rules: Rules) -> None:
    """Say what to read first."""
    from neuroute.pipeline.rendering.verdicts import headlines  # loads pandas, so only at the end

    if rules.plan.summary.exists():
        lines = ["", *headlines(rules.plan), f"Report: {rules.plan.report}"]
        logger.info("\n".join(lines), extra={"shown": True})  # beside the line of the logger `neuroute`, too
    elif rules.engine.storage:
        logger.info(f"Results: {rules.engine.storage.rstrip('/')}/{rules.plan.report.parent}", extra={"shown": True})


@or_workflow_error
def fail(rules: Rules) -> None:
    """List each job that failed with the last line of its log, once."""
    lines = []
    for job in rules.engine.failed():
        if all(Path(file).exists() for file in job.output):
            continue  # it was sent together with one that failed
        name = f"{job.rule.name} {'/'.join(job.wildcards)}".strip()
        lines.append(f"{name}: {_last_line(job.log)}")
    if lines:
        text = "\n".join([f"{len(lines)} jobs failed:" if len(lines) > 1 else "1 job failed:", *lines])
        logger.error(text, extra={"shown": True})


def _last_line(logs: Sequence[str]) -> str:
    """Of a job's log, with the log's path; a line on the time that it took says nothing."""
    for log in map(Path, logs):
        text = log.read_text(errors="replace") if log.exists() else ""
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith(SPENT)]
        if lines:
            return f"{printable(lines[-1])} ({log})"
    return "it said nothing before it ended" + (f" ({logs[0]})" if logs else "")


def _check_cluster(rules: Rules) -> None:
    """Stop when no node can take a job that is needed now, or when some run twice."""
    quota, config = rules.engine.gpus, rules.plan.config
    if rules.gpus > quota > 0:
        raise WorkflowError(
            f"gpus_per_run: {rules.gpus}, but all jobs together may hold {quota}: set resources: gpu: in {PROFILE}"
        )
    requests = []
    for job in rules.engine.sent():
        together, r = job.is_group(), job.resources
        name = f"a group of {len(job.jobs)} short jobs" if together else f"{job.rule.name} {' '.join(job.wildcards)}"
        minutes, memory, gpus = (r.get(key) or 0 for key in ("runtime", "mem_mb", "gpu"))
        requests.append(JobRequest(name, r.get("slurm_partition"), minutes, memory, r["_cores"], gpus, together))
    check_jobs(requests)
    check_orphans(Path.cwd())
    rules.engine.keep_asking()
    watch_pending(Path.cwd(), logger.error)
    if config.device == "auto" and not has_gpu():
        logger.warning("No GPU on this node, so jobs request none; to request GPUs set `device: cuda` in config.yaml.")


def _say_expected(rules: Rules, needed: list[Any]) -> None:
    """Tell the progress line what the jobs that are to run are expected to take, as far as anybody knows."""
    engine, requests = rules.engine, rules.requests
    expected: dict[str, dict[int, float]] = defaultdict(dict)
    for job in needed:
        w = job.wildcards
        if hasattr(w, "labels"):
            seconds = requests.cost("labels", w.labels).seconds
        elif hasattr(w, "run"):
            seconds = requests.cost("train", w.run).seconds
        elif hasattr(w, "group"):
            seconds = requests.cost("evaluate", evaluation_of(w)).seconds
        else:
            seconds = requests.render(rules.artifact(w).id).seconds if hasattr(w, "artifact") else 0.0
        if not math.isnan(seconds):  # as of a solver that nobody has measured
            expected[job.rule.name][job.jobid] = seconds * job.threads
    at_once = min(engine.at_once, max(1, sum(map(len, expected.values()))))
    hours = sum(sum(jobs.values()) for jobs in expected.values()) / 3600
    amount = f"{max(1, 60 * hours / at_once):.0f} min" if engine.is_local else f"{hours:.1f} core-hours"
    logger.info(f"Estimated: about {amount}", extra={"expected": expected, "at_once": at_once, "shown": True})
