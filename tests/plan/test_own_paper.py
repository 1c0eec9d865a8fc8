"""A paper of a user's own that is wrong: one line, with file and line number where its own code fails."""

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from refusals import one_line

from neuroute.core.dotted import PACKAGE, code_in
from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.config import parse_config
from neuroute.pipeline.plan.paper import FOLDERS
from neuroute.pipeline.plan.plan import Plan
from plans import ROOT

TOY = ROOT / "docs" / "examples"
NUMBERS = count()  # modules stay imported: each case has a name of its own


@pytest.fixture(autouse=True)
def folders() -> Iterator[None]:
    """Folders of papers, after a test, are those before it."""
    known = list(FOLDERS)
    yield
    FOLDERS[:] = known


def plan_with(place: Path, file: str, before: str, after: str) -> Plan:
    """The plan of a copy of the toy paper, one text of one file of which is another."""
    key = "toy" + "abcdefghijklmnopqrstuvwxyz"[next(NUMBERS)]
    folder = place / "papers" / key
    (folder / "published").mkdir(parents=True)
    for part in [each for ending in ("*.py", "published/*.csv") for each in (TOY / "papers" / "toy").glob(ending)]:
        text = part.read_text().replace("papers.toy", f"papers.{key}").replace('"toy', f'"{key}')
        if part.name == file:
            assert before in text
            text = text.replace(before, after)
        (folder / part.relative_to(TOY / "papers" / "toy")).write_text(text)
    (place / "scale.yaml").write_text((TOY / "toy.yaml").read_text().replace("toy:", f"{key}:"))
    values = {"scale": str(place / "scale.yaml"), "papers_path": [str(folder.parent)], "papers": [key]}
    return build_plan(parse_config(values))


WRONG = {
    "a syntax error": ("paper.py", "def runs(", "def runs((", r"paper.py, line 29: SyntaxError: "),
    "a circular import": (
        "paper.py",
        "RUN = ",
        "from neuroute.pipeline.papers import *\nfrom .tables import table1\nRUN = ",
        r"tables.py, line \d+: ImportError: cannot import name 'RUN'",
    ),
    "an exception at import": (
        "paper.py",
        "RUN = ",
        "raise RuntimeError('two\\nlines')\nRUN = ",
        "RuntimeError: two l",
    ),
    "an exception in runs": (
        "paper.py",
        "    s, training =",
        "    [][0]\n    s, training =",
        r"paper.py, line 30: Index",
    ),
    "runs None": (
        "paper.py",
        "    return [\n        Run(",
        "    return None\n    [\n        Run(",
        r"line 29: runs are None",
    ),
    "labels of other samples": (
        "paper.py",
        "(s.nodes, training.samples",
        "(s.nodes, 2 * training.samples",
        r"paper.py, line \d+: toy\w+/decoder: labels for \d+ samples, \d+ are needed",
    ),
    "an exception in needs": ("figures.py", "[Log(RUN)]", "1 / 0", r"figures.py, line 18: ZeroDivisionError"),
    "needs None": ("figures.py", "[Log(RUN)]", "None", r"figures.py, line 17: needs of figure1 hold None; give"),
    "a paper that is a mapping": (
        "paper.py",
        "PAPER = ",
        "PAPER = {'key': 'toy'}\nOTHER = ",
        "holds no PAPER with the key",
    ),
    "a printed text": (
        "table1.csv",
        "params\n",
        "params\nPOMO,8,gap_pct,abc,x,\n",
        r"table1.csv, line 2: value: 'abc' is no number",
    ),
    "a printed row that is cut short": ("table1.csv", "params\n", "params\nPOMO,8\n", "line 2: 2 cells where 6 col"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_paper_is_one_line_with_file_and_line(what: str, tmp_path: Path) -> None:
    file, before, after, message = WRONG[what]
    with one_line(message):
        plan_with(tmp_path, file, before, after)


def test_the_paper_that_is_copied_is_right(tmp_path: Path) -> None:
    assert len(plan_with(tmp_path, "paper.py", "RUN", "RUN").runs) == 1


def test_faults_of_this_package_stay_tracebacks(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), code_in(PACKAGE):
        _ = 1 / 0
    with one_line(f"^{re.escape(str(tmp_path))}: ZeroDivisionError"), code_in(tmp_path):
        _ = 1 / 0
