"""Tables of paper `icam` on fabricated records, one by one."""

import inspect
from pathlib import Path

import numpy as np
import pytest

from fabricated import keep_records, solve_all
from fabricated_icam import FABRIC, SCALE, study
from neuroute.datasets.benchmarks import study_instances
from neuroute.networks.icam import Icam
from neuroute.networks.pomo import Pomo
from neuroute.pipeline.papers.icam.paper import IcamScale
from neuroute.pipeline.papers.icam.tables import (
    CLIPPING,
    GROUPS,
    baselines_note,
    beyond_grid,
    reference_note,
    sets_of,
    table1_grids,
    table11_grid,
)
from neuroute.pipeline.plan.config import Scale, load_scale
from neuroute.pipeline.rendering.grid import Grid
from neuroute.pipeline.rendering.table import Cell
from shown import cell, of

RECORDS = FABRIC


SMOKE = load_scale("smoke")


@pytest.mark.parametrize(
    ("name", "grids", "named"),
    [
        ("table1", table1_grids(SMOKE), "GLOP (TSP) in blocks of 16, 8"),  # a reviser for each
        (
            "table3",
            [beyond_grid(SMOKE, "cvrp")],
            ": LEHD (CVRP) at n=20, BQ (CVRP) at n=20, GLOP-G (LKH3) (CVRP) at n=40.",
        ),
        ("table11", [table11_grid(SMOKE)], ": LEHD (TSP) at n=20, BQ (TSP) at n=20."),
    ],
)
def test_a_table_names_the_baselines_of_its_rows_each_once(
    name: str, grids: list[Grid], named: str, tmp_path: Path
) -> None:
    assert named in baselines_note(FABRIC.by(scale=SMOKE).study(name, tmp_path), grids)


# -- Table 2 ----------------------------------------------------------------------------------------------------------


def whole(work: Path) -> Scale:
    """The micro scale with all of Set-X solved; writes the records anew, and of another set besides."""
    changed = SCALE[IcamScale].cvrp.model_copy(update={"benchmark_nodes": (101, 1002)})
    solve_all(FABRIC, work, lambda name: study_instances(1002, 0, name), 100)
    return SCALE.with_block(SCALE[IcamScale].model_copy(update={"cvrp": changed}))


def test_table2_groups_are_the_papers(copy: Path) -> None:
    table = of(study("table2", copy, whole(copy)))
    assert [c.at for c in table.columns] == [
        "22 of 22 instances", "46 of 46 instances", "32 of 32 instances", *["100 of 100 instances"] * 2,
    ]  # fmt: skip
    assert any(k.set != "X" for k in study_instances(1002, 0, "cvrplib"))  # which do not count
    for name, key in (("n<=200", "to_200"), ("200<n<=500", "to_500"), ("500<n<=1000", "to_1000"), ("all", "all")):
        least, most = GROUPS[name]
        nodes = [k.nodes for k in study_instances(1002, 0, "cvrplib") if k.set == "X" and least <= k.nodes <= most]
        for label in ("LEHD greedy", "BQ* greedy", "POMO no augment.", "ICAM no augment."):
            assert cell(table, f"gap_x_{key}_pct", label).measured == pytest.approx(np.mean(nodes) / 100)
        assert cell(table, f"gap_x_{key}_pct", "BKS") == Cell(0.0, 0.0)
    assert cell(table, "gap_x_all_pct", "ICAM no augment.").published == 4.83
    assert cell(table, "gap_x_to_200_pct", "ELG no augment.") == Cell(None, 5.5)
    assert not any(note.startswith("Not measured here") for note in table.notes)


def test_table2_names_what_is_lacking(copy: Path) -> None:
    scale = whole(copy)
    keep_records(copy, "*/*/cvrplib*", lambda frame: frame.test != "cvrplib_X-n101-k25")
    table = of(study("table2", copy, scale))
    assert "Not measured here: X-n101-k25." in table.notes
    assert table.columns[0].at == "21 of 22 instances"


# -- what the notes say of the printed numbers ------------------------------------------------------------------------


def test_notes_say_which_instances_are_drawn() -> None:
    drawn = sets_of(SCALE, "tsp")
    filed = {
        n: test.model_copy(update={"dataset": test.dataset.model_copy(update={"file": "a.npz"})})
        for n, test in drawn.items()
    }
    for sets, anew in (
        (drawn, "Test instances are drawn"),
        (drawn | {100: filed[100]}, "Those of no file are"),
        (filed, ""),
    ):
        note = reference_note({"tsp": sets}, {"tsp": "Concorde"})
        assert anew in note
        assert ("drawn anew" in note) == bool(anew)


# -- Tables 4, 5 and 12 -----------------------------------------------------------------------------------------------


def test_defaults_of_the_networks_are_what_table5_says() -> None:
    given = {net.__module__: inspect.signature(net).parameters["clipping"].default for net in (Icam, Pomo)}
    assert given == CLIPPING
    assert Icam(depth=1, width=8, feed_forward=8).alpha.item() == 1


# -- Tables 8 to 11 ---------------------------------------------------------------------------------------------------


def test_a_missing_stage_leaves_the_printed_number(copy: Path) -> None:
    keep_records(copy, "icam/icam_tsp*/stages", lambda frame: ~frame.run.str.endswith("@stage1"))
    table = of(study("table8", copy))
    assert cell(table, "gap_tsp200_pct", "After stage 1") == Cell(None, 1.856)
    assert cell(table, "gap_tsp200_pct", "After stage 2").measured is not None
