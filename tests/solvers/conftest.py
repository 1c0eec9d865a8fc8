"""A stand-in for the binary of LKH."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Reads what LKH is asked: its parameters, and the problem's text.  The body sets `tour`, which it writes.
HEAD = """#!{python}
import os, re, shutil, sys
parameters = dict(line.strip().split(" = ") for line in open(sys.argv[1]) if "=" in line)
text = open(parameters["PROBLEM_FILE"]).read()
"""
FOOT = """
tour = list(tour)
text = "NAME : t\\nTYPE : TOUR\\nDIMENSION : " + str(len(tour)) + "\\nTOUR_SECTION\\n"
open(parameters["TOUR_FILE"], "w").write(text + "\\n".join(map(str, tour)) + "\\n-1\\nEOF\\n")
"""


@pytest.fixture
def lkh_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a program of this body on the path, under the name that LKH has."""

    def install(body: str) -> None:
        binary = tmp_path / "LKH"
        binary.write_text(HEAD.format(python=sys.executable) + body + FOOT)
        binary.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    return install
