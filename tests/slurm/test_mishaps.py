"""A training on a SLURM of one node runs out of time, or loses its node: it goes on, and ends with the same bytes."""

import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from checkout import copy_checkout, replace
from cluster import SENT, ask, missing, node_pid, start_node

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing())]
RUN = "work/micro/runs/icam/icam_tsp"
BATCHES = 300  # of each of its stages: seconds, so that there is something to interrupt


def checkout(folder: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """A copy of the project whose training is longer, and keeps what it has more often."""
    folder.mkdir()
    run = copy_checkout(folder, "icam")
    scale, batches = folder / "workflow/scales/micro.yaml", "epochs: 1, batches_per_epoch: "
    assert f"{batches}2," in scale.read_text()
    scale.write_text(scale.read_text().replace(f"{batches}2,", f"{batches}{BATCHES},"))
    replace(folder / "src/neuroute/training/loop.py", "SAVE_EVERY_S = 60.0", "SAVE_EVERY_S = 0.2")
    return run


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Its weights, made here."""
    folder = tmp_path_factory.mktemp("mishaps") / "local"
    checkout(folder)(f"{RUN}/model.safetensors")
    return (folder / RUN / "model.safetensors").read_bytes()


def let_its_time_run_out(slurm: dict[str, str], job: str) -> None:
    ask(slurm, "scontrol", "update", f"JobId={job}", "EndTime=now")
    for _ in range(120):  # SLURM looks twice a minute
        if "JobState=TIMEOUT" in ask(slurm, "scontrol", "show", "job", job):
            return
        time.sleep(0.5)
    raise TimeoutError("SLURM does not end it")


def lose_the_node(slurm: dict[str, str], job: str) -> None:
    """Kill all there is on it at once, let the controller know, and bring the node back."""
    daemon = psutil.Process(node_pid(slurm))
    steps = [p for p in psutil.process_iter(["cmdline"]) if f"[{job}." in " ".join(p.info["cmdline"] or [])]
    for process in [daemon, *steps, *(child for step in steps for child in step.children(recursive=True))]:
        process.send_signal(signal.SIGKILL)
    assert steps
    name = ask(slurm, "squeue", "-h", "-j", job, "-o", "%N").strip()
    ask(slurm, "scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=lost")
    ask(slurm, "scontrol", "update", f"NodeName={name}", "State=RESUME")
    start_node(slurm)
    ask(slurm, "scontrol", "update", f"JobId={job}", "StartTime=now")  # SLURM sends it again, else in two minutes


@pytest.mark.parametrize("mishap", [let_its_time_run_out, lose_the_node])
def test_it_goes_on_where_it_was(
    mishap: Callable[[dict[str, str], str], None], on_slurm: dict[str, str], undisturbed: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "sent"
    run = checkout(folder)
    ended: list[subprocess.CompletedProcess[str]] = []
    thread = threading.Thread(target=lambda: ended.append(run(*SENT, f"{RUN}/model.safetensors", check=False)))
    thread.start()
    while not list(folder.glob("work/micro/state/icam/icam_tsp/*/state.pt")) and thread.is_alive():
        time.sleep(0.2)
    assert thread.is_alive(), ended[0].stderr[-3000:]
    (job,) = ask(on_slurm, "squeue", "-h", "-t", "R", "-o", "%i").split()
    mishap(on_slurm, job)
    thread.join()
    assert ended[0].returncode == 0, ended[0].stdout[-3000:] + ended[0].stderr[-3000:]
    assert "resumed at batch" in (folder / "work/micro/logs/train/icam/icam_tsp.log").read_text()
    assert (folder / RUN / "model.safetensors").read_bytes() == undisturbed
