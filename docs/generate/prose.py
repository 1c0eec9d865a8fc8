"""How hand-written pages read: words, sentences that are too long, words that readers do not know.

`python docs/generate/prose.py` prints a line for each page, and each long sentence.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
LOGS = ("docs/measured/log.md", "docs/measured/before.md", "CHANGELOG.md")  # what was, as it was written down
LONGEST, MEDIAN = 30, 16  # words of a sentence, and of the middle one
MOST = 8_400  # words of the sentences of all pages
WIDEST = 160  # characters of a line
UNKNOWN = {
    r"in the box": "pretrained networks",
    r"rivals?": "other systems, or baselines",
    r"beside other work": "on a busy machine",
    r"no images": "no rotations or reflections",
    r"of one'?s own": "your own",
}


def pages() -> list[Path]:
    """Every page that a person wrote: Markdown of the root and of docs, and the text of notebooks."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    logs = {ROOT / log for log in LOGS}
    return sorted(page for page in found if page not in logs)


def written(page: Path) -> str:
    """The text of a page without what was generated into it, code, and drawings."""
    text = page.read_text()
    if page.suffix == ".ipynb":
        cells = (cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    text = re.sub(r"<!-- (?:made|drawn) by .*?<!-- end.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return re.sub(r"<!--.*?-->|^ {4}.*$|^---\n.*?^---$", "", text, flags=re.DOTALL if text.startswith("---") else re.M)


def count(text: str) -> int:
    """Words of a text, tables included."""
    return len(re.findall(r"[^\W_][^\s|]*", readable(text)))


def sentences(text: str) -> Iterator[str]:
    """The sentences of paragraphs and lists; of tables, headings and pictures none."""
    for part in re.split(r"\n\s*\n|\n(?=\s*(?:[*+-]|\d+\.) )|\n(?=[#|!])", text):
        if not re.match(r"\s*[#|!<]", part):
            for sentence in re.split(r"(?<=[.!?])[)*\"]*\s+(?=[\"(*]*[\w`])", " ".join(readable(part).split())):
                if count(sentence) > 2:
                    yield re.sub(r"^(?:[*+-]|\d+\.) ", "", sentence)


def readable(text: str) -> str:
    """Links by their text, code as one word."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]+`", "code", text)


def name_of(page: Path) -> str:
    """The path of a page in the repository."""
    return str(page.relative_to(ROOT))


def main() -> None:
    """Print the measures of all pages."""
    lengths, total = list[int](), 0
    for page in pages():
        text = written(page)
        found = list(sentences(text))
        here, words = list(map(count, found)), count(text)
        lengths, total = lengths + here, total + words
        print(f"{sum(here):6} words in sentences, {words:6} with tables: {name_of(page)}")
        for sentence in found:
            if count(sentence) > LONGEST:
                print(f"         {count(sentence)}: {sentence}")
    print(f"{sum(lengths):6,} words in {len(lengths)} sentences of {median(lengths):g} (median), {total:,} with tables")


if __name__ == "__main__":
    main()
