"""The pooled spreads of trainings follow from every kept model that was trained several times."""

import csv
from collections.abc import Callable
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def spreads(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("docs/generate/spreads.py")


def test_spreads_are_those_of_all_kept_trainings(spreads: ModuleType) -> None:
    with spreads.SPREADS.open() as file:
        stated = list(csv.DictReader(file))
    assert stated == [{key: str(value) for key, value in row.items()} for row in spreads.pools()], (
        "run: python docs/generate/spreads.py"
    )


def test_a_model_counts_once(spreads: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    near, far, others = [10.0, 12.0], [20.0, 26.0], [5.0, 6.0, 7.0]
    models = [("A", "tsp", 1.0, "a", near), ("A", "tsp", 1.0, "a", near), ("A", "tsp", 0.5, "a", far)]
    monkeypatch.setattr(spreads, "models", lambda: iter([*models, ("A", "tsp", 1.0, "b", others)]))
    (pool,) = spreads.pools()
    assert pool["freedom"] == 1 + 2
    of_a = (spreads.log_variance(near) + spreads.log_variance(far)) / 2
    expected = ((of_a + 2 * spreads.log_variance(others)) / 3) ** 0.5
    assert float(pool["spread"]) == pytest.approx(expected, abs=1e-4)
