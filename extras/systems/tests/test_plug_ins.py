"""Without a system, or all of them, everything else is planned, digested and drawn; rows show what is printed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from neuroute.core.digest import locate
from neuroute.core.dotted import packages

ROOT = Path(__file__).resolve().parents[3]
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

from neuroute.core import dotted

gone, paper, name, begins, folder = sys.argv[1:]
entry_points = dotted.entry_points
every = entry_points(group="neuroute.systems")
left = [point for point in every if gone not in (point.name, "all")]
assert len(left) < len(every)
dotted.entry_points = lambda group: left if group == "neuroute.systems" else entry_points(group=group)

from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import parse_config
from neuroute.pipeline.plan.overview import describe
from fabricated import drawn_table

papers = ["scaling", "sit", "icam", "pens", "mvmoe", "rivals"]
plan = build_plan(parse_config({"scale": "smoke", "papers": papers}))
objects = (*plan.runs.values(), *plan.evaluations.values(), *plan.artifacts.values())
package = "neuroute_systems." if gone == "all" else f"neuroute_systems.{gone}."
assert not [each.id for each in objects if package in each.model_dump_json()]
assert all(plan.train_code(run) for run in plan.runs)
assert all(plan.evaluate_code(evaluation) for evaluation in plan.evaluations)
assert all(plan.render_code(artifact) for artifact in plan.artifacts)
(line,) = [line for line in describe(plan, None).splitlines() if line.startswith("printed numbers only")]
assert (gone == "all" or f"installed: {gone};" in line) and "pip install -e extras/systems" in line

fabric = importlib.import_module(f"fabricated_{paper}").FABRIC.by(scale=plan.scale)
study = fabric.study(name, fabric.write(Path(folder)))
rows = [row for row in drawn_table(lambda *_: study, name, Path(folder)).rows if begins in " ".join(row.labels)]
assert rows
assert not [cell for row in rows for cell in row.cells if cell.measured is not None]
assert [cell for row in rows for cell in row.cells if cell.published is not None]
if gone == "all":
    assert not [name for name in sys.modules if name.startswith("neuroute_systems")]
"""


def test_every_system_has_its_rows() -> None:
    theirs = {name for name, package in packages().items() if package.startswith("neuroute_systems.")}
    assert theirs - {"attention_model", "edge_maps"} == set(ROWS)


def test_weights_of_before_the_move_find_their_network() -> None:
    for name in ("elg.network:ElgCvrp", "att_gcn.network:AttGcn"):
        assert locate(f"neuroute.systems.{name}") == f"neuroute_systems.{name}"


@pytest.mark.slow
@pytest.mark.parametrize("system", ["all", *ROWS])
def test_a_system_may_be_missing(system: str, tmp_path: Path) -> None:
    rows = ROWS.get(system) or ROWS["glop"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, system, *rows, str(tmp_path / "work")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests" / "rendering")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
