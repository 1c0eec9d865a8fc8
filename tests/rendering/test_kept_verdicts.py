"""Kept artifacts: with their provenance, and verdicts by their tables, which a changed number changes."""

import csv
import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import one_line

from fabricated import Fabric
from neuroute.analysis.contrasts import Gap, Spread, contrast
from neuroute.core.files import write_text
from neuroute.pipeline.rendering.comparisons import DrawnTables
from neuroute.pipeline.rendering.kept import METADATA, KeptTables, judge_kept, keep, keep_behind, write_crate
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table
from neuroute.pipeline.rendering.verdicts import Judged, judge_all
from test_all_tables import FABRICS

LAPTOP = Path(__file__).parents[2] / "docs" / "measured" / "laptop"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of what is kept, without pictures, to be changed."""
    return shutil.copytree(LAPTOP, tmp_path / "laptop", ignore=shutil.ignore_patterns("*.png"))


# -- what is kept -----------------------------------------------------------------------------------------------------


def made(stem: Path, scale: str, kind: str = "table") -> Path:
    stem.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame({"gap": [1.5, 2.5]}).to_csv(stem.with_suffix(".csv"), index=False)
    stem.with_suffix(".png").write_bytes(b"picture")
    about = {"paper": stem.parent.name, "name": stem.name, "title": f"Title of {stem.name}", "kind": kind}
    source = {"version": "1.0.0", "commit": "0123456789abcdef", "dirty": True}
    made_from = {
        "source": source | {"commit": "fedcba9876543210", "dirty": False},
        "runs": {"pens/pens_a": {"weights_sha256": "a" * 64, "source": source}},
        "evaluations": {"pens/pens_a/all": {"values_sha256": "b" * 64, "weights_sha256": "a" * 64, "source": source}},
        "labels": {"tsp_test_concorde": "c" * 64},
    }
    measured_on = {"scale": scale, "devices": ["a CPU"]}
    stem.with_suffix(".json").write_text(json.dumps(about | {"measured_on": measured_on, "made_from": made_from}))
    return stem


def test_papers_keep_apart(tmp_path: Path) -> None:
    results, folder = tmp_path / "results", tmp_path / "measured"
    stems = [made(results / "table1", "laptop"), made(results / "pens" / "table1", "laptop")]
    stems += [made(results / "pens" / "figure1", "laptop", "figure"), made(results / "table2", "smoke")]
    kept = keep(results, [*stems, results / "not_drawn"], "laptop", folder, "abc")
    of_figure = [folder / "pens" / f"figure1.{kind}" for kind in ("png", "csv")]
    assert list(kept) == [folder / "table1.csv", folder / "pens" / "table1.csv", *of_figure]
    table = pd.read_csv(folder / "pens" / "table1.csv")
    assert set(table.commit) == {"abc"}
    assert set(table.device) == {"a CPU"}
    assert table.date.notna().all()
    assert (folder / "pens" / "figure1.png").read_bytes() == b"picture"
    assert not (folder / "pens" / "table1.png").exists()


def test_the_commit_is_that_of_the_measurements(tmp_path: Path) -> None:
    """Not the current one, which may have been edited since."""
    (csv,) = keep(tmp_path, [made(tmp_path / "table1", "laptop")], "laptop", tmp_path / "to", None)
    assert set(pd.read_csv(csv).commit) == {"01234567 with uncommitted changes"}


def test_kept_files_are_an_ro_crate(tmp_path: Path) -> None:
    """Each file with its checksum, and what it was made from with theirs; what was kept before stays described."""
    results, folder = tmp_path / "results", tmp_path / "measured"
    for names in (["table1"], ["table2", "figure1"]):
        stems = [made(results / "pens" / name, "laptop", name.rstrip("12")) for name in names]
        write_crate(folder, "laptop", keep(results, stems, "laptop", folder, "abc"))
    entities = {each["@id"]: each for each in json.loads((folder / METADATA).read_text())["@graph"]}
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.*") if path.name != METADATA}
    assert len(files) == 4
    for name, path in files.items():
        assert entities[name]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert entities[name]["name"] == f"Title of {path.stem}"
    assert {each["@id"] for each in entities["./"]["hasPart"]} == set(files)
    assert [each["@id"] for each in entities["./"]["mentions"]] == [
        f"#draw/pens/{name}" for name in ("table1", "table2", "figure1")
    ]
    draw = entities["#draw/pens/table1"]
    assert {entities[each["@id"]]["identifier"] for each in draw["object"]} == {f"sha256:{c * 64}" for c in "abc"}
    assert {entities[each["@id"]]["softwareVersion"] for each in draw["instrument"]} == {
        "1.0.0, commit 01234567 with uncommitted changes",
        "1.0.0, commit fedcba98",
    }
    named = re.findall('"@id": "([^"]+)"', (folder / METADATA).read_text())
    assert {name for name in named if not name.startswith("https://w3id.org")} == set(entities)
    (folder / METADATA).write_text("{}")
    with one_line("not an RO-Crate"):
        write_crate(folder, "laptop", {})


# -- verdicts by kept tables ------------------------------------------------------------------------------------------


def test_what_is_kept_with_a_table_is_read_again(tmp_path: Path) -> None:
    """Also where the first value is below zero: a spreadsheet takes it for a formula, so ' stands in front of it."""
    draws = np.random.default_rng(0).normal(0, 0.01, 1000)
    behind = Gap((-9.0, 10.0, 11.5), draws, "cvrp50", 64, "Icam", "cvrp", 2.5, "icam/base")
    cells = [Cell(12.5 / 3, 1.0, -9.0, 11.5, "CVRP50, 64 instances", behind), Cell(3.0)]
    column = Column("gap_pct", "Gap")
    table = Table("t", ("Model", "Depth"), (column,), tuple(Row(("A", i), (cell,)) for i, cell in enumerate(cells)))
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "table1.csv").write_text(table.csv())
    keep_behind(tmp_path, {("p", "table0"): table, ("p", "table1"): table}, {("p", f"table{i}"): "" for i in (0, 1)})
    keep_behind(tmp_path, {("p", "table0"): table}, {("p", "table0"): "load 9"})
    kept = KeptTables(tmp_path, "p")
    a, b = (row.cells[0] for row in kept.table("table1").rows)
    assert b.behind is None
    assert (a.behind.values, a.behind.instances, a.behind.times) == (behind.values, 64, 2.5)
    assert (a.behind.network, a.behind.problem, a.behind.run) == ("Icam", "cvrp", "icam/base")
    assert np.sum(a.behind.errors**2) == pytest.approx(np.sum(draws**2))
    assert "gap_pct_measured_trainings,gap_pct_measured_weights" in (tmp_path / "p" / "table1.csv").read_text()
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
        with one_line(r"behind.csv: .*run `neuroute keep` again"):
            KeptTables(tmp_path, "p").table("table1")


def test_gaps_of_two_tables_vary_as_if_unrelated(tmp_path: Path) -> None:
    """What is kept of their draws are factors of one table, of one number for each of its gaps."""
    draws = np.random.default_rng(0).normal(0, 0.01, (2, 1000))
    gaps = [Gap((9.0,), each, "cvrp50", 64, "Icam", "cvrp", 2.5, f"icam/{i}") for i, each in enumerate(draws)]
    column = Column("gap_pct", "Gap")
    (tmp_path / "p").mkdir()
    tables = {}
    for name, of in (("table0", gaps[:1]), ("table1", gaps)):
        rows = tuple(Row((gap.run,), (Cell(9.0, 1.0, 8.0, 10.0, "CVRP50, 64 instances", gap),)) for gap in of)
        tables["p", name] = Table("t", ("Model",), (column,), rows)
        (tmp_path / "p" / f"{name}.csv").write_text(tables["p", name].csv())
    keep_behind(tmp_path, tables, dict.fromkeys(tables, ""))
    kept = KeptTables(tmp_path, "p")
    one, other = (kept.table(name).rows[-1].cells[0].behind for name in ("table0", "table1"))
    apart = contrast([(1, one), (-1, other)], lambda _: Spread(0.0, 9))
    assert apart.error**2 == pytest.approx(np.sum(np.square(draws / 9)), rel=1e-3)


def test_kept_tables_find_what_records_do(records_of: Callable[[Fabric], Path], tmp_path: Path) -> None:
    fabric, folder = FABRICS["icam"], tmp_path / "micro"
    evidence = DrawnTables(lambda name: fabric.study(name, records_of(fabric)))
    names = {name for claim in fabric.paper.claims() for name in claim.tables}
    tables = {("icam", name): evidence.table(name) for name in names}
    for (paper, name), table in tables.items():
        write_text(folder / paper / f"{name}.csv", table.csv())
    keep_behind(folder, tables, dict.fromkeys(tables, ""))
    from_records = judge_all(fabric.paper, evidence)
    from_tables = judge_all(fabric.paper, KeptTables(folder, "icam"))
    for drawn, kept in zip(from_records, from_tables, strict=True):
        assert (drawn.verdict, drawn.signs) == (kept.verdict, kept.signs)
        for a, b in zip(drawn.findings, kept.findings, strict=True):
            if a.estimate is not None:
                assert b.estimate.value == pytest.approx(a.estimate.value, nan_ok=True)
                assert b.estimate.error == pytest.approx(a.estimate.error, rel=1e-3, abs=1e-6)
                assert b.estimate.freedom == pytest.approx(a.estimate.freedom, rel=1e-3)


@pytest.fixture(scope="module")
def laptop() -> dict[str, Judged]:
    return {f"{key}.{each.claim.id}": each for key, of in judge_kept(LAPTOP).items() for each in of}


def test_every_claim_has_a_verdict_with_its_reason_or_cost(laptop: dict[str, Judged]) -> None:
    assert len(laptop) == 212
    for name, each in laptop.items():
        assert each.verdict != "not judged", name
        assert bool(each.cost) == (each.verdict == "inconclusive"), name
        assert each.why or each.verdict in ("supported", "contradicted"), name
    assert not [name for name, each in laptop.items() if "was not kept" in each.why]
    assert sum(each.verdict == "not measured" for each in laptop.values()) <= 45
    assert all(each.power is None or 0 <= each.power <= 1 for each in laptop.values())


def test_a_changed_number_changes_the_verdict(laptop: dict[str, Judged], folder: Path) -> None:
    table, behind = folder / "icam" / "table9.csv", folder / "behind.csv"
    gaps = [
        line["gaps"]
        for line in csv.DictReader(behind.read_text().splitlines())
        if (line["paper"], line["artifact"]) == ("icam", "table9") and line["row"].startswith("AFM,")
    ]
    assert len(gaps) == 4
    for value in gaps:
        assert value in table.read_text()
        table.write_text(table.read_text().replace(value, f"{float(value) / 6}"))
    stated = re.escape(f"is not the {float(gaps[0]) / 6} of the table; keep both again")
    with one_line(rf"behind.csv: table9 .* {stated}"):
        KeptTables(folder, "icam").table("table9")
    for value in gaps:
        lines = behind.read_text().splitlines(keepends=True)
        of_table = [line.startswith("icam,table9,") for line in lines]
        behind.write_text(
            "".join(
                line.replace(f",{value},", f",{float(value) / 6},") if edited else line
                for line, edited in zip(lines, of_table, strict=True)
            )
        )
    (changed,) = [each for each in judge_kept(folder)["icam"] if each.claim.id == "adaptation-helps"]
    assert (laptop["icam.adaptation-helps"].verdict, changed.verdict) == ("supported", "contradicted")


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("behind.csv", lambda text: text[: text.index("\n") + 1], r"behind.csv: nothing of \w+/table\w+; run"),
        ("behind.csv", lambda text: text[: text.index("\nscaling,table4,")], r"behind.csv: nothing of table4 .*; run"),
        ("behind.csv", lambda text: text[: text.rindex(",")], r"behind.csv: row \d+ is cut short"),
        ("behind.csv", lambda text: text.replace(",gaps,", ",gap,"), "behind.csv: rows without gaps; run"),
        (
            "behind.csv",
            lambda text: text.replace(",1000,,", ",0,,", 1),
            "behind.csv: the trainings of .* cannot be; run",
        ),
        ("pens/table1.csv", lambda text: text[: len(text) // 2], r"table1.csv: row \d+ is cut short"),
        ("behind.csv", lambda text: text + "\udcff", "behind.csv: not valid CSV"),
        (
            "pens/table1.csv",
            lambda text: text[: text.rindex("\n", 0, -1) + 1],
            r"table1.csv: no .*, which behind.csv has",
        ),
        ("pens/table1.csv", lambda text: "\udcff" + text, "table1.csv: not valid CSV"),
        (
            "pens/table1.csv",
            lambda text: text.replace("PENS-A,ori", "PENS-B,ori"),
            r"behind.csv: nothing of table1 .*PENS-B",
        ),
    ],
)
def test_damaged_files_are_one_line(file: str, damage: Callable[[str], str], message: str, folder: Path) -> None:
    text = damage((folder / file).read_text())
    (folder / file).write_bytes(text.encode(errors="surrogateescape"))
    with one_line(message):
        judge_kept(folder)


def test_what_smoke_measured_is_not_judged(folder: Path) -> None:
    for file in folder.rglob("*.csv"):
        file.write_text(file.read_text().replace(",laptop,", ",smoke,"))
    assert {each.verdict for of_paper in judge_kept(folder).values() for each in of_paper} == {"not judged"}


def test_what_several_commits_measured_is_one_line(folder: Path) -> None:
    table = folder / "icam" / "table9.csv"
    head, first, *others = table.read_text().splitlines()
    commit = first.split(",")[-2]
    for mixed in (first.replace(commit, "0123abc"), first.replace(commit, f"{commit}; 0123abc")):
        table.write_text("\n".join([head, mixed, *others]))
        with one_line(r"table9.csv: rows of commits .* and .*; keep those of one"):
            judge_kept(folder)
