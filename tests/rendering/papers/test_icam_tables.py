"""Tables 1, 2 and 7 of paper `icam` on fabricated records."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fabricated import solve_all
from fabricated_icam import FABRIC, SCALE, draw, study
from neuroute.datasets.benchmarks import study_instances
from neuroute.papers.icam.scale import IcamScale
from neuroute.papers.icam.tables_test_sets import GROUPS
from neuroute.plan.config import Scale
from neuroute.rendering.table import Cell
from table_cells import cell, of

RECORDS = FABRIC


# -- Table 2 ----------------------------------------------------------------------------------------------------------


def whole(work: Path) -> Scale:
    """The micro scale with all of Set-X solved; writes the records anew, and of another set besides."""
    changed = SCALE[IcamScale].cvrp.model_copy(update={"benchmark_nodes": (101, 1002)})
    scale = SCALE.model_copy(
        update={"blocks": SCALE.blocks | {"icam": SCALE[IcamScale].model_copy(update={"cvrp": changed})}}
    )
    solve_all(FABRIC, work, lambda name: study_instances(1002, 0, name), 100)
    return scale


def test_table2_groups_are_the_papers(work: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(work, tmp_path / "copy")
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


def test_table2_names_what_is_lacking(work: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(work, tmp_path / "copy")
    scale = whole(copy)
    for path in copy.glob("evaluations/*/*/cvrplib*.csv"):
        frame = pd.read_csv(path)
        frame[frame.test != "cvrplib_X-n101-k25"].to_csv(path, index=False)
    table = of(study("table2", copy, scale))
    assert "Not measured here: X-n101-k25." in table.notes
    assert table.columns[0].at == "21 of 22 instances"


# -- what the notes say of the printed numbers ------------------------------------------------------------------------


def test_what_the_notes_say_of_the_printed_numbers_is_so(work: Path) -> None:
    one = study("table1", work).published(1)
    one = one[one.problem == "TSP"]

    def value(n: int, method: str, metric: str) -> float:
        return float(one[(one.n == n) & (one.method == method) & (one.metric == metric)].value.item())

    notes = " ".join(draw("table1", work).notes)
    for n, method, would_be, is_printed in (
        (500, "DIMES AS+MCTS", 1.93, 1.76),
        (500, "DIFUSCO greedy+2-opt", 1.69, 1.49),
        (200, "SO-mixed", 0.78, 0.636),
        (200, "Att-GCN+MCTS", 1.03, 0.884),
    ):
        assert round(100 * (value(n, method, "obj") / value(n, "Concorde", "obj") - 1), 2) == would_be
        assert value(n, method, "gap_pct") == is_printed
        assert f"{would_be} %" in notes
    gaps = one[(one.n == 100) & (one.metric == "gap_pct")].dropna(subset="value")
    ahead = gaps[(gaps.value < 0.148) & ~gaps.method.isin(["Concorde", "LKH3"])]
    assert dict(zip(ahead.method, ahead.value, strict=True)) == {
        "Att-GCN+MCTS": 0.037, "GLOP (more revisions)": 0.046, "POMO": 0.134,
    }  # fmt: skip
