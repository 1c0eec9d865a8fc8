"""Fixtures for users' commands and functions."""

from pathlib import Path

import pytest

import neuroute
from neuroute.user.within_time import construct_within
from stand_ins import Ship, shipping


@pytest.fixture
def ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ship:
    return shipping(tmp_path, monkeypatch)


@pytest.fixture
def built() -> None:
    """Have constructions loaded and compiled, in the process that makes them, so that none is late."""
    for problem in ("tsp", "cvrp", "ovrptw"):
        construct_within(neuroute.generate(problem, 10)[0], limit=60.0, seconds=0.0, seed=0)
