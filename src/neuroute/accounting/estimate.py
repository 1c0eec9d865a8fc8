"""What a target costs before anything runs: FLOPs, hours, memory and disk, for whatever is not there yet."""

import math
from collections.abc import Iterable

from neuroute.accounting.jobs import Cost, Estimates
from neuroute.accounting.requests import most_threads, parts
from neuroute.plan.plan import Plan


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


def describe(plan: Plan, target: str | None) -> str:
    """The plan of a target as text: one line a job, then the sum of what is still missing."""
    all_costs = costs(plan, target)
    lines = [f"scale {plan.scale.name}: {plan.scale.summary}"]
    lines += [f"{other} stands in for {name}" for name, other in (plan.config.substitutes or {}).items()]
    lines += [
        f"not trained: {run}, which starts from a stage of a run whose weights are given" for run in sorted(plan.lost)
    ]
    lines.append("")
    lines.append(f"{'stage':9} {'file':5} {'FLOP':>8} {'time':>9} {'on':>8} {'GB':>6} {'disk MB':>9} {'':8} id")
    limit = plan.config.machine.job_hours
    for c in all_costs:
        there, amount = "yes" if c.there else "-", _text(c.flops, ".1e") if c.flops else ""
        on = f"{c.gpus} GPU" if c.gpus else f"{c.threads} CPU"
        columns = f"{amount:>8} {_time(c.seconds):>9} {on:>8} {c.memory_mb / 1000:6.1f} {c.disk_mb:9.1f}"
        lines.append(f"{c.stage:9} {there:5} {columns} {_fits(c, limit):8} {c.id}")
    missing = [c for c in all_costs if not c.there]
    rates = Estimates(plan).rates
    lines += [
        "",
        f"{len(missing)} of {len(all_costs)} jobs to do, {sum(c.disk_mb for c in missing) / 1000:.2f} GB of disk",
    ]
    for name, stages in (("labels", ("labels",)), ("networks", ("train", "evaluate"))):
        part = [c for c in missing if c.stage in stages]
        timed = [c for c in part if not math.isnan(c.seconds)]
        work = sum(c.flops for c in timed)
        hours = [(sum(c.cpu_hours for c in timed), "core-hours"), (sum(c.gpu_hours for c in timed), "GPU-hours")]
        text = ", ".join(f"{amount:,.2f} {unit}" for amount, unit in hours if amount or unit == "core-hours")
        text += f" for {work:.2e} FLOP" if work else ""
        unknown = len(part) - len(timed)
        lines.append(f"  {name:9} {text}" + (f"; {unknown} jobs of unknown length" if unknown else ""))
    too_long = sum(_fits(c, limit) != "" for c in missing)
    if too_long:
        lines.append(
            f"  {too_long} need more than the {limit:g} h that a job may have (config.yaml: machine), so several goes"
        )
    rates_text = f"measured on {rates.measured}" if rates.measured else "typical ones; measure yours: doctor --measure"
    lines.append(f"Rates are {rates_text}. Labels that a cache holds cost nothing.")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    if math.isnan(seconds):
        return "?"
    if seconds < 600:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 36_000 else f"{seconds / 3600:,.0f} h"


def _fits(job: Cost, limit: float) -> str:
    """In how many goes a job ends, if not within the longest time that one may have: it goes on where it was."""
    if math.isnan(job.seconds) or job.seconds <= 3600 * limit:
        return ""
    return f"{parts(job, limit)} goes"


def _text(amount: float, form: str) -> str:
    return "?" if math.isnan(amount) else format(amount, form)


def _closure(plan: Plan, target: str | None) -> tuple[list[str], list[str], list[str], list[str]]:
    """Artifacts, evaluations, runs and label jobs behind a target."""
    artifacts, evaluations, runs, label_jobs = [], [], [], []
    if target in (None, "all", "report"):
        artifacts = list(plan.artifacts)
    elif target in plan.titles:
        artifacts = [a for a, artifact in plan.artifacts.items() if artifact.paper == target]
    else:
        name = target.removeprefix(f"{plan.config.results_dir}/")
        if name not in plan.runs and name not in plan.evaluations:  # whose names may hold dots of their own
            name = name.rsplit(".", 1)[0]
        name = plan.full_id(name)
        if name in plan.runs:
            runs = [name]
        elif name in plan.evaluations:
            evaluations = [name]
        elif name in plan.label_jobs:
            label_jobs = [name]
        else:
            artifacts = [plan.artifact(name).id]
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


def _with_starts(plan: Plan, runs: list[str]) -> list[str]:
    """Runs after those whose weights they start from."""
    chains: list[str] = []
    for run in runs:
        chain = [run]
        while start := plan.runs[chain[-1]].start:
            chain.append(start.partition("@")[0])
        chains += reversed(chain)
    return _once(chains)


def _once(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ids))
