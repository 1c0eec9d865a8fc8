"""The notebook, cell by cell, as it stands there; no kernel is needed to run plain Python."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from pack_zoo import ship

import neuroute
from neuroute.networks.weights import build, save_checkpoint
from neuroute.plan.digest import code_digest
from neuroute.plan.objects import Network
from neuroute.user import zoo
from pages import ROOT

NOTEBOOK = ROOT / "docs" / "tutorial" / "first_hour.ipynb"


def cells(kind: str) -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text())
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def test_it_is_kept_without_outputs() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [(cell["outputs"], cell["execution_count"]) for cell in code] == [([], None)] * len(code)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_all_cells_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "docs" / "examples")
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    shutil.copy(ROOT / "Snakefile", tmp_path)
    (tmp_path / "docs" / "tutorial").mkdir()
    monkeypatch.chdir(tmp_path / "docs" / "tutorial")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "swiglu", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    if "tsp" not in zoo.cards():
        _ship_untrained(tmp_path, monkeypatch)
    names: dict[str, Any] = {}
    before = os.getcwd()
    for number, cell in enumerate(cells("code")):
        try:
            exec(compile(cell, f"cell {number}", "exec"), names)
        finally:
            folder = os.getcwd()
    assert folder == str(tmp_path) != before
    insertion, network, lkh = names["solutions"]
    assert lkh.cost <= min(insertion.cost, network.cost) * (1 + 1e-9)  # the network may find the same tour
    assert names["result"].gaps["gap_pct"] > -1e-9
    assert names["own"].about["network"]["kind"] == "swiglu:SwigluDecoderOnly"
    assert names["searched"].cost <= names["greedy"].cost


def _ship_untrained(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a copy of neuroute without trained networks, one that was never trained takes the place."""
    monkeypatch.setattr(zoo, "FOLDER", folder / "zoo")
    network = Network(kind="neuroute.networks.lehd:Lehd", arguments={"depth": 1, "width": 16, "heads": 2})
    about = {"run": "zoo/tsp", "network": network.model_dump(), "code": code_digest(network.kind)}
    save_checkpoint(folder / "tsp.safetensors", build(network).eval(), about)
    card = {"name": "tsp", "trained_on": "nothing", "seed": 0, "commit": "", "date": "", "device": "", "seconds": 0.0}
    ship(folder / "tsp.safetensors", card | {"nodes": (4, 100)})
    assert neuroute.models()[0].name == "tsp"
