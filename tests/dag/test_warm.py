"""Jobs that a warm process runs: they do as processes of their own would, and nothing outlives who asked for it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from neuroute.core.job import SOCKET_ENV, TEMPORARY

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the warm process needs Linux")
SERVER = """
import importlib, os, socket, sys, time
warm = importlib.import_module("neuroute.pipeline.cli.warm")

def command(arguments):
    print(os.getpid(), os.getcwd(), os.environ.get("MARK"), flush=True)
    if arguments[0] == "sleep":
        time.sleep(600)
    return int(arguments[0])

warm._command = command
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    listener.listen()
    print("ready", flush=True)
    warm._Server(listener).serve()
"""
Process = subprocess.Popen[str]
Ask = Callable[[str], Process]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Process]:
    """A warm process that prints instead of working."""
    command = [sys.executable, "-c", SERVER, str(tmp_path / "socket")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.fixture
def ask(server: Process, tmp_path: Path) -> Iterator[Ask]:
    """Start a job that is handed over."""
    started: list[Process] = []

    def start(argument: str) -> Process:
        environment = os.environ | {SOCKET_ENV: str(tmp_path / "socket"), "MARK": "mine"}
        command = [sys.executable, "-m", "neuroute.core.job", argument]
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        )
        return started[-1]

    yield start
    for process in started:
        with process:  # which closes its pipe
            process.kill()


def running(job: Process) -> int:
    """The copy that runs a job, which has begun."""
    assert job.stdout is not None
    return int(job.stdout.readline().split()[0])


def assert_ends(process: int) -> None:
    """Raises TimeoutError if a process, which is no child of ours, does not end."""
    for _ in range(600):
        stat = Path(f"/proc/{process}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        time.sleep(0.1)
    raise TimeoutError(f"process {process} goes on")


@pytest.mark.parametrize("status", [0, 3])
def test_a_job_has_its_folder_environment_output_and_status(ask: Ask, tmp_path: Path, status: int) -> None:
    job = ask(str(status))
    output = job.stdout.read()
    assert job.wait() == status
    assert output.split()[1:] == [str(tmp_path), "mine"]


def test_a_job_ends_with_the_process_that_waits_for_it(ask: Ask) -> None:
    job = ask("sleep")
    copy = running(job)
    job.kill()
    assert_ends(copy)
    assert ask("0").wait() == 0  # the server goes on


def test_all_jobs_end_with_the_end_of_standard_input(server: Process, ask: Ask) -> None:
    """Which Snakemake holds, however it ends."""
    job = ask("sleep")
    copy = running(job)
    server.stdin.close()
    assert server.wait() == 0
    assert_ends(copy)
    assert job.wait() != 0


def test_all_jobs_end_with_a_killed_server(server: Process, ask: Ask) -> None:
    job = ask("sleep")
    copy = running(job)
    server.kill()
    assert_ends(copy)
    assert job.wait() == TEMPORARY


def test_where_nobody_listens_a_job_runs_itself(tmp_path: Path) -> None:
    environment = os.environ | {SOCKET_ENV: str(tmp_path / "nobody")}
    command = [sys.executable, "-m", "neuroute.core.job", "train", "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0
    assert "Train a run" in done.stdout
