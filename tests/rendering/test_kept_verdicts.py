"""Verdicts by kept tables: all claims get one, quickly, and a changed number changes them."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fabricated import Fabric
from neuroute.analysis.intervals import Behind
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_text
from neuroute.rendering.claims import Judged
from neuroute.rendering.table import Cell, Column, Row, Table
from neuroute.rendering.verdicts.comparisons import DrawnTables, judge_all
from neuroute.rendering.verdicts.kept import KeptTables, as_csv, judge_kept, keep_behind, rows_of, say
from test_all_tables import FABRICS

LAPTOP = Path(__file__).parents[2] / "docs" / "measured" / "laptop"


def test_what_is_not_kept_or_not_valid_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "table1.csv").write_text("model,gap_pct_measured,gap_pct_measured_low\nA,10.0,low\n")
    for name, message in (("table9", "table9 is not among what was kept"), ("table1", "interval that is no number")):
        with pytest.raises(NeurouteError, match=message):
            KeptTables(tmp_path, "p").table(name)
    with pytest.raises(NeurouteError, match=r"behind.csv: no such file"):
        KeptTables(tmp_path / "p", "p").busy("table1")
    with pytest.raises(NeurouteError, match="none: no such folder"):
        judge_kept(tmp_path / "none")


def test_what_is_kept_with_a_table_is_read_again(tmp_path: Path) -> None:
    draws = np.random.default_rng(0).normal(10, 0.5, 1000)
    behind = Behind((9.0, 10.0, 11.5), draws, 64, "Icam", "cvrp", 2.5)
    cells = [Cell(10.2, 1.0, 9.0, 11.5, "CVRP50, 64 instances", behind), Cell(3.0)]
    column = Column("gap_pct", "Gap")
    table = Table("t", ("Model", "Depth"), (column,), tuple(Row(("A", i), (cell,)) for i, cell in enumerate(cells)))
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "table1.csv").write_text(table.csv())
    keep_behind(tmp_path, {("p", "table0"): table, ("p", "table1"): table}, {("p", f"table{i}"): "" for i in (0, 1)})
    keep_behind(tmp_path, {("p", "table0"): table}, {("p", "table0"): "load 9"})
    kept = KeptTables(tmp_path, "p")
    a, b = (row.cells[0] for row in kept.table("table1").rows)
    assert b.behind is None
    assert (a.behind.gaps, a.behind.instances, a.behind.times) == (behind.gaps, 64, 2.5)
    assert (a.behind.network, a.behind.problem) == ("Icam", "cvrp")
    assert a.behind.samples.std(ddof=1) == pytest.approx(draws.std(ddof=1))
    assert (kept.busy("table0"), kept.busy("table1")) == ("load 9", "")
    whole = (tmp_path / "behind.csv").read_text()
    assert re.findall(r"^p,(table\d)", whole, re.M) == ["table0", "table0", "table1", "table1"]  # in order, always
    drawn = re.findall(r"9.0 10.0 11.5,(\S+)", whole)[-1]
    for good, bad in (
        ("9.0 10.0", "nine 10.0"),
        ("9.0 10.0 11.5", ""),
        ("9.0 10.0", "nan 10.0"),
        ("error", "errors"),
        (drawn, "nan"),
    ):
        assert good in whole
        (tmp_path / "behind.csv").write_text(whole.replace(good, bad))
        with pytest.raises(NeurouteError, match=r"behind.csv: .*run `neuroute keep` again"):
            KeptTables(tmp_path, "p").table("table1")


def test_kept_tables_find_what_records_do(records_of: Callable[[Fabric], Path], tmp_path: Path) -> None:
    fabric, folder = FABRICS["icam"], tmp_path / "micro"
    evidence = DrawnTables(lambda name: fabric.study(name, records_of(fabric)))
    names = {name for claim in fabric.paper.claims() for each in claim.compare for name in each.table}
    tables = {("icam", name): evidence.table(name) for name in names}
    for (paper, name), table in tables.items():
        write_text(folder / paper / f"{name}.csv", table.csv())
    keep_behind(folder, tables, dict.fromkeys(tables, ""))
    from_records = judge_all(fabric.paper, evidence)
    from_tables = judge_all(fabric.paper, KeptTables(folder, "icam"))
    for drawn, kept in zip(from_records, from_tables, strict=True):
        differences = [[finding.difference for finding in judged.findings] for judged in (drawn, kept)]
        for a, b in zip(*differences, strict=True):
            assert a.measured == pytest.approx(b.measured)
            assert (a.low is None) == (b.low is None)
            if a.low is not None:
                assert (a.low, a.high) == pytest.approx((b.low, b.high), rel=1e-3, abs=1e-3)


@pytest.fixture(scope="module")
def laptop() -> dict[str, Judged]:
    return {f"{key}.{each.claim.id}": each for key, of in judge_kept(LAPTOP).items() for each in of}


def test_every_claim_has_a_verdict_with_its_reason_or_cost(laptop: dict[str, Judged]) -> None:
    assert len(laptop) == 212
    for name, each in laptop.items():
        assert each.verdict != "not judged", name
        assert bool(each.cost) == (each.verdict == "inconclusive"), name
        assert each.why or each.verdict in ("supported", "contradicted"), name
    assert not [name for name, each in laptop.items() if "not among" in each.why]


def test_a_changed_number_changes_the_verdict(laptop: dict[str, Judged], tmp_path: Path) -> None:
    folder = shutil.copytree(LAPTOP, tmp_path / "laptop", ignore=shutil.ignore_patterns("*.png"))
    table = folder / "icam" / "table9.csv"
    head, *lines = table.read_text().splitlines()
    full = next(i for i, line in enumerate(lines) if line.startswith("AAFM+CAB"))
    lines[full] = lines[full].replace("2.20", "9.20", 3)
    table.write_text("\n".join([head, *lines]))
    (changed,) = [each for each in judge_kept(folder)["icam"] if each.claim.id == "adaptation-helps"]
    assert (laptop["icam.adaptation-helps"].verdict, changed.verdict) == ("supported", "contradicted")


def test_rows_and_the_short_of_them(laptop: dict[str, Judged]) -> None:
    claimed = {"icam": [each for name, each in laptop.items() if name.startswith("icam")]}
    assert as_csv(rows_of(claimed)).count("\nicam.") == len(claimed["icam"])
    short = say("laptop", claimed)
    assert short.startswith(f"{len(claimed['icam'])} claims at scale laptop: supported ")
    assert "are decided" in short
