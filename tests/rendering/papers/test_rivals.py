"""Tables and the figure of the rivals: every network has its row, every size its column; a scale may lack them all."""

from pathlib import Path
from typing import Any

import pytest

from fabricated import Fabric
from neuroute.pipeline.papers.rivals.paper import BUDGETS, PAPER, RivalsScale, StudyBlock, problems_of, rivals
from neuroute.pipeline.papers.rivals.tables import figure1, table1, table2
from neuroute.pipeline.plan.config import Config, load_scale
from neuroute.specs.objects import Dataset, Decoding, Reinforced, Run


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


def block(fabric: Fabric) -> StudyBlock:
    found = fabric.scale[RivalsScale].study
    assert found is not None
    return found


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


def test_the_study_shows_all_sizes_of_all_networks(fabric: Fabric, work: Path) -> None:
    study = block(fabric)
    table = table2(fabric.study("table2", work))
    assert len(table.rows) == len(BUDGETS) * len(problems_of(study)) * len(study.networks) * 2
    assert [c.key for c in table.columns if c.key.startswith("gap")] == [f"gap_{n}_pct" for n in study.test_counts]
    drawn = figure1(fabric.study("figure1", work))
    assert len(drawn.points) == len(table.rows) * len(study.test_counts)


def test_networks_of_the_study_see_the_same_instances_or_more_of_them(fabric: Fabric) -> None:
    """INViT in images, from one start each; whom its time gives more batches has all others as well."""
    study = block(fabric)
    for run in fabric.runs:
        if not run.role.get("study"):
            continue
        problem, name = run.validation.dataset.problem, run.role["method"]
        assert isinstance(run.training, Reinforced)
        (stage,), (common,) = run.training.stages, study.training[problem].stages
        changed: dict[str, Any] = {}
        if name == "INViT":
            changed = {"starts": 1, "images": study.invit.images}  # type: ignore[attr-defined]
        elif run.name.startswith("study_longer_"):
            changed = {"batches_per_epoch": study.same_time[problem][name]}
        assert stage == common.model_copy(update=changed)
        assert run.training.shares_baseline == (name != "INViT")


def test_a_study_of_one_problem_shows_that_one(fabric: Fabric, work: Path) -> None:
    study = block(fabric)
    alone = study.model_copy(update={"training": {"tsp": study.training["tsp"]}})
    one = fabric.by(scale=fabric.scale.with_block(RivalsScale(study=alone)))
    assert {row.labels[1] for row in table2(one.study("table2", work)).rows} == {"TSP"}
    assert set(figure1(one.study("figure1", work)).points["problem"]) == {"tsp"}


def test_nothing_is_shown_of_a_scale_without_rivals(fabric: Fabric) -> None:
    bare = fabric.by(scale=fabric.scale.with_block(RivalsScale()))
    assert bare.runs == []
    assert bare.artifacts == {}
