from pathlib import Path

import pytest

from fabricated import fabricate, hopeless, noisy, realistic

pytest.register_assert_rewrite("rendered", "table_checks", "figure_checks")


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fabricate(tmp_path_factory.mktemp("realistic"), realistic)


@pytest.fixture(scope="session", params=[noisy, hopeless], ids=["noisy", "hopeless"])
def bad_work(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fabricate(tmp_path_factory.mktemp("bad"), request.param)
