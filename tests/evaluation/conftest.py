"""Evaluations in one thread."""

import pytest


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """All networks here are too small for threads to help."""
