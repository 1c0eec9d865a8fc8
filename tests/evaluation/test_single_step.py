"""Decisions of many starts, as they are measured: of both problems, and like those of a real construction."""

from typing import Any

import pytest
import torch

from neuroute.accounting.cost import counts
from neuroute.evaluation import efficiency
from neuroute.evaluation.single_step import Starts, pose_single_step
from neuroute.networks.weights import build
from neuroute.plan.objects import Dataset, Network

pytestmark = pytest.mark.usefixtures("one_thread")

SHAPE = {"depth": 2, "width": 16, "feed_forward": 32}
TSP, CVRP = Dataset(n=30, count=2), Dataset(problem="cvrp", n=29, count=2)
KINDS = {"pomo:Pomo": TSP, "icam:Icam": TSP, "pomo:PomoCvrp": CVRP, "icam:IcamCvrp": CVRP}


def network(kind: str) -> Network:
    return Network(kind=f"neuroute.networks.{kind}", arguments=SHAPE)


def ready(kind: str) -> Any:
    torch.manual_seed(0)
    return build(network(kind)).eval()


@pytest.mark.parametrize("kind", KINDS)
def test_all_starts_count_and_as_many_are_closed_as_tokens_are_gone(kind: str) -> None:
    net, dataset = ready(kind), KINDS[kind]
    whole, part = pose_single_step(net, dataset), pose_single_step(net, dataset, tours=6)
    assert isinstance(whole, Starts)
    assert whole.most == 31
    starts = 30 - (dataset is CVRP)
    assert (whole.share, part.share) == (1.0, 6 / starts)
    with torch.no_grad():
        kept = whole.encode()
        for tokens in (whole.fewest, 12, whole.most):
            _, _, current, closed = whole.state(kept, tokens)
            assert current.tolist() == [list(range(30 - starts, 30))]
            open_ = (closed == 0).sum(-1)
            assert (open_ == tokens - 2 + (dataset is CVRP)).all()
            chosen = whole.decide(whole.state(kept, tokens))
            assert chosen.shape == (1, starts)
            assert torch.equal(chosen[:, :6], part.decide(part.state(kept, tokens)))
    c = counts(network(kind))
    assert whole.flops(c, 7) == starts * c.decision(31)
    assert whole.encoder_flops(c) == c.encoder(30)


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_measured(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(efficiency, "REPEATS", 1)
    construction = pose_single_step(ready(kind), KINDS[kind])
    found = efficiency.measure_construction(
        construction, efficiency.sample_tokens(construction, 4), torch.device("cpu")
    )
    assert found is not None
    assert found.seconds > 0
    assert found.points[-1, 0] == 31
