"""Many starts as a way of decoding, for both problems: what `multi_start` finds, and refused of other networks."""

from typing import Any

import numpy as np
import pytest
import torch

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.datasets.streams import cvrp_dataset, dataset_coordinates
from neuroute.decoding.construct import construct
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.cvrp_search import SEARCH
from neuroute.decoding.decode import decode, improve, instances_per_batch
from neuroute.decoding.environment import ENVIRONMENT
from neuroute.decoding.multi_start import multi_start
from neuroute.networks.icam import Icam, IcamCvrp
from neuroute.networks.lehd import Lehd, LehdCvrp
from neuroute.networks.pomo import Pomo, PomoCvrp
from neuroute.plan.objects import Dataset, Decoding
from neuroute.problems import cvrp, tsp
from neuroute.problems.vrp import Vrp

pytestmark = pytest.mark.usefixtures("one_thread")

N = 20
PROBLEMS = {Pomo: "tsp", Icam: "tsp", PomoCvrp: "cvrp", IcamCvrp: "cvrp"}
ALL, AUGMENTED = Decoding(starts="all"), Decoding(starts="all", augment=True)


def drawn(problem: Any) -> Any:
    dataset = Dataset(problem=problem, n=N, count=7)
    if problem == "tsp":
        return dataset_coordinates(dataset).astype(np.float64)
    found = cvrp_dataset(dataset)
    return Vrp(found.coords.astype(np.float64), found.demand, found.capacity)


@pytest.fixture(params=PROBLEMS)
def many(request: pytest.FixtureRequest) -> Any:
    """(problem, its spec, network, instances)"""
    torch.manual_seed(1)
    shape = {"heads": 2} if "Pomo" in request.param.__name__ else {}
    net = request.param(depth=1, width=16, feed_forward=24, **shape).double().eval()
    problem = PROBLEMS[request.param]
    return problem, SPEC.of(problem), net, drawn(problem)


def test_it_is_what_many_starts_find(many: Any) -> None:
    problem, spec, net, instances = many
    found = {}
    for decoding in (Decoding(), Decoding(starts=3), ALL, Decoding(augment=True), AUGMENTED):
        number = None if decoding.starts == "all" else decoding.starts
        solutions = decode(problem, net, instances, decoding)
        assert torch.equal(
            solutions, multi_start(ENVIRONMENT.of(problem), net, instances, number, augment=decoding.augment)
        )
        assert spec.valid(instances, solutions.numpy()).all()  # every node once, no vehicle overfull
        found[decoding.id] = spec.lengths(instances, solutions.numpy())
    assert torch.equal(construct(problem, net, instances), decode(problem, net, instances, ALL))
    for better, worse in (("multi", "multi3"), ("multi-x8", "multi"), ("multi-x8", "greedy-x8")):
        assert (found[better] <= found[worse] + 1e-12).all()
        assert found[better].mean() < found[worse].mean() - 1e-6
    if problem == "tsp":  # whose only start is the first of all; the CVRP's is the network's own
        assert (found["multi"] <= found["greedy"] + 1e-12).all()
        assert (decode(problem, net, instances, Decoding())[:, 0] == 0).all()


@pytest.mark.parametrize("decoding", [Decoding(), ALL, AUGMENTED])
def test_batches_and_memory_change_nothing(many: Any, decoding: Decoding) -> None:
    """But, of equally long solutions, which one: rounding decides between two starts of one tour."""
    problem, _, net, instances = many
    form = tsp.canonical if problem == "tsp" else cvrp.canonical
    whole = form(decode(problem, net, instances, decoding).numpy())
    one_by_one = torch.cat([decode(problem, net, instances[i : i + 1], decoding) for i in range(7)])
    np.testing.assert_array_equal(form(one_by_one.numpy()), whole)
    in_threes = decode(problem, net, instances, decoding.model_copy(update={"batch_size": 3}))
    np.testing.assert_array_equal(form(in_threes.numpy()), whole)
    little = 1.5 * 4 * 16 * 16 * (N + 2) / 1e9
    assert instances_per_batch(net, N + 1, decoding, little) == 1
    np.testing.assert_array_equal(form(decode(problem, net, instances, decoding, little).numpy()), whole)


def test_how_many_are_in_hand_is_known(many: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the records, and for progress."""
    problem, _, net, instances = many
    encoded: list[int] = []
    encode = net.encode
    monkeypatch.setattr(
        net, "encode", lambda coords, *demand: (encoded.append(len(coords)), encode(coords, *demand))[1]
    )
    nodes = N + (problem == "cvrp")
    for decoding in (Decoding(), ALL, AUGMENTED, AUGMENTED.model_copy(update={"batch_size": 3})):
        for memory_gb in (4.0, 2e-3, 6e-4):
            encoded.clear()
            decode(problem, net, instances, decoding, memory_gb)
            images = 8 if decoding.augment else 1
            expected = instances_per_batch(net, nodes, decoding, memory_gb)
            assert encoded[0] == images * min(7, expected)
            assert sum(encoded) == images * 7


def test_starts_that_are_not_there_are_refused(many: Any) -> None:
    problem, _, net, instances = many
    with pytest.raises(NeurouteError, match=f"give from 1 to {N}, or 'all'"):
        decode(problem, net, instances, Decoding(starts=N + 1))
    with pytest.raises(NeurouteError, match="leave `rescale` and `esf` out"):
        decode(problem, net, instances, Decoding(rescale=2.0))


@pytest.mark.parametrize("kind", [Lehd, LehdCvrp])
def test_a_network_of_one_solution_refuses_them(kind: Any) -> None:
    net = kind(depth=1, width=16, heads=2, feed_forward=16).double()
    problem = "tsp" if kind is Lehd else "cvrp"
    instances = drawn(problem)
    for decoding in (Decoding(starts=2), ALL, Decoding(augment=True)):
        with pytest.raises(NeurouteError, match=f"{kind.__name__} builds one solution .* leave `starts` and `augment`"):
            decode(problem, net, instances, decoding)
        with pytest.raises(NeurouteError, match="leave `starts` and `augment`"):
            improve(problem, net, instances, decoding.model_copy(update={"milestones": (0,)}))


@pytest.mark.parametrize("kind", [PomoCvrp, IcamCvrp])
def test_the_cvrp_is_not_searched(kind: Any) -> None:
    net, instances = kind(depth=1, width=16, feed_forward=16).double(), drawn("cvrp")
    for method in ("rrc", "prc", "beam"):
        with pytest.raises(NeurouteError, match=f"{kind.__name__}: re-construction and beam search are for"):
            decode("cvrp", net, instances, Decoding(method=method, iterations=1, beam=2))
        with pytest.raises(NeurouteError, match="decode greedily, from all starts"):
            improve("cvrp", net, instances, Decoding(method=method, iterations=1, milestones=(0, 1)))
    batch, before = CvrpBatch.of(instances, torch.device("cpu")), torch.zeros(7, 2, N)
    with pytest.raises(NeurouteError, match="decode greedily"):
        SEARCH.reconstruct(net, batch, before, Decoding(method="prc", iterations=1), 4.0)


@pytest.mark.parametrize("kind", [Pomo, Icam])
def test_searches_from_all_starts_are_no_longer_than_what_they_begin_with(kind: Any) -> None:
    """A beam from one start is among those from all, and random re-construct begins with the best of all starts."""
    torch.manual_seed(3)
    shape = {"heads": 2} if kind is Pomo else {}
    net, coords = kind(depth=1, width=16, feed_forward=24, **shape).eval(), drawn("tsp").astype(np.float32)

    def lengths(**how: Any) -> np.ndarray:
        return SPEC.of("tsp").lengths(coords, decode("tsp", net, coords, Decoding(**how)).numpy())

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
