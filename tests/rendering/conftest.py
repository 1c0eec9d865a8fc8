"""Records that the tests of rendering share, and figures without what they do not look at."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pictures import no_pictures

from fabricated_scaling import FABRIC, hopeless, noisy

Write = Callable[[Any], Path]


@pytest.fixture(autouse=True, scope="module")
def without_pictures() -> Iterator[None]:
    """Pictures are written by papers/test_drawn_networks.py, of two figures."""
    with no_pictures():
        yield


@pytest.fixture(scope="session")
def records_of(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """The folder that a fabric, or a function, writes; once a session: whoever changes it copies it."""
    folders: dict[int, Path] = {}

    def of(source: Any) -> Path:
        if id(source) not in folders:
            folders[id(source)] = tmp_path_factory.mktemp("records")
            getattr(source, "write", source)(folders[id(source)])
        return folders[id(source)]

    return of


@pytest.fixture(scope="module")
def work(request: pytest.FixtureRequest, records_of: Write) -> Path:
    """What the module's RECORDS write; where it says nothing, those of `scaling`."""
    return records_of(getattr(request.module, "RECORDS", FABRIC))


@pytest.fixture
def copy(work: Path, tmp_path: Path) -> Path:
    """The module's records, to be changed."""
    return shutil.copytree(work, tmp_path / "copy")


@pytest.fixture(scope="session", params=[noisy, hopeless], ids=["noisy", "hopeless"])
def bad_work(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FABRIC.by(request.param).write(tmp_path_factory.mktemp("bad"))
