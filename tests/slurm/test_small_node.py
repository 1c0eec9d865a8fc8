"""A SLURM of one node of 4 CPUs and 8 GB, where groups of short jobs fit, and what can never start is said.

Minutes, as root, where slurm-wlm and munge are installed: `python -m pytest tests/slurm/test_small_node.py -s`.
NEUROUTE_SLURM_SCALE=smoke makes a table of the default scale, a quarter of an hour on two cores.
"""

import csv
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkout import TOY, copy_checkout, planned, replace, toy
from cluster import ask, missing, one_node
from neuroute.pipeline.plan import slurm

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]
CPUS, MEMORY_MB = 4, 8000
SCALE = os.environ.get("NEUROUTE_SLURM_SCALE", "micro")
SENT = ("--workflow-profile", "profiles/slurm", "--slurm-status-command", "squeue", "--config", "device=cpu")
TABLE = "results/pens/table2.csv"
DRAWN = {"render", "render_table", "render_figure", "report", "all"}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with (
        one_node(tmp_path_factory.mktemp("node"), CPUS, MEMORY_MB) as environment,
        pytest.MonkeyPatch.context() as patch,
    ):
        for key, value in environment.items():
            patch.setenv(key, value)
        yield environment


def asked_for(node: dict[str, str], done: threading.Event) -> dict[str, tuple[int, int]]:
    """CPUs and MB that jobs have asked for, looked at until all is done."""
    asked: dict[str, tuple[int, int]] = {}
    while not done.wait(1):
        for line in ask(node, "squeue", "-h", "-o", "%i %C %m").splitlines():
            job, cpus, memory = line.split()
            asked[job] = int(cpus), int(float(memory.rstrip("MG")) * (1000 if memory.endswith("G") else 1))
    return asked


def test_short_jobs_fit(node: dict[str, str], tmp_path: Path) -> None:
    """Sent together."""
    run = copy_checkout(tmp_path, "pens", scale=SCALE)
    done, jobs = threading.Event(), list[dict[str, tuple[int, int]]]()
    thread = threading.Thread(target=lambda: jobs.append(asked_for(node, done)))
    thread.start()
    began = time.monotonic()
    ended = run(TABLE, *SENT, check=False)
    done.set()
    thread.join()
    said = ended.stdout + ended.stderr
    assert not ended.returncode, said[-3000:]
    with (tmp_path / TABLE).open(newline="") as file:
        assert any(row["gap_tsp100_pct_measured"] for row in csv.DictReader(file))
    total = re.findall(r"^total +(\d+)", said, re.MULTILINE)[0]
    print(
        f"{total} jobs, {len(jobs[0])} of SLURM, {time.monotonic() - began:.0f} s; (CPUs, MB): {set(jobs[0].values())}"
    )
    assert all(cpus <= CPUS and memory <= MEMORY_MB for cpus, memory in jobs[0].values())


def test_job_arrays(node: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of sbatch for each stage makes what drawings need, and Snakemake makes nothing of it again."""
    run = toy(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}/src")
    write = [sys.executable, "-m", "neuroute", "plan", "--array", "arrays", "--config", TOY[1]]
    for command in (write, ["sh", "arrays/submit.sh"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    try:
        while ask(node, "squeue", "-h").strip():
            time.sleep(1)
        assert set(planned(run, "all", *TOY)) == DRAWN
    finally:
        ask(node, "scancel", "--me")


def test_a_job_that_fails_in_a_group(node: dict[str, str], tmp_path: Path) -> None:
    """Its group has failed, and what the others have made is not there either."""
    run = copy_checkout(tmp_path, "pens")
    line = "    loaded, folder = load_run("
    planted = '    if evaluation.id.startswith("pens/pens_a/"):\n        raise RuntimeError("planted")\n'
    replace(tmp_path / "src/neuroute/evaluation/driver.py", line, planted + line)
    ended = run(TABLE, *SENT, "--keep-going", check=False)
    assert ended.returncode
    assert "planted" in ended.stdout + ended.stderr
    assert not list((tmp_path / "work/micro/evaluations").rglob("*.json"))


def test_a_group_that_no_node_takes_stops_before_the_first_job(node: dict[str, str], tmp_path: Path) -> None:
    run = copy_checkout(tmp_path, "pens")
    ended = run(TABLE, *SENT, "--resources", "share=10000", "--set-resources", "labels:mem_mb=6000", check=False)
    assert ended.returncode
    said = r"a group of \d+ short jobs asks for [\d,]+ MB of memory, a node of partition main gives 8,000: set share"
    assert re.search(said, ended.stdout + ended.stderr), ended.stderr[-2000:]
    assert not ask(node, "squeue", "-h").strip()


def test_a_job_that_never_starts_is_said(node: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where limits are changed after the first look: it waits for more time than its partition gives."""
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    job = ask(
        node, "sbatch", "--parsable", "-p", "short", "-t", "10", "--mem", "100", "--comment=rule_train", "--wrap=true"
    )
    try:
        for _ in range(60):
            if slurm.say_pending(tmp_path, (), said.append):
                break
            time.sleep(0.5)
        assert re.match(
            rf"job {job.strip()} \(rule_train\) can never start: Partition(TimeLimit|Config); it asks partition short",
            said[0],
        )
        assert slurm.say_pending(tmp_path, [job.strip()], said.append) == []
        assert slurm.say_pending(tmp_path / "other", (), said.append) == []
    finally:
        ask(node, "scancel", job.strip())
