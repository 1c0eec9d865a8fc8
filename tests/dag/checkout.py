"""A copy of the project to run and edit, small configs at the scale of the tests, and what dry runs say."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MICRO = ROOT / "tests" / "data" / "micro.yaml"
TOY = ("--configfile", "docs/examples/config.yaml")
TRAINED = "work/toy/runs/toy/decoder/model.safetensors"  # the toy paper's model
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


def add_settings(folder: Path, line: str) -> None:
    """Append to a copy's config.yaml."""
    with (folder / "config.yaml").open("a") as file:
        file.write(f"{line}\n")


def toy(folder: Path) -> Snakemake:
    """A copy of the project that can make the toy paper."""
    run = copy_checkout(folder)
    shutil.copytree(ROOT / "docs/examples", folder / "docs/examples")
    return run


def snakemake_in(folder: Path, source: Path | None = None) -> Snakemake:
    """Return a function that runs Snakemake in a copied checkout, importing that copy's code, or that of `source`."""

    def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return _call(folder, source or folder / "src", "snakemake", "--cores", "2", *arguments, check=check)

    return run


def neuroute(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command of a copied checkout."""
    return _call(folder, folder / "src", "neuroute", *arguments, check=check)


def _call(
    folder: Path, source: Path, module: str, *arguments: str, check: bool = True
) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(source), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    environment.pop("NEUROUTE_CONFIG", None)
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if check and done.returncode:
        raise AssertionError(f"{module} {' '.join(arguments)} failed:\n{done.stdout}\n{done.stderr}")
    return done


def planned(run: Snakemake, target: str = "all", *options: str) -> dict[str, int]:
    """Jobs of a dry run: rule -> count; empty when there is nothing to do."""
    return counted(run("-n", target, *options).stdout)


def counted(output: str) -> dict[str, int]:
    """The table of jobs in what a dry run prints."""
    table = re.search(r"^job +count\n[- ]+\n(.*?)^total +\d+", output, re.S | re.M)
    if not table:
        assert "Nothing to be done" in output
        return {}
    return {name: int(count) for name, count in re.findall(r"^(\S+) +(\d+)$", table[1], re.M)}


def replace(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text, f"{path} no longer contains {before!r}"
    path.write_text(text.replace(before, after, 1))
