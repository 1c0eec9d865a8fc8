"""A paper in a folder of the user's: planned, trained, measured and drawn; a table is added in one file."""

import importlib
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
from commands import done
from refusals import one_line
from untrained import untrained

from neuroute.networks.weights import build
from neuroute.pipeline.plan.build import Plan, build_plan
from neuroute.pipeline.plan.config import load_config
from neuroute.pipeline.plan.paper import FOLDERS
from neuroute.specs.objects import Test, formats

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
TSPLIB = ROOT / "src" / "neuroute" / "datasets" / "instances" / "tsplib"
PAGE = (ROOT / "docs" / "tutorial" / "add_a_table.md").read_text()
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan_in(folder: Path, key: str = "toy", more: str = "", edit: tuple[str, str] = ("PAPER", "PAPER")) -> Plan:
    """The plan of a copy of the toy paper under another name, with `more` in its tables; its config.yaml is written.

    edit: (before, after) in its paper.py.
    """
    shutil.copytree(EXAMPLES / "papers" / "toy", folder / "papers" / key)
    for file in (folder / "papers" / key).glob("*.py"):
        text = file.read_text().replace(*edit) if file.stem == "paper" else file.read_text()
        file.write_text(renamed(text + (more if file.stem == "tables" else ""), key))
    scale = renamed((EXAMPLES / "toy.yaml").read_text(), key)
    (folder / "scale.yaml").write_text(scale.replace("samples: 4000", "samples: 64"))
    settings = {"scale": "scale.yaml", "papers_path": "[papers]", "papers": f"[{key}]", "device": "cpu"}
    (folder / "config.yaml").write_text("".join(f"{name}: {value}\n" for name, value in settings.items()))
    return build_plan(load_config(folder / "config.yaml"))


def renamed(text: str, key: str) -> str:
    return re.sub(r"\btoy\b", key, text)


def code(number: int) -> str:
    """A Python block of the tutorial's page."""
    return "\n\n" + re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[number]


def test_a_paper_of_ones_own_with_one_more_table(folder: Path) -> None:
    plan = plan_in(folder, "sample", code(0))
    assert list(plan.artifacts) == ["sample/table1", "sample/table2", "sample/figure1"]
    names = dict(vars(importlib.import_module("neuroute.pipeline.papers.sample.tables")))
    exec(code(1), names)
    assert [type(need).__name__ for need in names["_needs"](plan.scale)] == ["Test", "Solved", "Log"]
    (measured,) = plan.evaluations.values()
    assert [t.decoding.name for t in measured.of_kind(Test)] == ["beam2", "beam4", "greedy"]
    for job in plan.label_jobs:
        done("label", job, "--workers", "1")
    done("train", "sample/decoder")
    done("evaluate", measured.id)
    for artifact in plan.artifacts.values():
        done("render", artifact.id)
        for ending in formats(artifact.kind):
            assert plan.artifact_stem(artifact.id).with_suffix(f".{ending}").stat().st_size > 0
    done("report")
    assert "Beam search" in plan.report.read_text()
    assert plan.render_code("sample/table2") != plan.render_code("sample/figure1")


def test_weights_that_are_given_leave_no_curve_to_draw(folder: Path) -> None:
    network = plan_in(folder, "given").runs["given/decoder"].network
    torch.save(build(network).state_dict(), "mine.pt")
    with (folder / "config.yaml").open("a") as config:
        config.write("runs: {given/decoder: {weights: mine.pt}}\n")
    done("train", "given/decoder")
    done("render", "given/figure1")
    assert "gap_pct" in (folder / "results" / "given" / "figure1.csv").read_text()


def test_a_run_with_a_network_of_ones_own_is_compared(folder: Path) -> None:
    network = ("neuroute.networks.decoder_only:DecoderOnly", "neuroute.pipeline.papers.gated.net:SwigluDecoderOnly")
    plan = plan_in(folder, "gated", edit=network)
    shutil.copy(EXAMPLES / "swiglu.py", folder / "papers" / "gated" / "net.py")
    run = plan.runs["gated/decoder"]
    plan.run_dir(run.id).mkdir(parents=True)
    untrained(plan.checkpoint(run.id), run.network, run.id)
    shutil.copy(TSPLIB / "berlin52.tsp", folder)  # whose best length is known
    assert "gated/decoder" in done("compare", "--set", "berlin52.tsp", "--method", "gated,nearest", "--seconds", "0.1")


def test_kept_tables_judge_a_paper_of_the_config(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paper = plan_in(folder, "claimed").papers["claimed"].folder
    compared = "{table: table1, column: gap_*, by: method, order: [Decoder, Nearest neighbour]}"
    words = "claim: It is ahead., where: Table 1, weight: headline, printed: supports, form: tendency"
    (paper / "claims.yaml").write_text(f"claims:\n  - {{id: ahead, {words}, compare: [{compared}]}}\n")
    FOLDERS.remove(str(paper.parent))  # as in a process that has read no config
    Path("kept").mkdir()
    said = done("claims", "--kept", "kept")
    monkeypatch.chdir("kept")
    assert "claims at scale kept: " in done("claims", "--kept", ".")
    FOLDERS.remove(str(paper.parent))  # other tests count claims
    assert "claimed.ahead: not measured (" in said


def test_a_paper_uses_modules_beside_the_snakefile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder])  # as `neuroute` has it
    (folder / "own_words.py").write_text('TITLE = "Of my own"\n')
    more = "from own_words import TITLE\n\n@artifact(TITLE)\ndef table2(study: Study) -> Table: ...\n"
    assert plan_in(folder, "helped", more).artifacts["helped/table2"].title == "Of my own"


WRONG = """
from neuroute.pipeline.plan.needs import Log, tested
from neuroute.specs.decodings import Decoding

@artifact("What is not there", needs={needs})
def table2(study: Study) -> Table: ...
"""
TESTED = 'lambda scale: tested({}, instances(scale, "test"){})'


@pytest.mark.parametrize(
    ("key", "needs", "words"),
    [
        ("lacking", TESTED.format('"lacking/none"', ""), "no paper declares run lacking/none"),
        ("unlogged", 'lambda scale: [Log("unlogged/none")]', "unlogged/table2: needs the log of unlogged/none"),
        ("undefined", TESTED.format("RUN", ', Decoding(method="no_module:way")'), "no module no_module"),
        ("unscaled", TESTED.format("RUN", ', Decoding(rescale="best")'), "best scaling"),
    ],
)
def test_what_is_needed_but_not_there_is_one_line(folder: Path, key: str, needs: str, words: str) -> None:
    with one_line(words):
        plan = plan_in(folder, key, WRONG.format(needs=needs))
        list(map(plan.digested, plan.evaluations))
