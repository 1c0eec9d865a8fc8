"""The real DAG at micro scale: all of it, single targets, and reruns of exactly what an edit touches."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest

from checkout import Snakemake, copy_checkout, snakemake_in

pytestmark = pytest.mark.dag
TABLES, FIGURES = range(1, 21), range(1, 13)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which `snakemake all` has run."""
    folder = tmp_path_factory.mktemp("checkout")
    copy_checkout(folder)
    snakemake_in(folder)("all")
    return folder


@pytest.fixture
def edited(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished checkout, timestamps kept, to edit."""
    folder = tmp_path / "copy"
    shutil.copytree(finished, folder, symlinks=True)
    return folder


def planned(run: Snakemake, target: str = "all", *options: str) -> dict[str, int]:
    """Jobs of a dry run: rule -> count; empty when there is nothing to do."""
    output = run("-n", target, *options).stdout
    table = re.search(r"^job +count\n[- ]+\n(.*?)^total +\d+", output, re.S | re.M)
    if not table:
        assert "Nothing to be done" in output
        return {}
    return {name: int(count) for name, count in re.findall(r"^(\S+) +(\d+)$", table[1], re.M)}


def replace(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text, f"{path} no longer contains {before!r}"
    path.write_text(text.replace(before, after, 1))


def test_all_artifacts_appear(finished: Path) -> None:
    results = finished / "results"
    for number in TABLES:
        for ending in ("csv", "md", "tex", "json"):
            assert (results / f"table{number}.{ending}").stat().st_size > 0
    for number in FIGURES:
        for ending in ("pdf", "svg", "png", "json"):
            assert (results / f"figure{number}.{ending}").stat().st_size > 0
    for artifact in ("table1", "table2", "table3", "table4", "table_figure4", "table_figure5"):
        assert (results / "pens" / f"{artifact}.csv").stat().st_size > 0
    for number in range(1, 7):
        assert (results / "pens" / f"figure{number}.pdf").stat().st_size > 0
    for number in range(1, 13):
        assert (results / "icam" / f"table{number}.csv").stat().st_size > 0
    for number in range(1, 7):
        assert (results / "icam" / f"figure{number}.pdf").stat().st_size > 0
    for number in range(1, 9):
        assert (results / "mvmoe" / f"table{number}.csv").stat().st_size > 0
    for number in range(1, 10):
        assert (results / "mvmoe" / f"figure{number}.pdf").stat().st_size > 0
    page = (results / "index.html").read_text()
    assert "Table of Figure 4" in page
    for name in (*(f"Table {n}" for n in TABLES), *(f"Figure {n}" for n in FIGURES)):
        assert name in page
    assert "micro" in page


def test_records_are_tidy_and_complete(finished: Path) -> None:
    file = finished / "work" / "micro" / "evaluations" / "scaling" / "base_6x128" / "all.csv"
    rows = list(csv.DictReader(file.open()))
    assert {r["metric"] for r in rows} >= {
        "gap_pct",
        "length",
        "time_s",
        "peak_memory_mb",
        "gflops_paper",
        "parameters",
    }
    for row in rows:
        for field in ("paper", "run", "test", "decoding", "n_instances", "device", "torch", "seed", "scale", "code"):
            assert row[field], field
    gaps = [float(r["value"]) for r in rows if r["metric"] == "gap_pct"]
    assert all(g >= -1e-6 for g in gaps)  # the reference is optimal


def test_second_run_does_nothing(finished: Path) -> None:
    assert planned(snakemake_in(finished)) == {}


def test_job_budget_and_single_targets(tmp_path: Path) -> None:
    copy_checkout(tmp_path)
    run = snakemake_in(tmp_path)
    assert sum(planned(run, "all", "--config", "scale=smoke", "papers=['scaling']").values()) <= 110
    assert sum(planned(run, "all", "--config", "scale=smoke", "papers=['pens']").values()) <= 40
    assert sum(planned(run, "all", "--config", "scale=smoke", "papers=['sit']").values()) <= 60
    assert sum(planned(run, "all", "--config", "scale=smoke", "papers=['icam']").values()) <= 50
    assert sum(planned(run, "all", "--config", "scale=smoke", "papers=['mvmoe']").values()) <= 90
    assert sum(planned(run).values()) <= 280
    replace(tmp_path / "workflow/scales/micro.yaml", "evaluate_together: true", "evaluate_together: false")
    assert planned(run, "results/table1.csv") == {"scaling_table1": 1}
    assert planned(run, "results/table12.csv") == {
        "labels": 2,  # training, and in-domain validation and test
        "train": 12,
        "evaluate": 12,  # greedy only: no beam search, no larger sizes
        "scaling_table12": 1,
    }
    jobs = planned(run, "results/pens/table1.csv")  # two models, each with its sweep and then its tests
    assert (jobs["train"], jobs["evaluate"], jobs["pens_table1"]) == (2, 4, 1)
    assert set(jobs) == {"labels", "train", "evaluate", "pens_table1"}


def test_a_comment_changes_nothing(edited: Path) -> None:
    network = edited / "src/neuroute/networks/gated_decoder.py"
    replace(network, "class GatedDecoderLayer", "# a remark\nclass GatedDecoderLayer")
    replace(network, "One layer (scaling", "One single layer (scaling")
    assert planned(snakemake_in(edited)) == {}


def test_a_plotting_edit_redraws_that_figure(edited: Path) -> None:
    text = (edited / "src/neuroute/papers/scaling/figures_parameters.py").read_text()
    body = re.search(r"def figure5\(.*?(?=\ndef |\Z)", text, re.S)
    assert body
    new = re.sub(r'(set_[xy]label\(")', r"\1our ", body[0], count=1)
    if new == body[0]:  # the labels are set by a helper: an assignment is an edit as good as any
        new = re.sub(r"\n(    (?!\"\"\")\S)", r"\n    _edited = 1\n\1", body[0], count=1)
    (edited / "src/neuroute/papers/scaling/figures_parameters.py").write_text(text.replace(body[0], new))
    assert planned(snakemake_in(edited)) == {"all": 1, "report": 1, "scaling_figure5": 1}


def test_network_arithmetic_retrains_but_labels_stay(edited: Path) -> None:
    replace(
        edited / "src/neuroute/networks/gated_decoder.py", "attention_scale / math.sqrt(d_k)", "attention_scale / d_k"
    )
    jobs = planned(snakemake_in(edited))
    assert jobs["train"] == 22  # all decoder-only models, but not LEHD, BQ and SIGD
    assert jobs["evaluate"] == 21  # not of the model without ReZero
    assert "labels" not in jobs
    assert "scaling_table1" not in jobs


def test_one_learning_rate_reruns_that_chain(edited: Path) -> None:
    change = "runs: {scaling/base_12x256: {training: {learning_rate: 1.0e-3}}}\n"
    (edited / "config.yaml").write_text((edited / "config.yaml").read_text() + change)
    jobs = planned(snakemake_in(edited))
    assert (jobs["train"], jobs["evaluate"]) == (1, 1)
    assert "labels" not in jobs
    # (12, 256) stands in the tables and figures of the grid, but not in the deep-narrow comparison or the budgets
    assert not {"scaling_table1", "scaling_table2", "scaling_table4", "scaling_figure3"} & set(jobs)
    assert {"scaling_table12", "scaling_table15", "scaling_table18", "scaling_figure2"} <= set(jobs)


def test_bad_config_stops_before_any_job(edited: Path) -> None:
    (edited / "config.yaml").write_text("scale: micro\nlearning_rate: 1\n")
    done = snakemake_in(edited)("all", check=False)
    assert done.returncode != 0
    assert "learning_rate: unknown key" in done.stderr + done.stdout


def test_missing_gpu_stops_before_any_job(tmp_path: Path) -> None:
    copy_checkout(tmp_path)
    if Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi"):
        pytest.skip("this machine has a GPU")
    done = snakemake_in(tmp_path)("all", "--config", "device=cuda", check=False)
    assert done.returncode != 0
    assert "no NVIDIA GPU" in done.stderr + done.stdout
    assert not (tmp_path / "work" / "micro" / "runs").exists()


def test_what_is_written_says_where_it_was_measured(finished: Path) -> None:
    about = json.loads((finished / "work/micro/runs/scaling/base_6x128/run.json").read_text())
    for field in ("device_name", "threads", "torch", "parameters", "wall_time_s", "code"):
        assert about[field]


def test_missing_solver_stops_before_any_job_that_needs_it(tmp_path: Path) -> None:
    copy_checkout(tmp_path)
    replace(tmp_path / "src/neuroute/solvers/concorde.py", "in PLACES:", "in ():")
    run = snakemake_in(tmp_path)
    done = run("all", check=False)
    assert done.returncode != 0
    assert "solver 'concorde' is not installed; run `pip install" in done.stderr + done.stdout
    assert not (tmp_path / "work").exists() or not list((tmp_path / "work").rglob("*.npy"))
    assert planned(run, "results/table1.csv") == {"scaling_table1": 1}  # needs no labels
