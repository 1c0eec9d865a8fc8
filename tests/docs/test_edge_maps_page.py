"""The page of maps of edges follows from the records that are kept."""

from collections.abc import Callable
from types import ModuleType


def test_the_page_is_that_of_the_kept_records(script: Callable[[str], ModuleType]) -> None:
    page = script("docs/generate/edge_maps.py")
    text = page.PAGE.read_text()
    assert text == page.filled(text), "run: python docs/generate/edge_maps.py"
    assert "| softdist |" in text
