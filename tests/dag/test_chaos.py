"""A slice of the campaign against interruptions; docs/reliability.md has all of it."""

import os
import re
import subprocess
import sys

import pytest

from checkout import ROOT

pytestmark = [
    pytest.mark.dag,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="copies of a process, and prctl"),
]


def test_jobs_under_random_kills_end_with_the_same_bytes() -> None:
    command = [sys.executable, str(ROOT / "bench" / "chaos.py"), "--kills", "label=2,evaluate=1"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\b(\d+ of \d+) \|", done.stdout) == ["2 of 2", "1 of 1"]
