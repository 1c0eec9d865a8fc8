"""The label store that the tiny runs of the TSP train from, and lengths among which rounding is no matter."""

from pathlib import Path

import pytest

from neuroute.training import reinforce
from neuroute.training.policy_gradient import weights
from tiny import label_store, labels


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return label_store(tmp_path_factory.mktemp("labels"), labels("train", 120), labels("val", 16))


@pytest.fixture
def rounded_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lengths have nine decimals: of one tour from two starts, rounding may not choose which is of the elite."""
    monkeypatch.setattr(reinforce, "weights", lambda lengths, elite: weights(lengths.round(decimals=9), elite))
