"""Write the pages that follow from the code and the kept results into docs: `python docs/generate/pages.py`."""

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import cards
import coverage_page
import protocols
import python_reference
import reference

DOCS = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- made by docs/generate/pages.py -->\n\n", "\n<!-- end -->\n"
PAGES: dict[str, Callable[[], str]] = {
    "reference/cli.md": reference.cli,
    "reference/config.md": reference.config,
    "reference/scales.md": reference.scales,
    "reference/records.md": reference.record_columns,
    "reference/python.md": python_reference.page,
    "models.md": cards.page,
    "results/coverage.md": coverage_page.page,
    "results/protocols.md": protocols.page,
}


def text_of(name: str) -> str:
    """The whole text of a page as the code has it now."""
    return BEGIN + PAGES[name]().rstrip("\n") + "\n" + END


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        (DOCS / name).write_text(text_of(name))
