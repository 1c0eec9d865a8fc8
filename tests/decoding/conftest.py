"""One problem after the other, with networks of many starts; and what tests of re-construction share."""

import pytest

from many_starts import NETWORKS, Case, case_of
from neuroute.decoding import cvrp_search
from neuroute.problems.cvrp_sub_paths import path_lengths


@pytest.fixture(params=[*NETWORKS, "CVRP", "OVRPBLTW"])
def case(request: pytest.FixtureRequest) -> Case:
    return case_of(request.param)


@pytest.fixture(params=NETWORKS)
def planar(request: pytest.FixtureRequest) -> Case:
    """Of the TSP or the CVRP, all in double precision."""
    return case_of(request.param)


@pytest.fixture
def rounded_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PRC compare lengths of nine decimals.

    A route that is read backwards is as long as before; whether a sum is then smaller by its last bit depends on the
    order of its terms, and so on the columns that pad a piece and on the CPU.
    """
    monkeypatch.setattr(cvrp_search, "path_lengths", lambda *path: path_lengths(*path).round(decimals=9))


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """All networks here are too small for threads to help."""
