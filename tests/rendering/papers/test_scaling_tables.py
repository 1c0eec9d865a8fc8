"""What all tables of paper `scaling` have in common, on fabricated records; single tables: test_single_tables."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from fabricated import CONFIG
from fabricated_scaling import ARTIFACTS, RUNS, SCALE, shown_as, study_of
from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.rendering.render import render
from neuroute.rendering.study import Study
from neuroute.rendering.table import Table

TABLES = [name for name in ARTIFACTS if name.startswith("table")]
PRINTED = {  # a number of each table as the paper prints it, and the CSV column that holds it
    "table1": ("parameters_millions_published", 143.80),
    "table2": ("gap_tsp1000_pct_published", 0.991),
    "table3": ("gap_tsp1000_pct_published", 2.572),
    "table4": ("limited_gap_pct_published", 0.0044),
    "table5": ("time_tsp1000_s_published", 3420.0),
    "table6": ("gap_42x512_pct_published", 0.811),
    "table7": ("gap_tsp500_pct_published", 0.614),
    "table8": ("gap_tsp1000_pct_published", 4.050),
    "table11": ("gap_tsp200_pct_published", 0.461),
    "table12": ("gap_pct_published", 0.464),
    "table13": ("time_tsp1000_s_published", 36000.0),
    "table14": ("gap_tsp1000_pct_published", 3.819),
    "table15": ("gap_tsp200_pct_published", 0.284),
    "table16": ("gap_tsp100_pct_published", 2.742),
    "table17": ("gflops_paper_published", 843.2),
    "table18": ("gap_beam64_pct_published", 0.0059),
    "table19": ("gap_rrc1000_pct_published", 0.4785),
    "table20": ("gap_tsp100_pct_published", 0.419),
}
TWELVE = [(d, w) for d in (6, 12, 24, 42) for w in (128, 256, 512)]
SIZES = (100, 200, 500, 1000)
RRC_COUNTS = SCALE[ScalingScale].rrc_counts


@pytest.fixture(scope="module")
def drawn(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for name in TABLES:
        render(study_of(name, work), folder / name)
    return folder


@pytest.fixture(scope="module")
def tables(work: Path) -> dict[str, Table]:
    studies = [study_of(name, work) for name in TABLES]
    return {study.artifact.name: resolve(study.artifact.function)(study) for study in studies}


@pytest.mark.parametrize(("name", "expected"), PRINTED.items())
def test_measured_and_published_stand_side_by_side(name: str, expected: tuple[str, float], drawn: Path) -> None:
    frame = pd.read_csv(drawn / f"{name}.csv")
    column, value = expected
    assert value in frame[column].to_list()
    assert frame[column.replace("_published", "_measured")].notna().any()
    assert set(frame.scale) == {"smoke"}


ROWS = {
    "table3": ["D=6, W=128", "D=6, W=512", "D=42, W=128"],
    "table5": [
        *(f"{m} {how}" for m in ("LEHD", "BQ", "SIGD") for how in ("greedy", "bs16 (6 here)")),
        *(f"Ours {s} {how}" for s in ("(6, 128)", "(6, 512)", "(42, 128)", "(42, 512)") for how in ("greedy", "bs2")),
    ],
    "table6": ["< 500", "> 500", "All"] * 2,
    "table7": [f"Ours greedy (Depth=42, Width=128) {w} gated attention" for w in ("w/", "w/o")],
    "table8": ["w/o log(n)"] * 4 + ["w/ log(n)"] * 4,
    "table11": ["Ours greedy (Depth=12, Width=128)"] * 2,
    **{f"table{k}": ["LKH3", *(f"Ours greedy (Depth={d}, Width={w})" for d, w in TWELVE)] for k in range(13, 17)},
    "table19": [f"TSP{n} ({shown_as(n, RRC_COUNTS[n])} here)" for n in (100, 1000) for _ in range(4)],
    "table20": ["LEHD (D=6, W=128)", "LEHD (D=24, W=64)"],
}
HERE = SCALE[ScalingScale].sizes
AT = {n: f"TSP{HERE[n]} (paper: TSP{n})" for n in SIZES}  # what was measured, and of which size the paper's numbers are
COLUMNS = {
    "table3": ["Parameters", "Training samples", "Epochs", AT[100], AT[1000]],
    "table5": ["Parameters", *(f"{AT[n]}: {what}" for n in (100, 1000) for what in ("Gap", "Time"))],
    "table6": ["BQ", "SIGD", "LEHD", "(6, 128)", "(6, 512)", "(42, 128)", "(42, 512)"],
    "table7": [*AT.values()],
    "table8": [*AT.values()],
    "table11": ["Training samples", "Epochs", *AT.values()],
    "table13": [f"{AT[n]}: {what}" for n in SIZES[1:] for what in ("Gap", "Time")],
    **{f"table{k}": [f"{AT[n]}: {what}" for n in SIZES for what in ("Gap", "Time")] for k in (14, 15, 16)},
    "table20": ["Parameters", *AT.values()],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_and_columns_are_the_papers(name: str, tables: dict[str, Table]) -> None:
    table = tables[name]
    assert [row.labels[0] for row in table.rows] == ROWS[name]
    if name in COLUMNS:
        heads = [f"{c.heading}: {c.label}" if c.group.startswith("TSP") else c.own_label for c in table.columns]
        assert heads == COLUMNS[name]
    unmeasured = [c for row in table.rows for c in row.cells if c.measured is None and c.published is not None]
    assert not unmeasured


NOTES = {
    "table3": "6 million samples",
    "table5": "same 1.18m for BQ",
    "table6": "43, 40, 57, 58 %. At 60 % they would be 4.449, 2.583, 2.271, 1.263 %",
    "table7": "7.7 % fewer",
    "table8": "2.239 % and 1.291 %, differ by 42.3 %",
    "table11": "1.357 %",
    "table13": "0.035m",
    "table14": "twelve",
    "table15": "0.284 %",
    "table16": "(42, 128) is worse than (24, 128) at all four",
    "table19": "(48, 128)",
    "table20": "12.6 %",
}


@pytest.mark.parametrize(("name", "words"), NOTES.items())
def test_contradictions_stand_beside_the_table(name: str, words: str, drawn: Path) -> None:
    assert words in " ".join(json.loads((drawn / f"{name}.json").read_text())["notes"])


def test_tables_without_runs_need_no_files(tmp_path: Path) -> None:
    for name in ("table1", "table9"):
        render(study_of(name, tmp_path / "empty"), tmp_path / name)
    assert "60,000" in (tmp_path / "table9.md").read_text()


@pytest.mark.parametrize("name", TABLES)
def test_negative_and_zero_gaps_are_shown(name: str, bad_work: Path, tmp_path: Path) -> None:
    render(study_of(name, bad_work), tmp_path / name)


def test_missing_records_say_what_to_do(work: Path, tmp_path: Path) -> None:
    with pytest.raises(NeurouteError, match=r"greedy\.csv: missing"):
        render(study_of("table18", tmp_path), tmp_path / "table18")
    assert not list(tmp_path.glob("table18*"))
    copy = shutil.copytree(work, tmp_path / "copy")
    (copy / "evaluations/scaling/base_6x256/greedy.npz").write_bytes(b"cut short")
    with pytest.raises(NeurouteError, match="not a readable npz"):
        render(study_of("table12", copy), tmp_path / "table12")


def test_two_values_for_one_cell_are_refused(work: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(work, tmp_path / "copy")
    path = copy / "evaluations/scaling/base_6x128/greedy.csv"
    path.write_text(path.read_text() + path.read_text().split("\n", 1)[1])
    with pytest.raises(NeurouteError, match="2 values of"):
        render(study_of("table12", copy), tmp_path / "table12")


def test_study_leaves_out_other_papers_and_reads_params(tmp_path: Path) -> None:
    other = RUNS[0].model_copy(update={"paper": "sit"})
    study = Study.load(ARTIFACTS["table1"], CONFIG, SCALE, [*RUNS, other], tmp_path)
    assert len(study.runs) == len(RUNS)
    published = study.published(18)
    assert published[(published.depth == 42) & (published.width == 128) & (published.beam == 4)].value.item() == 0.0104
