"""SLURM: what can be known about a cluster before the first job is sent there, and what there is to do as job arrays.

Arrays are for sites that want these: `neuroute plan --array`.
"""

import math
import os
import re
import shlex
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_text
from neuroute.pipeline.plan.estimates import Estimates
from neuroute.pipeline.plan.overview import costs
from neuroute.pipeline.plan.plan import Plan

PROFILE = "profiles/slurm/profile.yaml"
SHARE = f"share or group-components to less in {PROFILE}"
LOOK_EVERY_S = 20.0
# Why a job waits (`squeue -o %r`), where waiting does not help: others end when jobs or reservations do.
NEVER_STARTS = re.compile(
    "Partition(Config|TimeLimit|NodeLimit)|BadConstraints|Invalid(Account|QOS)|(Account|QOS)NotAllowed|MaxMemPerLimit"
    "|(Assoc|QOS)(Max|Grp)\\w*PerJob\\w*|(Assoc|QOS)Max(Wall|Node|Cpu|Mem|GRES|TRES)\\w*Limit|JobHeld(User|Admin)"
)
MEND = {  # what a job asks for -> its unit, and what to change where no node gives as much
    "gpus": ("GPUs", "gpus_per_run or device in config.yaml"),
    "cpus": ("CPUs", f"cores in {PROFILE}"),
    "memory_mb": ("MB of memory", "memory_gb in config.yaml"),
    "minutes": ("minutes", "`machine: {job_hours: }` in config.yaml"),
}


@dataclass(frozen=True)
class JobRequest:
    """What one job asks for."""

    job: str
    partition: str | None  # None: the default one
    minutes: int
    memory_mb: int
    cpus: int
    gpus: int
    together: bool = False  # whether it is several short jobs


@dataclass(frozen=True)
class Nodes:
    """Nodes of a partition that are alike."""

    partition: str
    default: bool
    minutes: float  # that a job may take
    memory_mb: int
    cpus: int
    gpus: int


def check_jobs(requests: Iterable[JobRequest]) -> None:
    """Raises NeurouteError for the first job that no node of its partition can take, with what to change."""
    rows = [line.split("|") for line in _ask("sinfo", "-h", "-o", "%P|%l|%m|%c|%G")]
    nodes = []
    for name, limit, memory, cpus, gres in rows:
        gpus = sum(int(count) for count in re.findall(r"gpu:(?:[\w.-]+:)?(\d+)", gres))
        nodes.append(
            Nodes(
                partition=name.rstrip("*"),
                default=name.endswith("*"),
                minutes=_minutes(limit),
                memory_mb=int(memory.rstrip("+")),
                cpus=int(cpus.rstrip("+")),
                gpus=gpus,
            )
        )
    names = list(dict.fromkeys(each.partition for each in nodes))
    for job in requests:
        partition_nodes = [n for n in nodes if (n.default if job.partition is None else n.partition == job.partition)]
        if not partition_nodes:
            what = "default partition" if job.partition is None else f"partition {job.partition}"
            raise NeurouteError(f"no {what}; set slurm_partition in {PROFILE}: {', '.join(names)}")
        name = partition_nodes[0].partition
        for amount_of, (unit, mend) in MEND.items():
            amount, most = getattr(job, amount_of), max(getattr(node, amount_of) for node in partition_nodes)
            if amount > most:
                mend = SHARE if job.together else mend
                raise NeurouteError(
                    f"{job.job} asks for {amount:,} {unit}, a node of partition {name} gives {most:,}: "
                    f"set {mend}, or another slurm_partition in {PROFILE}"
                )


def check_orphans(folder: Path) -> None:
    """Raises NeurouteError if jobs run that an earlier, killed Snakemake has sent from this folder.

    A second copy of a job would remove what the first one writes.
    """
    lines = _ask("squeue", "--me", "-h", "-o", "%i|%k|%Z")
    jobs = [line.split("|") for line in lines]
    orphans = [job for job, comment, place in jobs if place == str(folder) and re.match("(rule|group)_", comment)]
    if orphans:
        raise NeurouteError(
            f"{len(orphans)} jobs of a killed Snakemake still run; wait for them, or stop them: scancel "
            f"{' '.join(orphans)}"
        )


def watch_pending(folder: Path, say: Callable[[str], None]) -> None:
    """Say once of each job from this folder that waits for what never comes, as long as this process runs."""
    said = set[str]()

    def look() -> None:
        while True:
            time.sleep(LOOK_EVERY_S)
            with suppress(NeurouteError):  # a controller that is too busy to answer is asked again
                said.update(say_pending(folder, said, say))

    Thread(target=look, daemon=True).start()


def say_pending(folder: Path, said: Collection[str], say: Callable[[str], None]) -> list[str]:
    """Look once; the jobs that a line was said of."""
    rows = [line.split("|") for line in _ask("squeue", "--me", "-h", "-t", "PD", "-o", "%i|%r|%m|%c|%l|%P|%Z|%k")]
    jobs = [row for row in rows if row[6] == str(folder) and row[0] not in said and NEVER_STARTS.match(row[1])]
    for job, reason, memory, cpus, limit, partition, _, comment in jobs:
        say(
            f"job {job} ({comment}) can never start: {reason}; it asks partition {partition} for {cpus} CPUs, {memory} "
            f"and {limit}: scancel {job}, correct {PROFILE}, start Snakemake again"
        )
    return [row[0] for row in jobs]


def _minutes(limit: str) -> float:
    """A time limit as SLURM writes it: infinite, [days-]hours:minutes:seconds, or minutes:seconds."""
    if limit in ("infinite", "n/a"):
        return math.inf
    days, _, clock = limit.rpartition("-")
    parts = [int(part) for part in clock.split(":")]
    hours, minutes = (parts[-3] if len(parts) > 2 else 0), parts[-2]
    return 60 * (24 * int(days or 0) + hours) + minutes


def _ask(*command: str) -> list[str]:
    """The lines that a command of SLURM prints.  Raises NeurouteError if it cannot."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)
    except FileNotFoundError:
        raise NeurouteError(f"no {command[0]} here: start Snakemake on a node from which jobs are sent") from None
    except subprocess.TimeoutExpired:
        raise NeurouteError(f"{command[0]} gives no answer: is the controller of SLURM down?") from None
    if process.returncode:
        last_line = (process.stderr.strip().splitlines() or ["failed"])[-1]
        raise NeurouteError(f"{command[0]}: {last_line}; see what {' '.join(command)} says here")
    return process.stdout.splitlines()


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
        python, *module = neuroute
        lines = []
        for job in ids:
            many = each[job].gpus if stage == "train" and each[job].gpus > 1 else 0
            launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={many}"] if many else []
            lines.append(
                shlex.join([python, *launcher, *module, command, job, threads, str(each[job].threads), *options])
            )
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
