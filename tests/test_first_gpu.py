"""The list for the first GPU: in order, on where it was, and past what fails; its commands are stand-ins."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "tools" / "first_gpu.sh"
SNAKEMAKE, PAPER_RUN = "snakemake --resources gpu=1 --config", "work/paper/runs/scaling/small01M_6x128"
STEPS = [
    "python -m pytest -q -m cuda tests/cuda",
    "snakemake --keep-going --resources gpu=1 --config scale=gpu rehearse=true -- all",
    "python bench/bench.py",
    f"{SNAKEMAKE} scale=paper papers=[scaling] -- {PAPER_RUN}/model.safetensors",
    f"{SNAKEMAKE} scale=gpu papers=[pens] -- all",
    "neuroute keep --scale gpu",
]
COMMANDS = ("python", "neuroute", "snakemake", "nvidia-smi")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder whose commands say in `called` that they ran, and fail if their words hold what `fails` holds."""
    (tmp_path / "bin").mkdir()
    for name in COMMANDS:
        file = tmp_path / "bin" / name
        fails = 'if [ -e fails ]; then case "$*" in *$(cat fails)*) exit 1;; esac; fi'
        file.write_text(f'#!/bin/sh\necho "{name} $*" >>called\necho output\n{fails}\n')
        file.chmod(0o755)
    return tmp_path


def run(place: Path) -> tuple[int, list[str], str]:
    """Its status, the commands of its steps, and what it said."""
    (place / "called").write_text("")
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run([SCRIPT, "kept"], cwd=place, env=os.environ | {"PATH": path}, capture_output=True, text=True)
    calls = (place / "called").read_text().splitlines()
    return done.returncode, [c for c in calls if not c.startswith(("nvidia-smi", "python -c"))], done.stdout


def test_steps_go_in_order_and_are_not_done_twice(place: Path) -> None:
    assert run(place)[:2] == (0, STEPS)
    assert (place / "kept" / "rehearsal.log").read_text() == "output\n"
    assert (place / "kept" / "about.txt").read_text()
    assert run(place)[:2] == (0, [])


def test_what_fails_is_said_and_done_again_alone(place: Path) -> None:
    (place / "fails").write_text("rehearse")
    status, calls, said = run(place)
    assert (status, calls) == (1, STEPS)
    assert "rehearsal: failed, see kept/rehearsal.log" in said
    (place / "fails").unlink()
    assert run(place)[:2] == (0, STEPS[1:2])
