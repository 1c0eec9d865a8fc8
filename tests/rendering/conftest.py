from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from fabricated import Fabric
from fabricated_scaling import FABRIC, hopeless, noisy

pytest.register_assert_rewrite("rendered", "table_checks", "figure_checks")

Write = Callable[[Fabric], Path]


@pytest.fixture(scope="session")
def records_of(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """The folder of a paper's fabricated records, written once; whoever changes one copies it."""

    @cache
    def write(paper: str, fabric: int) -> Path:
        return fabrics[fabric].write(tmp_path_factory.mktemp(paper))

    fabrics: dict[int, Fabric] = {}

    def of(fabric: Fabric) -> Path:
        fabrics[id(fabric)] = fabric
        return write(fabric.paper.key, id(fabric))

    return of


@pytest.fixture(scope="session")
def work(records_of: Write) -> Path:
    return records_of(FABRIC)


@pytest.fixture(scope="session", params=[noisy, hopeless], ids=["noisy", "hopeless"])
def bad_work(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FABRIC.by(request.param).write(tmp_path_factory.mktemp("bad"))
