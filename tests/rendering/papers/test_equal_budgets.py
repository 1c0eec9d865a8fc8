"""The study of equal budgets: every network has its rows, every size its column."""

from pathlib import Path

import pytest

from fabricated import Fabric
from neuroute.core.dotted import resolve
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import load_config
from neuroute.specs.objects import Dataset, Decoding, Run

ROOT = Path(__file__).resolve().parents[3]


def gap(run: Run, dataset: Dataset, decoding: Decoding) -> float:
    """More on larger instances."""
    return 0.1 * dataset.n


def test_all_sizes_of_all_networks_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = build_plan(load_config(ROOT / "extras" / "studies" / "config.yaml"))
    fabric = Fabric(paper=plan.papers["equal_budgets"], scale=plan.scale, gap=gap, logged=("equal_budgets",))
    work = fabric.write(tmp_path)
    table, figure = (
        resolve(fabric.artifacts[name].function)(fabric.study(name, work)) for name in ("table1", "figure1")
    )
    sizes = [column.key for column in table.columns if column.key.startswith("gap")]
    assert sizes == [f"gap_{n}_pct" for n in (50, 100, 200, 500)]
    assert len(table.rows) == 2 * 2 * 4 * 2  # budgets, problems, networks, decodings
    assert len(figure.points) == len(table.rows) * len(sizes)
