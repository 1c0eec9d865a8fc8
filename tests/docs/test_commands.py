"""Every command in the documentation is one that the programs take; targets and ids are those of the plan."""

import re
from typing import Any

import pytest
import typer
from snakemake.cli import get_argument_parser

from neuroute.datasets.benchmarks import BENCHMARKS, COMPARED
from neuroute.pipeline.cli import COMMANDS, app
from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.config import load_config
from pages import PAGES, ROOT, commands, lines, mentions, name_of
from snakemake_logger_plugin_neuroute.command_line import separate_targets

# Pages whose commands are run, by test_first_ten_minutes.py, test_how_to.py and tests/test_wheel.py.
RUN = {
    "docs/tutorial/first_ten_minutes.md",
    "docs/tutorial/add_a_network.md",
    *(f"docs/how-to/{name}.md" for name in ("own_data", "own_network", "published_weights")),
}
# Commands of other pages, by their beginning, and why they are read but not run here.
READ = {
    "make": "they install, test, or run everything; tests/dag runs all of the DAG, small",
    "git clone": "it needs the address",
    "pip install": "it installs",
    "source .venv/bin/activate": "the tests run in such an environment",
    "snakedeploy": "run by tests/dag/test_deployed.py",
    "cd my-study": "",
    "snakemake": "minutes; tests/dag runs the same targets, small",
    "neuroute plan": "run by tests/test_cli.py",
    "sh arrays/submit.sh": "run by tests/slurm/test_small_node.py",
    "neuroute why": "run by tests/dag/test_dag.py",
    "neuroute label": "run, small, by tests/dag, as are train, evaluate, render and report",
    "neuroute train": "",
    "neuroute evaluate": "",
    "neuroute render": "",
    "neuroute report": "",
    "neuroute keep": "run by tests/rendering",
    "neuroute verify": "run by tests/dag/test_verify.py",
    "python docs/generate/leaderboard.py": "its page is that of tests/docs/test_leaderboard_page.py",
    "python docs/generate/claims.py": "its pages are those of tests/docs/test_reference.py",
    "neuroute claims": "its verdicts are those of tests/rendering/test_kept_verdicts.py",
    "neuroute difference": "run by tests/evaluation/test_difference.py",
    "cat results/": "it shows what a run has made",
    "cp": "it copies what comes along, or what was kept",
    "neuroute fetch": "needs a network; tests/datasets fetches from files",
    "tools/first_gpu.sh": "it needs a GPU; run with stand-ins by tests/test_first_gpu.py",
    "neuroute compare": "minutes; run, small, by extras/compare/tests",
    "neuroute solve": "needs trained models; run by test_how_to.py with others",
}


def test_what_is_not_run_is_listed() -> None:
    unread = set(READ)
    for page in PAGES:
        for line in lines(page) if name_of(page) not in RUN else ():
            listed = [start for start in READ if line.startswith(start)]
            assert listed, f"{name_of(page)}: say in test_commands.py why this is not run: {line}"
            unread -= set(listed)
    assert not unread, f"no page has these any more: {unread}"


def words_of(value: object) -> str:
    return value if isinstance(value, str) else " ".join(map(str, value))  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    """What pages speak of: the papers, the networks in the box, and the worked example."""
    root = load_config(ROOT / "config.yaml")
    toy = {"papers_path": [str(ROOT / "docs/examples/papers")], "papers": ["toy"]}
    return [
        build_plan(root),
        build_plan(load_config(ROOT / "config.yaml", scale="zoo")),
        build_plan(load_config(ROOT / "config.yaml", scale="laptop")),
        build_plan(load_config(ROOT / "config.yaml", scale=str(ROOT / "docs/examples/toy.yaml"), **toy)),
    ]


EXAMPLES = [("--help", example.split()[1:]) for commands in COMMANDS.values() for example in commands.values()]


@pytest.mark.parametrize(("page", "words"), [*commands("neuroute"), *EXAMPLES], ids=words_of)
def test_neuroute_takes_it(page: str, words: list[str], plans: list[Plan]) -> None:
    command = typer.main.get_command(app).commands.get(words[0])  # type: ignore[attr-defined]
    if words[0] in ("--version", "--help") or (command is not None and words[1:] in ([], ["..."])):
        return  # the name of a command
    assert command is not None, f"{page}: neuroute has no {words[0]}"
    given = command.make_context(words[0], words[1:], resilient_parsing=False).params
    for key, names in known(plans).items():
        for value in [given[key]] if isinstance(given.get(key), str) else given.get(key) or ():
            assert value in names or "<" in value, f"{page}: no {key} {value}"


def known(plans: list[Plan]) -> dict[str, set[str]]:
    """Ids that arguments of commands may have."""
    found: dict[str, set[str]] = {"benchmark": {*BENCHMARKS, *COMPARED}}
    keys: dict[str, Any] = {
        "run": "runs",
        "evaluation": "evaluations",
        "label_job": "label_jobs",
        "artifacts": "artifacts",
    }
    for key, attribute in keys.items():
        found[key] = {each for plan in plans for each in getattr(plan, attribute)}
    found["artifacts"] |= {each.partition("/")[0] for each in found["artifacts"]}
    return found


@pytest.mark.parametrize(("page", "words"), commands("snakemake"), ids=words_of)
def test_snakemake_takes_it(page: str, words: list[str], plans: list[Plan]) -> None:
    # The parser knows the executors that are installed, so profiles that ask for another one are left out.
    words = [word for i, word in enumerate(words) if "--workflow-profile" not in (word, words[i - 1])]
    given = get_argument_parser([]).parse_args(separate_targets(words))
    drawn = {str(plan.artifact_stem(artifact)) for plan in plans for artifact in plan.artifacts}
    drawn.add("results/toy/table2")  # the reader of add_a_table.md adds it
    for target in [*(given.targets or ()), *(given.forcerun or ())]:
        rule = re.search(rf"^ *rule {re.escape(target)}:", rules(), re.MULTILINE)
        assert rule or target.rpartition(".")[0] in drawn or target.startswith("work/"), f"{page}: no target {target}"
    assert all("=" in pair for pair in given.config or ()), (
        f"{page}: --config reads targets as settings: {given.config}"
    )


def rules() -> str:
    return "\n".join(file.read_text() for file in [ROOT / "workflow/Snakefile", *(ROOT / "workflow").rglob("*.smk")])


@pytest.mark.parametrize(("page", "words"), commands("make"), ids=words_of)
def test_make_takes_it(page: str, words: list[str]) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {word for word in words if "=" not in word} <= set(targets), page


def test_paths_that_pages_name_are_there() -> None:
    path = re.compile(r"(?:src|docs|workflow|profiles|tests|bench)/[\w./-]+")
    for page in PAGES:
        for named in filter(path.fullmatch, mentions(page)):
            assert any((folder / named).exists() for folder in (ROOT, page.parent)), f"{name_of(page)}: no {named}"
        for file, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text()):
            assert f"def {test}(" in (ROOT / file).read_text(), f"{name_of(page)}: no {test} in {file}"
