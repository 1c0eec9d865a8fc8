"""Pages that speak of a step of `scaling` quote the paper's definition, and name the default that departs from it."""

from pathlib import Path

import pytest

from neuroute.plan.trainings import Supervised

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["choices.md", "results/scaling.md"])
def test_pages_quote_what_a_step_is_and_name_the_default(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    assert '(defining each batch update as a single step)"' in text
    assert f"`{Supervised.model_fields['step'].default}`, the default" in text
