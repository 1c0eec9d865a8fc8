"""Every paper at micro scale, from labels to report, through the commands that the DAG's jobs call, in one process."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from markupsafe import escape
from typer.testing import CliRunner

import neuroute
from checkout import MICRO, config
from neuroute.cli import app, checkpoints, data, evaluation, results
from neuroute.core.files import read_json
from neuroute.datasets.stand_ins import settle
from neuroute.papers.zoo.pack import pack
from neuroute.plan.build import Plan, build_plan
from neuroute.plan.config import load_config
from neuroute.problems.vrp_variants import SWITCHES
from neuroute.rendering.render import formats
from neuroute.user import zoo

pytestmark = [pytest.mark.dag, pytest.mark.usefixtures("one_thread")]


@pytest.fixture
def plan_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Plan]:
    """A function that builds the micro plan of a paper, once for all commands."""

    def build(paper: str) -> Plan:
        file, folders = tmp_path / "config.yaml", {"work_dir": tmp_path / "work", "results_dir": tmp_path / "results"}
        (tmp_path / "benchmarks").mkdir()
        file.write_text(config(str(MICRO), (paper,), tmp_path / "benchmarks", **folders))
        plan = settle(build_plan(load_config(file)))
        for module in (checkpoints, data, evaluation, results):
            monkeypatch.setattr(module, "load_plan", lambda *_: plan)
        return plan

    return build


def call(*arguments: str) -> None:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, (arguments, done.output)


def in_order(plan: Plan) -> list[str]:
    """Runs that an artifact needs, each after the one whose weights it starts from."""
    order: dict[str, None] = {}

    def add(run: str) -> None:
        if start := plan.runs[run].start:
            add(start.partition("@")[0])
        order[run] = None

    for artifact in plan.artifacts.values():
        for run in (*artifact.runs, *(plan.evaluations[e].run for e in artifact.evaluations)):
            add(run)
    return list(order)


# The fifth paper, `pens`, runs through Snakemake in test_dag.py.
@pytest.mark.parametrize("paper", ["scaling", "sit", "icam", "mvmoe"])
def test_a_paper_runs_from_labels_to_report(plan_of: Callable[[str], Plan], paper: str) -> None:
    plan = plan_of(paper)
    run_all(plan)
    call("render", paper)
    call("report")
    for name, artifact in plan.artifacts.items():
        for ending in formats(artifact.kind):
            assert plan.artifact_stem(name).with_suffix(f".{ending}").stat().st_size > 0
    page = plan.report.read_text()
    assert [a.title for a in plan.artifacts.values() if str(escape(a.title)) not in page] == []


def test_without_concorde_and_hgs_a_paper_ends_and_says_so_beside_every_number(
    plan_of: Callable[[str], Plan], hide_solvers: Callable[..., None]
) -> None:
    hide_solvers("concorde", "hygese")
    plan = plan_of("sit")
    assert plan.config.substitutes == {"concorde": "lkh", "hgs": "pyvrp", "hgs-short": "pyvrp-short"}
    run_all(plan)
    call("render", "sit")
    call("report")
    made = [read_json(plan.manifest(job), "") for job in plan.label_jobs]
    assert not {"concorde", "hgs", "hgs-short"} & {labels["solver"] for job in made for labels in job["labels"]}
    own = {job["label_job"] for job in made if "stand_ins" not in job}
    assert own == {"sit/initial", "sit/solvers"}  # of insertions alone
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


def run_all(plan: Plan) -> None:
    """Label, train, fetch and evaluate what a plan's artifacts need."""
    for job in plan.label_jobs:
        call("label", job, "--workers", "1")
    for run in in_order(plan):
        call("train", run)
    measured = dict.fromkeys(e for artifact in plan.artifacts.values() for e in artifact.evaluations)
    for benchmark in {b for e in measured for b in plan.benchmarks_of_evaluation(e)}:
        call("fetch", benchmark)
    for evaluation_id in measured:
        call("evaluate", evaluation_id)


def test_trained_networks_are_packed_with_what_was_measured(
    plan_of: Callable[[str], Plan], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of("zoo")
    monkeypatch.setattr(zoo, "FOLDER", tmp_path / "zoo")
    run_all(plan)
    call("render", "zoo")
    cards = {card.name: card for card in pack(plan)}
    assert {name: card.problem for name, card in cards.items()} == {"tsp": "tsp", "cvrp": "cvrp", "vrp": "vrp"}
    shown = pd.read_csv(plan.artifact_stem("zoo/table1").with_suffix(".csv"))
    assert [gap.gap for gap in cards["tsp"].gaps if gap.set == "TSP8"] == pytest.approx(list(shown.gap_8_pct_measured))
    assert {gap.set for gap in cards["vrp"].gaps} == {f"{variant}6" for variant in SWITCHES}
    assert neuroute.solve(neuroute.generate("tsp", 9)[0], seconds=0).method == "tsp"
