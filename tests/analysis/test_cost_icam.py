"""Counts of ICAM and of POMO for the CVRP, and of roll-outs."""

from typing import Any

import pytest
import torch

from neuroute.accounting import cost, flops_pomo
from neuroute.networks.weights import build, parameters
from neuroute.plan.objects import Network

POMO, POMO_CVRP, ICAM, ICAM_CVRP = (
    f"neuroute.networks.{kind}" for kind in ("pomo:Pomo", "pomo_cvrp:PomoCvrp", "icam:Icam", "icam_cvrp:IcamCvrp")
)
SHAPE = {"depth": 3, "width": 24, "feed_forward": 40, "train_nodes": 20}
SWITCHES: list[dict[str, Any]] = [{"adaptation": False}, {"compatibility": False}]


@pytest.mark.parametrize(("kind", "size"), [(POMO_CVRP, 1_254_016), (ICAM, 2_242_446), (ICAM_CVRP, 2_226_702)])
def test_published_sizes(kind: str, size: int) -> None:
    assert cost.parameters_of(Network(kind=kind, arguments={})) == size


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (POMO_CVRP, SHAPE | {"heads": 3, "clipping": 50.0}),
        *(
            (kind, SHAPE | switch)
            for kind in (ICAM, ICAM_CVRP)
            for switch in ({}, *SWITCHES, SWITCHES[0] | SWITCHES[1])
        ),
    ],
)
def test_parameters_are_those_of_the_network(kind: str, arguments: dict[str, Any]) -> None:
    network = Network(kind=kind, arguments=arguments)
    with torch.device("meta"):
        assert cost.parameters_of(network) == parameters(build(network))


@pytest.mark.parametrize("kind", [POMO, POMO_CVRP, ICAM, ICAM_CVRP])
def test_a_roll_out_encodes_once(kind: str) -> None:
    c = cost.counts(Network(kind=kind, arguments={}))
    by_hand = c.encoder(100) + sum(c.decision(101) for _ in range(40 * 98))
    assert flops_pomo.rolled_out(c.decision, c.encoder, 100, 40) == by_hand


def test_icams_encoder_is_lighter_than_pomos_layer_for_layer() -> None:
    """No output projection (icam, Section 3.2: lower complexity), and no head-wise scores."""
    layers = {"depth": 6}
    icam, pomo = (cost.counts(Network(kind=kind, arguments=layers)) for kind in (ICAM, POMO))
    for nodes in (100, 1000):
        assert icam.encoder(nodes) < pomo.encoder(nodes)
        assert icam.decision(nodes + 1) < pomo.decision(nodes + 1)
