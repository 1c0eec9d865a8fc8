"""What there is to do as job arrays of SLURM, for sites that want these: `neuroute plan --array`."""

import shlex
import sys
from collections import defaultdict
from pathlib import Path

from neuroute.core.files import write_text
from neuroute.pipeline.plan.estimates import Estimates
from neuroute.pipeline.plan.overview import costs
from neuroute.pipeline.plan.plan import Plan

WORDS = {"labels": ("label", "--workers"), "train": ("train", "--threads"), "evaluate": ("evaluate", "--threads")}
STAGES = list(WORDS)  # in the order in which they go
TASKS = 1000  # of one array at most: SLURM's usual MaxArraySize is 1001
TASK = """#!/bin/sh
# The line of this task in a file of commands, of which some are another array's.
eval "$(sed -n "$((SLURM_ARRAY_TASK_ID + $2))p" "$1")"
"""
SUBMIT = """#!/bin/sh
# Options of sbatch may follow, such as --partition=short.  When all has ended: snakemake all
set -e
cd {here}
mkdir -p {folder}/logs
options="$*"
send() {{
    name=$1 first=$2
    shift 2
    set -- --job-name="$name" --output={folder}/logs/"$name"_%a.log --kill-on-invalid-dep=yes "$@" $options
    sbatch --parsable "$@" {folder}/task.sh {folder}/"$name".txt "$first"
}}
"""


def write_arrays(plan: Plan, target: str | None, folder: Path, config: Path | None, scale: str | None) -> list[str]:
    """Write what a target needs before it is drawn: files with a command a line, and submit.sh; a line on each.

    Jobs of a file do not hang on each other, and a file waits until all of the one before have succeeded.  An array
    asks for what the largest of its jobs needs.

    Args:
        plan: of this config and scale.
        target: as of `neuroute plan`.
        folder: where to.
        config: which commands take.
        scale: likewise.
    """
    estimates, jobs = Estimates(plan), defaultdict[tuple[int, int], list[str]](list)
    for c in costs(plan, target):
        stage = "train" if c.stage == "weights" else c.stage
        if stage in WORDS and not c.is_done:
            jobs[STAGES.index(stage), estimates.depth(stage, c.id)].append(c.id)
    neuroute = [sys.executable, "-m", "neuroute"]
    of_config = ["--config", str(config)] if config else []
    options = [*of_config, *(["--scale", scale] if scale else [])]
    evaluations = (job for ids in jobs.values() for job in ids if job in plan.evaluations)
    benchmarks = {b: plan.benchmark_manifest(b) for e in evaluations for b in plan.benchmarks_to_fetch(e)}
    sends = [shlex.join([*neuroute, "fetch", b, *of_config]) for b, file in benchmarks.items() if not file.exists()]
    said, waits = [], ""
    for number, ((place, depth), ids) in enumerate(sorted(jobs.items()), 1):
        stage = STAGES[place]
        command, threads = WORDS[stage]
        each = {job: estimates.cost(stage, job) for job in ids}
        lines = [shlex.join([*neuroute, command, job, threads, str(each[job].threads), *options]) for job in ids]
        name = f"{number}_{stage}{depth or ''}"
        write_text(folder / f"{name}.txt", "\n".join(lines) + "\n")
        minutes, memory = (max(of(stage, job) for job in ids) for of in (estimates.runtime, estimates.mem_mb))
        cpus, gpus = max(cost.threads for cost in each.values()), max(cost.gpus for cost in each.values())
        asks = f"--time={minutes} --mem={memory} --cpus-per-task={cpus} --nodes=1" + (f" --gpus={gpus}" if gpus else "")
        sent = []
        for first in range(0, len(ids), TASKS):
            sent.append(f"a{number}_{first}")
            sends.append(f"{sent[-1]}=$(send {name} {first} --array=1-{min(TASKS, len(ids) - first)} {asks}{waits})")
        waits = f" --dependency=afterok:{':'.join(f'${each}' for each in sent)}"
        said.append(f"{folder}/{name}.txt: {len(ids)} jobs, each {asks}")
    write_text(folder / "task.sh", TASK)
    script = SUBMIT.format(here=shlex.quote(str(Path.cwd())), folder=shlex.quote(str(folder)))
    write_text(folder / "submit.sh", script + "\n".join(sends) + "\n")
    return [*said, f"sh {folder}/submit.sh sends them; `snakemake` then draws"]
