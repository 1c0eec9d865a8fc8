"""A copy of the project to run and edit, and small configs at the scale of the tests."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MICRO = ROOT / "tests" / "data" / "micro.yaml"
Snakemake = Callable[..., subprocess.CompletedProcess[str]]


def copy_checkout(folder: Path, *papers: str, scale: str = "micro") -> Snakemake:
    """Copy the parts of the project that the DAG runs from; return a function that runs Snakemake on the copy."""
    for part in ("src", "workflow", "profiles"):
        # With bytecode and digests, but for what is just being written.
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("*.pyc.*", "*.tmp*", "*.egg-info"))
    for file in ("Snakefile", "environment.yml"):
        shutil.copy(ROOT / file, folder)
    shutil.copy(MICRO, folder / "workflow" / "scales")
    (folder / "config.yaml").write_text(config(scale, papers, Path("benchmarks")))
    (folder / "benchmarks").mkdir()
    return snakemake_in(folder)


def config(scale: str, papers: tuple[str, ...], benchmarks: Path, **more: object) -> str:
    """Text of a config.yaml."""
    lines = {"scale": scale, "papers": f"[{', '.join(papers)}]", "device": "cpu", "benchmarks_dir": benchmarks, **more}
    return "".join(f"{key}: {value}\n" for key, value in lines.items())


def snakemake_in(folder: Path, source: Path | None = None) -> Snakemake:
    """Return a function that runs Snakemake in a copied checkout, importing that copy's code, or that of `source`."""

    def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join([str(source or folder / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
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
