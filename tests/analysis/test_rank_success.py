"""Success by neighbour rank and its interval."""

import numpy as np
import pytest

from neuroute.papers.scaling.figures_probes import success


def test_greater_ranks_are_pooled() -> None:
    found = success([9, 4, 1, 1, 0], [10, 5, 2, 2, 1], last=3)
    assert found.labels == ["1", "2", "3", ">3"]
    np.testing.assert_array_equal(found.hits, [9, 4, 1, 1])
    np.testing.assert_array_equal(found.decisions, [10, 5, 2, 3])
    np.testing.assert_allclose(found.percent, [90, 80, 50, 100 / 3])
    assert found.share_pct.sum() == pytest.approx(100)
    assert ((found.low < found.percent) & (found.percent < found.high)).all()


def test_ranks_that_never_occur_have_no_success() -> None:
    found = success([3], [4])
    assert len(found.labels) == 9
    assert found.percent[0] == 75
    assert np.isnan(found.percent[1:]).all()
    assert np.isnan(found.low[1:]).all()
    assert not found.share_pct[1:].any()


def test_no_decisions_at_all() -> None:
    assert np.isnan(success([], []).share_pct).all()
