"""Tables 3 to 12 of paper `icam`, one by one, on fabricated records."""

import inspect
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from published_trainings import single_size, three_stages

from fabricated_icam import FABRIC, RUNS, study
from neuroute.networks.icam import Icam
from neuroute.networks.pomo import Pomo
from neuroute.papers.icam import roles
from neuroute.papers.icam.tables_settings import CLIPPING, ROWS, ReinforcedRun
from neuroute.rendering.table import Cell
from table_cells import cell, of

RECORDS = FABRIC
ALIKE = "one_size_tsp"
BY_ID = {run.id: run for run in RUNS}


# -- Tables 4, 5 and 12 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", roles.PROBLEMS)
def test_settings_of_the_published_training_are_the_printed_ones(problem: str, work: Path) -> None:
    """What the table would show here of a run that is trained to the letter."""
    name = roles.OWN[problem]
    network = BY_ID[f"icam/{name}"].network
    shape = network.arguments | {"depth": 12, "width": 128, "feed_forward": 512}
    change = {"training": three_stages(problem), "network": network.model_copy(update={"arguments": shape})}
    found = study("table5", work)
    exact = BY_ID[f"icam/{name}"].model_copy(update=change)
    table = of(replace(found, runs={**found.runs, exact.id: exact}))
    nothing = ("Weight decay", "Gradient clipping, largest norm")  # printed as a dash
    compared = 0
    for r in table.rows:
        shown = r.cells[[c.key for c in table.columns].index(name)]
        if shown.published not in (None, "−"):
            assert shown.measured == shown.published, r.labels
            compared += 1
        elif shown.published == "−" and r.labels[0] not in nothing:
            assert shown.measured is None, r.labels
    assert compared == {"tsp": 21, "cvrp": 24}[problem]


def test_settings_of_one_stage() -> None:
    run = BY_ID["icam/pomo_tsp"].model_copy(update={"training": single_size("tsp")})
    found = {heading: value(ReinforcedRun.of(run)) for heading, _, value in ROWS}
    assert found["Epochs after which the rate falls"] == "3000"
    assert found["Instances drawn, on average"] == 3100 * 1563 * 64
    assert found["Weight decay"] == 1e-6
    assert found["Epochs of stage 2"] is None
    assert ReinforcedRun.of(BY_ID["scaling/bq"]) is None
    assert ReinforcedRun.of(None) is None


def test_defaults_of_the_networks_are_what_table5_says() -> None:
    given = {net.__module__: inspect.signature(net).parameters["clipping"].default for net in (Icam, Pomo)}
    assert given == CLIPPING
    assert Icam(depth=1, width=8, feed_forward=8).alpha.item() == 1


def test_a_network_of_ones_own_is_none_of_them_whatever_its_name() -> None:
    run = BY_ID["icam/icam_tsp"]
    own = run.model_copy(update={"network": run.network.model_copy(update={"kind": "mine:Icam"})})
    shown = {heading: value(ReinforcedRun.of(own)) for heading, _, value in ROWS}
    assert (shown["Clipping parameter"], shown["Initial α value"]) == (None, None)
    assert shown["Encoder layers"] == run.network.arguments["depth"]


# -- Tables 8 to 11 ---------------------------------------------------------------------------------------------------


def test_a_missing_stage_leaves_the_printed_number(work: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(work, tmp_path / "copy")
    for path in copy.glob("evaluations/icam/icam_tsp*/stages.csv"):
        frame = pd.read_csv(path)
        frame[~frame.run.str.endswith("@stage1")].to_csv(path, index=False)
    table = of(study("table8", copy))
    assert cell(table, "gap_tsp200_pct", "After stage 1") == Cell(None, 1.856)
    assert cell(table, "gap_tsp200_pct", "After stage 2").measured is not None


# -- Table 13, our own ------------------------------------------------------------------------------------------------


def test_one_size_is_the_first_stages_and_nothing_else_changes() -> None:
    staged, alike, repeated = (BY_ID[f"icam/{name}"] for name in ("icam_tsp", "one_size_tsp", "one_size_tsp-s1"))
    first = staged.training.stages[0]
    assert repeated.training == alike.training
    assert (alike.seed, repeated.seed, alike.network) == (0, 1, staged.network)
    for before, after in zip(staged.training.stages, alike.training.stages, strict=True):
        own = {"sizes": first.sizes, "batch_size": first.batch_size, "batch_nodes": first.batch_nodes}
        assert after == before.model_copy(update=own | {"epochs": after.epochs})
