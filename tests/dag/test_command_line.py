"""Commands as people type them: targets behind the values of options, and targets that no rule makes."""

import contextlib
import io
import re
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snakemake import cli
from snakemake.common.configfile import load_configfile

from checkout import MICRO, ROOT, Snakemake, copy_checkout
from neuroute.pipeline.dag.rules import explain
from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.config import parse_config
from snakemake_logger_plugin_neuroute.command_line import is_for_neuroute, separate_targets


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with files of settings and results."""
    (tmp_path / "mine.yaml").write_text("scale: smoke\n")
    (tmp_path / "mine.json").write_text('{"scale": "smoke"}')
    (tmp_path / "settings").write_text("scale: smoke\n")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "table1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "results" / "table1.json").write_text('{"measured_on": {"scale": "smoke"}}')
    (tmp_path / "workflow").mkdir()
    for file in ("Snakefile", "workflow/Snakefile"):
        (tmp_path / file).write_text((ROOT / file).read_text())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def parser() -> ArgumentParser:
    return cli.get_argument_parser()  # type: ignore[no-any-return]


def parse(parser: ArgumentParser, arguments: list[str]) -> dict[str, Any] | None:
    """What Snakemake understands; None for what it refuses."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            args = parser.parse_args(arguments)
        config = cli.parse_config(args.config)
        for file in args.configfile:
            load_configfile(file)
    except (Exception, SystemExit):
        return None
    args.config, args.max_jobs_per_timespan = config, None  # whose text is another each time
    return vars(args)


AS_TYPED = {
    "--cores 8 --resources gpu=1 all": ["all"],
    "--resources gpu=1 mem_mb=9000 results/table1.csv results/table2.csv -n": [
        "results/table1.csv",
        "results/table2.csv",
    ],
    "--configfile mine.yaml results_mine/toy/table2.csv": ["results_mine/toy/table2.csv"],
    "--configfile mine.yaml results/table1.csv": ["results/table1.csv"],
    "--configfile mine.yaml all --resources gpu=1 report": ["all", "report"],
    "--configfile mine.yaml mine.json settings all": ["all"],
    "--config scale=laptop all": ["all"],
    "--config scale=laptop all --resources gpu=1 results/table1.csv": ["all", "results/table1.csv"],
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("typed", AS_TYPED)
def test_targets_behind_values_are_targets(parser: ArgumentParser, typed: str) -> None:
    words = typed.split()
    separated = parse(parser, separate_targets(words))
    assert separated["targets"] == AS_TYPED[typed]
    in_front = [*AS_TYPED[typed], *(word for word in words if word not in AS_TYPED[typed])]
    assert repr(separated) == repr(parse(parser, in_front))  # as resources are equal to themselves alone


VALUES = [
    "all", "train", "rules", "results/table1.csv", "gpu=1", "train:gpu=1", "train=2", "mtime", "mine.yaml", "conda",
    "3",
]  # fmt: skip
OPTIONS = [
    "--resources", "--res", "--config", "-C", "--configfile", "--configfiles", "--set-threads", "--set-resources",
    "--default-resources", "--groups", "--group-components", "--set-scatter", "--set-resource-scopes", "-q", "--quiet",
    "--rerun-triggers", "--sdm", "--forcerun", "-R", "--until", "-U", "--omit-from", "-O", "--prioritize", "-P",
    "--consider-ancient", "--allowed-rules", "--cores", "-c", "--jobs", "-j", "-n", "-p", "--rerun-incomplete", "-F",
    "--report", "--dag", "--lint", "--envvars", "--wait-for-files", "--resources=gpu=1", "-c4", "--scheduler", "-s",
]  # fmt: skip


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.sampled_from([*OPTIONS, *VALUES]), max_size=7))
def test_what_snakemake_understands_stays_as_it_is(folder: Path, parser: ArgumentParser, words: list[str]) -> None:
    if parse(parser, words) is not None:
        assert separate_targets(words) == words


@pytest.mark.parametrize(
    "typed",
    [
        "all --resources gpu=1",
        "--resources gpu=1 -- all",
        "-R train evaluate --until evaluate",
        "--quiet all",
        "--configfile mine.yaml mine.json settings",
        "--resources=gpu=1 all",
        "--config runs={pens/pens_a:{seed:2}} --cores all",
        "-j 4 results/table1.csv --forcerun render_table",
    ],
)
@pytest.mark.usefixtures("folder")
def test_commands_of_every_day_stay_as_they_are(parser: ArgumentParser, typed: str) -> None:
    assert parse(parser, typed.split()) is not None
    assert separate_targets(typed.split()) == typed.split()


def test_only_calls_by_users_on_this_snakefile_are_touched(folder: Path) -> None:
    typed = ["--resources", "gpu=1", "all"]
    for program in ("/bin/snakemake", "/lib/site-packages/snakemake/__main__.py"):
        assert is_for_neuroute([program, *typed])
        assert not is_for_neuroute([program, "--mode", "remote", *typed])  # a job that Snakemake starts
        assert not is_for_neuroute([program, "-s", "other/Snakefile", *typed])
    assert not is_for_neuroute(["/bin/pytest", *typed])
    (folder / "Snakefile").write_text('module neuroute:\n    snakefile: "neuroute/Snakefile"\n')
    assert not is_for_neuroute(["snakemake", *typed])
    (folder / "Snakefile").unlink()
    assert not is_for_neuroute(["snakemake", *typed])


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Snakemake:
    return copy_checkout(tmp_path_factory.mktemp("checkout"), "pens")


@pytest.mark.slow
@pytest.mark.dag
@pytest.mark.parametrize(
    ("typed", "jobs"),
    [
        ("-n --resources gpu=1 all", r"render_table +6\n"),
        ("-n --configfile config.yaml results/pens/table2.csv", r"render_table +1\n"),
        ("-n --until evaluate", r"train +\d+\nevaluate +\d+\ntotal"),  # and nothing after that stage
        ("-n trained", r"-\nlabels +\d+\ntrain +\d+\ntrained +1\ntotal"),  # by whichever rule
    ],
)
def test_a_command_runs_as_typed(checkout: Snakemake, typed: str, jobs: str) -> None:
    assert re.search(jobs, checkout(*typed.split()).stdout)


@pytest.mark.slow
@pytest.mark.dag
@pytest.mark.parametrize(
    ("target", "answer"),
    [
        (
            "results/table1.csv",
            "`papers: [pens]` in config.yaml leaves scaling out: add scaling, or make results/pens/table1.csv",
        ),
        ("--until=trian", "did you mean train?"),
    ],
)
def test_a_wrong_target_ends_in_one_line(checkout: Snakemake, target: str, answer: str) -> None:
    done = checkout("-n", target, check=False)
    assert done.returncode == 1
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
    assert line.endswith(answer)
    assert "No rule to produce" not in done.stdout + done.stderr


@pytest.mark.dag
@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("cluster: qsub", "cluster: unrecognized arguments: --cluster=qsub; snakemake --help"),  # of Snakemake 7
        ("executor: flux", "executor: argument --executor/-e: invalid choice: 'flux'"),
    ],
)
def test_a_profile_of_another_snakemake_ends_in_one_line(line: str, answer: str, tmp_path: Path) -> None:
    run = copy_checkout(tmp_path, "pens")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.yaml").write_text(f"cores: 1\n{line}\n")
    done = run("--profile", "mine", "-n", "--", "all", check=False)
    assert done.returncode == 2
    _, said = done.stderr.splitlines()  # behind which profiles are used
    assert said.startswith(f"error: mine/config.yaml: {answer}")


@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("results/tabel1.csv", "did you mean results/table1.csv or "),
        ("./results/pens/tabel1.csv", "did you mean results/pens/table1.csv or "),
        ("scaling/table1", "did you mean results/table1.csv?"),
        ("results/scaling/figure2.pdf", "did you mean results/figure2.pdf?"),
        ("figure2", "did you mean results/figure2.pdf or results/pens/figure2.pdf?"),
        (
            "results/icam/table3.csv",
            "is icam/table3: `papers: [scaling, pens]` in config.yaml leaves icam out: add icam, or make",
        ),
        (
            "results/icam/table12.csv",
            "is icam/table12: `papers: [scaling, pens]` in config.yaml leaves icam out: add icam",
        ),
        ("results/table22.csv", "is scaling/table22: scale micro does not train its models; scales that do: "),
        ("pens/pens_a", "did you mean work/micro/runs/pens/pens_a/model.safetensors?"),
        (
            "work/micro/runs/pens/pens_a/model.safetensor",
            "did you mean work/micro/runs/pens/pens_a/model.safetensors or ",
        ),
        ("pens", "set `papers: [pens]` in config.yaml and make `all`"),
        ("al", "did you mean all?"),
        ("qqqq", "`neuroute plan --all` lists what there is"),
    ],
)
def test_a_wrong_target_gets_the_right_one(plan: Plan, target: str, answer: str) -> None:
    assert answer in explain(plan, target, ["all", "train"])


@pytest.fixture(scope="module")
def plan() -> Plan:
    return build_plan(parse_config({"scale": str(MICRO), "papers": ["scaling", "pens"]}))
