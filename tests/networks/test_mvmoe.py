"""MVMoE: what is read of a variant, what its gates keep and draw."""

from typing import Any

import pytest
import torch
from torch import Tensor

from networks import SHAPE, awake, idle
from neuroute.networks.blocks.routing import Routing
from neuroute.networks.mvmoe import MvMoe

V, TOURS = 8, 4


def small(**arguments: Any) -> MvMoe:
    net: MvMoe = awake(MvMoe, **SHAPE | arguments)
    return net.train()


def case(batch: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    demand = torch.randint(-9, 10, (batch, V + 1)) / 20
    return torch.rand(batch, V + 1, 2).double(), demand.double(), torch.rand(batch, V + 1, 2).double()


def moves(count: int, batch: int = 3) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Of so many decisions what is known, where tours are, what is closed, and what was chosen."""
    torch.manual_seed(2)
    made = []
    for _ in range(count):
        closed = (
            torch.zeros(batch, TOURS, V + 1).double().masked_fill(torch.rand(batch, TOURS, V + 1) < 0.4, -torch.inf)
        )
        chosen = torch.randint(0, V + 1, (batch, TOURS))
        closed = closed.scatter(2, chosen[..., None], 0.0)
        made.append((torch.rand(batch, TOURS, 4).double(), torch.randint(0, V + 1, (batch, TOURS)), closed, chosen))
    return made


@pytest.mark.parametrize(
    ("name", "columns"), [("VRPB", {0}), ("OVRPL", {0, 2, 3}), ("VRPTW", {0, 1}), ("all", {0, 1, 2, 3})]
)
def test_a_variant_reads_what_it_has(name: str, columns: set[int]) -> None:
    net = small(inputs=name).eval()
    coords, demand, windows = case()
    encoded = net.encode(coords, demand, windows)
    reads_windows = name in ("VRPTW", "all")
    assert torch.equal(net.encode(coords, demand, windows / 2), encoded) != reads_windows
    assert torch.equal(net.encode(coords, demand), net.encode(coords, demand, torch.zeros_like(windows)))
    known, current, closed, _ = moves(1)[0]
    logits = net.decide(net.prepare(encoded), known, current, closed)
    for column in range(4):
        other = known.clone()
        other[..., column] += 0.3
        same = torch.equal(net.decide(net.prepare(encoded), other, current, closed), logits)
        assert same == (column not in columns)


def loss_of(logits: Tensor, chosen: Tensor) -> Tensor:
    """Of decisions (batch, tours), weighed unequally."""
    log_p = logits.log_softmax(-1).gather(2, chosen[..., None])[..., 0]
    return (log_p * torch.arange(log_p.shape[0]).add(1)[:, None]).sum()


def test_all_of_it_learns() -> None:
    net, generator = small(positions=["raw", "enc", "dec"], hierarchy="step"), torch.Generator().manual_seed(0)
    routing = Routing(generator, balance=True)
    ready = net.prepare(net.encode(*case(), routing=routing), routing)
    total = sum((loss_of(net.decide(ready, *move[:3]), move[3]) for move in moves(12)), torch.zeros(()))
    (total + routing.loss()).backward()
    assert not idle(net)


def test_an_episode_keeps_what_its_first_step_found() -> None:
    net, made = small(hierarchy="episode").eval(), moves(3)
    ready = net.prepare(net.encode(*case()), Routing(torch.Generator().manual_seed(0), balance=True))
    assert net.begin_episode(ready, *made[0][:3]).first.requires_grad  # what learning cuts
    with torch.no_grad():
        begun = net.begin_episode(ready, *made[0][:3])
        first = net.decide(ready, *made[0][:3])
        assert ready.routing.first is not None
        torch.testing.assert_close(ready.routing.first, begun.first)
        net.decide(ready, *made[1][:3])
        torch.testing.assert_close(ready.routing.first, begun.first)
    again = net.prepare(net.encode(*case()), Routing(torch.Generator().manual_seed(0)))
    with pytest.raises(ValueError, match="`begin_episode`"):  # with a graph, which would be cut
        net.decide(again, *made[0][:3])
    with torch.no_grad():
        torch.testing.assert_close(net.decide(again, *made[0][:3]), first)
    assert net.prepare(net.encode(*case())).routing.first is None


@pytest.mark.parametrize("norm", ["instance", "batch", "batch-untracked", "layer"])
def test_norms_are_what_they_say(norm: Any) -> None:
    layer = small(norm=norm).layers[0].attention_norm
    for name, p in layer.named_parameters():
        p.data.fill_(1.0 if name.endswith("weight") else 0.0)
    x = torch.randn(3, 50, SHAPE["width"]).double() * 3 + 1
    over = {"instance": 1, "layer": 2}.get(norm, (0, 1))
    expected = (x - x.mean(over, keepdim=True)) / x.std(over, correction=0, keepdim=True)
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)
    layer.eval()
    assert torch.allclose(layer(x), expected, rtol=1e-4, atol=1e-4) == (norm != "batch")  # which remembers others too
