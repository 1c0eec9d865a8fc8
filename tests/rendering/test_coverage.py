"""Cells of tables: measured, quoted, impossible."""

from pathlib import Path

from neuroute.rendering.report import Coverage, coverage_lines
from neuroute.rendering.table import Cell, Column, Row, Table


def test_every_cell_is_of_one_kind(tmp_path: Path) -> None:
    columns = (Column("gap_pct", "Gap"), Column("time_s", "Time"))
    rows = [
        Row(("both",), (Cell(1.0, 2.0, 0.9, 1.1), Cell(3.0))),
        Row(("quoted",), (Cell(None, 2.5), Cell(None, 4.0))),
        Row(("impossible",), (Cell(None, "OOM"), Cell(None, "N/A"))),
        Row(("measured where it was impossible",), (Cell(1.0, "OOM"), Cell(None))),
        Row(("nothing",), (Cell(None), Cell(None))),
    ]
    file = tmp_path / "table1.csv"
    file.write_text(Table("title", ("Method",), columns, tuple(rows)).csv({"scale": "smoke"}))
    found = Coverage.of(file)
    assert found == Coverage(measured=3, beside=1, quoted=2, impossible=2)
    assert coverage_lines({"Table 1": found, "Table 2": Coverage(0, 0, 0, 0)}) == [
        ("Table 1", "3", "1", "2", "2", "33 %"),
        ("all", "3", "1", "2", "2", "33 %"),
    ]
    assert coverage_lines({}) == []
