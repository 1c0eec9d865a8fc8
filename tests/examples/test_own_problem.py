"""The problem of docs/how-to/own_problem.md: its tours keep to the order, and training brings them near the best."""

import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import torch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "own_problem.md"
PAIRS = 4
NODES = 1 + 2 * PAIRS


@pytest.mark.usefixtures("one_thread")
def test_the_page_trains_and_solves_pickups_and_deliveries() -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    names: dict[str, Any] = {"__name__": "own_problem"}
    torch.manual_seed(0)
    exec(compile(code, str(PAGE), "exec"), names)
    ordered = {
        (0, *stops)
        for stops in permutations(range(1, NODES))
        if all(stops.index(i) < stops.index(i + PAIRS) for i in range(1, 1 + PAIRS))
    }
    assert {tuple(tour) for tour in names["tours"].tolist()} <= ordered
    instances = torch.rand(50, NODES, 2, dtype=torch.float64)

    def lengths(tours: torch.Tensor) -> torch.Tensor:
        """(50, count, nodes) -> (50, count)."""
        stops = instances[torch.arange(50)[:, None, None], tours]
        return (stops - stops.roll(1, dims=2)).norm(dim=-1).sum(dim=-1)

    def solved(net: Any) -> float:
        tours = names["multi_start"](names["PairEnvironment"](), net.eval(), instances.float())
        return float(lengths(tours[:, None]).mean())

    best = float(lengths(torch.tensor(sorted(ordered)).expand(50, -1, -1)).min(dim=1).values.mean())
    untrained = names["PairPomo"](depth=2, width=32, heads=4, feed_forward=64, train_nodes=NODES)
    assert best <= solved(names["net"]) < 1.2 * best < solved(untrained)
