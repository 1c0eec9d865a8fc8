"""What a target costs before anything runs, as text: hours, memory and disk of what is to do, and why it is."""

import ast
import json
import math
import os
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from neuroute.core.digest import without_modules
from neuroute.core.errors import NeurouteError
from neuroute.core.files import is_of_other_weights
from neuroute.core.gpus import count_visible
from neuroute.pipeline.plan.config import gpus
from neuroute.pipeline.plan.estimates import Cost, Estimates
from neuroute.pipeline.plan.paper import paper_folders, with_all_before
from neuroute.pipeline.plan.plan import TRAINED, Plan
from neuroute.pipeline.plan.systems import PAPER
from neuroute.solvers.base import fitting_workers
from neuroute.solvers.registry import get
from neuroute.specs.objects import GivenRun

WHOLE = (None, "all", "report")  # targets that need every paper
ON_DEVICE = ("train", "evaluate")  # stages whose jobs run networks
WIDTHS = (13, 11, 11, 10, 8)  # of the columns of `totals`
NOTES = Path(".snakemake/metadata")
LONGEST_NAME = 255  # of a file; Snakemake cuts longer names into folders


def costs(plan: Plan, target: str | None) -> list[Cost]:
    """Every job behind a target: labels, trainings, evaluations, drawings, each after those that it waits for."""
    jobs, estimates = with_all_before(_targets(plan, target), partial(_before, plan)), Estimates(plan)
    stages = {"labels": plan.label_jobs, "train": plan.runs, "evaluate": plan.evaluations, "render": plan.artifacts}
    marked = dict[str, Cost]()  # stale: Snakemake will make it again, as its digests or what it hangs on have changed
    for c in [estimates.cost(stage, job) for stage, ids in stages.items() for job in jobs if job in ids]:
        waits = any(not marked[job].is_done for job in _before(plan, c.id) if job in marked)
        noted = note_of(c.path).get("params") if c.there else None  # parameters; None where Snakemake noted nothing
        changed = noted is not None and not {repr(value) for value in plan.digested(c.id)} <= set(noted)
        marked[c.id] = replace(c, stale=c.there and (waits or changed or is_replaced(plan, c.id)))
    return list(marked.values())


def is_replaced(plan: Plan, job: str) -> bool:
    """Whether a model of other settings lies in a run's folder that Snakemake has not left or accepted there.

    Or, of an evaluation, whether other weights were measured than lie there.  As `neuroute train --set` leaves both, or
    a work folder from elsewhere.
    """
    if evaluation := plan.evaluations.get(job):
        try:
            return is_of_other_weights(plan.evaluation_file(job), plan.run_dir(evaluation.run) / TRAINED[-1], "")
        except NeurouteError:  # damaged: said where it is drawn from
            return False
    if job not in plan.runs or isinstance(plan.runs[job], GivenRun):
        return False
    summary = plan.run_dir(job) / TRAINED[-1]
    try:
        spec = json.loads(summary.read_bytes())["spec"]
        spec["training"]["precision"] = plan.runs[job].training.precision  # which may have been the device's
    except (OSError, ValueError, LookupError, TypeError):
        return False
    is_same = json.loads(without_modules(json.dumps(spec))) == json.loads(plan.runs[job].canonical())
    return not is_same and note_of(summary).get("endtime") != summary.stat().st_mtime


def note_of(result: Path) -> dict[str, Any]:
    """What Snakemake has noted of a file when its job ended: nothing of one that it did not make."""
    name, cut = urlsafe_b64encode(str(result).encode()).decode(), LONGEST_NAME - 1
    parts = [name[i : i + cut] for i in range(0, len(name), cut)]
    note = NOTES.joinpath(*("@" + part for part in parts[:-1]), parts[-1])
    try:
        return dict(json.loads(note.read_bytes()))
    except (OSError, ValueError, TypeError):
        return {}


def _targets(plan: Plan, target: str | None) -> list[str]:
    """Ids of the jobs that a target names.  Raises NeurouteError, for any other name, with what is near."""
    if target in WHOLE:
        return list(plan.artifacts)
    if target in plan.titles:
        return [a for a, artifact in plan.artifacts.items() if artifact.paper == target]
    name = target if not target else os.path.normpath(target).removeprefix(f"{Path(plan.config.results_dir)}/")
    if name not in plan.runs and name not in plan.evaluations:  # whose names may hold dots of their own
        name = name.rsplit(".", 1)[0]
    if name in plan.runs or name in plan.evaluations or name in plan.label_jobs:
        return [name]
    if name in paper_folders():
        raise NeurouteError(f"paper {name}: not in this plan; `papers` or `scale` of {plan.config.where} leaves it out")
    if not plan.declares(plan.full_id(name)):
        short = [a.name for a in plan.artifacts.values() if plan.full_id(a.name) == a.id]
        ids = [*plan.titles, *short, *plan.artifacts, *plan.runs, *plan.evaluations, *plan.label_jobs]
        plan.find(dict.fromkeys(ids), name, "target")
    return [plan.artifact(plan.full_id(name)).id]


def _before(plan: Plan, job: str) -> list[str]:
    """Jobs that one waits for."""
    if artifact := plan.artifacts.get(job):
        return [*artifact.evaluations, *artifact.runs, *artifact.label_jobs]
    if evaluation := plan.evaluations.get(job):
        factors = [f"{evaluation.run}/rescaling"] if evaluation.reads_best_factor() else []
        return [evaluation.run, *factors, *plan.label_jobs_of_evaluation(job)]
    if run := plan.runs.get(job):
        return [*([run.start.partition("@")[0]] if run.start else []), *plan.label_jobs_of_run(job)]
    return []


def describe(plan: Plan, target: str | None, *, lists_all: bool = False) -> str:
    """The plan of a target: totals by paper of what is missing, and the jobs of what is no whole paper.

    A scale that is made for a GPU is reckoned on one, unless config.yaml says `device: cpu`.
    lists_all: list the jobs in any case.
    """
    here, plan = plan, _on_gpu(plan) if plan.scale.for_gpu and plan.config.device == "auto" else plan
    all_costs = costs(plan, target)
    missing = [c for c in all_costs if not c.is_done]
    limit = plan.config.machine.job_hours
    lines = [f"scale {plan.scale.name}: {plan.scale.summary}"]
    lines += [f"{other} stands in for {name}" for name, other in (plan.config.substitutes or {}).items()]
    lines += [
        f"not trained: {run}: it starts from a stage of a run that has imported weights"
        for run in sorted(plan.unreachable)
    ]
    block = plan.scale.blocks.get(PAPER)
    if names := sorted((block and block.model_extra) or ()):
        lines.append(
            f"printed numbers only, as their packages are not installed: {', '.join(names)}; systems of the papers' "
            "tables: pip install -e extras/systems"
        )
    lines += ["", *totals(plan, all_costs)]
    if gpus(plan.config) and not gpus(here.config):
        hours = sum(c.cpu_hours for c in costs(here, target) if c.stage in ON_DEVICE and not c.is_done)
        lines.append(f"No GPU here: on this CPU networks would take {_short(hours)} core-hours.")
    unknown = sum(math.isnan(c.seconds) for c in missing)
    if unknown:
        lines.append(f"{counted(unknown, 'job')} without a time estimate, not counted.")
    if too_long := [c for c in missing if _goes(c, limit)]:
        one = "needs" if len(too_long) == 1 else "need"
        lines.append(
            f"{counted(len(too_long), 'job')} {one} several attempts: more than the limit of {limit:g} h "
            f"(`machine` in {plan.config.where})."
        )
    # What solvers say of instances that do not fit into this machine's memory.
    too_large: dict[str, None] = {}
    for labels in (plan.label_jobs[c.id] for c in missing if c.stage == "labels"):
        try:
            fitting_workers(get(labels.solver), labels.dataset.nodes, 1)
        except NeurouteError as error:
            too_large[str(error)] = None
    # What papers say that trainings take, and what these are reckoned to take.
    for name, text in plan.scale.printed_times.items():
        each = [c.seconds / 3600 for c in all_costs if c.stage == "train" and fnmatchcase(c.id, name)]
        if each:
            span = dict.fromkeys(map(_short, (min(each), max(each))))
            lines.append(f"{name}: {text} in print, {' to '.join(span)} h by this plan.")
    lines += too_large
    if stale := sum(c.stale for c in missing):
        lines.append(f"{counted(stale, 'result')} stale: of other code or settings than today's, so made again.")
    lines.append("Estimated from FLOPs and finished jobs; cached labels cost nothing.")
    if lists_all or not (target in WHOLE or target in plan.titles):
        table = [f"{'stage':9} {'':5} {'FLOP':>8} {'time':>9} {'on':>8} {'memory':>8} {'disk':>9} {'':8} id"]
        for job in all_costs:
            amount = ("?" if math.isnan(job.flops) else f"{job.flops:.1e}") if job.flops else ""
            on = f"{job.gpus} GPU" if job.gpus else f"{job.threads} CPU"
            columns = (
                f"{amount:>8} {_time(job.seconds):>9} {on:>8} {job.memory_mb / 1000:5.1f} GB {job.disk_mb:6.1f} MB"
            )
            state = "done" if job.is_done else "stale" if job.there else "to do"
            table.append(f"{job.stage:9} {state:5} {columns} {_goes(job, limit):8} {job.id}")
        return "\n".join([*lines, "", *table])
    return "\n".join([*lines, "`neuroute plan --all` lists every job."])


def _on_gpu(plan: Plan) -> Plan:
    return plan if gpus(plan.config) else replace(plan, config=plan.config.model_copy(update={"device": "cuda"}))


def counted(count: int, noun: str) -> str:
    """1 job, 2 jobs."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def totals(plan: Plan, all_costs: list[Cost]) -> list[str]:
    """A line for the labels, which papers share, one for each paper, and one for all."""
    papers: dict[str, list[Cost]] = {key: [] for key in ("labels", *plan.titles)}
    for c in all_costs:
        papers.setdefault("labels" if c.stage == "labels" else c.id.partition("/")[0], []).append(c)
    papers = {key: jobs for key, jobs in papers.items() if jobs}
    here = counted(os.cpu_count() or 1, "core")
    if has_gpus := any(c.gpus for c in all_costs):
        here += f", {counted(count_visible() or 1, 'GPU')}"
    # Of networks alone: what a plan without a GPU would take on one.
    estimates = Estimates(_on_gpu(plan))
    rows: list[tuple[str, tuple[str, ...]]] = [("paper", ("to do", "time", "core-hours", "GPU-hours", "disk GB"))]
    for key, jobs in (papers if len(papers) == 1 else papers | {"all": all_costs}).items():
        missing = [c for c in jobs if not c.is_done]
        timed = [c for c in missing if not math.isnan(c.seconds)]
        gpu = sum(estimates.cost(c.stage, c.id).gpu_hours for c in timed if c.stage in ON_DEVICE)
        time = _time(_seconds_here(plan, timed)) if missing else "0"
        numbers = (sum(c.cpu_hours for c in timed), gpu, sum(c.disk_mb for c in missing) / 1000)
        rows.append((key, (f"{len(missing)} of {len(jobs)}", time, *map(_short, numbers))))
    order = (0, 3, 2, 1, 4) if plan.scale.for_gpu else range(5)
    lines = [f"{key:9} {' '.join(f'{columns[i]:>{WIDTHS[i]}}' for i in order)}" for key, columns in rows]
    instead = "" if has_gpus else "  GPU-hours: trainings and tests on a GPU instead."
    return [*lines, "", f"Times: estimates, with {here} busy throughout.{instead}"]


def _seconds_here(plan: Plan, jobs: list[Cost]) -> float:
    """What cores and GPUs have to do, or the longest chain of jobs."""
    on_cores = sum(c.seconds * c.threads for c in jobs if not c.gpus) / (os.cpu_count() or 1)
    on_gpus = sum(c.seconds * c.gpus for c in jobs) / (count_visible() or 1)
    seconds, ends = {c.id: c.seconds for c in jobs}, dict[str, float]()
    for job in with_all_before(seconds, partial(_before, plan)):
        ends[job] = seconds.get(job, 0.0) + max((ends[each] for each in _before(plan, job)), default=0.0)
    return max(on_cores, on_gpus, *ends.values())


def _time(seconds: float) -> str:
    if math.isnan(seconds):
        return "?"
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{_short(seconds / 3600)} h"


def _short(amount: float) -> str:
    return f"{amount:,.2f}" if amount < 10 else f"{amount:,.1f}" if amount < 100 else f"{amount:,.0f}"


def _goes(job: Cost, limit: float) -> str:
    """In how many goes a job ends, if not within the longest time that one may have: it goes on where it was."""
    return f"{math.ceil(job.seconds / (3600 * limit))} goes" if job.seconds > 3600 * limit else ""


def why(plan: Plan, target: str | None) -> Iterator[str]:
    """Yield a line for each cause: jobs that are not done, with what changed, and how many only wait for others.

    Raises NeurouteError for a target that is none.
    """
    causes, waiting = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for job in costs(plan, target):
        if job.is_done:
            continue
        found = list(_changes(plan, job)) if job.there else [f"not there: {job.path}"]
        for cause in found:
            causes[cause].append(f"{job.stage} {job.id}")
        if not found:
            waiting[job.stage].append(job.id)
    for cause, jobs in causes.items():
        yield f"{_named(jobs)}: {cause}"
    for stage, jobs in waiting.items():
        yield f"{counted(len(jobs), 'job')} to {stage} after these: {_named(jobs)}"
    if not causes:
        yield "Nothing to be done."


def _changes(plan: Plan, job: Cost) -> Iterator[str]:
    """What differs from the note that Snakemake made when the result's job ended."""
    if is_replaced(plan, job.id):
        yield f"{job.path.parent if job.stage == 'train' else job.path}: of other settings or weights than planned"
    noted = note_of(job.path).get("params")
    if noted is None:
        return
    spec, code = plan.digested(job.id)
    if repr(spec) not in noted:
        specs = (old for old in map(_text, noted) if old.startswith("{"))
        before, after = _keys(next(specs, "{}")), _keys(spec)
        differences = [
            f"{key}: {before.get(key, 'nothing')} -> {after.get(key, 'nothing')}"
            for key in dict.fromkeys([*before, *after])
            if before.get(key) != after.get(key)
        ]
        yield from differences or ["settings"]
    if repr(code) not in noted:
        yield f"code of its {job.stage}"


def _text(noted: str) -> str:
    with suppress(ValueError, SyntaxError):
        return str(ast.literal_eval(noted))
    return ""


def _keys(specs: str) -> dict[str, str]:
    """Every value by its dotted key, of a run behind the run's id where specs are several."""
    lines = [json.loads(line) for line in specs.splitlines() if line.startswith("{")]
    keys = dict[str, str]()
    for line in lines:
        is_run = len(lines) > 1 and {"paper", "name", "network"} <= set(line)
        run = f"{line['paper']}/{line['name']}." if is_run else ""
        keys |= {run + key: value for key, value in _flat(line)}
    return keys


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _flat(each, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for number, each in enumerate(value):
            yield from _flat(each, f"{key}.{number}")
    else:
        yield key, json.dumps(value)


def _named(names: Iterable[str]) -> str:
    first, more = (every := list(names))[:3], len(every) - 3
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")
