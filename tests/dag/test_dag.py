"""The real DAG of one paper at micro scale: all of it, single targets, and reruns of exactly what an edit touches."""

import csv
import gzip
import http.server
import json
import os
import random
import re
import shutil
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from checkout import MICRO, ROOT, add_settings, config, copy_checkout, counted, neuroute, planned, replace, snakemake_in
from neuroute.evaluation.difference import differences

pytestmark = pytest.mark.dag


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which `snakemake all` has run for paper `pens`."""
    folder = tmp_path_factory.mktemp("checkout")
    copy_checkout(folder, "pens")("all")
    return folder


@pytest.fixture(scope="module")
def touched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which Snakemake knows of every job of paper `pens` as done; what they write is nearly empty."""
    folder = tmp_path_factory.mktemp("touched")
    copy_checkout(folder, "pens")
    pretend(folder, "all")
    return folder


def pretend(folder: Path, target: str) -> None:
    """Let Snakemake know of every job of a target as done."""
    run = snakemake_in(folder)
    for line in run("--summary", target).stdout.splitlines()[1:]:
        file = folder / line.partition("\t")[0]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('{"measured_on": {"scale": "micro"}}' if file.suffix == ".json" else "")
    run("--touch", "--forceall", target, check=False)  # it ends by what it says of a summary without verdicts


@pytest.fixture
def edited(touched: Path, tmp_path: Path) -> Path:
    """A copy of that checkout, timestamps kept, to edit."""
    return shutil.copytree(touched, tmp_path / "copy", symlinks=True)


@pytest.fixture
def rerun(finished: Path, tmp_path: Path) -> Path:
    """A copy of a checkout that has really run."""
    return shutil.copytree(finished, tmp_path / "copy", symlinks=True)


def drawn(output: str) -> set[str]:
    """Artifacts that a dry run would draw."""
    return set(re.findall(r"render (\w+/\w+)$", output, re.M))


def drawn_again(folder: Path) -> tuple[dict[str, int], set[str]]:
    """Jobs of a dry run, by rule, and the artifacts that it would draw."""
    output = snakemake_in(folder)("-n", "all").stdout
    return counted(output), drawn(output)


def stale(folder: Path) -> dict[str, int]:
    """What `neuroute plan` calls stale: stage -> count."""
    output = neuroute(folder, "plan", "--all").stdout
    assert " to do " not in output.partition(" id\n")[2]
    return Counter(re.findall(r"^(\w+) +stale ", output, re.M))


def only_file(folder: Path, text: str) -> Path:
    """The one file below a folder that holds a text, wherever it has moved."""
    (path,) = [path for path in folder.rglob("*.py") if text in path.read_text()]
    return path


@pytest.mark.slow
def test_a_model_of_other_settings_is_not_drawn_from(rerun: Path) -> None:
    """As one leaves it who tries a learning rate by hand, nor what was measured of it; `--touch` accepts a model."""
    run, model = snakemake_in(rerun), rerun / "work/micro/runs/pens/pens_a/model.safetensors"
    before, change = model.read_bytes(), "runs.pens/pens_a.training.learning_rate=0.1"

    def put_back(job: str) -> None:
        done = run("all", check=False)
        said = re.search(rf"{job}: .*other settings.* snakemake (--forcerun) (\S+)", done.stdout + done.stderr)
        assert said is not None
        run(*said.groups(), "all")
        assert model.read_bytes() == before
        assert planned(run) == stale(rerun) == {}

    neuroute(rerun, "train", "pens/pens_a", "--set", change)
    assert stale(rerun)["train"] == 1
    put_back("pens/pens_a")
    neuroute(rerun, "train", "pens/pens_a", "--set", change)
    neuroute(rerun, "evaluate", "pens/pens_a/all")
    neuroute(rerun, "train", "pens/pens_a")
    assert stale(rerun)["evaluate"] == 1
    put_back("pens/pens_a/all")
    add_settings(rerun, "runs: {pens/pens_a: {training: {learning_rate: 0.1}}}")
    run("--touch", "all")
    assert planned(run) == stale(rerun) == {}


@pytest.mark.slow
def test_records_runs_and_the_page_are_complete(finished: Path) -> None:
    page = (finished / "results" / "index.html").read_text()
    titles = [*(f"Table {n}" for n in range(1, 5)), *(f"Figure {n}" for n in range(1, 7)), "Table of Figure 4"]
    assert all(words in page for words in (*titles, "micro"))
    file = finished / "work/micro/evaluations/pens/pens_a/all.csv"
    rows = list(csv.DictReader(file.open()))
    metrics = {"gap_pct", "length", "time_s", "peak_memory_mb", "gflops_paper", "parameters"}
    assert {r["metric"] for r in rows} >= metrics
    for row in rows:
        for field in ("paper", "run", "test", "decoding", "n_instances", "device", "torch", "seed", "scale", "code"):
            assert row[field], field
    gaps = [float(r["value"]) for r in rows if r["metric"] == "gap_pct"]
    assert all(g >= -1e-6 for g in gaps)  # the reference is optimal
    about = json.loads((finished / "work/micro/runs/pens/pens_a/run.json").read_text())
    for field in ("device_name", "threads", "torch", "parameters", "wall_time_s", "code"):
        assert about[field]


@pytest.mark.parametrize("checkout", ["touched", pytest.param("finished", marks=pytest.mark.slow)])
def test_second_run_does_nothing(checkout: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(checkout)
    assert planned(snakemake_in(folder)) == {}
    assert stale(folder) == {}
    assert neuroute(folder, "why").stdout == "Nothing to be done.\n"


@pytest.mark.slow
def test_a_comparison_is_asked_whenever_it_is_the_target(edited: Path) -> None:
    """Which of its kept answers hold it finds out itself: by files of the user's and what is trained by now, too."""
    run = snakemake_in(edited)
    (edited / "work/micro/usage").mkdir(exist_ok=True)
    (edited / "work/micro/usage/compare.tsv").touch()  # which no summary lists
    pretend(edited, "compare")
    assert planned(run, "compare") == {"compare": 1}
    assert planned(run) == {}


def test_an_instance_that_joins_the_users_copy_of_a_library_is_measured(edited: Path) -> None:
    run, evaluations = snakemake_in(edited), len([*edited.glob("work/micro/evaluations/*/*/*.csv")])
    shutil.copy(ROOT / "src/neuroute/datasets/instances/tsplib/eil51.tsp", edited / "benchmarks")
    jobs = planned(run)
    assert (jobs["fetch_benchmark"], set(jobs) & {"labels", "train"}) == (1, set())
    assert 0 < jobs["evaluate"] < evaluations


@pytest.mark.slow
def test_another_file_of_the_same_name_is_another_test_set(edited: Path) -> None:
    run, source = snakemake_in(edited), edited / "mine.npz"
    source.write_bytes(b"one")
    add_settings(edited, "testsets_dir: .\ntest_sets: {tsp_uniform_test_n6: mine.npz}")
    pretend(edited, "all")
    assert planned(run) == {}
    source.write_bytes(b"other")
    jobs = planned(run)
    assert (jobs["labels"], set(jobs) & {"train", "fetch_benchmark"}) == (1, set())
    assert jobs["evaluate"] >= 1


@pytest.mark.slow
def test_a_gpu_trains_anew_where_it_is_to_keep_all_digits(edited: Path) -> None:
    run, text = snakemake_in(edited), (edited / "config.yaml").read_text()
    (edited / "config.yaml").write_text(f"{text}tf32: false\n")
    assert planned(run) == {}  # on a CPU
    on_gpu = text.replace("device: cpu", "device: cuda")
    (edited / "config.yaml").write_text(on_gpu)
    assert set(planned(run)) == {"all", "evaluate", "render_figure", "render_table", "report"}
    (edited / "config.yaml").write_text(f"{on_gpu}tf32: false\n")
    assert planned(run)["train"] == len([*edited.glob("work/micro/runs/*/*/model.safetensors")])


@pytest.mark.slow
def test_an_edit_under_a_run_is_in_no_result_of_that_run(tmp_path: Path) -> None:
    run, trained = copy_checkout(tmp_path, "icam"), "work/micro/runs/icam/pomo_tsp/model.safetensors"
    replace(tmp_path / "workflow/scales/micro.yaml", "warm_jobs: true", "warm_jobs: false")
    loop = tmp_path / "src/neuroute/training/loop.py"

    def edit() -> None:
        while not (tmp_path / "work/micro/logs/labels").exists():  # of the first job
            time.sleep(0.02)
        replace(loop, "TELL_EVERY_S = 10.0", "TELL_EVERY_S = 11.0")

    thread = threading.Thread(target=edit)
    thread.start()
    done = run(trained, check=False)
    thread.join()
    assert done.returncode
    assert "pomo_tsp: its code or settings changed since Snakemake planned it" in done.stderr
    assert not (tmp_path / trained).exists()
    run(trained)
    replace(loop, "TELL_EVERY_S = 11.0", "TELL_EVERY_S = 10.0")
    assert planned(run, trained)["train"] == 1


@pytest.mark.slow
def test_single_targets_run_only_what_they_need(tmp_path: Path) -> None:
    run = copy_checkout(tmp_path, "scaling", "pens")
    replace(tmp_path / "workflow/scales/micro.yaml", "evaluate_together: true", "evaluate_together: false")
    assert planned(run, "results/table1.csv") == {"render": 1, "render_table": 1}
    assert planned(run, "results/table12.csv") == {
        "labels": 4,  # training, validation, and tests by two solvers
        "train": 12,
        "evaluate": 12,  # greedy only: no beam search, no larger sizes
        "render": 1,
        "render_table": 1,
    }
    jobs = planned(run, "results/pens/table1.csv")  # two models, each with its tests, its sweep, and tests that wait
    assert (jobs["train"], jobs["evaluate"], jobs["render_table"]) == (2, 6, 1)
    assert set(jobs) == {"labels", "train", "evaluate", "render", "render_table"}


def test_comments_and_moved_files_change_nothing(edited: Path) -> None:
    package = edited / "src/neuroute"
    network = only_file(package / "networks", "class Pens(")
    replace(network, "class Pens(", "# a remark\nclass Pens(")
    network.rename(network.with_name("renamed.py"))
    for path in package.rglob("*.py"):
        text = path.read_text()
        moved = text.replace("neuroute.networks.pens", "neuroute.networks.renamed")
        if moved != text:
            path.write_text(moved)
    assert planned(snakemake_in(edited)) == {}


def test_a_plotting_edit_redraws_that_figure(edited: Path) -> None:
    drawing = only_file(edited / "src/neuroute/pipeline/papers/pens", "def figure3(")
    text = drawing.read_text()
    body = re.search(r"def figure3\(.*?(?=\n@|\ndef |\Z)", text, re.S)
    assert body
    new = re.sub(r"\n(    (?!\"\"\")\S)", r"\n    _edited = 1\n\1", body[0], count=1)
    drawing.write_text(text.replace(body[0], new))
    assert drawn_again(edited) == ({"all": 1, "report": 1, "render_figure": 1}, {"pens/figure3"})
    assert stale(edited) == {"render": 1}


@pytest.mark.slow
def test_what_is_made_alone_is_looked_at_by_what_follows(edited: Path) -> None:
    """As of a single figure, or `--until evaluate`: pictures and arrays may be others where rows and notes are not."""
    for name, rerun in (
        ("results/pens/figure2.png", {"report"}),
        ("work/micro/evaluations/pens/pens_a/all.json", {"report", "render_figure", "render_table"}),
    ):
        (edited / name).write_text('{"measured_on": {"scale": "micro"}, "npz_sha256": "another"}')
        assert planned(snakemake_in(edited)).keys() == {"all", *rerun}


@pytest.mark.slow
def test_evaluations_that_read_others_run_with_until(rerun: Path) -> None:
    replace(rerun / "workflow/scales/micro.yaml", "evaluate_together: true", "evaluate_together: false")
    snakemake_in(rerun)("--until", "evaluate", "--", "results/pens/figure2.png")
    assert (rerun / "work/micro/evaluations/pens/pens_a/attention.json").exists()


@pytest.mark.slow
def test_papers_that_come_and_go_and_copies_do_again_nothing(rerun: Path, tmp_path: Path) -> None:
    """Also not in a copy whose files are all new, in any order; icam's trainings leave weights of their stages."""
    run = snakemake_in(rerun)
    choose_papers(rerun, "icam", "pens")
    run("all")
    for papers in (("pens",), ("pens", "icam")):
        choose_papers(rerun, *papers)
        assert planned(run) == {"all": 1, "report": 1}, papers
        run("all")
    copy = tmp_path / "fresh"
    shutil.copytree(rerun, copy, symlinks=True, copy_function=shutil.copyfile)
    files = sorted(file for file in copy.rglob("*") if file.is_file())
    random.Random(0).shuffle(files)
    for second, file in enumerate(files):
        os.utime(file, (time.time() - second, time.time() - second))
    assert planned(snakemake_in(copy)) == {}


def choose_papers(folder: Path, *papers: str) -> None:
    text = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(re.sub(r"papers: .*", f"papers: [{', '.join(papers)}]", text))


@pytest.mark.slow
def test_network_arithmetic_retrains_but_labels_stay(edited: Path) -> None:
    """ALiBi's slopes: the networks that can have them train again, LEHD and BQ do not."""
    positions = only_file(edited / "src/neuroute/networks", "def alibi_slopes(")
    replace(positions, "    return 10 / math.sqrt(2)", "    return 20 / math.sqrt(2)")
    jobs = planned(snakemake_in(edited))
    runs = list((edited / "work/micro/runs/pens").glob("*/run.json"))
    assert jobs["train"] == jobs["evaluate"] == len(runs)
    assert "labels" not in jobs


def test_one_learning_rate_reruns_that_chain(edited: Path) -> None:
    add_settings(edited, "runs: {pens/pens_r: {training: {learning_rate: 1.0e-3}}}")
    jobs, redrawn = drawn_again(edited)
    assert (jobs["train"], jobs["evaluate"]) == (1, 1)
    assert "labels" not in jobs
    assert "pens/table1" in redrawn
    assert not {"pens/figure2", "pens/figure5"} & redrawn  # PENS-A drawn, and the small models
    assert stale(edited) == {"train": 1, "evaluate": 1, "render": len(redrawn)}
    change, _ = neuroute(edited, "why", "pens/table1").stdout.split("\n", 1)
    assert re.fullmatch(r"train pens/pens_r: training\.learning_rate: [\d.]+ -> 0\.001", change)
    model = edited / "work/micro/runs/pens/pens_a/model.safetensors"
    model.unlink()
    why = neuroute(edited, "why", "pens/table2").stdout
    assert f"train pens/pens_a: not there: {model.relative_to(edited)}\n" in why


@pytest.mark.slow
def test_more_seeds_train_these_alone_and_stand_in_what_shows_the_run(rerun: Path) -> None:
    add_settings(rerun, "runs: {pens/pens_r: {seeds: 3}}")
    run = snakemake_in(rerun)
    jobs, redrawn = drawn_again(rerun)
    assert (jobs["train"], jobs["evaluate"]) == (2, 2)
    assert "labels" not in jobs
    assert {"pens/table1", "pens/table2"} <= redrawn
    assert not {"pens/figure2", "pens/figure5", "pens/table_figure5"} & redrawn  # PENS-A, and the small models
    run("all")
    assert "Trained with several seeds: pens_r (3)." in (rerun / "results/pens/table1.md").read_text()
    trainings = [rerun / "work/micro/evaluations/pens" / f"pens_r{seed}" for seed in ("", "-s1", "-s2")]
    other = [rerun / "work/micro/evaluations/pens/pens_a"]
    rows = [row for row in differences(trainings, other) if row.instances > 1]
    mean_of = ",".join(dict.fromkeys(row.test for row in rows))  # a mean over one of a single instance has no interval
    rows = [row for row in differences(trainings, other, mean_of=mean_of) if row.instances > 1]
    assert any(row.test.startswith("mean of") for row in rows)
    assert {row.trainings for row in rows} == {(3, 1)}
    assert all(row.interval.low < row.ahead < row.interval.high for row in rows)
    assert len({(folder / "all.npz").read_bytes() for folder in trainings}) == 3  # they are not the same training


@pytest.mark.slow
def test_the_next_run_with_a_network_fetches_what_was_missing_and_reruns_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy stands for the network: at first nobody listens there, later it has one instance."""
    run, manifest = copy_checkout(tmp_path, "scaling"), tmp_path / "work/benchmarks/tsplib.json"
    (tmp_path / "config.yaml").write_text(config("micro", ("scaling",), Path("null")))
    packaged = tmp_path / "src/neuroute/datasets/instances/tsplib/eil76.tsp"
    served = gzip.compress(packaged.read_bytes())
    packaged.unlink()

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            there = self.path.endswith("/eil76.tsp.gz")
            self.send_response(200 if there else 404)
            self.end_headers()
            self.wfile.write(served if there else b"")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy, bind_and_activate=False) as proxy:
        proxy.server_bind()
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.server_port}")
        target = str(manifest.relative_to(tmp_path))
        run(target)
        first = manifest.read_bytes()
        assert b'"berlin52"' in first  # which comes with the package
        assert planned(run, target) == {}
        assert "Nothing to be done" in run(target).stderr
        assert manifest.read_bytes() == first
        proxy.server_activate()
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        assert "1 public instances were fetched that were missing before" in run(target).stderr
        assert "eil76" in json.loads(manifest.read_text())["available"]
        proxy.shutdown()


MODULE = """
configfile: "config.yaml"

module nr:
    snakefile: "{snakefile}"
    config: config

use rule * from nr as nr_*

rule mine:
    default_target: True
    input: "results/table1.csv"
    output: "mine.csv"
    shell: "cp {{input}} {{output}}"
"""


@pytest.mark.slow
def test_another_workflow_uses_it_as_a_module(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(MODULE.format(snakefile=ROOT / "workflow/Snakefile"))
    (tmp_path / "config.yaml").write_text(config(str(MICRO), ("scaling",), tmp_path))
    run = snakemake_in(tmp_path, ROOT / "src")
    assert planned(run, "mine") == {"nr_render": 1, "nr_render_table": 1, "mine": 1}
    run("mine")
    assert (tmp_path / "mine.csv").read_text() == (tmp_path / "results" / "table1.csv").read_text()


@pytest.mark.slow
def test_more_papers_do_again_nothing_that_is_there(edited: Path) -> None:
    """Pens reads the first labels of a stream of which scaling reads more, and trains networks of scaling."""
    choose_papers(edited, "scaling", "pens")
    output = snakemake_in(edited)("-n", "all").stdout
    jobs = counted(output)
    runs, evaluations = (set((edited / "work/micro").glob(f"{kind}/*/*")) for kind in ("runs", "evaluations"))
    assert min(jobs["labels"], jobs["train"], jobs["evaluate"], jobs["render_table"]) > 0
    again = re.findall(r"(?:train|evaluate) (\w+/\w+)(?: \((\w+)\))?$", output, re.M)
    trained = {run for run, group in again if not group}
    measured = {f"{run}/{group}" for run, group in again if group}
    assert not trained & {f"{run.parent.name}/{run.name}" for run in runs}
    assert not measured & {f"{run.parent.name}/{run.name}/{e.stem}" for run in evaluations for e in run.glob("*.csv")}
    labelled = set(re.findall(r"labels (\S+)$", output, re.M))
    assert not labelled & {file.stem for file in (edited / "work/micro/labels").glob("*.json")}
    assert not {name for name in drawn(output) if name.startswith("pens/")}


def test_what_is_lost_of_an_artifact_is_drawn_again(edited: Path) -> None:
    for name in ("table1.html", "table2.json", "table3.tex", "table4.md", "figure3.png", "figure4.svg"):
        (edited / "results" / "pens" / name).unlink()
    jobs, redrawn = drawn_again(edited)
    assert jobs == {"all": 1, "report": 1, "render_table": 4, "render_figure": 2}
    assert redrawn == {f"pens/{name}" for name in ("table1", "table2", "table3", "table4", "figure3", "figure4")}


def test_a_printed_number_redraws_what_shows_it(edited: Path) -> None:
    printed = edited / "src/neuroute/pipeline/papers/pens/published/table1.csv"
    printed.write_text(printed.read_text() + "\n")
    jobs = {"all": 1, "report": 1, "render_table": 1, "render_figure": 1}
    assert drawn_again(edited) == (jobs, {"pens/table1", "pens/figure3"})
