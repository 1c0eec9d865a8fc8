"""The label store that the tiny run trains from."""

from pathlib import Path

import pytest

from neuroute.datasets.labels import make_labels

from tiny import labels


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    for split, count in (("train", 120), ("val", 16)):
        make_labels(labels(split, count), folder, [], workers=1, progress=False)
    return folder
