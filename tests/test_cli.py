"""The command line: it teaches, it plans, and bad input ends in one line."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import BinaryIO

import pytest
from commands import call, done, refused

from neuroute.api.train import Trainer
from neuroute.core import files
from neuroute.pipeline.cli.options import load_plan

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("NEUROUTE_CONFIG", raising=False)


def test_help_names_every_stage() -> None:
    stages = ("plan", "label", "fetch", "train", "evaluate", "render", "report", "doctor", "solve", "import-weights")
    assert set(stages) <= set(done("--help").split())


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "neuroute", "-h"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: neuroute [OPTIONS] COMMAND")


def test_ctrl_c_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("neuroute.pipeline.cli.papers.load_plan", interrupted)
    assert call("label", "x") == (130, "interrupted: run the same command again\n")


INTERRUPTED = """
import os, signal, sys
from neuroute.__main__ import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background

class Finder:
    def find_spec(name, *_):
        if name == sys.argv[-1]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder)
sys.argv.insert(1, "models")
main()
"""


@pytest.mark.parametrize("module", ["typer", "pydantic", "neuroute.api.zoo"])
def test_ctrl_c_while_a_module_is_loaded_is_one_line(module: str) -> None:
    """Of the command line, of an argument's type, of the command."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted: run the same command again\n")


@pytest.mark.parametrize(
    ("script", "heavy"),
    [
        ("import neuroute.pipeline.cli", "numpy pandas pydantic torch yaml"),
        ("import neuroute", "numpy"),
        (
            "import neuroute; neuroute.Instance, neuroute.load, neuroute.generate, neuroute.models",
            "torch pandas matplotlib numba ortools",
        ),
        (  # which every job does; these would take longer than the plan
            "from neuroute.pipeline.plan.build import build_plan; from neuroute.pipeline.plan.config import Config; "
            "build_plan(Config(scale='smoke'))",
            "pandas matplotlib scipy torch",
        ),
    ],
    ids=["help", "package", "instances", "plan"],
)
def test_nothing_is_loaded_that_is_not_needed(script: str, heavy: str) -> None:
    script += f"; import sys; print(*{set(heavy.split())} & {{*sys.modules}})"
    assert subprocess.check_output([sys.executable, "-c", script], text=True, cwd=ROOT) == "\n"


def test_version_is_that_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert call("--version") == (0, f"neuroute {declared}\n")
    assert f"\nversion: {declared}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## [{declared}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["smoke", "hour"])
def test_plan_estimates_before_anything_runs(scale: str) -> None:
    totals = done("plan", "--scale", scale)
    assert "scaling/base_42x512" not in totals
    rows = {line.split()[0]: line.split() for line in totals.splitlines() if re.match(r"\w+ +[\d,]+ of ", line)}
    assert list(rows) == ["labels", *load_plan(None, scale).papers, "all"]
    assert sum(int(row[1]) for row in rows.values()) == 2 * int(rows["all"][1])
    text = done("plan", "--all", "--scale", scale)
    assert text.startswith(totals.partition("Estimated from")[0])
    assert "scaling/base_42x512" in text
    assert "FLOP" in text


def test_plan_of_one_target_lists_only_what_it_needs() -> None:
    text = done("plan", "table12", "--scale", "laptop")
    assert "scaling/base_6x128/greedy" in text
    assert "beam" not in text
    assert "deep_24x64" not in text
    assert done("plan", "results/table12.csv", "--scale", "laptop") == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "table99"), "unknown target 'table99'; did you mean table9 or "),
        (("plan", "table22"), "scale smoke does not train its models; scales that do: gpu, laptop"),
        (("plan", "scalling"), "unknown target 'scalling'; did you mean scaling? "),
        (("plan", "scaling/bse"), "unknown target 'scaling/bse'; did you mean scaling/base_"),
        (("plan", "scaling/base_6x129"), "did you mean scaling/base_6x128 or "),
        (("plan", "results/tabel1.csv"), "did you mean table1 or "),
        (("plan", "zoo"), "paper zoo: not in this plan"),
        (("train", "scaling/base_7x128"), "unknown run 'scaling/base_7x128'; did you mean"),
        (("label", "scaling/larges"), "unknown label job"),
        (("evaluate", "scaling/base_6x128/beem"), "unknown evaluation"),
        (("render", "scaling/figure99"), "unknown table or figure"),
        (
            ("difference", "scaling/base_6x12", "scaling/base_6x128"),
            "'scaling/base_6x12'; did you mean scaling/base_6x128 or ",
        ),
        (("plan", "--scale", "huge"), "known scales"),
        (("plan", "--config", "absent.yaml"), "no such file"),
        (("plan", "--config", "conifg.yaml"), "no such file; did you mean config.yaml?"),
        (("claims", "--kept", "docs/measured/laptop", "--out", "claims.xlsx"), "claims are written as .csv"),
        (("evaluate", "scaling/base_6x128/all", "--workers", "4"), "or --model and --data"),
        (
            ("claims", "--kept", "docs/measured/laptop", "--scale", "gpu"),
            "give either --kept (a folder of tables) or --scale",
        ),
    ],
)
def test_unknown_names_end_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(*arguments)


def test_a_job_waits_for_the_one_that_a_killed_snakemake_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.yaml").write_text(f"scale: smoke\npapers: [pens]\nwork_dir: {tmp_path}\n")
    place = tmp_path / "smoke/runs/pens/pens_a"
    place.mkdir(parents=True)
    left_behind, free = files.open_lock(place / ".lock"), list[bool]()
    assert files.lock(left_behind)

    def lock(file: BinaryIO, waits: bool = False) -> bool:
        if waits:
            left_behind.close()  # it ends
        return really(file, waits)

    def train(_: Trainer) -> None:
        with files.open_lock(place / ".lock") as file:
            free.append(really(file))

    really = files.lock
    monkeypatch.setattr(files, "lock", lock)
    monkeypatch.setattr(Trainer, "train", train)
    arguments = ("train", "pens/pens_a", "--config", tmp_path / "config.yaml")
    done(*arguments)  # by hand it does not wait: `exclusive` refuses
    monkeypatch.setenv("NEUROUTE_PLANNED", str(tmp_path / "planned.json"))
    (tmp_path / "planned.json").write_text("{}")
    done(*arguments)
    assert free == [False, True]


def test_schema_command_writes_valid_json(tmp_path: Path) -> None:
    done("schema", tmp_path)
    assert json.loads((tmp_path / "config.schema.json").read_text())["title"] == "Config"


def test_a_wrong_setting_names_its_file_and_what_was_meant(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("scale: smoke\npapres: [pens]\n")
    assert refused("plan", "--config", file).startswith(f"error: {file}: papres: unknown key; did you mean papers?")
