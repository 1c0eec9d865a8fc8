"""The table of the rivals: every network has its row; a scale may lack them all."""

from pathlib import Path

import pytest

from fabricated import Fabric
from neuroute.pipeline.papers.rivals.paper import PAPER, RivalsScale, rivals
from neuroute.pipeline.papers.rivals.tables import table1
from neuroute.pipeline.plan.config import Config, load_scale
from neuroute.specs.objects import Dataset, Decoding, Run


def gap(run: Run, dataset: Dataset, decoding: Decoding) -> float:
    """More on larger instances."""
    return 0.1 * dataset.n


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    solvers = {"nearest": 25.0}
    return Fabric(paper=PAPER, scale=load_scale("smoke"), gap=gap, solvers=solvers, logged=("rivals",))


@pytest.fixture(scope="module")
def work(fabric: Fabric, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fabric.write(tmp_path_factory.mktemp("rivals"))


def test_every_network_stands_beside_nearest_neighbour(fabric: Fabric, work: Path) -> None:
    table = table1(fabric.study("table1", work))
    every = rivals(Config(), fabric.scale)
    assert [row.labels[:2] for row in table.rows] == [(each.system, each.run.name) for each in every]
    assert len({row.labels for row in table.rows}) == len(every)  # GLOP-G is trained for several sizes
    places = {column.key: i for i, column in enumerate(table.columns)}
    for row, each in zip(table.rows, every, strict=True):
        assert row.cells[places["gap_pct"]].measured == pytest.approx(
            gap(each.run, each.test.dataset, each.decoding), rel=0.05
        )
        assert row.cells[places["nearest_pct"]].measured == pytest.approx(25, rel=0.2)


def test_nothing_is_shown_of_a_scale_without_rivals(fabric: Fabric) -> None:
    bare = fabric.by(scale=fabric.scale.with_block(RivalsScale()))
    assert bare.runs == []
    assert bare.artifacts == {}
