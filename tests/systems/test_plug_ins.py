"""Without the folder of a system all else is planned, digested and drawn; its rows show what is printed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from neuroute.core.systems import SYSTEMS

SOURCE = Path(__file__).parents[2] / "src" / "neuroute"
HELPERS = Path(__file__).parents[1] / "rendering"
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.safetensors")
ROWS = {  # system -> a table, and what its rows there begin with
    "elg": ("icam", "table1", "ELG"),
    "dgl": ("pens", "table2", "DGL"),
    "invit": ("pens", "table2", "INViT"),
    "pointerformer": ("icam", "table1", "Pointerformer"),
    "glop": ("icam", "table1", "GLOP"),
    "mdam": ("icam", "table1", "MDAM"),
    "att_gcn": ("icam", "table1", "Att-GCN"),
    "difusco": ("icam", "table1", "DIFUSCO"),
    "dimes": ("icam", "table1", "DIMES"),
    "htsp": ("icam", "table1", "H-TSP"),
}
SCRIPT = """
import importlib, sys
from pathlib import Path
from neuroute.plan.build import build_plan
from neuroute.plan.config import parse_config
from fabricated import drawn_table

system, paper, name, begins, folder = sys.argv[1:]
papers = ["scaling", "sit", "icam", "pens", "mvmoe", "rivals"]
plan = build_plan(parse_config({"scale": "smoke", "papers": papers}))
objects = (*plan.runs.values(), *plan.evaluations.values(), *plan.artifacts.values())
assert not [each.id for each in objects if f"neuroute.systems.{system}." in each.model_dump_json()]
assert all(plan.train_code(run) for run in plan.runs)
assert all(plan.render_code(artifact) for artifact in plan.artifacts)

fabric = importlib.import_module(f"fabricated_{paper}").FABRIC.by(scale=plan.scale)
study = fabric.study(name, fabric.write(Path(folder)))
rows = [row for row in drawn_table(lambda *_: study, name, Path(folder)).rows if begins in " ".join(row.labels)]
assert rows
assert not [cell for row in rows for cell in row.cells if cell.measured is not None]
assert [cell for row in rows for cell in row.cells if cell.published is not None]
"""


def test_every_system_has_its_rows() -> None:
    assert set(ROWS) == set(SYSTEMS)
    assert {path.parent.name for path in (SOURCE / "systems").glob("*/system.py")} == set(SYSTEMS)


@pytest.mark.parametrize(
    "system", [pytest.param(name, marks=() if name == "glop" else pytest.mark.slow) for name in SYSTEMS]
)
def test_a_system_may_be_missing(system: str, tmp_path: Path) -> None:
    shutil.copytree(SOURCE, tmp_path / "src" / "neuroute", ignore=LEFT_OUT)
    shutil.rmtree(tmp_path / "src" / "neuroute" / "systems" / system)
    paths = os.pathsep.join(map(str, (tmp_path / "src", HELPERS)))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, system, *ROWS[system], str(tmp_path / "work")],
        cwd=SOURCE.parents[1],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
