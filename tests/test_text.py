"""What others wrote does nothing where it is shown: on a terminal, in a spreadsheet."""

import json
import re
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import call

from neuroute.core.text import csv_text, printable

RED = "\x1b[31m"
TSP = "TYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 0 9\n3 9 9\n4 9 0\nEOF\n"
FORMULAS = ["=cmd|'/c calc'!A1", "+1+cmd", "-2+3", "@SUM(A1)", "\n=1"]


def test_text_that_could_be_a_formula_is_marked_and_nothing_else() -> None:
    plain = ["-", "", "a=b", "-1.5", "+3e2", "-inf", "w/o -", "'=1", "\t=1", "a\r=1"]
    table = pd.DataFrame({"=name": [*FORMULAS, *plain], "cost": np.linspace(-3, 3, 15), "n": range(-3, 12)})
    lines = pd.read_csv(pd.io.common.StringIO(csv_text(table)), dtype=str, keep_default_na=False)
    assert list(lines) == ["'=name", "cost", "n"]
    assert list(lines["'=name"]) == [*(f"'{cell}" for cell in FORMULAS), *(printable(cell) for cell in plain)]
    assert csv_text(table[["cost", "n"]]) == table[["cost", "n"]].to_csv(index=False)


def test_records_of_a_file_hold_no_formula(tmp_path: Path) -> None:
    data = tmp_path / "=cmd(1).tsp"
    data.write_text(TSP)
    call("evaluate", "--model", "tsp", "--data", data, "--out", tmp_path / "records.csv", "--device", "cpu")
    text = (tmp_path / "records.csv").read_text()
    assert ",'=cmd(1)," in text
    assert ",=cmd" not in text


@pytest.mark.slow
def test_a_comparison_holds_no_formula_and_reads_its_records_again(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set/a.tsp").write_text(f"NAME : {FORMULAS[0]}\n{TSP}")
    (tmp_path / "set/a.tour").write_text("TOUR_SECTION\n1\n2\n3\n4\n-1\nEOF\n")
    first, second = tmp_path / "first", tmp_path / "second"
    call("compare", "--set", tmp_path / "set", "--method", "nearest", "--out", first, "--device", "cpu")
    records = (first / "records.csv").read_text()
    assert f",'{FORMULAS[0]}," in records
    renamed = tmp_path / "others.csv"
    renamed.write_text(records.replace(",nearest,", ",theirs,"))
    command = ("compare", "--set", tmp_path / "set", "--method", "nearest", "--results", renamed, "--out", second)
    call(*command, "--device", "cpu")
    assert ",theirs," in (second / "records.csv").read_text()
    assert not [f for f in tmp_path.rglob("*.csv") if re.search(r"(?m)(^|,)[=@]", f.read_text())]


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_file_s_name_reaches_no_terminal_as_it_is(tmp_path: Path, ending: str) -> None:
    file, made = tmp_path / f"a{RED}.tsp", tmp_path / f"new{RED}"
    file.write_text(TSP)
    shown = [
        call("solve", file, "--solver", "insertion", "--out", made / f"o.{ending}", "--save", made / "o.tour")[1],
        call("export", file, "--to", made / "o.npz")[1],
        call("export", file, "--to", tmp_path / "none" / "none" / "o.npz")[1],
        call("evaluate", "--model", "tsp", "--data", file, "--device", "cpu")[1],
        call("solve", file.with_suffix(".vrp"))[1],
        call("solve", tmp_path / f"x.{RED}")[1],
    ]
    assert made.is_dir()
    assert [text for text in shown if "\x1b" in text or not text] == []
    assert printable(str(made)) in shown[0]
    assert [each for each in made.iterdir() if b"\x1b[31m" in each.read_bytes()] == []


def test_weights_whose_names_are_a_terminal_s_commands(tmp_path: Path) -> None:
    head = json.dumps({f"a{RED}": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    file = tmp_path / f"w{RED}.safetensors"
    file.write_bytes(struct.pack("<Q", len(head)) + head + bytes(4))
    (tmp_path / "x.tsp").write_text(TSP)
    for arguments in (
        ("import-weights", file, "--out", tmp_path / "out"),
        ("solve", tmp_path / "x.tsp", "--model", file),
    ):
        text = call(*arguments)[1]
        assert text.startswith("error: ")
        assert "\x1b" not in text


def test_a_name_that_is_no_utf_8_loses_no_result(tmp_path: Path) -> None:
    file = Path(str(tmp_path), b"a\xff.tsp".decode(errors="surrogateescape"))
    file.write_text(TSP)
    call("evaluate", "--model", "tsp", "--data", file, "--out", tmp_path / "r.csv", "--device", "cpu")
    assert "a\\udcff" in (tmp_path / "r.csv").read_text()
