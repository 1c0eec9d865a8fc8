"""A plan as job arrays: which commands, in which order, and what `sbatch` is asked for."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from neuroute.pipeline.plan import slurm
from neuroute.pipeline.plan.plan import Plan
from plans import plan_of

STAND_IN = """#!/bin/sh
echo "$@" >> sent
for each; do case $each in --array=1-*) last=${each#--array=1-};; esac; done
while [ $# -gt 3 ]; do shift; done
for SLURM_ARRAY_TASK_ID in 1 $last; do export SLURM_ARRAY_TASK_ID; sh "$@" >> ran; done
wc -l < sent
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    monkeypatch.chdir(tmp_path)
    return plan_of("smoke", ("icam",))


def submit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """What `sbatch` was asked for, and the first and the last command of each array."""
    (folder / "bin").mkdir()
    (folder / "bin" / "sbatch").write_text(STAND_IN)
    (folder / "bin" / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr("sys.executable", "echo")
    for file in (folder / "arrays").glob("*.txt"):
        file.write_text(re.sub(r"^\S+", "echo", file.read_text(), flags=re.MULTILINE))
    subprocess.run(["sh", "arrays/submit.sh", "--partition=short"], cwd=folder, check=True)
    return (folder / "sent").read_text().splitlines(), (folder / "ran").read_text().splitlines()


def test_what_hangs_on_others_is_sent_behind_them(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm.write_arrays(plan, None, Path("arrays"), None, "smoke")
    files = sorted((tmp_path / "arrays").glob("*.txt"))
    written = [line.split()[4] for file in files for line in file.read_text().splitlines()]
    assert sorted(written) == sorted([*plan.label_jobs, *plan.runs, *plan.evaluations])
    place = {job: file.name for file in files for job in re.findall(r" -m neuroute \w+ (\S+)", file.read_text())}
    for run in plan.runs.values():
        start = (run.start or "").partition("@")[0]
        before = [*plan.label_jobs_of_run(run.id), *([start] if start else [])]
        assert all(place[job] < place[run.id] for job in before)
    assert all(place[e.run] < place[name] for name, e in plan.evaluations.items())
    sent, ran = submit(tmp_path, monkeypatch)
    assert [re.findall("--dependency=afterok:([0-9]+)", line) for line in sent] == [
        [] if number == 0 else [str(number)] for number in range(len(files))
    ]
    assert all(" --partition=short " in line and re.search(r" --time=\d+ --mem=\d+ ", line) for line in sent)
    ends = [line.split()[4] for file in files for line in (file.read_text().splitlines()[i] for i in (0, -1))]
    assert [line.split()[3] for line in ran] == ends


def test_an_array_holds_no_more_than_slurm_takes(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "TASKS", 7)
    slurm.write_arrays(plan, "icam/table1", Path("arrays"), None, "smoke")
    jobs = [line for file in (tmp_path / "arrays").glob("*.txt") for line in file.read_text().splitlines()]
    sent, ran = submit(tmp_path, monkeypatch)
    sizes = [int(size) for line in sent for size in re.findall("--array=1-([0-9]+)", line)]
    assert max(sizes) == 7
    assert sum(sizes) == len(jobs)
    assert len(set(ran)) > len(sent)  # none runs another one's


def test_a_training_on_several_gpus_has_a_process_for_each(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neuroute.pipeline.plan.estimates.gpus", lambda config: 4)
    slurm.write_arrays(plan, "icam/table1", Path("arrays"), None, "smoke")
    lines = [line for file in (tmp_path / "arrays").glob("*.txt") for line in file.read_text().splitlines()]
    launched = [
        " -m torch.distributed.run --standalone --nproc-per-node=4 -m neuroute train " in line for line in lines
    ]
    assert launched == [" train " in line for line in lines]
    assert any(launched)
