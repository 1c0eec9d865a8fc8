"""What can be known about a SLURM cluster before the first job is sent there."""

import math
import os
import re
import subprocess
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from neuroute.core.errors import NeurouteError

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
