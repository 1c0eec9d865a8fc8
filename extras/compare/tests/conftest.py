import pytest


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons of which records and rows alone are looked at draw none."""
    monkeypatch.setattr("neuroute_compare.compare.FIGURES", {})
