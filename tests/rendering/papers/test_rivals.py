"""Tables and the figure of the rivals: every network has its row, every size its column; a scale may lack them all."""

from pathlib import Path

import pytest

from fabricated import Fabric
from neuroute.papers.rivals.figures import figure1
from neuroute.papers.rivals.paper import PAPER
from neuroute.papers.rivals.scale import RivalsScale
from neuroute.papers.rivals.study import DECODINGS, KINDS, PROBLEMS
from neuroute.papers.rivals.systems import rivals
from neuroute.papers.rivals.tables import table1, table2
from neuroute.plan.config import Config, load_scale
from neuroute.plan.objects import Dataset, Decoding, Run


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
    assert [row.labels[0] for row in table.rows] == [each.system for each in every]
    places = {column.key: i for i, column in enumerate(table.columns)}
    for row, each in zip(table.rows, every, strict=True):
        assert row.cells[places["gap_pct"]].measured == pytest.approx(
            gap(each.run, each.test.dataset, each.decoding), rel=0.05
        )
        assert row.cells[places["nearest_pct"]].measured == pytest.approx(25, rel=0.2)


def test_the_study_shows_all_sizes_of_all_networks(fabric: Fabric, work: Path) -> None:
    study = fabric.scale[RivalsScale].study
    assert study is not None
    table = table2(fabric.study("table2", work))
    assert len(table.rows) == len(PROBLEMS) * len(KINDS) * len(DECODINGS)
    assert [c.key for c in table.columns if c.key.startswith("gap")] == [f"gap_{n}_pct" for n in study.test_counts]
    drawn = figure1(fabric.study("figure1", work))
    assert len(drawn.points) == len(table.rows) * len(study.test_counts)


def test_networks_of_the_study_see_the_same_instances(fabric: Fabric) -> None:
    runs = [run for run in fabric.runs if run.role.get("study")]
    for problem in PROBLEMS:
        stages = {run.training.stages for run in runs if run.validation.dataset.problem == problem}  # type: ignore[union-attr]
        assert len(stages) == 1


def test_nothing_is_drawn_of_a_scale_without_rivals(fabric: Fabric, tmp_path: Path) -> None:
    bare = fabric.by(scale=fabric.scale.with_block(RivalsScale()))
    assert bare.runs == []
    bare.write(tmp_path)
    assert table1(bare.study("table1", tmp_path)).rows == ()
    assert table2(bare.study("table2", tmp_path)).rows == ()
    assert not len(figure1(bare.study("figure1", tmp_path)).points)
