"""Scales of paper icam whose numbers cannot be: said in one line, before anything is planned."""

from pathlib import Path
from typing import Any

import pytest

from own_scale import refused, smoke_with


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("cvrp", "tam_capacities", "1000"), 8, "icam.cvrp: tam_capacities .*demands are up to 9"),
        (("cvrp", "tam_capacities", "5000"), -35, "icam.cvrp: tam_capacities .*demands are up to 9"),
        (("cvrp", "benchmark_nodes"), [121, 101], "icam.cvrp: benchmark_nodes: from 121 to less than 101 nodes"),
        (("cvrp", "benchmark_nodes"), [101, 101], "icam.cvrp: benchmark_nodes: from 101 to less than 101 nodes"),
    ],
)
def test_they_are_refused(path: tuple[str, ...], value: Any, words: str, tmp_path: Path) -> None:
    refused(tmp_path, smoke_with("icam", path, value), words)
