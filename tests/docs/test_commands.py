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

# What pages type besides what is checked word by word below.
OTHERS = (
    "git clone", "pip install", "source .venv/bin/activate", "cd my-study", "cp", "cat", "snakedeploy",
    "sh arrays/submit.sh", "tools/first_gpu.sh", "python docs/generate/claims.py",
    "python docs/generate/leaderboard.py",
)  # fmt: skip


def test_every_command_is_of_a_known_program() -> None:
    typed = {line: name_of(page) for page in PAGES for line in lines(page)}
    known = (*(f"{program} " for program in ("neuroute", "snakemake", "make")), *OTHERS)
    assert {line: page for line, page in typed.items() if not f"{line} ".startswith(known)} == {}
    assert [program for program in OTHERS if not any(line.startswith(program) for line in typed)] == []


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
