"""The page of six changes: its diffs apply to this version."""

import subprocess

from pages import ROOT, blocks


def test_its_diffs_apply() -> None:
    diffs = blocks(ROOT / "docs" / "concepts" / "six_changes.md", "diff")
    assert len(diffs) == 5  # a problem has a page of its own
    for diff in diffs:
        done = subprocess.run(["git", "apply", "--check", "-"], input=diff, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
