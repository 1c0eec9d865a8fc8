"""Tables of paper `scaling` on fabricated records, and the Table object on its own."""

import csv
import io
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from fabricated import ARTIFACTS, CONFIG, RUNS, SCALE, study_of

from neuroute.errors import NeurouteError
from neuroute.papers.scaling import declare
from neuroute.papers.scaling.tables_results import table12
from neuroute.papers.scaling.tables_settings import table9
from neuroute.plan.config import Scale, load_scale, parse_config
from neuroute.rendering.render import TABLE_FORMATS, render
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, duration, fixed

TABLES = [name for name in ARTIFACTS if name.startswith("table")]
PRINTED = {  # a number of each table as the paper prints it, and the CSV column that holds it
    "table1": ("parameters_millions_published", 143.80),
    "table2": ("gap_tsp1000_pct_published", 0.991),
    "table4": ("limited_gap_pct_published", 0.0044),
    "table12": ("gap_pct_published", 0.464),
    "table17": ("gflops_paper_published", 843.2),
    "table18": ("gap_beam64_pct_published", 0.0059),
}


@pytest.fixture(scope="module")
def drawn(work: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for name in TABLES:
        render(study_of(name, work), folder / name)
    return folder


@pytest.mark.parametrize("name", TABLES)
def test_every_format_is_written_and_the_same_again(name: str, work: Path, drawn: Path, tmp_path: Path) -> None:
    written = render(study_of(name, work), tmp_path / name)
    assert [p.suffix[1:] for p in written] == list(TABLE_FORMATS)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in written)  # nothing left aside
    for path in written:
        assert path.read_bytes() == (drawn / path.name).read_bytes()


@pytest.mark.parametrize(("name", "expected"), PRINTED.items())
def test_measured_and_published_stand_side_by_side(name: str, expected: tuple[str, float], drawn: Path) -> None:
    frame = pd.read_csv(drawn / f"{name}.csv")
    column, value = expected
    assert value in frame[column].to_list()
    assert frame[column.replace("_published", "_measured")].notna().any()
    assert set(frame.scale) == {"smoke"}


def test_table12_reads_like_the_paper(drawn: Path) -> None:
    frame = pd.read_csv(drawn / "table12.csv")
    assert frame.method[0] == "LKH3"
    assert frame.gap_pct_measured[0] == pytest.approx(100 * (3.9004 / 3.9 - 1))
    assert list(frame.method[1:4]) == [f"Greedy, depth=6, width={w}" for w in (128, 256, 512)]
    assert set(frame.gap_pct_measured_at) == {"TSP20, 512 instances"}
    inside = frame[1:]
    assert (inside.gap_pct_measured_low < inside.gap_pct_measured).all()
    assert (inside.gap_pct_measured < inside.gap_pct_measured_high).all()
    about = json.loads((drawn / "table12.json").read_text())
    assert about["measured_on"]["devices"] == ["Test CPU"]
    assert about["measured_on"]["tests"][0]["n"] == 20


def test_table18_uses_the_scales_own_beams_and_says_so(drawn: Path) -> None:
    assert "Beam 64 (12 here)" in (drawn / "table18.md").read_text()
    frame = pd.read_csv(drawn / "table18.csv")
    assert frame.gap_beam1_pct_measured.gt(frame.gap_beam64_pct_measured).all()


def test_table4_keeps_the_small_test_set_apart(drawn: Path) -> None:
    assert set(pd.read_csv(drawn / "table4.csv").limited_gap_pct_measured_at) == {"TSP20, 128 instances"}


def test_lkh_as_reference_has_no_gap_by_construction(work: Path) -> None:
    scale = load_scale("smoke").model_copy(update={"reference_solver": "lkh"})
    table = lkh_table(scale, work)
    assert table.rows[0].cells[0].measured == 0
    assert any("by construction" in note for note in table.notes)


def lkh_table(scale: Scale, work: Path) -> Table:
    return table12(Study.load(ARTIFACTS["table12"], CONFIG, scale, declare.runs(CONFIG, scale), work))


def test_tables_without_runs_need_no_files(tmp_path: Path) -> None:
    for name in ("table1", "table9"):
        render(study_of(name, tmp_path / "empty"), tmp_path / name)
    assert "60,000" in (tmp_path / "table9.md").read_text()


def test_table9_says_when_single_runs_are_changed(tmp_path: Path) -> None:
    config = parse_config({"runs": {"scaling/base_12x256": {"training": {"learning_rate": 0.01}}}})
    study = Study.load(ARTIFACTS["table9"], config, SCALE, declare.runs(config, SCALE), tmp_path)
    assert any("(12, 256)" in note for note in table9(study).notes)


@pytest.mark.parametrize("name", TABLES)
def test_negative_and_zero_gaps_are_shown(name: str, bad_work: Path, tmp_path: Path) -> None:
    render(study_of(name, bad_work), tmp_path / name)


def test_missing_records_say_what_to_do(work: Path, tmp_path: Path) -> None:
    with pytest.raises(NeurouteError, match=r"greedy\.csv: missing"):
        render(study_of("table18", tmp_path), tmp_path / "table18")
    assert not list(tmp_path.glob("table18*"))
    copy = shutil.copytree(work, tmp_path / "copy")
    (copy / "evaluations/scaling/base_6x128/greedy.npz").write_bytes(b"cut short")
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


AWKWARD = Table(
    "A & B <i>",
    ("Model|s",),
    (Column("gap_pct", "Gap_%", "%", fixed(2), "50% & more", "TSP20"), Column("note", "Note")),
    (
        Row(("x_1",), (Cell(1234.5, 0.5, 1000.0, 1500.0), Cell("<b>bold</b>", "a|b"))),
        Row((7,), (Cell(None, 0.25), Cell(float("nan")))),
    ),
    ("100% of $5 & <script>",),
)


def test_markdown_escapes_bars_and_marks_what_was_not_measured() -> None:
    text = AWKWARD.markdown()
    assert "1,234.50 [1,000.00, 1,500.00] (0.50)" in text
    assert "| 7 | (0.25) | – |" in text
    assert "Model\\|s" in text
    assert "a\\|b" in text


def test_latex_escapes() -> None:
    text = AWKWARD.latex()
    assert r"50\% \& more" in text
    assert r"x\_1" in text
    assert r"100\% of \$5 \& <script>" in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
    bodies = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.replace(r"\&", "").count("&") for line in bodies if "multicolumn" not in line} == {2}


def test_html_escapes() -> None:
    text = AWKWARD.html()
    assert "<b>bold</b>" not in text
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert 'class="paper only"' in text


def test_csv_holds_plain_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(AWKWARD.csv({"scale": "smoke"}))))
    assert rows[0]["gap_pct_measured"] == "1234.5"
    assert rows[0]["gap_pct_measured_at"] == "TSP20"
    assert rows[1]["gap_pct_measured"] == ""
    assert rows[1]["gap_pct_published"] == "0.25"
    assert rows[1]["scale"] == "smoke"


def test_a_row_must_fit_the_columns() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Table("t", ("a",), (Column("x", "x"),), (Row(("a",), ()),))


def test_durations_in_readable_units() -> None:
    assert [duration(s) for s in (0.305, 20.4, 84, 3360, 9900)] == ["0.30 s", "20.4 s", "1.4 min", "56.0 min", "2.75 h"]
