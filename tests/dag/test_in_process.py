"""Every paper at micro scale, from labels to report, through the commands that the DAG's jobs call, in one process."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from commands import done
from markupsafe import escape
from pack_zoo import pack
from pictures import no_pictures

import neuroute
import published_code
from checkout import MICRO, config
from neuroute.api import zoo
from neuroute.core.files import read_json
from neuroute.networks.weights import build, describe_source
from neuroute.pipeline.cli import library, papers, setup
from neuroute.pipeline.plan.build import Plan, build_plan, settle
from neuroute.pipeline.plan.config import load_config
from neuroute.pipeline.plan.overview import costs
from neuroute.pipeline.rendering.verdicts import headlines
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.objects import Run, formats

pytestmark = [pytest.mark.dag, pytest.mark.usefixtures("one_thread")]
PUBLISHED = {
    "neuroute.networks.lehd:Lehd": partial(published_code.lehd, "tsp"),
    "neuroute.networks.pomo:Pomo": partial(published_code.pomo, "tsp"),
    "neuroute.networks.pomo:PomoCvrp": partial(published_code.pomo, "cvrp"),
}


@pytest.fixture
def plan_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plan]:
    """A function that builds the micro plan of a paper, once for all commands; more: of config.yaml."""

    def build(paper: str, **more: object) -> Plan:
        file, folders = tmp_path / "config.yaml", {"work_dir": tmp_path / "work", "results_dir": tmp_path / "results"}
        (tmp_path / "benchmarks").mkdir(exist_ok=True)
        file.write_text(config(str(MICRO), (paper,), tmp_path / "benchmarks", **folders, **more))
        plan = settle(build_plan(load_config(file)))
        for module in (library, papers, setup):
            monkeypatch.setattr(module, "load_plan", lambda *_: plan)
        return plan

    return build


@pytest.fixture
def without_pictures() -> Iterator[None]:
    """All figures are written in all formats where a paper runs as it is, and that of `pens` in test_dag.py."""
    with no_pictures():
        yield


def jobs(plan: Plan, *stages: str) -> list[str]:
    """What artifacts need of these stages, runs after those whose weights they start from."""
    return [cost.id for cost in costs(plan, None) if cost.stage in stages]


def slowly(*papers: str) -> list[Any]:
    return [pytest.param(paper, marks=pytest.mark.slow) for paper in papers]


# The fifth paper, `pens`, runs through Snakemake in test_dag.py.
@pytest.mark.parametrize("paper", slowly("icam", "scaling", "sit", "mvmoe"))
def test_a_paper_runs_from_labels_to_report(plan_of: Callable[[str], Plan], paper: str) -> None:
    plan = plan_of(paper)
    run_all(plan)
    draw(plan, paper)
    page = plan.report.read_text()
    assert [a.title for a in plan.artifacts.values() if str(escape(a.title)) not in page] == []


@pytest.mark.slow
@pytest.mark.usefixtures("without_pictures")
def test_without_concorde_and_hgs_a_paper_ends_and_says_so_beside_every_number(
    plan_of: Callable[[str], Plan], hide_solvers: Callable[..., None]
) -> None:
    hide_solvers("concorde", "hygese")
    plan = plan_of("sit")
    assert plan.config.substitutes == {"concorde": "lkh", "hgs": "pyvrp", "hgs-short": "pyvrp-short"}
    run_all(plan)
    draw(plan, "sit")
    made = [read_json(plan.manifest(job), "") for job in plan.label_jobs]
    assert not {"concorde", "hgs", "hgs-short"} & {labels["solver"] for labels in made}
    own = {labels["solver"] for labels in made if "stand_ins" not in labels}
    assert own == {"insertion", "insertion-published"}
    notes = ("LKH stands in for Concorde here", "PyVRP stands in for ")
    said = {}
    for name, artifact in plan.artifacts.items():
        about = read_json(plan.artifact_stem(name).with_suffix(".json"), "")
        said[name] = [any(note in line for line in about["notes"]) for note in notes]
        for evaluation_id in artifact.evaluations:
            references = pd.read_csv(plan.evaluation_file(evaluation_id)).reference.dropna().unique()
            assert not [r for r in references if "oncorde" in r or "hgs" in r.lower()]
    reads = {name for name, a in plan.artifacts.items() if a.evaluations or a.runs}
    assert all(any(said[name]) for name in reads)
    assert all(note in plan.report.read_text() for note in notes)


def draw(plan: Plan, paper: str) -> None:
    """Make a paper's artifacts, all of whose files are then there, and the report."""
    done("render", paper)
    done("report")
    for name, artifact in plan.artifacts.items():
        for ending in formats(artifact.kind):
            assert plan.artifact_stem(name).with_suffix(f".{ending}").stat().st_size > 0


def run_all(plan: Plan) -> None:
    """Label, train, fetch and evaluate what a plan's artifacts need."""
    for job in jobs(plan, "labels"):
        done("label", job, "--workers", "1")
    for run in jobs(plan, "train", "weights"):
        done("train", run)
    measured = jobs(plan, "evaluate")
    for benchmark in {b for e in measured for b in plan.benchmarks_of_evaluation(e)}:
        done("fetch", benchmark)
    for evaluation_id in measured:
        done("evaluate", evaluation_id)


@pytest.mark.slow
@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("paper", ["icam", *slowly("scaling", "sit", "mvmoe", "pens")])
def test_given_weights_take_the_place_of_all_trainings(
    plan_of: Callable[..., Plan], tmp_path: Path, paper: str
) -> None:
    declared = plan_of(paper)
    forks = {run for run, r in declared.runs.items() if "@" in (r.start or "")}
    given = {run: given_weights(declared.runs[run], tmp_path) for run in jobs(declared, "train") if run not in forks}
    given = {run: weights for run, weights in given.items() if not re.search(r"-s\d+$", run)}  # one training of each
    plan = plan_of(paper, runs=given)
    assert plan.unreachable == forks
    assert {cost.stage for cost in costs(plan, None)} == {"labels", "weights", "evaluate", "render"}
    run_all(plan)
    splits = {labels["labels"].split("_n")[0].rpartition("_")[2] for labels in made(plan)}
    assert splits == {"test"}
    draw(plan, paper)
    for name, artifact in plan.artifacts.items():
        about = read_json(plan.artifact_stem(name).with_suffix(".json"), "")
        noted = [note for note in about["notes"] if note.startswith("Not trained here but taken from files: ")]
        records = {e: pd.read_csv(plan.evaluation_file(e)) for e in artifact.evaluations}
        shown = {plan.evaluations[e].run: rows for e, rows in records.items() if len(rows)}  # of no benchmark
        assert len(noted) == bool(shown or artifact.runs), name
        for run, rows in shown.items():
            rows = rows[~rows.decoding.str.startswith("efficiency")].reset_index()  # of random networks
            assert set(rows.weights) == {describe_source(read_json(plan.run_dir(run) / "run.json", "")["source"])}
            assert rows.seed.isna().all()
            assert f"{run}: {rows.weights[0]}" in noted[0]
    assert re.search(r"(published weights|weights of a file) \(", plan.report.read_text())
    assert any(re.search(r" with (published weights|weights of a file) \(", line) for line in headlines(plan))


def given_weights(run: Run, folder: Path) -> dict[str, object]:
    """What config.yaml says of a run whose weights are a file: random ones, LEHD's and POMO's under published names."""
    path, shapes = folder / f"{run.name}.pt", PUBLISHED.get(run.network.kind)
    if shapes is None:
        torch.manual_seed(0)
        torch.save(build(run.network).state_dict(), path)
    else:
        size = {name: run.network.arguments[name] for name in ("depth", "width", "heads", "feed_forward")}
        torch.save(published_code.weights(dict(shapes(published_code.Size(**size)))), path)
    return {"weights": str(path)}


def made(plan: Plan) -> list[dict[str, Any]]:
    """The manifests of all labels that were made."""
    return [read_json(path, "") for job in plan.label_jobs if (path := plan.manifest(job)).exists()]


@pytest.mark.slow
def test_trained_networks_are_packed_with_what_was_measured(
    plan_of: Callable[[str], Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of("zoo")
    monkeypatch.setattr(zoo, "FOLDER", tmp_path / "zoo")
    run_all(plan)
    done("render", "zoo")
    cards = {card.name: card for card in pack(plan)}
    assert {name: card.problem for name, card in cards.items()} == {"tsp": "tsp", "cvrp": "cvrp", "vrp": "vrp"}
    shown = pd.read_csv(plan.artifact_stem("zoo/table1").with_suffix(".csv"))
    assert [gap.gap for gap in cards["tsp"].gaps if gap.set == "TSP8"] == pytest.approx(list(shown.gap_8_pct_measured))
    tried = pd.read_csv(plan.artifact_stem("zoo/table5").with_suffix(".csv"))
    assert list(tried.network) == ["tsp", "cvrp"]
    assert tried.gap_pct_measured.notna().all()
    assert {gap.set for gap in cards["vrp"].gaps} == {f"{variant}6" for variant in SWITCHES}
    assert neuroute.solve(neuroute.generate("tsp", 9)[0], seconds=0).method == "tsp, multistart"
