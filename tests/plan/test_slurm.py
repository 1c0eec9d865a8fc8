"""What a cluster is asked for on behalf of each job, and what stops before the first one is sent."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from refusals import one_line

from neuroute.pipeline.plan.estimates import LEAST_MINUTES, LEAST_MINUTES_TOGETHER, MB_TOGETHER, SHORT_S, Estimates
from neuroute.pipeline.plan.plan import Plan
from neuroute.pipeline.plan.slurm import JobRequest, check_jobs, check_orphans
from plans import ROOT, SCALES, plan_of

Install = Callable[..., None]
JOB = JobRequest("train a", None, minutes=60, memory_mb=4000, cpus=8, gpus=1)
SINFO = ["gpu*|2-00:00:00|256000+|64|gpu:a100:4(S:0-1)", "cpu|infinite|128000|32|(null)", "test|30:00|1000|4|gpu:1"]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """A function that puts a command of SLURM on the path that prints these lines, and nothing else of SLURM."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def add(name: str, *lines: str, status: int = 0) -> None:
        file = tmp_path / name
        file.write_text(f"#!{sys.executable}\nimport sys\nprint({chr(10).join(lines)!r})\nsys.exit({status})\n")
        file.chmod(0o755)

    return add


def jobs_of(plan: Plan) -> list[tuple[str, str]]:
    stages = {"labels": plan.label_jobs, "train": plan.runs, "evaluate": plan.evaluations}
    return [(stage, name) for stage, names in stages.items() for name in names]


@pytest.mark.parametrize(
    ("scale", "device"),
    [
        *((scale, "cpu") for scale in SCALES if scale not in ("laptop", "gpu", "paper")),
        ("smoke", "cuda"),
        pytest.param("laptop", "cpu", marks=pytest.mark.slow),
        *(pytest.param(scale, "cuda", marks=pytest.mark.slow) for scale in ("gpu", "paper")),
    ],
)
def test_every_job_of_every_scale_asks_for_time_memory_and_processors(scale: str, device: str) -> None:
    plan = plan_of(scale, device=device, gpus_per_run=2)
    requests = Estimates(plan, 16)
    most = 60 * plan.config.machine.job_hours
    for stage, name in jobs_of(plan):
        minutes = [requests.runtime(stage, name, attempt) for attempt in (1, 2, 3)]
        group = requests.group(stage, name)
        least = LEAST_MINUTES_TOGETHER if group else LEAST_MINUTES
        assert least <= minutes[0] <= minutes[1] <= minutes[2] <= most
        assert 60 * minutes[0] >= min(60 * most, requests.seconds(stage, name))
        assert 1000 < requests.mem_mb(stage, name, 1) < requests.mem_mb(stage, name, 2)
        assert 1 <= requests.cost(stage, name).threads <= 16
        gpus = requests.cost(stage, name).gpus
        assert gpus in ((0,) if device == "cpu" or stage == "labels" else (1, 2))
        assert group is None or (gpus == 0 and requests.seconds(stage, name) <= SHORT_S)


@pytest.mark.parametrize("scale", ["smoke", "laptop"])
def test_jobs_that_run_at_once_in_a_group_fit_a_node_of_four_processors_and_eight_gigabytes(scale: str) -> None:
    """As many as their shares allow; one alone may ask for what it needs."""
    requests = Estimates(plan_of(scale, device="cpu"), 16)
    jobs, together = jobs_of(requests.plan), 0
    for stage, name in jobs:
        at_once = 100 // requests.share(stage, name)
        if requests.group(stage, name) and at_once > 1:
            together += 1
            assert at_once * requests.cost(stage, name).threads <= 4
            assert at_once * requests.mem_mb(stage, name) <= MB_TOGETHER < 8000
    assert together > len(jobs) / 3


def test_longer_jobs_may_go_on_more_often() -> None:
    plan = plan_of("paper", device="cuda")
    needs = {run: Estimates(plan, 16).retries("train", [run]) for run in ("scaling/base_42x512", "pens/small_a_zero")}
    assert needs["scaling/base_42x512"] > needs["pens/small_a_zero"] == 2


def test_jobs_that_are_sent_together_do_not_hang_on_each_other() -> None:
    plan = plan_of("smoke")
    requests = Estimates(plan, 16)
    for run in plan.runs.values():
        if run.start:
            assert requests.group("train", run.id) != requests.group("train", run.start.partition("@")[0])


def test_weights_that_are_given_ask_for_what_reading_them_takes(tmp_path: Path) -> None:
    file = tmp_path / "weights.pt"
    file.write_bytes(b"")
    given = {run: {"weights": str(file)} for run in ("icam/icam_tsp", "scaling/sigd")}
    requests = Estimates(plan_of("paper", device="cuda", runs=given), 16)
    before = requests.mem_mb("train", "icam/icam_tsp")
    for run in given:
        assert requests.runtime("train", run) <= LEAST_MINUTES_TOGETHER + 1
        assert (requests.cost("train", run).gpus, requests.group("train", run)) == (0, "train0")
    with file.open("r+b") as opened:
        opened.truncate(10**9)
    assert requests.mem_mb("train", "icam/icam_tsp") == before
    again = Estimates(requests.plan, 16)
    assert again.mem_mb("train", "icam/icam_tsp") == pytest.approx(before + 1500, abs=1)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (replace(JOB, partition="fast"), "no partition fast; set slurm_partition in .*: gpu, cpu, test"),
        (replace(JOB, gpus=8), "train a asks for 8 GPUs, a node of partition gpu gives 4: set gpus_per_run"),
        (replace(JOB, partition="cpu"), "train a asks for 1 GPUs, a node of partition cpu gives 0"),
        (replace(JOB, cpus=65), "65 CPUs, a node of partition gpu gives 64: set cores in"),
        (replace(JOB, memory_mb=300_000), "300,000 MB of memory, a node of partition gpu gives 256,000"),
        (replace(JOB, minutes=2881), "2,881 minutes, .* gives 2,880: set `machine: {job_hours: }`"),
        (replace(JOB, partition="test", cpus=1, memory_mb=9), "60 minutes, a node of partition test gives 30"),
    ],
)
def test_what_no_node_can_take_is_one_line(install: Install, job: JobRequest, words: str) -> None:
    install("sinfo", *SINFO)
    check_jobs([JOB])
    with one_line(words):
        check_jobs([JOB, job])


def test_a_node_without_slurm_or_a_controller_that_is_down_is_one_line(install: Install) -> None:
    with one_line("no sinfo here: start Snakemake on a node from which jobs are sent"):
        check_jobs([JOB])
    install("sinfo", status=1)
    with one_line("sinfo: failed"):
        check_jobs([JOB])
    install("sinfo", "cpu|infinite|128000|32|(null)")
    with one_line("no default partition; set slurm_partition in .*: cpu"):
        check_jobs([JOB])


def test_jobs_of_a_killed_snakemake_stop_the_next_one(install: Install, tmp_path: Path) -> None:
    install("squeue", f"7|rule_train|{tmp_path}/other", f"8|interactive|{tmp_path}")
    check_orphans(tmp_path)
    install("squeue", f"7|rule_train_wildcards_a|{tmp_path}", f"9|group_short|{tmp_path}")
    with one_line("2 jobs of a killed Snakemake.*scancel 7 9$"):
        check_orphans(tmp_path)


@pytest.fixture
def on_node(tmp_path: Path) -> Callable[..., str]:
    """A function that checks a node as a job would there; what it says."""
    folder = tmp_path / "folder"
    (folder / ".snakemake").mkdir(parents=True)
    (folder / "Snakefile").touch()

    def check(home: Path | str | None = None, **commands: str) -> str:
        for name, body in {"python": "exit 0", **commands}.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
            (tmp_path / name).chmod(0o755)
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"} | ({"HOME": str(home)} if home else {})
        node = ROOT / "profiles" / "slurm" / "node.sh"
        done = subprocess.run(["sh", str(node)], cwd=folder, env=environment, capture_output=True, text=True)
        assert (done.returncode == 0) == (not done.stderr)
        assert done.stderr.count("\n") <= 1
        return done.stderr

    return check


def test_a_node_that_lacks_something_says_so_before_the_job(on_node: Callable[..., str], tmp_path: Path) -> None:
    assert on_node() == ""
    assert list((tmp_path / "folder" / ".snakemake").iterdir()) == []
    assert re.search(r"node \S+: no environment: .*/python cannot import neuroute", on_node(python="exit 1"))
    assert on_node(home=tmp_path) == ""
    assert (
        "node.sh/.cache cannot be written, as where the home folder is not shared, or is another's: export"
        in on_node(
            home=ROOT / "profiles/slurm/node.sh"  # no folder, so not even root makes one in it
        )
    )
    assert "its clock and that of the file system differ by" in on_node(date="echo 1000")
    (tmp_path / "folder" / "Snakefile").unlink()
    assert "is not the folder that the job was sent from: it must be shared by all nodes" in on_node(date="exit 0")


def test_the_profile_checks_nodes_and_sends_short_jobs_together() -> None:
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "profile.yaml").read_text())
    assert profile["precommand"] == "sh profiles/slurm/node.sh"
    assert (ROOT / "profiles/slurm/node.sh").is_file()
    assert profile["group-components"] == ["short=16"]
    assert profile["resources"]["gpu"] >= 1
