"""What a target costs before anything runs: FLOPs, hours, memory and disk, for whatever is not there yet."""

import math
from collections.abc import Iterable
from dataclasses import replace

from neuroute.accounting.estimates import Estimates
from neuroute.accounting.jobs import Cost
from neuroute.accounting.requests import most_threads, parts
from neuroute.core.errors import NeurouteError
from neuroute.core.gpus import count_visible
from neuroute.plan.papers import paper_folders
from neuroute.plan.plan import Plan

WHOLE = (None, "all", "report")  # targets that need every paper


def costs(plan: Plan, target: str | None) -> list[Cost]:
    """Every job behind a target, in the order of the walk."""
    artifacts, evaluations, runs, label_jobs = _closure(plan, target)
    estimates = Estimates(plan)
    return [
        *(estimates.labels(job, most_threads()) for job in label_jobs),
        *map(estimates.train, runs),
        *map(estimates.evaluate, evaluations),
        *map(estimates.render, artifacts),
    ]


def describe(plan: Plan, target: str | None, *, lists_all: bool = False) -> str:
    """The plan of a target as text: totals by paper of what is missing, and the jobs of what is no whole paper.

    lists_all: list the jobs in any case.
    """
    all_costs = costs(plan, target)
    missing = [c for c in all_costs if not c.there]
    limit = plan.config.machine.job_hours
    lines = [f"scale {plan.scale.name}: {plan.scale.summary}"]
    lines += [f"{other} stands in for {name}" for name, other in (plan.config.substitutes or {}).items()]
    lines += [
        f"not trained: {run}, which starts from a stage of a run whose weights are given" for run in sorted(plan.lost)
    ]
    lines += ["", *totals(plan, all_costs)]
    unknown = sum(math.isnan(c.seconds) for c in missing)
    if unknown:
        lines.append(f"{counted(unknown, 'job')} without an estimate of time: not in the hours.")
    if too_long := [c for c in missing if _fits(c, limit)]:
        one = "needs" if len(too_long) == 1 else "need"
        lines.append(
            f"{counted(len(too_long), 'job')} {one} more than the {limit:g} h that one may have "
            f"(`machine` in {plan.config.where}), so several goes."
        )
    paces = Estimates(plan).paces
    source = f"as rehearsed on {paces.measured} on {paces.device}" if paces.device else "typical"
    mend = "" if paces.device else "; for yours: neuroute rehearse"
    lines.append(f"Times are {source}{mend}. Labels that a cache holds are free.")
    if lists_all or not (target in WHOLE or target in plan.titles):
        return "\n".join([*lines, "", *_list(all_costs, limit)])
    return "\n".join([*lines, "`neuroute plan --all` lists every job."])


def counted(count: int, noun: str) -> str:
    """1 job, 2 jobs."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def totals(plan: Plan, all_costs: list[Cost], *, anew: bool = False) -> list[str]:
    """A line for the labels, which papers share, one for each paper, and one for all; anew: as if nothing was there."""
    papers: dict[str, list[Cost]] = {key: [] for key in ("labels", *plan.titles)}
    for c in all_costs:
        papers.setdefault("labels" if c.stage == "labels" else c.id.partition("/")[0], []).append(c)
    papers = {key: jobs for key, jobs in papers.items() if jobs}
    rows = papers if len(papers) == 1 else papers | {"all": all_costs}
    here = counted(most_threads(), "core")
    if has_gpus := any(c.gpus for c in all_costs):
        here += f", {counted(count_visible() or 1, 'GPU')}"
    # Of networks alone: what a plan without a GPU would take on one.
    on_gpu = plan if has_gpus else replace(plan, config=plan.config.model_copy(update={"device": "cuda"}))
    estimates = Estimates(on_gpu)
    gpu_hours = {"train": estimates.train, "evaluate": estimates.evaluate}
    lines = [
        f"{'paper':9} {'to do':>13} {'time here':>11} {'core-hours':>11} {'GPU-hours':>10} {'disk GB':>8}",
    ]
    for key, jobs in rows.items():
        missing = [c for c in jobs if anew or not c.there]
        timed = [c for c in missing if not math.isnan(c.seconds)]
        gpu = [gpu_hours[c.stage](c.id).gpu_hours for c in timed if c.stage in gpu_hours]
        to_do, core_hours = f"{len(missing)} of {len(jobs)}", sum(c.cpu_hours for c in timed)
        time = _time(_seconds_here(plan, timed)) if missing else "0"
        columns = f"{_short(core_hours):>11} {_short(sum(gpu)):>10} {_short(sum(c.disk_mb for c in missing) / 1000):>8}"
        lines.append(f"{key:9} {to_do:>13} {time:>11} {columns}")
    instead = "" if has_gpus else "  GPU-hours: of trainings and tests, on a GPU instead."
    return [*lines, "", f"Time here: at least, on {here}.{instead}"]


def _seconds_here(plan: Plan, jobs: list[Cost]) -> float:
    """At least: what cores and GPUs have to do, or the longest chain of jobs."""
    on_cores = sum(c.seconds * c.threads for c in jobs if not c.gpus) / most_threads()
    on_gpus = sum(c.seconds * c.gpus for c in jobs) / (count_visible() or 1)
    seconds, ends = {c.id: c.seconds for c in jobs}, dict[str, float]()

    def end(job: str) -> float:
        if job not in ends:
            ends[job] = seconds.get(job, 0.0) + max(map(end, _before(plan, job)), default=0.0)
        return ends[job]

    return max(on_cores, on_gpus, *map(end, seconds))


def _before(plan: Plan, job: str) -> list[str]:
    """Jobs that one waits for."""
    if job in plan.evaluations:
        return [plan.evaluations[job].run, *plan.label_jobs_of_evaluation(job)]
    if job in plan.runs:
        return [*_starts(plan, job), *plan.label_jobs_of_run(job)]
    return []


def _list(all_costs: list[Cost], limit: float) -> list[str]:
    lines = [f"{'stage':9} {'':5} {'FLOP':>8} {'time':>9} {'on':>8} {'memory':>8} {'disk':>9} {'':8} id"]
    for c in all_costs:
        amount = _text(c.flops, ".1e") if c.flops else ""
        on = f"{c.gpus} GPU" if c.gpus else f"{c.threads} CPU"
        columns = f"{amount:>8} {_time(c.seconds):>9} {on:>8} {c.memory_mb / 1000:5.1f} GB {c.disk_mb:6.1f} MB"
        lines.append(f"{c.stage:9} {'done' if c.there else 'to do':5} {columns} {_fits(c, limit):8} {c.id}")
    return lines


def _time(seconds: float) -> str:
    if math.isnan(seconds):
        return "?"
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{_short(seconds / 3600)} h"


def _short(amount: float) -> str:
    return f"{amount:,.2f}" if amount < 10 else f"{amount:,.1f}" if amount < 100 else f"{amount:,.0f}"


def _fits(job: Cost, limit: float) -> str:
    """In how many goes a job ends, if not within the longest time that one may have: it goes on where it was."""
    return f"{parts(job, limit)} goes" if job.seconds > 3600 * limit else ""


def _text(amount: float, form: str) -> str:
    return "?" if math.isnan(amount) else format(amount, form)


def _closure(plan: Plan, target: str | None) -> tuple[list[str], list[str], list[str], list[str]]:
    """Artifacts, evaluations, runs and label jobs behind a target."""
    artifacts, evaluations, runs, label_jobs = [], [], [], []
    if target in WHOLE:
        artifacts = list(plan.artifacts)
    elif target in plan.titles:
        artifacts = [a for a, artifact in plan.artifacts.items() if artifact.paper == target]
    else:
        name = target.removeprefix(f"{plan.config.results_dir}/")
        if name not in plan.runs and name not in plan.evaluations:  # whose names may hold dots of their own
            name = name.rsplit(".", 1)[0]
        if name in plan.runs:
            runs = [name]
        elif name in plan.evaluations:
            evaluations = [name]
        elif name in plan.label_jobs:
            label_jobs = [name]
        else:
            artifacts = [_artifact(plan, name)]
    for a in artifacts:
        evaluations += plan.artifacts[a].evaluations
        runs += plan.artifacts[a].runs
        label_jobs += plan.artifacts[a].label_jobs
    evaluations = _once(evaluations)
    for e in evaluations:
        runs.append(plan.evaluations[e].run)
        label_jobs += plan.label_jobs_of_evaluation(e)
    runs = _with_starts(plan, _once(runs))
    for r in runs:
        label_jobs += plan.label_jobs_of_run(r)
    return artifacts, evaluations, runs, [b for b in plan.label_jobs if b in set(label_jobs)]


def _artifact(plan: Plan, name: str) -> str:
    """Its id.  Raises NeurouteError, for any other name, with what is near of all that may be planned."""
    if name in paper_folders():
        raise NeurouteError(f"paper {name}: not in this plan; `papers` or `scale` of {plan.config.where} leaves it out")
    if not plan.declares(plan.full_id(name)):
        short = [a.name for a in plan.artifacts.values() if plan.full_id(a.name) == a.id]
        ids = [*plan.titles, *short, *plan.artifacts, *plan.runs, *plan.evaluations, *plan.label_jobs]
        plan.find(dict.fromkeys(ids), name, "target")
    return plan.artifact(plan.full_id(name)).id


def _with_starts(plan: Plan, runs: list[str]) -> list[str]:
    """Runs after those whose weights they start from."""
    chains: list[str] = []
    for run in runs:
        chain = [run]
        while start := _starts(plan, chain[-1]):
            chain += start
        chains += reversed(chain)
    return _once(chains)


def _starts(plan: Plan, run: str) -> list[str]:
    start = plan.runs[run].start
    return [start.partition("@")[0]] if start else []


def _once(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ids))
