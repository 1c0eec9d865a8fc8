"""Pages that speak of a step of `scaling` quote the paper's definition, and name the default that departs from it."""

from pathlib import Path

import pytest

from neuroute.plan.trainings import Supervised

ROOT = Path(__file__).parents[2]
QUOTE = '(defining each batch update as a single step)"'


@pytest.mark.parametrize("page", ["choices.md", "results/scaling.md"])
def test_pages_quote_what_a_step_is_and_name_the_default(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    assert QUOTE in text
    assert f"`{Supervised.model_fields['step'].default}`, the default" in text


def test_the_table_of_settings_quotes_it_too() -> None:
    note = ROOT / "src" / "neuroute" / "papers" / "scaling" / "published" / "table9.md"
    assert QUOTE.strip('()"') in note.read_text()
