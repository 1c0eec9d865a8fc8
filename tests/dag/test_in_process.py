"""Every paper at micro scale, from labels to report, through the commands that the DAG's jobs call, in one process."""

from collections.abc import Callable
from pathlib import Path

import pytest
from markupsafe import escape
from typer.testing import CliRunner

from checkout import MICRO, config
from neuroute.cli import app, data, evaluation, models, results
from neuroute.plan.build import Plan, build_plan
from neuroute.plan.config import load_config
from neuroute.rendering.render import formats

pytestmark = [pytest.mark.dag, pytest.mark.usefixtures("one_thread")]


@pytest.fixture
def plan_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Plan]:
    """A function that builds the micro plan of a paper, once for all commands."""

    def build(paper: str) -> Plan:
        file, folders = tmp_path / "config.yaml", {"work_dir": tmp_path / "work", "results_dir": tmp_path / "results"}
        (tmp_path / "benchmarks").mkdir()
        file.write_text(config(str(MICRO), (paper,), tmp_path / "benchmarks", **folders))
        plan = build_plan(load_config(file))
        for module in (data, evaluation, models, results):
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
    for job in plan.label_jobs:
        call("label", job, "--workers", "1")
    for run in in_order(plan):
        call("train", run)
    measured = dict.fromkeys(e for artifact in plan.artifacts.values() for e in artifact.evaluations)
    for benchmark in {b for e in measured for b in plan.benchmarks_of_evaluation(e)}:
        call("fetch", benchmark)
    for evaluation_id in measured:
        call("evaluate", evaluation_id)
    call("render", paper)
    call("report")
    for name, artifact in plan.artifacts.items():
        for ending in formats(artifact.kind):
            assert plan.artifact_stem(name).with_suffix(f".{ending}").stat().st_size > 0
    page = plan.report.read_text()
    assert [a.title for a in plan.artifacts.values() if str(escape(a.title)) not in page] == []
