"""The first tutorial, typed as it stands there, in a copy of the checkout."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT, blocks

PAGE = ROOT / "docs" / "tutorial" / "first_ten_minutes.md"
INSTALLED = ("make env", "source .venv/bin/activate")  # the tests run in such an environment


@pytest.mark.slow
@pytest.mark.dag
def test_all_of_it(tmp_path: Path) -> None:
    for part in ("workflow", "profiles", "docs/examples"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("Snakefile", "config.yaml", "environment.yml", "constraints.txt"):
        shutil.copy(ROOT / file, tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    said = []
    for block in blocks(PAGE):
        script = "\n".join(line for line in block.splitlines() if not line.startswith(INSTALLED))
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        said.append(done.stdout + done.stderr)
    _, planned, _, table, dry, _ = said
    assert "toy/decoder" in planned
    assert (tmp_path / "results" / "index.html").is_file()
    assert "Gap of the toy network" in table
    assert "Nearest neighbour" in table
    log = (tmp_path / "work/toy/runs/toy/decoder/log.jsonl").read_text()
    validated = [row["gap_pct"] for row in map(json.loads, log.splitlines()) if row["kind"] == "validation"]
    assert validated[-1] < validated[0] / 2  # a sixth, whatever the seed: what a reader trains first does learn
    assert "rule train_model" in dry or "train toy/decoder" in dry
    assert "labels tsp_uniform" not in dry
    assert (tmp_path / "ten.svg").is_file()
