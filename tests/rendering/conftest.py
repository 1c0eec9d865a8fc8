from pathlib import Path

import pytest

from fabricated_scaling import FABRIC, hopeless, noisy

pytest.register_assert_rewrite("rendered", "table_checks", "figure_checks")


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FABRIC.write(tmp_path_factory.mktemp("realistic"))


@pytest.fixture(scope="session", params=[noisy, hopeless], ids=["noisy", "hopeless"])
def bad_work(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return FABRIC.by(request.param).write(tmp_path_factory.mktemp("bad"))
