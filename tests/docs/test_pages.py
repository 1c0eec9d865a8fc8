"""Hand-written pages are short, in short sentences and words that readers know; links lead somewhere, diffs apply."""

import re
import runpy
import subprocess
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import pytest

from pages import ALL, ROOT, blocks, name_of

# By its file: its folder on the path would hide modules of the same names from others.
prose = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "generate" / "prose.py")))
PAGES = prose.pages()
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")


@pytest.mark.parametrize("page", PAGES, ids=prose.name_of)
def test_sentences_lines_and_words_are_easy(page: Path) -> None:
    text = prose.written(page)
    long = [sentence for sentence in prose.sentences(text) if prose.count(sentence) > prose.LONGEST]
    assert not long, f"more than {prose.LONGEST} words"
    wide = [line for line in text.splitlines() if len(line) > prose.WIDEST and not line.lstrip().startswith(("|", "!"))]
    assert page.suffix == ".ipynb" or not wide, f"more than {prose.WIDEST} characters"
    for pattern, better in prose.UNKNOWN.items():
        found = re.search(rf"\b(?:{pattern})\b", prose.readable(text))
        assert not found, f"'{found and found[0]}': say {better}"


def test_all_pages_together_are_short() -> None:
    texts = [prose.written(page) for page in PAGES]
    lengths = [prose.count(sentence) for text in texts for sentence in prose.sentences(text)]
    assert sum(lengths) <= prose.MOST
    assert median(lengths) <= prose.MEDIAN


def test_generated_parts_and_code_do_not_count(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Heading\n\nTwo words here. And [three](x.md) `a b` more:\n\n| a | table |\n\n```bash\nls one two\n```\n"
        "<!-- made by x.py -->\nMany words that nobody wrote by hand.\n<!-- end -->\n\n* An item of\n  five words.\n"
    )
    assert [prose.count(sentence) for sentence in prose.sentences(prose.written(page))] == [3, 4, 5]


def anchors(page: Path) -> set[str]:
    """Headings as a code host makes anchors of them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", ALL, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    for target, anchor in LINK.findall(text):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        assert not anchor or file.suffix != ".md" or anchor in anchors(file), f"{target}#{anchor}"


def test_the_diffs_of_six_changes_apply() -> None:
    diffs = blocks(ROOT / "docs" / "concepts" / "six_changes.md", "diff")
    assert len(diffs) == 5  # a problem has a page of its own
    for diff in diffs:
        done = subprocess.run(["git", "apply", "--check", "-"], input=diff, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
