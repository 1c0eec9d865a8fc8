"""A SLURM of one node runs the DAG by the profile as shipped, and its jobs are cancelled: results are a local run's.

Minutes, as root, where slurm-wlm and munge are installed: `python -m pytest tests/slurm`.  NEUROUTE_SLURM names what it
makes: targets, or papers whose artifacts are all made ("pens sit"); without it Table 12.  NEUROUTE_SLURM_SCALE=smoke
takes long: half an hour and more on two cores for `scaling`.
"""

import os
import random
import re
import threading
import time
from pathlib import Path

import pytest
from chaos_jobs import snapshot

from checkout import copy_checkout, snakemake_in
from cluster import SENT, ask, missing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]
PAPERS = ("scaling", "pens", "sit", "icam", "mvmoe")
WANTED = os.environ.get("NEUROUTE_SLURM", "results/table12.csv").split()
SCALE = os.environ.get("NEUROUTE_SLURM_SCALE", "micro")
CANCELLED = int(os.environ.get("NEUROUTE_SLURM_CANCELS", "6"))  # jobs of SLURM, at random moments
TURNS = () if SCALE == "micro" else ("--cores", "2", "--jobs", "2")  # the node claims more than there is
STARTS = 5 + CANCELLED // 3  # of Snakemake, which gives up when the same jobs have been cancelled three times


def checkout(folder: Path) -> list[str]:
    """A copy of the project with the papers that are wanted; the targets."""
    papers = [name for name in WANTED if name in PAPERS]
    folder.mkdir()
    copy_checkout(folder, *(papers or ["scaling"]), scale=SCALE)
    return ["all"] if papers else WANTED


def cancel_now_and_then(
    environment: dict[str, str], chance: random.Random, done: threading.Event, seconds: float
) -> int:
    """Cancel running jobs, a random one after random seconds each time, these many in so long on average; how many."""
    cancelled = 0
    while cancelled < CANCELLED and not done.wait(chance.uniform(0, 2 * seconds / CANCELLED)):
        if jobs := ask(environment, "squeue", "-h", "-t", "R", "-o", "%i").split():
            ask(environment, "scancel", chance.choice(jobs))
            cancelled += 1
    return cancelled


def test_cancelled_jobs_go_on_and_end_with_the_same_results(slurm: dict[str, str], tmp_path: Path) -> None:
    local, sent = tmp_path / "local", tmp_path / "sent"
    checkout(local)
    targets = checkout(sent)
    began = time.monotonic()
    snakemake_in(local)(*targets)
    seconds = [time.monotonic() - began]
    done, counts = threading.Event(), []
    chance = random.Random(15)
    thread = threading.Thread(target=lambda: counts.append(cancel_now_and_then(slurm, chance, done, seconds[0])))
    with pytest.MonkeyPatch.context() as patch:
        for key, value in slurm.items():
            patch.setenv(key, value)
        run = snakemake_in(sent)
        thread.start()
        began = time.monotonic()
        try:
            for attempt in range(1, STARTS + 1):
                if attempt == STARTS:  # a slow machine's jobs meet more of them
                    done.set()
                ended = run(*SENT, *TURNS, *targets, check=False)
                started = attempt
                if not ended.returncode:
                    break
        finally:
            done.set()
            thread.join()
    seconds.append(time.monotonic() - began)
    assert not ended.returncode, ended.stdout[-3000:] + ended.stderr[-3000:]
    here, there = (snapshot(folder, results=False) for folder in (local, sent))
    assert [name for name in here if here[name] != there.get(name)] == []
    assert set(here) == set(there)
    assert not list((sent / ".snakemake" / "slurm_logs").glob("rule_render*"))  # seconds each: made here
    (log,) = (local / ".snakemake" / "log").glob("*.log")
    jobs = re.findall(r"of (\d+) steps", log.read_text())[-1]
    print(f"{len(here)} files equal; {counts[0]} jobs cancelled, Snakemake started {started} times")
    print(f"{jobs} jobs: here {seconds[0]:.0f} s, by SLURM {seconds[1]:.0f} s")


@pytest.mark.usefixtures("on_slurm")
def test_a_partition_or_gpus_that_are_not_there_stop_before_the_first_job(tmp_path: Path) -> None:
    checkout(tmp_path / "sent")
    run = snakemake_in(tmp_path / "sent")
    for more, words in (
        (("--default-resources", "slurm_partition=fast"), "no partition fast"),
        (("--config", "device=cuda", "gpus_per_run=9"), "gpus_per_run: 9, but all jobs together may hold 8"),
        (("--resources", "gpu=9", "--config", "device=cuda", "gpus_per_run=9"), "asks for 9 GPUs, a node of partition"),
    ):
        ended = run(*SENT, "results/table12.csv", *more, check=False)
        assert ended.returncode
        assert words in ended.stderr + ended.stdout
    assert not (tmp_path / "sent" / "work" / "micro" / "runs").exists()
