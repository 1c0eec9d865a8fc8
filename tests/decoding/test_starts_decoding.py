"""Many starts as a way of decoding, for both problems: what `multi_start` finds, and refused of other networks."""

from typing import Any

import numpy as np
import pytest
import torch

from neuroute.datasets.cvrp_kind import KIND as CVRP
from neuroute.datasets.streams import cvrp_dataset, dataset_coordinates
from neuroute.datasets.tsp_kind import KIND as TSP
from neuroute.decoding import cvrp, decode, multi_start, multi_start_cvrp
from neuroute.decoding.cvrp_paths import Batch
from neuroute.errors import NeurouteError
from neuroute.networks.icam import Icam
from neuroute.networks.icam_cvrp import IcamCvrp
from neuroute.networks.lehd import Lehd
from neuroute.networks.lehd_cvrp import LehdCvrp
from neuroute.networks.pomo import Pomo
from neuroute.networks.pomo_cvrp import PomoCvrp
from neuroute.plan.objects import Dataset, Decoding
from neuroute.problems import cvrp as routes
from neuroute.problems import tsp
from neuroute.problems.cvrp import Cvrp

pytestmark = pytest.mark.usefixtures("one_thread")

N = 20
PROBLEMS = {Pomo: "tsp", Icam: "tsp", PomoCvrp: "cvrp", IcamCvrp: "cvrp"}
ROOMS = {"tsp": (decode, multi_start, TSP), "cvrp": (cvrp, multi_start_cvrp, CVRP)}
ALL, AUGMENTED = Decoding(starts="all"), Decoding(starts="all", augment=True)


def drawn(problem: Any) -> Any:
    dataset = Dataset(problem=problem, n=N, count=7)
    if problem == "tsp":
        return dataset_coordinates(dataset).astype(np.float64)
    found = cvrp_dataset(dataset)
    return Cvrp(found.coords.astype(np.float64), found.demand, found.capacity)


@pytest.fixture(params=PROBLEMS)
def many(request: pytest.FixtureRequest) -> Any:
    """(module that decodes, module of many starts, kind, network, instances)"""
    torch.manual_seed(1)
    shape = {"heads": 2} if "Pomo" in request.param.__name__ else {}
    net = request.param(depth=1, width=16, feed_forward=24, **shape).double().eval()
    problem = PROBLEMS[request.param]
    return *ROOMS[problem], net, drawn(problem)


def test_it_is_what_many_starts_find(many: Any) -> None:
    module, starts, kind, net, instances = many
    found = {}
    for decoding in (Decoding(), Decoding(starts=3), ALL, Decoding(augment=True), AUGMENTED):
        number = None if decoding.starts == "all" else decoding.starts
        solutions = module.decode(net, instances, decoding)
        assert torch.equal(solutions, starts.multi_start(net, instances, number, augment=decoding.augment))
        assert kind.valid(instances, solutions.numpy()).all()  # every node once, no vehicle overfull
        found[decoding.id] = kind.lengths(instances, solutions.numpy())
    assert torch.equal(module.construct(net, instances), module.decode(net, instances, ALL))
    for better, worse in (("multi", "multi3"), ("multi-x8", "multi"), ("multi-x8", "greedy-x8")):
        assert (found[better] <= found[worse] + 1e-12).all()
        assert found[better].mean() < found[worse].mean() - 1e-6
    if kind is TSP:  # whose only start is the first of all; the CVRP's is the network's own
        assert (found["multi"] <= found["greedy"] + 1e-12).all()
        assert (module.decode(net, instances, Decoding())[:, 0] == 0).all()


@pytest.mark.parametrize("decoding", [Decoding(), ALL, AUGMENTED])
def test_batches_and_memory_change_nothing(many: Any, decoding: Decoding) -> None:
    """But, of equally long solutions, which one: rounding decides between two starts of one tour."""
    module, _, kind, net, instances = many
    form = tsp.canonical if kind is TSP else routes.canonical
    whole = form(module.decode(net, instances, decoding).numpy())
    one_by_one = torch.cat([module.decode(net, instances[i : i + 1], decoding) for i in range(7)])
    np.testing.assert_array_equal(form(one_by_one.numpy()), whole)
    in_threes = module.decode(net, instances, decoding.model_copy(update={"batch_size": 3}))
    np.testing.assert_array_equal(form(in_threes.numpy()), whole)
    little = 1.5 * 4 * 16 * 16 * (N + 2) / 1e9
    assert decode.instances_at_once(net, N + 1, decoding, little) == 1
    np.testing.assert_array_equal(form(module.decode(net, instances, decoding, little).numpy()), whole)


def test_how_many_are_in_hand_is_known(many: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the records, and for progress."""
    module, _, kind, net, instances = many
    encoded: list[int] = []
    encode = net.encode
    monkeypatch.setattr(
        net, "encode", lambda coords, *demand: (encoded.append(len(coords)), encode(coords, *demand))[1]
    )
    nodes = N + (kind is CVRP)
    for decoding in (Decoding(), ALL, AUGMENTED, AUGMENTED.model_copy(update={"batch_size": 3})):
        for memory_gb in (4.0, 2e-3, 6e-4):
            encoded.clear()
            module.decode(net, instances, decoding, memory_gb)
            images = 8 if decoding.augment else 1
            expected = decode.instances_at_once(net, nodes, decoding, memory_gb)
            assert encoded[0] == images * min(7, expected)
            assert sum(encoded) == images * 7


def test_starts_that_are_not_there_are_refused(many: Any) -> None:
    module, _, _, net, instances = many
    with pytest.raises(NeurouteError, match=f"give from 1 to {N}, or 'all'"):
        module.decode(net, instances, Decoding(starts=N + 1))
    with pytest.raises(NeurouteError, match="leave `rescale` and `esf` out"):
        module.decode(net, instances, Decoding(rescale=2.0))


@pytest.mark.parametrize("kind", [Lehd, LehdCvrp])
def test_a_network_of_one_solution_refuses_them(kind: Any) -> None:
    net = kind(depth=1, width=16, heads=2, feed_forward=16).double()
    problem = "tsp" if kind is Lehd else "cvrp"
    module, instances = ROOMS[problem][0], drawn(problem)
    for decoding in (Decoding(starts=2), ALL, Decoding(augment=True)):
        with pytest.raises(NeurouteError, match=f"{kind.__name__} builds one solution .* leave `starts` and `augment`"):
            module.decode(net, instances, decoding)
        with pytest.raises(NeurouteError, match="leave `starts` and `augment`"):
            module.improve(net, instances, decoding.model_copy(update={"milestones": (0,)}))


@pytest.mark.parametrize("kind", [PomoCvrp, IcamCvrp])
def test_the_cvrp_is_not_searched(kind: Any) -> None:
    net, instances = kind(depth=1, width=16, feed_forward=16).double(), drawn("cvrp")
    for method in ("rrc", "prc", "beam"):
        with pytest.raises(NeurouteError, match=f"{kind.__name__}: re-construction and beam search are for"):
            cvrp.decode(net, instances, Decoding(method=method, iterations=1, beam=2))
        with pytest.raises(NeurouteError, match="decode greedily, from all starts"):
            cvrp.improve(net, instances, Decoding(method=method, iterations=1, milestones=(0, 1)))
    batch, before = Batch.of(instances, torch.device("cpu")), torch.zeros(7, 2, N)
    with pytest.raises(NeurouteError, match="decode greedily"):
        cvrp.reconstructing(net, batch, before, Decoding(method="prc", iterations=1), 4.0)


@pytest.mark.parametrize("kind", [Pomo, Icam])
def test_searches_from_all_starts_are_no_longer_than_what_they_begin_with(kind: Any) -> None:
    """A beam from one start is among those from all, and random re-construct begins with the best of all starts."""
    torch.manual_seed(3)
    shape = {"heads": 2} if kind is Pomo else {}
    net, coords = kind(depth=1, width=16, feed_forward=24, **shape).eval(), drawn("tsp").astype(np.float32)

    def lengths(**how: Any) -> np.ndarray:
        return TSP.lengths(coords, decode.decode(net, coords, Decoding(**how)).numpy())

    one, every = lengths(method="beam", beam=3), lengths(method="beam", beam=3, starts="all")
    assert (every <= one + 1e-9).all()
    assert (every < one - 1e-9).any()
    best, rebuilt = lengths(starts="all"), lengths(method="rrc", iterations=20, starts="all")
    assert (rebuilt <= best + 1e-9).all()
    assert (rebuilt < best - 1e-9).any()


def test_what_starts_are_called() -> None:
    """Records are looked up by these names."""
    beam, rrc = {"method": "beam", "beam": 16}, {"method": "rrc", "iterations": 100}
    every: dict[str, Any] = {"starts": "all"}
    named = [Decoding.model_validate(how).id for how in ({}, {"starts": 5}, every, every | {"augment": True})]
    assert named == ["greedy", "multi5", "multi", "multi-x8"]
    assert [Decoding.model_validate(how | every).id for how in (beam, rrc)] == ["beam16-multi", "rrc100-multi"]
    assert Decoding.model_validate(rrc | every | {"iterations": 0}).id == "multi"
    for how in (every | {"method": "prc", "iterations": 3}, beam | {"augment": True}):
        with pytest.raises(ValueError, match="starts|augment"):
            Decoding.model_validate(how)
