"""Fixtures for users' commands and functions."""

from pathlib import Path

import pytest

import neuroute
from neuroute.core import limited
from stand_ins import Ship, shipping


@pytest.fixture
def ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ship:
    return shipping(tmp_path, monkeypatch)


@pytest.fixture
def built() -> None:
    """Have constructions loaded and compiled, in the process that makes them, so that none is late."""
    for problem in ("tsp", "cvrp", "ovrptw"):
        with limited.borrow() as process:
            process.call("neuroute.api.within_time:start_of_search", 120.0, neuroute.generate(problem, 10)[0])


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """All networks here are too small for threads to help."""
