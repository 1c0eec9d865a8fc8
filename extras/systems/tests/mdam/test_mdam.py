"""MDAM: FLOPs, what is refused, attention to too little.  The equations: test_published_mdam."""

from typing import Any

import pytest
import torch

from networks import N, awake, features
from neuroute.evaluation.flops import counts
from neuroute.specs.objects import Network
from neuroute_systems.mdam.network import Mdam, MdamCvrp

pytestmark = pytest.mark.usefixtures("one_thread")

NETWORKS: dict[str, type[Mdam]] = {"tsp": Mdam, "cvrp": MdamCvrp}


def network(problem: str, **arguments: Any) -> Network:
    return Network(kind=f"neuroute_systems.mdam.network:{NETWORKS[problem].__name__}", arguments=arguments)


@pytest.mark.parametrize("problem", NETWORKS)
def test_nodes_that_see_nothing_of_what_is_open_are_numbers(problem: str) -> None:
    """Their attention to it is 0 in any precision."""
    net = awake(NETWORKS[problem], depth=2, width=24, heads=3, feed_forward=40, decoders=2)
    encoded = net.encode(*features(NETWORKS[problem], 2))
    seen = torch.zeros_like(encoded.attention)
    seen[..., 0] = 1
    mask = torch.zeros(2, 1, N, dtype=torch.float64)
    mask[..., 0] = -torch.inf
    nodes = net.glimpse(encoded._replace(attention=seen.requires_grad_()), mask)
    nodes.sum().backward()
    assert nodes.isfinite().all()
    assert seen.grad is not None
    assert seen.grad.isfinite().all()


@pytest.mark.parametrize("problem", NETWORKS)
def test_a_decision_is_one_of_each_decoder_and_its_part_of_the_last_layer(problem: str) -> None:
    shape = {"depth": 2, "width": 24, "heads": 3, "feed_forward": 40}
    two, four, often = (
        counts(network(problem, **shape, **more))
        for more in ({"decoders": 2}, {"decoders": 4}, {"decoders": 2, "glimpse_every": 1})
    )
    assert four.decision(N) == 2 * two.decision(N)
    step = 2 * two.decision(N) - often.decision(N)  # two halves of the last layer are one
    w, n, context_width = 24, N - 1, 48 if problem == "tsp" else 25
    one = 2 * context_width * w + 2 * w * w + 4 * w * n + 3 * n + 2 * w * n + n
    assert step == pytest.approx(2 * one, abs=4)
    assert four.encoder(N) - two.encoder(N) == 2 * (6 * N * w * w + 2 * w * w)


@pytest.mark.parametrize("wrong", [{"depth": 0}, {"decoders": 0}, {"glimpse_every": 0}, {"width": 20}])
def test_arguments_that_make_no_network(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1|not divisible"):
        Mdam(**wrong)
