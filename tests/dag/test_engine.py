"""What the workflow takes of Snakemake beyond its documents, on the Snakemake that is installed."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from refusals import one_line

from checkout import ROOT, copy_checkout
from neuroute.pipeline.dag.engine import Engine

pytestmark = pytest.mark.dag
LOOKS = """
from neuroute.pipeline.dag.engine import Engine

ENGINE = Engine(workflow)


rule all:
    default_target: True
    input: "b", "c"


rule first:
    output: "a"
    group: lambda w: ENGINE.send_together("pair", "short") or "pair"
    shell: "touch {output}"


rule second:
    input: "a"
    output: "{name}"
    wildcard_constraints: name="b|c"
    shell: "touch {output}"


assert ENGINE.rules == ["all", "first", "second"]


onstart:
    ENGINE.start_at_once()
    ENGINE.go_on_until_last()
    assert workflow.scheduler.job_rate_limiter is None
    needed = sorted((job.rule.name, "".join(job.wildcards), *map(str, job.output)) for job in ENGINE.needed())
    kept = sorted(job.rule.name for job in ENGINE.finished())
    is_start = ENGINE.starts_jobs and ENGINE.is_local and not (ENGINE.runs_group or ENGINE.is_touching)
    print(ENGINE.cores, ENGINE.gpus, ENGINE.at_once, is_start, ENGINE.executor, needed, kept)
"""


def test_it_reads_and_sets_what_the_workflow_needs(tmp_path: Path) -> None:
    run = copy_checkout(tmp_path)
    (tmp_path / "Snakefile").write_text(LOOKS)
    profile = ["--workflow-profile", "none", "--resources", "gpu=3", "-q", "all", "--"]
    needed = [("all", ""), ("first", "", "a"), ("second", "b", "b"), ("second", "c", "c")]
    assert f"2 3 2 True local {needed} []" in run(*profile, "all").stdout
    (tmp_path / "c").unlink()
    needed = [("all", ""), ("second", "c", "c")]
    assert f"2 3 2 True local {needed} ['first', 'second']" in run(*profile, "all").stdout


def test_another_snakemake_ends_in_one_line() -> None:
    engine = Engine(SimpleNamespace(resource_settings=None))
    for reads in (lambda: engine.cores, engine.needed, lambda: engine.config_files):
        with one_line("Snakemake [0-9.]+ does not work with this neuroute", "constraints.txt"):
            reads()
    engine.start_at_once()  # without which it only takes longer


@pytest.mark.parametrize(("remote", "cores"), [(True, 4), (False, 16)])
def test_jobs_sent_together_take_what_slurm_gave(remote: bool, cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that asks for more CPUs than its job has does not start."""
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "4")
    workflow = SimpleNamespace(
        remote_exec=remote, resource_settings=SimpleNamespace(cores=16), global_resources={"_cores": 16}
    )
    assert Engine(workflow).cores == workflow.global_resources["_cores"] == cores


def test_nothing_else_reads_snakemake() -> None:
    """No rule, hook or Snakefile reads the workflow object itself."""
    files = [
        ROOT / "workflow/Snakefile",
        *(ROOT / "workflow/rules").glob("*.smk"),
        *(ROOT / "src/neuroute/pipeline/dag").glob("*.py"),
    ]
    assert [file.name for file in files if re.search(r"\bworkflow\.[a-z_]+[.(]", file.read_text())] == []
