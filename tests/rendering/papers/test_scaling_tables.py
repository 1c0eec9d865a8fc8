"""What all tables of paper `scaling` have in common, on fabricated records; single tables: test_single_tables."""

import shutil
from pathlib import Path

import pytest

from fabricated import CONFIG
from fabricated_scaling import ARTIFACTS, RUNS, SCALE, study_of
from neuroute.core.errors import NeurouteError
from neuroute.rendering.render import render
from neuroute.rendering.study import Study


def test_tables_without_runs_need_no_files(tmp_path: Path) -> None:
    for name in ("table1", "table9"):
        render(study_of(name, tmp_path / "empty"), tmp_path / name)
    assert "60,000" in (tmp_path / "table9.md").read_text()


def test_missing_records_say_what_to_do(work: Path, tmp_path: Path) -> None:
    with pytest.raises(NeurouteError, match=r"\.csv: missing; evaluate"):
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
