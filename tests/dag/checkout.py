"""A copy of the project to run and edit."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Snakemake = Callable[..., subprocess.CompletedProcess[str]]


def copy_checkout(folder: Path) -> None:
    """The parts of the project that the DAG runs from, at the scale of the tests."""
    for part in ("src", "workflow", "profiles"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "Snakefile", folder)
    micro = ROOT / "tests" / "data" / "micro.yaml"
    shutil.copy(micro, folder / "workflow" / "scales")
    (folder / "benchmarks").mkdir()
    (folder / "config.yaml").write_text("scale: micro\ndevice: cpu\nbenchmarks_dir: benchmarks\n")


def snakemake_in(folder: Path) -> Snakemake:
    """A function that runs Snakemake on a copied checkout, importing that copy's code."""

    def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
        environment.pop("NEUROUTE_CONFIG", None)
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        if check and done.returncode:
            raise AssertionError(f"snakemake {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}")
        return done

    return run
