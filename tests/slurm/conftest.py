"""Copies of the project, and what is compared of them, are those of other tests; a SLURM serves all."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / folder) for folder in ("tests/dag", "bench")]

from cluster import one_node  # noqa: E402


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables with which commands find it."""
    with one_node(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment
