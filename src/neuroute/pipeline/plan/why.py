"""Why Snakemake would make results again: what changed since, key by key."""

import ast
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from neuroute.pipeline.plan.estimates import Cost
from neuroute.pipeline.plan.overview import costs, counted, is_replaced, note_of
from neuroute.pipeline.plan.plan import Plan

MOST = 3  # names in a line


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
    every = list(names)
    more = f" and {len(every) - MOST} more" if len(every) > MOST else ""
    return ", ".join(every[:MOST]) + more
