"""The page on what reproduces, README and the kept tables agree: verdicts, tallies and the words of findings."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from neuroute.pipeline.rendering.kept import BEHIND

ROOT = Path(__file__).parents[2]
PAGE, README = ROOT / "docs" / "results" / "what_reproduces.md", ROOT / "README.md"
FINDING = re.compile(r"^\d+\. (.*)$", re.MULTILINE)
VERDICT = re.compile(r"`(\w+\.[\w.-]+)`: ([a-z ]+)")


@pytest.fixture(scope="module")
def claims(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("docs/generate/claims.py")


@pytest.mark.slow
def test_a_changed_number_changes_the_page(claims: ModuleType, tmp_path: Path) -> None:
    folder = shutil.copytree(claims.SCALE, tmp_path / "laptop", ignore=shutil.ignore_patterns("*.png"))
    for name, labels, column in (
        ("table8", "setting", "gap_tsp1000_pct_measured"),
        (BEHIND.removesuffix(".csv"), "row", "gaps"),
    ):
        rows = pd.read_csv(folder / f"{name}.csv", dtype=str, keep_default_na=False)
        with_log = rows[labels].str.startswith("w/ log(n)")
        if labels == "row":
            with_log &= (rows.artifact == "table8") & (rows.column == "gap_tsp1000_pct")
        longer = rows.loc[with_log, column].map(lambda gaps: " ".join(str(9 * float(gap)) for gap in gaps.split()))
        rows.loc[with_log, column] = longer
        rows.to_csv(folder / f"{name}.csv", index=False)
    before, after = PAGE.read_text(), claims.filled(PAGE.read_text(), folder)
    changed = [line for line in after.splitlines() if line not in before.splitlines()]
    assert any("`scaling.log-n-tsp1000`" in line and "| contradicted |" in line for line in changed)
    assert any(line.startswith("212 claims at scale laptop: ") for line in changed)


def one_line_each(page: Path) -> str:
    """A page with each item of a list on one line."""
    return re.sub(r"\n {2,3}(?=\S)", " ", page.read_text())


def test_each_finding_is_tied_to_claims_by_their_verdict(claims: ModuleType) -> None:
    verdicts = {row["id"]: row["verdict"] for row in claims.rows_of(claims.judge_kept(claims.SCALE))}
    findings = FINDING.findall(one_line_each(PAGE))
    assert len(findings) == 10
    for finding in findings:
        words = VERDICT.findall(finding)
        assert words, finding
        assert [(name, verdicts[name]) for name, _ in words] == words


def test_the_findings_of_readme_are_those_of_the_page() -> None:
    of_readme = re.findall(r"^\* (.*`: .*)$", one_line_each(README), re.MULTILINE)
    assert of_readme
    assert {verdict for _, verdict in VERDICT.findall(" ".join(of_readme))} <= {"supported", "contradicted"}
    assert set(of_readme) <= set(FINDING.findall(one_line_each(PAGE)))


def test_former_verdicts_are_of_claims(claims: ModuleType) -> None:
    ids = [row["id"] for row in claims.rows_of(claims.judge_kept(claims.SCALE))]
    with claims.FORMER.open() as file:
        former = {row["id"]: row["verdict"] for row in claims.csv.DictReader(file)}
    assert sorted(former) == sorted(ids)
    counts = {verdict: [*former.values()].count(verdict) for verdict in set(former.values())}
    assert counts == {"supported": 33, "contradicted": 13, "inconclusive": 79, "not measured": 87}
