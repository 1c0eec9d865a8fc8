"""Somebody's system in a package of its own, installed: it stands in the plan, in a table and in `compare`."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from refusals import one_line

from neuroute.core import dotted

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = {
    "tiny_system-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny-system\nVersion: 1.0\n",
    "tiny_system-1.0.dist-info/entry_points.txt": "[neuroute.systems]\ntiny = tiny_system\n",
    "tiny_system/__init__.py": "",
    "tiny_system/network.py": """
from neuroute.networks.pomo import Pomo


class Tiny(Pomo):
    '''A network.'''
""",
    "tiny_system/decoding.py": """
import torch


def in_order(net, batch, decoding, memory_gb, first):
    count, nodes = batch.coords.shape[:2]
    return torch.arange(nodes).expand(count, nodes)
""",
    "tiny_system/solvers.py": "SOLVERS = {'tiny-order': 'tiny_system.order:SOLVER'}\n",
    "tiny_system/order.py": """
import numpy as np

from neuroute.solvers.base import Solver


def solve(coords, seed, seconds=None):
    return np.arange(len(coords))


SOLVER = Solver("tiny-order", False, "it is here", lambda: "1.0", solve)
""",
    "tiny_system/system.py": """
from neuroute.pipeline.plan.shapes import BaselineShape
from neuroute.pipeline.plan.systems import System, Trained, rival
from neuroute.specs.objects import Decoding, Reinforced


class Block(Trained):
    network: BaselineShape
    training: Reinforced


def rivals(config, scale, block):
    how = Decoding(method="tiny:in_order")
    return [rival(config, "Tiny", "tiny", "tsp", block, "tiny_system.network:Tiny", how)]


SYSTEM = System(Block, rivals)
""",
}
SCALE = """name: tiny
summary: one system
rivals:
  tiny:
    nodes: 8
    validation_count: 4
    test_count: 4
    reference: insertion
    network: {depth: 1, width: 16, heads: 2, feed_forward: 32}
    training: {stages: [{name: one, epochs: 1, batches_per_epoch: 2, sizes: [8, 8], batch_size: 8}]}
"""
TSP = "TYPE: TSP\nDIMENSION: 5\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 0 9\n3 9 9\n4 9 0\n5 4 1\nEOF\n"
SCRIPT = """
from pathlib import Path

from commands import done
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import load_config

plan = build_plan(load_config(Path("config.yaml")))
print(done("plan", "--all"))
for job in plan.label_jobs:
    done("label", job, "--workers", "1")
done("train", "rivals/tiny")
for evaluation in plan.evaluations:
    done("evaluate", evaluation)
done("render", "rivals/table1")
done("compare", "--set", "five.tsp", "--method", "rivals/tiny,tiny-order", "--seconds", "0.1", "--out", "compared")
"""
DIGEST = "from neuroute.core.digest import code_digest; print(code_digest('tiny_system.network:Tiny'))"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    site = tmp_path / "site-packages"
    for name, text in PACKAGE.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    (tmp_path / "scale.yaml").write_text(SCALE)
    (tmp_path / "config.yaml").write_text("scale: scale.yaml\npapers: [rivals]\ndevice: cpu\n")
    (tmp_path / "five.tsp").write_text(TSP)
    (tmp_path / "five.tour").write_text("TYPE: TOUR\nTOUR_SECTION\n1\n2\n3\n5\n4\n-1\nEOF\n")
    return site


def python(site: Path, script: str) -> str:
    paths = os.pathsep.join(map(str, (site, ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=site.parent,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rows(file: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(file.open()))


@pytest.mark.slow
def test_it_is_planned_trained_measured_shown_and_compared(installed: Path) -> None:
    planned = python(installed, SCRIPT)
    assert "rivals/tiny" in planned
    assert "as printed" not in planned
    (row,) = rows(installed.parent / "results" / "rivals" / "table1.csv")
    assert (row["system"], row["decoding"]) == ("Tiny", "in_order")
    assert float(row["gap_pct_measured"]) > 0
    assert {row["method"] for row in rows(installed.parent / "compared" / "table.csv")} == {"rivals/tiny", "tiny-order"}


def test_an_edit_of_it_reruns_its_trainings(installed: Path) -> None:
    before = python(installed, DIGEST)
    network = installed / "tiny_system" / "network.py"
    network.write_text(network.read_text().replace("A network.", "Still the same."))
    assert python(installed, DIGEST) == before
    network.write_text(network.read_text().replace("'''Still the same.'''", "best = 1"))
    assert python(installed, DIGEST) != before


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise RuntimeError('boom')", r"__init__.py, line 1: RuntimeError: boom"),
        ("import no_such_package", r"__init__.py, line 1: ModuleNotFoundError: No module named 'no_such_package'"),
        ("def (", r"__init__.py, line 1: SyntaxError"),
        ("exit(3)", r"__init__.py, line 1: SystemExit: 3"),
        (None, r"system 'bad': no package bad_\w+; install it anew"),
    ],
)
def test_a_system_that_fails_is_one_line(
    code: str | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"bad_{abs(hash(says))}"
    if code is not None:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(dotted, "packages", lambda: {"bad": name})
    monkeypatch.setattr(dotted, "roots", dotted.roots.__wrapped__)
    with one_line(says):
        list(dotted.parts("system", "SYSTEM"))
