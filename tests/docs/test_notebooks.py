"""The notebooks, cell by cell, in an empty folder without a checkout; what they printed is kept in the file."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "tutorial").glob("*.ipynb"))
# Code that takes minutes, and what takes its place.
SHORTER = [
    "batches=300=>batches=2, batch_size=4, validate_on=4, solver='nearest'",
    "batches=125=>batches=2, validate_on=4",
    "count=100=>count=2",
    "count=16=>count=2",
    "seconds=5=>seconds=1",
]


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]


def texts(cells: list[dict[str, Any]]) -> list[str]:
    return [line for cell in cells for output in cell["outputs"] for line in output.get("text", [])]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_kept_of_cells_that_were_run_in_their_order(notebook: Path) -> None:
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    printing = [cell for cell in cells if "print(" in "".join(cell["source"])]
    assert printing
    assert all(cell["outputs"] for cell in printing)
    assert not any("Traceback" in text or str(ROOT) in text for text in texts(cells))


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_all_cells_run_in_their_order(notebook: Path, tmp_path: Path) -> None:
    program = [
        sys.executable,
        ROOT / "docs" / "generate" / "run_notebook.py",
        notebook,
        tmp_path / "out.ipynb",
        *SHORTER,
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    cells = code_cells(tmp_path / "out.ipynb")
    assert [bool(cell["outputs"]) for cell in cells] == [bool(cell["outputs"]) for cell in code_cells(notebook)]
