"""Copies of the project, and what is compared of them, are those of other tests; a SLURM serves all."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "dag"))

from cluster import one_node


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables with which commands find it."""
    with one_node(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture
def on_slurm(slurm: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The same, set for all that the test starts."""
    for key, value in slurm.items():
        monkeypatch.setenv(key, value)
    return slurm
