"""What holds of the tables of every paper: printed numbers are in their cells, and bad data is told honestly."""

import io
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

import fabricated_icam
import fabricated_mvmoe
import fabricated_pens
import fabricated_scaling
import fabricated_sit
from fabricated import Fabric, drop_rows, nothing_measured
from neuroute.pipeline.plan.needs import TOGETHER
from neuroute.pipeline.rendering import settings
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Table
from neuroute.specs.evaluations import BenchmarkEvaluation
from shown import cell, of

pytestmark = pytest.mark.slow

FABRICS: dict[str, Fabric] = {
    "icam": fabricated_icam.FABRIC,
    "mvmoe": fabricated_mvmoe.FABRIC,
    "pens": fabricated_pens.FABRIC,
    "scaling": fabricated_scaling.FABRIC,
    "sit": fabricated_sit.FABRIC,
}
TABLES = [(p, name) for p, fabric in FABRICS.items() for name in fabric.artifacts if name.startswith("table")]
# Configurations, licences and counts, of which nothing is measured.
OF_NOTHING = {("icam", f"table{k}") for k in (4, 5, 12)} | {("mvmoe", "table3"), ("sit", "table6"), ("sit", "table11")}
OF_NOTHING |= {
    case for case in TABLES if case[0] == "scaling" and not FABRICS["scaling"].artifacts[case[1]].evaluations
}
OWN = {("scaling", "table22")}  # of which nothing is printed
PART = {("mvmoe", "table_figure5"), ("mvmoe", "table_figure6")}  # some of Tables 2 and 5
MEASURED = [case for case in TABLES if case not in OF_NOTHING]
# Parameters in row labels, and what is not only numbers.
NOT_NUMBERS = {("pens", "table4"), ("sit", "table11"), *(("scaling", f"table{k}") for k in (4, 9, 10))}
NOT_NUMBERS |= {case for case in OF_NOTHING if case[0] in ("icam", "mvmoe")}
SOURCE = {"table_figure4": "figure4_table", "table_figure5": "figure5a_table"}
Folders = Callable[[str, str], Path]  # (kind of records, paper) -> the folder that has them


@pytest.fixture(scope="module")
def folders(records_of: Callable[[Fabric], Path], tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Records as each paper's law has them ("usual"), none at all ("empty"), and "hopeless" ones; each once."""

    @cache
    def folder(kind: str, paper: str) -> Path:
        fabric = FABRICS[paper]
        if kind == "empty":
            return nothing_measured(records_of(fabric), tmp_path_factory.mktemp(paper) / "empty")
        return records_of(fabric if kind == "usual" else fabric.hopeless)

    return folder


@cache
def drawn(paper: str, name: str, work: Path) -> tuple[Study, Table]:
    study = FABRICS[paper].study(name, work)
    return study, of(study)


def frame_of(table: Table) -> pd.DataFrame:
    """The table as CSV, when the other formats are written too."""
    assert table.html().rstrip().endswith("</table>")
    assert len(table.markdown().splitlines()) > len(table.rows)
    assert table.latex().count(r"\toprule") >= 1
    return pd.read_csv(io.StringIO(table.csv({"scale": "x"})))


@pytest.mark.parametrize("kind", ["usual", "hopeless"])
@pytest.mark.parametrize(("paper", "name"), TABLES)
def test_headings_notes_and_every_row_are_there(paper: str, name: str, kind: str, folders: Folders) -> None:
    study, table = drawn(paper, name, folders(kind, paper))
    assert study.measured_on()
    keys = [column.key for column in table.columns]
    assert len(set(keys)) == len(keys)
    assert all(note.endswith((".", ":", ")", "%")) for note in table.notes)
    frame = frame_of(table)
    assert len(frame) == len(table.rows)
    if (paper, name) not in OF_NOTHING:
        assert frame.filter(like="_measured").notna().any().any()


def numbers(values: Iterable[object]) -> Counter[float]:
    return Counter(float(v) for v in values if v is not None and not isinstance(v, str))  # type: ignore[arg-type]


@pytest.mark.parametrize(("paper", "name"), [case for case in TABLES if case not in NOT_NUMBERS | OWN | PART])
def test_every_published_number_is_shown_once(paper: str, name: str, folders: Folders) -> None:
    """Bounds such as <1s and the dash stay the text that is printed."""
    study, table = drawn(paper, name, folders("usual", paper))
    frame = study.published(SOURCE.get(name, name))
    shown = [c.published for r in table.rows for c in r.cells]
    if paper == "scaling":
        assert not numbers(frame.value) - numbers(shown)
        return
    if "printed" in frame:
        texts = frame.printed.astype(str).str.startswith(("<", "−"))
        if paper == "icam":
            assert Counter(v for v in shown if isinstance(v, str)) == Counter(frame.printed[texts])
        frame = frame[~texts]
    assert numbers(shown) == numbers(frame.value.dropna())


@pytest.mark.parametrize(("paper", "name"), MEASURED)
def test_cells_that_were_not_measured_leave_the_published_number(paper: str, name: str, folders: Folders) -> None:
    (_, whole), (_, table) = (drawn(paper, name, folders(kind, paper)) for kind in ("usual", "empty"))
    frame_of(table)
    if paper == "mvmoe":  # Tables 7 and 8 have rows of instances that were measured only
        assert all(c.measured is None for r in table.rows for c in r.cells)
        shown, expected = ([c.published for r in t.rows for c in r.cells] for t in (table, whole))
        assert [v for v in shown if v is not None] == [v for v in expected if v is not None]
    elif (paper, name) in OWN:  # what the trainings took stays
        gaps = [c for r in table.rows for c, k in zip(r.cells, table.columns, strict=True) if "gap" in k.key]
        assert all(c.measured is None for c in gaps)
    elif paper == "scaling":  # what follows from the configuration stays
        assert not [c for r in table.rows for c in r.cells if c.published is not None and c.low is not None]
        assert any(c.published is not None for r in table.rows for c in r.cells)
    else:
        assert all(c.measured is None for r in table.rows for c in r.cells)
        shown, expected = ([[c.published for c in r.cells] for r in t.rows] for t in (table, whole))
        assert shown == expected


@pytest.mark.parametrize("paper", FABRICS)
def test_records_of_one_job_give_the_same_tables(paper: str, folders: Folders, tmp_path: Path) -> None:
    fabric = replace(FABRICS[paper], together=True)
    work = fabric.write(tmp_path)
    for name in (name for key, name in MEASURED if key == paper):
        study = fabric.study(name, work)
        assert all(e.rpartition("/")[2] in (TOGETHER, f"{TOGETHER}_{paper}") for e in study.artifact.evaluations)
        one, (_, other) = of(study), drawn(paper, name, folders("usual", paper))
        assert (one.csv(), one.notes) == (other.csv(), other.notes)


@pytest.mark.parametrize(("paper", "name", "network"), [("icam", "table12", "H-TSP"), ("sit", "table11", "HTSP")])
def test_every_licence_that_is_printed_and_every_dependency_is_there(
    paper: str, name: str, network: str, folders: Folders
) -> None:
    study, table = drawn(paper, name, folders("usual", paper))
    frame = study.published(name)
    for key, licence in zip(frame.key, frame.value, strict=True):
        assert cell(table, "licence", key).published == licence
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    block = re.search(r"^dependencies = \[(.*?)\]", project, re.M | re.S)
    assert block
    text = table.markdown().lower().replace("pytorch", "torch")
    for dependency in re.findall(r'"([a-z0-9-]+)', block.group(1)):
        assert dependency in text, dependency
    assert (cell(table, "licence", network).measured, cell(table, "used", network).measured) == (None, settings.OWN)


LIBRARIES = {  # tables of public benchmarks -> what they name
    ("icam", "table2"): ["CVRPLIB"], ("mvmoe", "table7"): ["CVRPLIB", "SOLOMON"], ("mvmoe", "table8"): ["CVRPLIB"],
    ("pens", "table2"): ["TSPLIB"], ("pens", "table3"): ["TSPLIB"], ("scaling", "table6"): ["TSPLIB"],
    ("sit", "table2"): ["TSPLIB", "CVRPLIB"],
}  # fmt: skip


@pytest.mark.parametrize(("paper", "name"), LIBRARIES)
def test_without_the_libraries_the_printed_numbers_stand_alone(
    paper: str, name: str, folders: Folders, tmp_path: Path
) -> None:
    """And notes say how to get them; what was measured on generated instances stays (pens)."""
    _, whole = drawn(paper, name, folders("usual", paper))
    copy = shutil.copytree(folders("usual", paper), tmp_path / "copy")
    for evaluation in FABRICS[paper].evaluations:
        if evaluation.of_kind(BenchmarkEvaluation):
            drop_rows(copy / "evaluations" / f"{evaluation.id}.csv")
    table = of(FABRICS[paper].study(name, copy))
    shown, expected = ([c.published for r in t.rows for c in r.cells] for t in (table, whole))
    assert [v for v in shown if v is not None] == [v for v in expected if v is not None]
    generated = [i for i, k in enumerate(table.columns) if paper == "pens" and not k.group.startswith("TSPLIB")]
    for row in table.rows:
        assert all(c.measured is None for i, c in enumerate(row.cells) if i not in generated)
    if generated:
        kept, before = ([[r.cells[i].measured for i in generated] for r in t.rows] for t in (table, whole))
        assert kept == before
        assert any(v is not None for row in kept for v in row)
    for library in LIBRARIES[paper, name]:
        (note,) = [note for note in table.notes if f"No instance of {library} " in note]
        assert "benchmarks_dir" in note
        assert "internet access" in note
    assert paper != "scaling" or "0 of 70" in table.markdown()
