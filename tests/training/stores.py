"""The labels that tiny runs train from and are validated on, made once a session."""

from pathlib import Path

import pytest

import tiny_rounds
from tiny import cvrp_labels, label_store, labels
from tiny_reinforced_vrp import validation

__all__ = ["cvrp_store", "rounds_store", "store", "stores", "vrp_store"]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the TSP."""
    return label_store(tmp_path_factory.mktemp("labels"), labels("train", 120), labels("val", 16))


@pytest.fixture(scope="session")
def cvrp_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hygese")
    return label_store(tmp_path_factory.mktemp("labels"), cvrp_labels("train", 96), cvrp_labels("val", 16))


@pytest.fixture(scope="session")
def vrp_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return label_store(tmp_path_factory.mktemp("labels"), validation("CVRP"))


@pytest.fixture(scope="session")
def rounds_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of self-improved training, for the TSP and the CVRP."""
    return label_store(tmp_path_factory.mktemp("labels"), *tiny_rounds.label_sets())


@pytest.fixture(scope="session")
def stores(store: Path, cvrp_store: Path, rounds_store: Path, vrp_store: Path) -> list[Path]:
    """All of them."""
    return [store, cvrp_store, rounds_store, vrp_store]
