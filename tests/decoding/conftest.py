"""One problem after the other, with networks of many starts."""

import pytest

from many_starts import NETWORKS, Case, case_of


@pytest.fixture(params=[*NETWORKS, "CVRP", "OVRPBLTW"])
def case(request: pytest.FixtureRequest) -> Case:
    return case_of(request.param)


@pytest.fixture(params=NETWORKS)
def planar(request: pytest.FixtureRequest) -> Case:
    """Of the TSP or the CVRP, all in double precision."""
    return case_of(request.param)
