"""`python bench/chaos.py`: kill jobs at random moments, start them again, and compare what they leave with what they
leave undisturbed.  Prints a Markdown table.

Kinds of jobs: label, train, evaluate, render, each in a process of its own, and whole DAGs of Snakemake.  A job is
interrupted by SIGKILL or SIGTERM of its process, by SIGTERM of its whole group, by SIGKILL of all its processes at once
(a lost node), or by a full disk: a small file system where one can be mounted, else a limit to the size of files.
Files are compared byte by byte, without the numbers that the clock gives: seconds, and peak memory.
"""

import argparse
import contextlib
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
from chaos_jobs import ROOT, Job, finish, jobs_of, snapshot

BLOCK = 4096  # what most files of these jobs do not fill
WAYS = ("SIGKILL", "SIGTERM", "SIGTERM of all", "lost node", "full disk")
AT_MOST = 4  # kills on the way to one result


@dataclass
class Tally:
    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WAYS, 0))
    same: int = 0
    steps: int = 0  # of undisturbed jobs
    repeated: list[int] = field(default_factory=list)  # steps that were taken twice, by job


def interrupt(job: Job, folder: Path, way: str, after: float, room: int) -> bool:
    """Start a job and interrupt it after so many seconds, or with so many bytes left; False: it had ended by then."""
    if way == "full disk":
        mounted = mount("-o", f"remount,size={used(folder) + room}", str(folder))
        process = job.start(folder) if mounted else partial(job.start, limit=room % BLOCK)(folder)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if mounted:
            mount("-o", "remount,size=1g", str(folder))
        return status != 0
    process = job.start(folder)
    time.sleep(after)
    ended, _ = os.waitpid(process, os.WNOHANG)
    if ended:
        return False
    if way == "lost node":
        for each in psutil.Process(process).children(recursive=True):
            each.send_signal(signal.SIGKILL)
    number = signal.SIGTERM if way.startswith("SIGTERM") else signal.SIGKILL
    (os.killpg if way == "SIGTERM of all" else os.kill)(process, number)
    os.waitpid(process, 0)
    return True


def mount(*arguments: str) -> bool:
    if shutil.which("mount") is None:
        return False
    return subprocess.run(["mount", *arguments], capture_output=True).returncode == 0


def used(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


@contextlib.contextmanager
def trial(job: Job, base: Path) -> Iterator[Path]:
    """A copy of a folder in which the job has yet to run, on a file system of its own where one can be mounted."""
    with tempfile.TemporaryDirectory(prefix="neuroute-chaos-") as place:
        folder = Path(place, "trial")
        folder.mkdir()
        mounted = mount("-t", "tmpfs", "-o", "size=1g", "tmpfs", str(folder))
        try:
            shutil.copytree(base, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".snakemake"))
            for pattern in job.gone:
                for path in folder.glob(pattern):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            yield folder
        finally:
            if mounted:
                subprocess.run(["umount", "-l", str(folder)], check=True)


def steps(folder: Path) -> int:
    """Steps that were taken; of a DAG jobs that ended, of drawings none."""
    file = folder.parent / "steps.txt"
    ended = (log.read_text().count("Finished jobid: ") for log in folder.glob(".snakemake/log/*.log"))
    return (file.stat().st_size if file.exists() else 0) + sum(ended)


def torment(job: Job, base: Path, kills: int, chance: random.Random, tally: Tally) -> None:
    """Interrupt a job so often, several times on its way, and compare."""
    with trial(job, base) as folder:
        before, began = used(folder), time.monotonic()
        finish(job, folder)
        seconds, room = time.monotonic() - began, used(folder) - before
        expected, needed = snapshot(folder, job.results), steps(folder)
    tally.steps += needed
    done = 0
    while done < kills:
        with trial(job, base) as folder:
            ways = []
            for _ in range(planned := min(AT_MOST, kills - done)):
                way = chance.choice(WAYS)
                after = chance.uniform(0, min(0.7, 1.4 / planned) * seconds)
                if not interrupt(job, folder, way, after, chance.randrange(room + 1)):
                    break
                ways.append(way)
            finish(job, folder)
            same = snapshot(folder, job.results) == expected
            if not same:
                found = snapshot(folder, job.results)
                different = sorted(k for k in {*found, *expected} if found.get(k) != expected.get(k))
                print(f"{job.kind} {job.name}, {ways}: other bytes in {different}", file=sys.stderr)
            for way in ways:
                tally.kills[way] += 1
            tally.same += same * len(ways)
            tally.repeated.append((steps(folder) - needed) if ways else 0)
            done += len(ways)
            print(f"{job.kind} {job.name}: {ways}, same: {same}, {done} of {kills}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--kills", default="label=40,train=60,evaluate=60,render=30,dag=10", help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wanted = {kind: int(count) for kind, _, count in (each.partition("=") for each in options.kills.split(","))}
    chance, tallies = random.Random(options.seed), {}
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="neuroute-chaos-") as place:
        for kind, kills in wanted.items():
            tallies[kind] = Tally()
            victims = list(jobs_of(kind, Path(place)))
            for number, (job, prepare) in enumerate(victims):
                share = kills // len(victims) + (number < kills % len(victims))
                if share:
                    torment(job, prepare(), share, chance, tallies[kind])
    report(tallies)
    sys.exit(any(t.same < sum(t.kills.values()) for t in tallies.values()))


def report(tallies: dict[str, Tally]) -> None:
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    where = f"{platform.platform()}, {os.cpu_count()} cores"
    print(f"Commit {commit.stdout.strip()}, {time.strftime('%Y-%m-%d')}, {where}.\n")
    print(
        f"| job | {' | '.join(WAYS)} | same bytes | steps undisturbed | repeated a kill (mean) | by one job at most |"
    )
    print("|---" * (len(WAYS) + 5) + "|")
    for kind, t in tallies.items():
        kills = sum(t.kills.values())
        again = f"{sum(t.repeated) / kills:.1f} | {max(t.repeated)}" if kills and t.steps else "- | -"
        print(
            f"| {kind} | {' | '.join(map(str, t.kills.values()))} | {t.same} of {kills} | {t.steps or '-'} | {again} |"
        )


if __name__ == "__main__":
    main()
