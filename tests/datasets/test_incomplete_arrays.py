"""Files of arrays that lack something: what is missing is said, and nothing is taken for another problem."""

from pathlib import Path

import numpy as np
import pytest

from neuroute.core.errors import NeurouteError
from neuroute.user.data import read_instances

COORDS = np.random.default_rng(3).random((2, 7, 2))


def test_a_capacity_without_demands_is_no_tsp(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", coords=COORDS, capacity=np.full(2, 20))
    with pytest.raises(NeurouteError, match="mine.npz: no 'demand' in whole numbers, which instances with vehicles"):
        read_instances(tmp_path / "mine.npz")


def test_no_instances_are_not_a_wrong_shape(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", coords=COORDS[:0])
    with pytest.raises(NeurouteError, match=r"mine.npz: no instances in it: 'coords' has shape \(0, 7, 2\)"):
        read_instances(tmp_path / "mine.npz")
