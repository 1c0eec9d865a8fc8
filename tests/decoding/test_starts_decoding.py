"""Many starts as a way of decoding: what `multi_start` finds, and refused of other networks."""

from typing import Any

import numpy as np
import pytest
import torch

from many_starts import Case, N, case_of
from neuroute.core.errors import NeurouteError
from neuroute.decoding.construct import construct
from neuroute.decoding.decode import decode, instances_per_batch
from neuroute.plan.objects import Decoding

pytestmark = pytest.mark.usefixtures("one_thread")

ALL, AUGMENTED = Decoding(starts="all"), Decoding(starts="all", augment=True)


def test_it_is_what_many_starts_find(case: Case) -> None:
    problem, instances = case.problem, case.instances(7, 20)
    found = {}
    for decoding in (Decoding(), Decoding(starts=3), ALL, Decoding(augment=True), AUGMENTED):
        number = None if decoding.starts == "all" else decoding.starts
        solutions = decode(problem, case.net, instances, decoding)
        assert torch.equal(solutions, case.solve(instances, number, augment=decoding.augment))
        assert case.valid(instances, solutions)  # every node once, no vehicle overfull
        found[decoding.name] = case.lengths(instances, solutions)
    assert torch.equal(construct(problem, case.net, instances), decode(problem, case.net, instances, ALL))
    pairs = (("multistart", "multistart3"), ("multistart-x8", "multistart"), ("multistart-x8", "greedy-x8"))
    for better, worse in pairs:
        assert (found[better] <= found[worse] + 1e-12).all()
        assert found[better].mean() < found[worse].mean() - 1e-6
    if problem == "tsp":  # whose only start is the first of all; that of routes is the network's own
        assert (found["multistart"] <= found["greedy"] + 1e-12).all()
        assert (decode(problem, case.net, instances, Decoding())[:, 0] == 0).all()


def test_memory_changes_nothing_and_how_many_are_in_hand_is_known(
    planar: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the records, and for progress."""
    problem, net, instances = planar.problem, planar.net, planar.instances(7)
    encoded: list[int] = []
    encode = net.encode
    monkeypatch.setattr(
        net, "encode", lambda coords, *demand: (encoded.append(len(coords)), encode(coords, *demand))[1]
    )
    nodes = planar.environment.nodes(N)
    least = 1.5 * 4 * 16 * 16 * (nodes + 1) / 1e9
    assert instances_per_batch(net, nodes, AUGMENTED, least) == 1
    for decoding in (Decoding(), ALL, AUGMENTED, AUGMENTED.model_copy(update={"batch_size": 3})):
        whole = decode(problem, net, instances, decoding)
        for memory_gb in (4.0, 2e-3, 6e-4, least):
            encoded.clear()
            assert planar.same(decode(problem, net, instances, decoding, memory_gb), whole)
            images = 8 if decoding.augment else 1
            assert encoded[0] == images * min(7, instances_per_batch(net, nodes, decoding, memory_gb))
            assert sum(encoded) == images * 7


def test_stretched_instances_are_refused(case: Case) -> None:
    for decoding in (Decoding(rescale=2.0), Decoding(esf=True)):
        with pytest.raises(NeurouteError, match="leave `rescale` and `esf` out"):
            decode(case.problem, case.net, case.instances(), decoding)


@pytest.mark.parametrize("name", ["pomo", "icam"])
def test_searches_from_all_starts_are_no_longer_than_what_they_begin_with(name: str) -> None:
    """A beam from one start is among those from all, and random re-construct begins with the best of all starts."""
    case = case_of(name)
    net, coords = case.net.float(), case.instances(7, 20).astype(np.float32)

    def lengths(**how: Any) -> np.ndarray:
        return case.lengths(coords, decode("tsp", net, coords, Decoding(**how)))

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
    named = [Decoding.model_validate(how).name for how in ({}, {"starts": 5}, every, every | {"augment": True})]
    assert named == ["greedy", "multistart5", "multistart", "multistart-x8"]
    assert (Decoding.model_validate(beam | every)).name == "beam16-multistart"
    assert (Decoding.model_validate(rrc | every)).name == "rrc100-multistart"
    assert (Decoding.model_validate(rrc | every | {"iterations": 0})).name == "multistart"
    for how in (every | {"method": "prc", "iterations": 3}, beam | {"augment": True}):
        with pytest.raises(ValueError, match="starts|augment"):
            Decoding.model_validate(how)
