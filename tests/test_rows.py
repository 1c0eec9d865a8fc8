"""Every row of `bench/rows.py`, in small: solutions and gradients are those of the plain ways to compute them."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import rows
import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_pre_hook

from neuroute.datasets.streams import cvrp_dataset
from neuroute.decoding import greedy, tsp
from neuroute.networks.base import MultiStartNetwork
from neuroute.networks.blocks import linear_cross_attention
from neuroute.networks.bq import Bq
from neuroute.networks.icam import Icam, IcamCvrp
from neuroute.networks.kernels import library
from neuroute.networks.lehd import Lehd
from neuroute.networks.mvmoe import MvMoe
from neuroute.networks.pomo import Pomo
from neuroute.networks.sit import Sit
from neuroute.specs.objects import Dataset
from neuroute.training import reinforce

pytestmark = pytest.mark.usefixtures("one_thread")
SHAPE: dict[str, Any] = {"depth": 2, "width": 32, "heads": 4, "feed_forward": 32}
LEHD, BQ, POMO, SIT = (partial(kind, **SHAPE) for kind in (Lehd, Bq, Pomo, Sit))
ICAM, ICAM_CVRP = (partial(kind, depth=2, width=32, feed_forward=32) for kind in (Icam, IcamCvrp))
MIXTURES = {
    "POMO-MTL": partial(MvMoe, **SHAPE, experts=0),
    "4E": partial(MvMoe, **SHAPE),
    "4E-L": partial(MvMoe, **SHAPE, hierarchy="step"),
}


TSP, CVRP = partial(torch.rand, 6, 14, 2), partial(cvrp_dataset, Dataset(problem="cvrp", n=12, count=6))
# The beginning of rows' names -> such a row in small.
SOLVING = {
    "greedy LEHD": rows.greedy(LEHD, 20, 6),
    "greedy BQ": rows.greedy(BQ, 20, 6),
    "decisions of SIT": rows.first_decisions(80, 4, SIT),
    "PRC of SIT TSP1000, blocks of 10": rows.blocks(10, 2, SIT, 60),
    "PRC of SIT TSP1000, blocks of 50": rows.blocks(20, 2, SIT, 60),
    "PRC of SIT TSP1000, blocks of 200": rows.blocks(60, 1, SIT, 60),
    "starts ICAM TSP": rows.decoded(ICAM, "tsp", 14, TSP, rows.ALL),
    "starts ICAM CVRP": rows.decoded(ICAM_CVRP, "cvrp", 12, CVRP, rows.ALL),
    "starts POMO TSP": rows.decoded(POMO, "tsp", 14, TSP, rows.ALL),
    **{
        f"starts {name} {variant}": rows.decoded(net, "vrp", 10, rows.variants_of(variant, 10), rows.ALL)
        for name, net in MIXTURES.items()
        for variant in ("CVRP", "OVRPBLTW")
    },
}
TRAINING = {
    "training LEHD": rows.trained_on_labels(LEHD, 6, 20),
    "training ICAM": rows.reinforced(ICAM, "icam:Icam", "tsp", 10, 6),
    "training POMO TSP": rows.reinforced(POMO, "pomo:Pomo", "tsp", 10, 6),
    **{f"training {name} CVRP": rows.reinforced(net, "mvmoe:MvMoe", "vrp", 10, 6) for name, net in MIXTURES.items()},
}


def plain_paths(decide: Any, rows: Tensor, pairs: None = None, arrive: None = None, *, checks: bool = False) -> Tensor:
    """`complete_paths` with what is left gathered anew for each decision, path by path."""
    orders = []
    for path in rows:
        order, left = [0], list(range(1, len(path) - 1))
        while left:
            seen = path[[order[-1], *left, len(path) - 1]][None]
            order.append(left.pop(int(decide(seen).argmax()) if len(left) > 1 else 0))
        orders.append([*order, len(path) - 1])
    return torch.tensor(orders)


@pytest.fixture
def plainly(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Turns off whatever is fused, folded, compiled or done in place; learning takes two passes."""

    def turn_off() -> None:
        monkeypatch.setattr(library, "library", lambda: None)
        monkeypatch.setattr(linear_cross_attention, "folds", lambda *given: False)
        for module in (greedy, tsp):
            monkeypatch.setattr(module, "complete_paths", plain_paths)
        monkeypatch.setattr(reinforce.Reinforcement, "_in_one_pass", lambda *given: False)
        for kind in (Pomo, Icam, IcamCvrp, MvMoe):
            monkeypatch.setattr(kind, "decide_best", MultiStartNetwork.decide_best)

    return turn_off


@pytest.fixture
def gradients() -> Iterator[list[Tensor]]:
    """Of all parameters, as the optimizer gets them."""
    found: list[Tensor] = []

    def keep(optimizer: torch.optim.Optimizer, *given: Any) -> None:
        found.extend(p.grad.clone() for group in optimizer.param_groups for p in group["params"] if p.grad is not None)

    handle = register_optimizer_step_pre_hook(keep)
    yield found
    handle.remove()


def test_no_row_is_left_out() -> None:
    begins = (*SOLVING, *TRAINING)
    assert [row for row in rows.ROWS if sum(row.startswith(begin) for begin in begins) != 1] == []
    assert [begin for begin in begins if not any(row.startswith(begin) for row in rows.ROWS)] == []


@pytest.mark.parametrize("row", SOLVING.values(), ids=SOLVING)
def test_solutions_are_those_of_the_plain_way(row: rows.Ready, plainly: Callable[[], None]) -> None:
    fast = row("fp32")()
    plainly()
    assert torch.equal(row("fp32")(), fast)


@pytest.mark.parametrize("row", TRAINING.values(), ids=TRAINING)
def test_gradients_are_those_of_the_plain_way(
    row: rows.Ready, plainly: Callable[[], None], gradients: list[Tensor]
) -> None:
    torch.manual_seed(0)
    row("fp32")()
    fast = list(gradients)
    gradients.clear()
    plainly()
    torch.manual_seed(0)
    row("fp32")()
    assert len(fast) == len(gradients) > 0
    assert any(bool(each.any()) for each in fast)
    for one, other in zip(fast, gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5 * max(1.0, float(other.abs().max())))
