"""Fixtures for users' commands and functions."""

from pathlib import Path

import pytest

from stand_ins import Ship, shipping


@pytest.fixture
def ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ship:
    return shipping(tmp_path, monkeypatch)
