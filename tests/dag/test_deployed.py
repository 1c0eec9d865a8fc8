"""The workflow as snakedeploy puts it into a folder: planned with the config that comes along, and run."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from checkout import ROOT, snakemake_in

SNAKEDEPLOY = shutil.which("snakedeploy")
pytestmark = [
    pytest.mark.dag,
    pytest.mark.slow,
    pytest.mark.skipif(SNAKEDEPLOY is None, reason="no snakedeploy on PATH: pip install snakedeploy"),
]


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def test_it_plans_and_makes_a_table(tmp_path: Path) -> None:
    source, deployed = tmp_path / "source", tmp_path / "deployed"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for folder in ("workflow", "profiles", "docs/examples"):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "config", source / "config", symlinks=True)
    for file in ("Snakefile", "config.yaml", "LICENSE"):
        shutil.copy(ROOT / file, source)
    git(tmp_path, "init", "-q", "-b", "main", "source")
    git(source, "add", ".")
    git(source, "commit", "-q", "-m", "all")
    assert SNAKEDEPLOY
    command = [SNAKEDEPLOY, "deploy-workflow", str(source), str(deployed), "--branch", "main"]
    subprocess.run(command, check=True, env=os.environ, capture_output=True)
    assert (deployed / "config" / "config.yaml").read_bytes() == (ROOT / "config.yaml").read_bytes()
    # Of a host of repositories it names the file there; of a folder it names its own file.
    snakefile = deployed / "workflow" / "Snakefile"
    text = snakefile.read_text()
    assert '"workflow/Snakefile"' in text
    snakefile.write_text(text.replace('"workflow/Snakefile"', f'"{source}/workflow/Snakefile"'))
    run = snakemake_in(deployed, source / "src")
    planned = run("-n", "results/pens/table2.csv").stdout
    assert re.search(r"^render_table +1$", planned, re.MULTILINE)
    toy = f"scale: {source}/docs/examples/toy.yaml\npapers_path: [{source}/docs/examples/papers]\npapers: [toy]\n"
    (deployed / "config" / "config.yaml").write_text(toy)
    run("results/toy/table1.csv")
    assert "Decoder" in (deployed / "results" / "toy" / "table1.csv").read_text()
