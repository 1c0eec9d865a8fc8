"""Pages that are made from the code and from what was kept are those of today, and agree with each other."""

import csv
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from pages import ROOT

Generator = Callable[[str], ModuleType]
PAGE, README = ROOT / "docs" / "results" / "what_reproduces.md", ROOT / "README.md"
FINDING = re.compile(r"^\d+\. (.*)$", re.MULTILINE)
VERDICT = re.compile(r"`(\w+\.[\w.-]+)`: ([a-z ]+)")


@pytest.fixture(scope="module")
def generator(script: Generator) -> Generator:
    """Modules of docs/generate by name; these need nothing that builds sites."""
    return cache(lambda name: script(f"docs/generate/{name}.py"))


@pytest.fixture(scope="module")
def verdicts(generator: Generator) -> dict[str, str]:
    """Of all claims, by the kept tables."""
    claims = generator("claims")
    return {row["id"]: row["verdict"] for row in claims.rows_of(claims.judge_kept(claims.SCALE))}


def test_pages_that_follow_from_the_code_are_those_of_today(generator: Generator) -> None:
    pages = generator("pages")
    old = [name for name in pages.PAGES if (pages.DOCS / name).read_text() != pages.text_of(name)]
    assert old == [], "run: python docs/generate/pages.py"


@pytest.mark.parametrize("name", ["edge_maps", "seeds", "speed", pytest.param("claims", marks=pytest.mark.slow)])
def test_made_parts_of_pages_are_those_of_what_was_kept(name: str, generator: Generator) -> None:
    made = generator(name)
    for page in made.PAGES:
        text = page.read_text()
        assert made.MADE.search(text)
        assert text == made.filled(text), f"run: python docs/generate/{name}.py"


def test_kept_artifacts_stand_with_what_made_them(generator: Generator) -> None:
    kept = generator("kept")
    text = kept.artifacts("scaling")
    with (kept.DOCS / "measured" / "laptop" / "table12.csv").open() as file:
        row = next(csv.DictReader(file))
    assert "![Figure 1, measured](../measured/laptop/figure1.png)" in text
    assert "    | Greedy, depth=6, width=128 | D=1, W=16 | 6.74 (0.464) |" in text
    made = ", ".join(row[name] for name in ("scale", "device", "commit", "date"))
    assert f"[table12.csv](../measured/laptop/table12.csv): {made}" in text


def test_the_picture_of_the_first_page_is_of_the_kept_tables(generator: Generator) -> None:
    headline = generator("headline")
    assert headline.made_from().encode() in headline.PICTURE.read_bytes(), "run: python docs/generate/headline.py"


def test_a_notebook_becomes_a_page(generator: Generator, tmp_path: Path) -> None:
    printed = {"output_type": "stream", "name": "stdout", "text": ["3\n"]}
    drawn = {"output_type": "execute_result", "data": {"image/png": "iVBO\n", "text/plain": ["a drawing"]}}
    code = {"cell_type": "code", "source": ["x = 3\n", "print(x)"], "outputs": [printed, drawn]}
    cells = [{"cell_type": "markdown", "source": ["# Title\n", "Words."]}, code]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    text = generator("notebook").page(tmp_path / "a.ipynb")
    assert text.startswith("# Title\nWords.\n")
    assert text.endswith("```python\nx = 3\nprint(x)\n```\n\n```text\n3\n```\n\n![](data:image/png;base64,iVBO)\n")


def test_spreads_are_those_of_all_kept_trainings(generator: Generator) -> None:
    spreads = generator("spreads")
    with spreads.SPREADS.open() as file:
        stated = list(csv.DictReader(file))
    assert stated == [{key: str(value) for key, value in row.items()} for row in spreads.pools()], (
        "run: python docs/generate/spreads.py"
    )


def test_a_model_counts_once_in_a_pooled_spread(generator: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    spreads = generator("spreads")
    near, far, others = [10.0, 12.0], [20.0, 26.0], [5.0, 6.0, 7.0]
    models = [("A", "tsp", 1.0, "a", near), ("A", "tsp", 1.0, "a", near), ("A", "tsp", 0.5, "a", far)]
    monkeypatch.setattr(spreads, "models", lambda: iter([*models, ("A", "tsp", 1.0, "b", others)]))
    (pool,) = spreads.pools()
    assert pool["freedom"] == 1 + 2
    of_a = (spreads.log_variance(near) + spreads.log_variance(far)) / 2
    expected = ((of_a + 2 * spreads.log_variance(others)) / 3) ** 0.5
    assert float(pool["spread"]) == pytest.approx(expected, abs=1e-4)


# -- the page on what reproduces, README and the kept tables agree ----------------------------------------------------


def one_line_each(page: Path) -> str:
    """A page with each item of a list on one line."""
    return re.sub(r"\n {2,3}(?=\S)", " ", page.read_text())


def test_each_finding_is_tied_to_claims_by_their_verdict(verdicts: dict[str, str]) -> None:
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


def test_former_verdicts_are_of_claims(verdicts: dict[str, str], generator: Generator) -> None:
    with generator("claims").FORMER.open() as file:
        former = {row["id"]: row["verdict"] for row in csv.DictReader(file)}
    assert sorted(former) == sorted(verdicts)
    counts = {verdict: [*former.values()].count(verdict) for verdict in set(former.values())}
    assert counts == {"supported": 33, "contradicted": 13, "inconclusive": 79, "not measured": 87}
