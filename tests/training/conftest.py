"""The label store that the tiny runs of the TSP train from."""

from pathlib import Path

import pytest

from tiny import label_store, labels


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return label_store(tmp_path_factory.mktemp("labels"), labels("train", 120), labels("val", 16))
