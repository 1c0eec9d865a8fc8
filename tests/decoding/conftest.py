"""What tests of re-construction share."""

import pytest

from neuroute.decoding import prc_cvrp
from neuroute.problems.cvrp_sub_paths import path_lengths


@pytest.fixture
def rounded_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PRC compare lengths of nine decimals.

    A route that is read backwards is as long as before; whether a sum is then smaller by its last bit depends on the
    order of its terms, and so on the columns that pad a piece and on the CPU.
    """
    monkeypatch.setattr(prc_cvrp, "path_lengths", lambda *path: path_lengths(*path).round(decimals=9))
