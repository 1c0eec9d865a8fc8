"""The workflow within another one, as its page has it."""

import os
import subprocess
import sys
from pathlib import Path

from pages import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "module.md"


def test_the_snakefile_of_the_page_plans_what_it_asks_for(tmp_path: Path) -> None:
    (tmp_path / "neuroute").symlink_to(ROOT)
    for file, language in (("Snakefile", "python"), ("config.yaml", "yaml")):
        (tmp_path / file).write_text(blocks(PAGE, language)[0])
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    environment.pop("NEUROUTE_CONFIG", None)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--dry-run"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert "\nmine " in said
    assert "routing_train" in said
    assert "results/pens/table2.csv" in said
    assert "results/pens/table3.csv" not in said
