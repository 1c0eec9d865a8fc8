"""A SLURM of one node runs the DAG by the profile as shipped, and its jobs are cancelled: results are a local run's.

Minutes, as root, where slurm-wlm and munge are installed: `python -m pytest tests/slurm`.  NEUROUTE_SLURM names what it
makes: targets, or papers whose artifacts are all made ("pens sit"); without it Table 12.
"""

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos_jobs import snapshot

from checkout import copy_checkout, snakemake_in
from cluster import missing, one_node

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]
PAPERS = ("scaling", "pens", "sit", "icam", "mvmoe")
WANTED = os.environ.get("NEUROUTE_SLURM", "results/table12.csv").split()
CANCELLED = int(os.environ.get("NEUROUTE_SLURM_CANCELS", "6"))  # jobs of SLURM, at random moments


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with one_node(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


def checkout(folder: Path) -> list[str]:
    """A copy of the project with the papers that are wanted; the targets."""
    papers = [name for name in WANTED if name in PAPERS]
    folder.mkdir()
    copy_checkout(folder, *(papers or ["scaling"]))
    return ["all"] if papers else WANTED


def cancel_now_and_then(environment: dict[str, str], chance: random.Random, done: threading.Event) -> int:
    """Cancel running jobs, a random one after random seconds each time; how many."""
    cancelled = 0
    while cancelled < CANCELLED and not done.wait(chance.uniform(5, 40)):
        asked = ["squeue", "-h", "-t", "R", "-o", "%i"]
        running = subprocess.run(asked, env=os.environ | environment, capture_output=True, text=True, check=True)
        if jobs := running.stdout.split():
            subprocess.run(["scancel", chance.choice(jobs)], env=os.environ | environment, check=True)
            cancelled += 1
    return cancelled


def test_cancelled_jobs_go_on_and_end_with_the_same_results(slurm: dict[str, str], tmp_path: Path) -> None:
    local, sent = tmp_path / "local", tmp_path / "sent"
    checkout(local)
    targets = checkout(sent)
    snakemake_in(local)(*targets)
    done, counts = threading.Event(), []
    chance = random.Random(15)
    thread = threading.Thread(target=lambda: counts.append(cancel_now_and_then(slurm, chance, done)))
    with pytest.MonkeyPatch.context() as patch:
        for key, value in slurm.items():
            patch.setenv(key, value)
        patch.setenv("PATH", os.pathsep.join([os.path.dirname(sys.executable), slurm["PATH"]]))
        run = snakemake_in(sent)
        options = ("--workflow-profile", "profiles/slurm", "--cores", "16", "--slurm-status-command", "squeue")
        options += ("--slurm-init-seconds-before-status-checks", "5")
        thread.start()
        try:
            for attempt in range(1, 6):
                ended = run(*options, *targets, check=False)
                started = attempt
                if not ended.returncode:
                    break
        finally:
            done.set()
            thread.join()
    assert not ended.returncode, ended.stdout[-3000:] + ended.stderr[-3000:]
    here, there = (snapshot(folder, results=False) for folder in (local, sent))
    assert [name for name in here if here[name] != there.get(name)] == []
    assert set(here) == set(there)
    print(f"{len(here)} files equal; {counts[0]} jobs cancelled, Snakemake started {started} times")


def test_a_partition_or_gpus_that_are_not_there_stop_before_the_first_job(
    slurm: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout(tmp_path / "sent")
    for key, value in slurm.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("PATH", os.pathsep.join([os.path.dirname(sys.executable), slurm["PATH"]]))
    run = snakemake_in(tmp_path / "sent")
    profile = ("--workflow-profile", "profiles/slurm", "--cores", "16", "results/table12.csv")
    for more, words in (
        (("--default-resources", "slurm_partition=fast"), "no partition fast"),
        (("--config", "device=cuda", "gpus_per_run=9"), "gpus_per_run: 9, but all jobs together may hold 8"),
        (("--resources", "gpu=9", "--config", "device=cuda", "gpus_per_run=9"), "asks for 9 GPUs, a node of partition"),
    ):
        ended = run(*profile, *more, check=False)
        assert ended.returncode
        assert words in ended.stderr + ended.stdout
    assert not (tmp_path / "sent" / "work" / "micro" / "runs").exists()
