"""The labels that tiny runs train from and are validated on, and lengths among which rounding is no matter."""

import pytest

import tiny_rounds
from neuroute.training import reinforce
from neuroute.training.policy_gradient import weights
from stores import cvrp_store, rounds_store, store, stores, vrp_store

__all__ = ["cvrp_store", "rounds_store", "store", "stores", "vrp_store"]


@pytest.fixture(params=tiny_rounds.PROBLEMS)
def problem(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def rounded_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lengths have nine decimals: of one tour from two starts, rounding may not choose which is of the elite."""
    monkeypatch.setattr(
        reinforce, "weights", lambda lengths, elite, **more: weights(lengths.round(decimals=9), elite, **more)
    )
