"""GPUs before any work starts: how many there are, what is refused, and that no two jobs take the same."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from refusals import one_line

from neuroute.core import gpus
from neuroute.core.files import lock, open_lock
from neuroute.pipeline.plan.config import Config, check_gpus, without_gpu

TAKE = """
import sys, time
from pathlib import Path
from neuroute.core import gpus
gpus.LOCKS = Path(sys.argv[1])
print(gpus.take(("a", "b"), int(sys.argv[2]), patience_s=0.0), flush=True)
time.sleep(60)
"""


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / name).touch()
    monkeypatch.setattr(gpus, "DEVICES", tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(gpus, "LOCKS", tmp_path / "locks")
    return tmp_path / "locks"


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("shown", "count"), [(None, 2), ("1", 1), ("0,1", 2), ("", 0), ("-1", 0), ("1,-1,0", 1), ("7", 0), ("GPU-8f", 1)]
)
def test_what_a_process_may_see_counts(shown: str | None, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if shown is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    assert gpus.count_visible() == count


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(
    ("shown", "device", "command", "line"),
    [
        ("", "auto", "--resources gpu=1 all", "gpu=1: this machine shows no GPU, so networks run on the CPU"),
        ("", "auto", "--resources=gpu=2", "gpu=2: this machine shows no GPU, so networks run on the CPU"),
        ("0", "cpu", "--res mem_mb=9 gpu=1", "gpu=1: config.yaml says `device: cpu`, so networks run on the CPU"),
        ("0", "auto", "--resources gpu=1 all", ""),
        ("", "auto", "--resources gpu=0 all", ""),
        ("", "auto", "all", ""),
    ],
)
def test_a_gpu_that_is_not_there_is_said(
    shown: str, device: Any, command: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    assert without_gpu(Config(device=device), command.split()) == line


@pytest.mark.usefixtures("two_gpus")
def test_more_gpus_than_there_are_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_gpus(Config(), 2)
    check_gpus(Config(gpus_per_run=2), 2)
    check_gpus(Config(jobs_per_gpu=2), 4)
    check_gpus(Config(device="cpu", gpus_per_run=9), 9)
    with one_line(r"gpus_per_run: 3, but this machine shows 2 GPUs; set it to at most that"):
        check_gpus(Config(gpus_per_run=3), 3)
    with one_line(r"--resources gpu=5, but this machine shows 2 GPUs; give at most 4"):
        check_gpus(Config(jobs_per_gpu=2), 5)
    with one_line(r"gpus_per_run: 2, but --resources gpu=1; give 2"):
        check_gpus(Config(gpus_per_run=2), 1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with one_line(r"gpu=2, but this machine shows 1 GPU \(CUDA_VISIBLE_DEVICES=1\)"):
        check_gpus(Config(), 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    check_gpus(Config(), 1)  # `auto` then takes the CPU
    with one_line(r"device 'cuda', but this machine shows 0 GPUs .* set `device: auto`"):
        check_gpus(Config(device="cuda"), 1)


@pytest.fixture
def take(locks: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """A function that starts a job: the job, and the place of its GPU; empty if it got none."""
    with ExitStack() as jobs:

        def start(jobs_per_gpu: int = 1) -> tuple[subprocess.Popen[str], str]:
            command = [sys.executable, "-c", TAKE, str(locks), str(jobs_per_gpu)]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            job = jobs.enter_context(subprocess.Popen(command, text=True, **pipes))
            jobs.callback(job.kill)
            return job, job.stdout.readline().strip()

        yield start


def test_jobs_take_different_gpus_and_a_killed_one_frees_its_own(take: Any) -> None:
    (first, place), (_, other) = take(), take()
    assert (place, other) == ("0", "1")
    with one_line("all 2 GPUs are taken by other jobs; run fewer"):
        gpus.take.__wrapped__(("a", "b"), 1, 0.0)
    first.kill()
    first.wait()
    assert take()[1] == "0"


def test_jobs_that_share_take_the_emptiest(take: Any) -> None:
    assert [take(2)[1] for _ in range(5)] == ["0", "1", "0", "1", ""]


def test_a_job_waits_for_one_that_is_ending(locks: Path) -> None:
    locks.mkdir(0o700)
    held = [open_lock(locks / f"{name}.0") for name in "ab"]
    assert all(map(lock, held))
    began = time.monotonic()
    with one_line("taken by other jobs"):
        gpus.take.__wrapped__(("a", "b"), 1, 0.5)
    assert time.monotonic() - began >= 0.5
    held[1].close()
    assert gpus.take.__wrapped__(("a", "b"), 1, 0.5) == 1


@pytest.fixture(params=["a file", "others may write there", "another's"])
def foreign(request: pytest.FixtureRequest, locks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of locks that is not this user's alone, and what another has put into it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if request.param == "a file":
        locks.touch()
        return locks
    locks.mkdir(0o700)
    (locks / "a.0").symlink_to(tmp_path / "elsewhere")
    if request.param == "another's":
        (tmp_path / "cache/neuroute").mkdir(0o700, parents=True)
        (tmp_path / "cache/neuroute/gpus").mkdir(0o700)
        lstat, stranger = Path.lstat, os.stat_result([*os.stat(locks)[:4], os.geteuid() + 1, *os.stat(locks)[5:]])
        monkeypatch.setattr(Path, "lstat", lambda self: stranger if self == locks else lstat(self))
    else:
        locks.chmod(0o777)
    return locks


def test_locks_that_others_could_hold_are_not_used(
    foreign: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert gpus.take.__wrapped__(("a",), 1, 0.0) == 0
    assert f"{foreign}: " in caplog.text
    assert (tmp_path / "cache/neuroute/gpus/a.0").is_file()
    assert not (tmp_path / "elsewhere").exists()
    with one_line("the only GPU is taken"):
        gpus.take.__wrapped__(("a",), 1, 0.0)


@pytest.mark.usefixtures("foreign")
def test_without_any_place_for_locks_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nothing").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "nothing"))
    with one_line(r"neuroute: cannot be a folder \(.*\); remove it or mend its rights"):
        gpus.take.__wrapped__(("a",), 1, 0.0)


def test_a_lock_file_is_no_link(locks: Path, tmp_path: Path) -> None:
    locks.mkdir(0o700)
    (locks / "a.0").symlink_to(tmp_path / "elsewhere")
    with one_line(r"a\.0: is to be locked, and cannot be opened"):
        gpus.take.__wrapped__(("a",), 1, 0.0)
    assert not (tmp_path / "elsewhere").exists()
