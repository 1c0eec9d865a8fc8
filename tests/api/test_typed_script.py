"""A user's script passes mypy --strict against the installed package, whose types find a wrong call."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("typed_script.py")
WRONG = """

neuroute.train(MyNet, n="20")
neuroute.solve("berlin52.tsp").cost + "1"
neuroute.sweep(MyNet, [1e-3])
"""


@pytest.mark.slow
def test_mypy_takes_the_script_and_finds_wrong_calls(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(SCRIPT.read_text() + WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), script.name]
    environment = {key: value for key, value in os.environ.items() if key not in ("MYPYPATH", "PYTHONPATH")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    lines = script.read_text().splitlines()
    found = [
        (lines[int(line) - 1], code) for line, code in re.findall(r"study\.py:(\d+): error: .*\[(.*)\]", done.stdout)
    ]
    wrong = WRONG.split("\n")[2:-1]
    assert found == list(zip(wrong, ("arg-type", "operator", "arg-type"), strict=True)), done.stdout + done.stderr
