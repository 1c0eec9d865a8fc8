"""The loss that balances experts does what it is for (MVMoE, Eq. 2 and 3)."""

import torch

from neuroute.networks.blocks.experts.mixture import LinearExperts, Mixture
from neuroute.networks.blocks.experts.routing import Routing

WIDTH, EXPERTS, TOP = 8, 4, 2


def shares(mixture: Mixture, x: torch.Tensor) -> torch.Tensor:
    """Of the load, by expert, with the noise that training has: what the loss is about."""
    routing = Routing(balance=True)
    with torch.no_grad():
        mixture(x, routing)
    (report,) = routing.reports
    return (report.load / report.load.sum()).flatten()


def test_learning_from_it_spreads_the_nodes() -> None:
    """From a gate that sends every node to the same two experts, each of which so has half of the load."""
    torch.manual_seed(0)
    mixture = Mixture(LinearExperts(EXPERTS, WIDTH, WIDTH), WIDTH, TOP, "input-choice", "node")
    x = torch.randn(1, 400, WIDTH) + 1
    with torch.no_grad():
        dict(mixture.named_parameters())["gate.weight"][:TOP] += 0.5
    before = shares(mixture, x)
    assert before.max() > 0.4
    optimizer = torch.optim.Adam(mixture.parameters(), lr=1e-2)
    for _ in range(150):
        routing = Routing(balance=True)
        mixture(x, routing)
        optimizer.zero_grad()
        routing.loss().backward()
        optimizer.step()
    after = shares(mixture, x)
    assert after.max() < 0.3
    assert after.min() > 0.2
