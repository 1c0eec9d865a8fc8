"""The page of six changes: its diffs apply to this version."""

import subprocess

import pytest

from pages import ROOT, blocks


@pytest.mark.parametrize("number", range(5))
def test_its_diff_applies(number: int) -> None:
    diff = blocks(ROOT / "docs" / "concepts" / "six_changes.md", "diff")[number]
    command = ["git", "apply", "--check", "-"]
    done = subprocess.run(command, input=diff, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
