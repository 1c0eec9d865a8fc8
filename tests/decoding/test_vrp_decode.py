"""Decoding the 16 VRPs: searches refused, and gates that draw, repeated by their seeds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from neuroute.core.errors import NeurouteError
from neuroute.datasets.vrp_stream import vrp_dataset
from neuroute.decoding.decode import decode, improve, instances_per_batch
from neuroute.decoding.vrp import VRP, VrpBatch, VrpRollout
from neuroute.networks.blocks.experts.routing import Routing
from neuroute.networks.lehd import LehdCvrp
from neuroute.networks.mvmoe import MvMoe
from neuroute.networks.pomo import PomoCvrp
from neuroute.plan.objects import Dataset, Decoding
from neuroute.problems.vrp import Vrp, lengths
from neuroute.problems.vrp_checker import valid

V = 9
SHAPE: dict[str, Any] = {"depth": 2, "width": 16, "heads": 2, "feed_forward": 24, "train_nodes": V}
DRAWING: list[dict[str, Any]] = [
    {"hierarchy": "step"},
    {"hierarchy": "episode"},
    {"hierarchy": "random"},
    {"method": "random"},
    {"method": "random", "level": "problem"},
]
MIXING: list[dict[str, Any]] = [{"method": "expert-choice"}, {"decoder_method": "soft"}, {"level": "problem"}]


def small(**arguments: Any) -> MvMoe:
    """Gates that tell tokens apart, and norms whose means tell gates something, which at first they do not."""
    torch.manual_seed(0)
    net = MvMoe(**SHAPE | arguments).eval()
    for name, parameter in net.named_parameters():
        if "gate" in name or "norm" in name:
            parameter.data.normal_(0.0, 0.5)
    return net


def instances(variant: str, count: int = 5) -> Vrp:
    return vrp_dataset(Dataset(problem="vrp", variant=variant, n=V, count=count, capacity=14))


def test_searches_and_other_networks_are_one_line() -> None:
    net, batch = small(), instances("VRPL")
    searches = (
        Decoding(method="beam", beam=2),
        Decoding(method="rrc", iterations=2),
        Decoding(method="prc", iterations=2),
        Decoding(milestones=(0,)),
    )
    for decoding in searches:
        with pytest.raises(NeurouteError, match="MvMoe: beam search and re-construction are for the TSP and the CVRP"):
            decode("vrp", net, batch, decoding)
    with pytest.raises(NeurouteError, match="beam search and re-construction"):
        improve("vrp", net, batch, searches[1])
    with pytest.raises(NeurouteError, match="leave `rescale` and `esf` out"):
        decode("vrp", net, batch, Decoding(rescale=2.0))
    for other in (PomoCvrp(**SHAPE), LehdCvrp(**SHAPE)):
        with pytest.raises(NeurouteError, match="is not for the 16 vehicle routing problems"):
            decode("vrp", other, batch, Decoding())


@pytest.mark.parametrize("arguments", [*DRAWING, *MIXING])
def test_what_a_gate_makes_of_a_batch_is_repeated_whatever_the_memory(arguments: dict[str, Any]) -> None:
    net, batch = small(**arguments), instances("OVRPTW", 12)
    assert net.is_batch_dependent
    decoding = Decoding(starts="all", augment=True)
    found = decode("vrp", net, batch, decoding)
    assert torch.equal(decode("vrp", net, batch, decoding), found)
    assert torch.equal(decode("vrp", net, batch, decoding, memory_gb=0.05), found)
    assert valid(batch, found.numpy()).all()
    if arguments in DRAWING:
        torch.manual_seed(5)  # torch's own numbers are not what is drawn
        assert torch.equal(decode("vrp", net, batch, decoding), found)


@pytest.mark.parametrize("arguments", [{}, {"experts": 0}, {"level": "instance"}, {"norm": "layer"}])
def test_without_such_gates_batches_are_as_large_as_fits_and_change_nothing(arguments: dict[str, Any]) -> None:
    """In float64: where float32 rounds otherwise in other batches, a near tie may end in another solution."""
    net, batch = small(**arguments).double(), instances("OVRPTW")
    floats = {name: getattr(batch, name).astype(np.float64) for name in ("coords", "windows", "service")}
    batch = replace(batch, **floats)
    assert not net.is_batch_dependent
    decoding = Decoding(starts="all")
    in_one = lengths(batch, decode("vrp", net, batch, decoding).numpy())
    by_one = lengths(batch, decode("vrp", net, batch, Decoding(starts="all", batch_size=1)).numpy())
    assert in_one == pytest.approx(by_one, rel=1e-12)


def test_each_batch_draws_from_the_number_of_its_first_instance() -> None:
    net, batch = small(hierarchy="random"), instances("OVRP", 4)
    found = decode("vrp", net, batch, Decoding(starts="all", batch_size=2))
    for first in (0, 2):
        part, routing = (
            VrpBatch.of(batch[first : first + 2], torch.device("cpu")),
            Routing(torch.Generator().manual_seed(first)),
        )
        with torch.inference_mode():
            prepared = net.prepare(net.encode(part.coords, part.share, part.windows, routing), routing)
            routes = VrpRollout(part, part.start_nodes(V), torch.float32)
            while not routes.is_complete():
                logits = net.decide(prepared, routes.context, routes.current, routes.mask)
                routes.go(logits.argmax(-1))
        for row, solutions in enumerate(routes.solutions().numpy()):
            one = batch[np.full(V, first + row)]
            shortest = solutions[lengths(one, solutions).argmin()]
            assert (found[first + row].numpy() == shortest).all()


def test_instances_in_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, light = small(), small(hierarchy="step")
    decoding = Decoding(starts="all", augment=True)
    assert VRP.batch_sizes(light, V + 1, 8 * V, 8, 4.0)[1] == 100
    assert instances_per_batch(light, V + 1, decoding, 4.0) == 100
    assert instances_per_batch(light, V + 1, decoding.model_copy(update={"batch_size": 7}), 4.0) == 7
    monkeypatch.setattr("neuroute.decoding.environment.batch_size_for", lambda *_: 1000)
    one = 48 * (V + 1) * 8 * V / 1e9  # of an instance's tours, in GB
    for fits in (1, 3, 20):
        assert instances_per_batch(plain, V + 1, decoding, 2 * one * (fits + 0.5)) == fits
        assert instances_per_batch(light, V + 1, decoding, 2 * one * (fits + 0.5)) <= fits
