"""Tests here train the tiny runs of tests/training, and decide with the networks of tests/networks."""

import sys
from pathlib import Path

for room in ("training", "networks"):
    sys.path.append(str(Path(__file__).resolve().parents[1] / room))

from stores import cvrp_store, rounds_store, store, stores, vrp_store  # noqa: E402

__all__ = ["cvrp_store", "rounds_store", "store", "stores", "vrp_store"]
