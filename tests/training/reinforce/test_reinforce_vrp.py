"""REINFORCE on 16 VRPs: against one graph, its parts, its draws, what is refused."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from networks import MIXTURES
from neuroute.core.device import stream_seed
from neuroute.core.errors import NeurouteError
from neuroute.datasets.streams import vrp_dataset
from neuroute.decoding.multi_start import roll_out
from neuroute.decoding.vrp import VrpBatch
from neuroute.networks.blocks.routing import Routing
from neuroute.problems.vrp import SWITCHES, lengths, number_of_starts, valid
from neuroute.specs.objects import Dataset, Run
from neuroute.training.policy_gradient import weights
from neuroute.training.reinforce import MAX_NODES_PER_BATCH, Reinforcement
from neuroute.training.reinforce_vrp import VrpReinforcement
from neuroute.training.sampling_streams import noise, sampling, shapes, variants
from reinforcing import assert_alike, backward, gradients
from tiny import CPU
from tiny_reinforced_vrp import DENSE, SIX, batches_of, make_run, stage

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


# -- the gradient ---------------------------------------------------------------------------------------------------


def one_graph(batches: VrpReinforcement, number: int, balance: float) -> tuple[Tensor, Tensor]:
    """The loss of a batch, and of it the balance loss, with the graph through all of its decisions."""
    spec = batches.batch_spec(number)
    assert spec.variant is not None
    stream = Dataset(problem="vrp", variant=spec.variant, split="train", n=8, first=number * 4096, count=spec.size)
    instances = VrpBatch.of(vrp_dataset(stream), CPU).to(torch.float64)
    starts = number_of_starts(vrp_dataset(stream))
    generator = torch.Generator().manual_seed(stream_seed(0, number))
    encoder, decoder = Routing(generator, balance=True), Routing(generator, balance=True)
    net: Any = batches.net
    prepared = net.prepare(net.encode(instances.coords, instances.share, instances.windows, encoder), decoder)
    choose = sampling(noise(0, number, range(spec.size), (starts, 14)))
    routes = instances.rollout(instances.start_nodes(starts), torch.float64)
    prepared = net.begin_episode(prepared, routes.context, routes.current, routes.action_mask)
    log_p = torch.zeros(spec.size, starts, dtype=torch.float64)
    while not routes.done():
        logits = net.decide(prepared, routes.context, routes.current, routes.action_mask)
        stops = choose(logits.detach())
        log_p = log_p + logits.log_softmax(-1).gather(2, stops[..., None])[..., 0]
        routes.step(stops)
    found = instances.lengths(routes.solutions())
    aside = balance * (encoder.loss() + decoder.loss())
    return -(weights(found, None) * log_p).sum() / spec.size + aside, aside


@pytest.mark.parametrize("variant", SWITCHES)
def test_the_gradient_is_that_of_one_graph(tmp_path: Path, variant: str) -> None:
    """In all 16 problems, without experts."""
    batches = batches_of(make_run(stage(batch_size=2, variants=(variant,)), network=DENSE), tmp_path)
    wanted = backward(batches.net, one_graph(batches, 1, 0.0)[0])
    assert len(wanted[1]) == len(list(batches.net.parameters()))
    assert max(float(g.abs().max()) for g in wanted[1].values()) > 1e-3
    assert_alike(gradients(batches, 1), wanted, 1e-9)


@pytest.mark.parametrize("way", [*MIXTURES, {"top": 4}, {"norm": "batch-untracked", "experts": 0}], ids=str)
def test_one_pass_and_two_learn_what_one_graph_does(tmp_path: Path, way: dict[str, Any], monkeypatch: Any) -> None:
    """With the balance loss, whatever the gates; whichever the number of moves that are learnt from together."""
    run = make_run(stage(), network=way, balance=0.7)
    batches = batches_of(run, tmp_path)
    graph, aside = one_graph(batches, 1, 0.7)
    wanted = backward(batches.net, graph)
    balanced = (
        way.get("method", "input-choice") == "input-choice" and way.get("level") != "problem" and "experts" not in way
    )
    assert (float(aside.detach()) > 0) == balanced
    assert batches._in_one_pass(batches.batch_spec(1), 5)
    for together in (None, 1 << 19, 5 * 8 * 9 * 3, 1):
        if together is not None:
            monkeypatch.setattr(VrpReinforcement, "_in_one_pass", lambda *_: False)
            monkeypatch.setitem(MAX_NODES_PER_BATCH, "cpu", together)
        assert_alike(gradients(batches_of(run, tmp_path), 1), wanted, 1e-9)


def test_the_weight_of_the_balance_loss_is_the_trainings(tmp_path: Path) -> None:
    found = {}
    for balance in (0.0, 0.01, 0.5):
        batches = batches_of(make_run(balance=balance), tmp_path)
        found[balance] = gradients(batches, 0)
        assert found[balance][0] == pytest.approx(float(one_graph(batches, 0, balance)[0].detach()), rel=1e-9)
    name = "layers.0.mixture.gate.noise"
    for part in (0, 1):  # the loss, and the gradient of the gates' noise, are linear in it
        values = [each[0] if part == 0 else each[1][name] for each in found.values()]
        small, large = values[1] - values[0], values[2] - values[0]
        torch.testing.assert_close(torch.as_tensor(large), torch.as_tensor(50 * small), rtol=1e-6, atol=1e-9)
        assert torch.as_tensor(large).abs().max() > 1e-4


# -- parts and processes --------------------------------------------------------------------------------------------


def learnt(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> tuple[Any, list[int]]:
    """Loss and gradients of a batch, and how many instances each part had."""
    sizes: list[int] = []
    learn = Reinforcement._learn

    def counted(self: Reinforcement, spec: Any, rows: Tensor, instances: Any) -> Tensor:
        sizes.append(len(rows))
        return learn(self, spec, rows, instances)

    with monkeypatch.context() as patch:
        patch.setattr(Reinforcement, "_learn", counted)
        return gradients(batches_of(run, folder, **more), 1), sizes


def test_dense_networks_learn_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(network=DENSE)
    whole, sizes = learnt(run, tmp_path, monkeypatch)
    assert sizes == [5]
    parts, sizes = learnt(run, tmp_path, monkeypatch, memory_gb=1e-9)
    assert sizes == [1] * 5
    assert_alike(parts, whole, 1e-9)


@pytest.mark.parametrize("network", [{}, {"hierarchy": "step"}, {"norm": "batch", "experts": 0}], ids=str)
def test_what_depends_on_a_batch_learns_from_all_of_it(
    tmp_path: Path, network: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(network=network)
    monkeypatch.setitem(MAX_NODES_PER_BATCH, "cpu", 1)
    assert learnt(run, tmp_path, monkeypatch)[1] == [5]
    with pytest.raises(NeurouteError, match=r"5 instances of 8 customers take about .* GB, memory_gb is 0.0001"):
        batches_of(run, tmp_path, memory_gb=1e-4)


# -- draws ----------------------------------------------------------------------------------------------------------


def test_variants_are_drawn_evenly_and_beside_sizes() -> None:
    of = stage(sizes=(8, 11), capacities=(20, 40))
    found = np.array(variants(of, 3, 0, 60_000))
    assert {name: float((found == name).mean()) for name in SIX} == pytest.approx(dict.fromkeys(SIX, 1 / 6), abs=0.01)
    sizes, capacities = shapes(of, 3, 0, 60_000)
    assert capacities is not None
    for name, size in itertools.product(SIX, range(8, 12)):
        assert ((found == name) & (sizes == size)).mean() == pytest.approx(1 / 24, abs=0.005)
    assert abs(np.corrcoef(found == "CVRP", capacities)[0, 1]) < 0.02
    assert variants(of, 3, 777, 5) == found[777:782].tolist()
    assert variants(of, 4, 0, 100) != found[:100].tolist()


def test_sizes_and_capacities_are_drawn_as_without_variants() -> None:
    plain = stage(sizes=(8, 200), capacities=(20, 400), variants=())
    raw = np.random.Philox(key=np.array([3, 1 << 63], np.uint64)).random_raw(400).reshape(100, 4) >> np.uint64(32)
    for of in (plain, plain.model_copy(update={"variants": SIX})):
        sizes, capacities = shapes(of, 3, 0, 100)
        np.testing.assert_array_equal(sizes, 8 + (raw[:, 0] * 193 >> np.uint64(32)))
        np.testing.assert_array_equal(capacities, 20 + (raw[:, 1] * 381 >> np.uint64(32)))


@pytest.mark.parametrize("variant", SWITCHES)
@pytest.mark.parametrize("network", [{}, {"hierarchy": "step"}], ids=["4E", "4E-L"])
def test_every_problem_trains_a_batch(tmp_path: Path, variant: str, network: dict[str, Any]) -> None:
    """What is sampled is valid by the checker, and as long as its lengths say."""
    run = make_run(stage(sizes=(12, 12), variants=(variant,)), network=network, balance=0.01)
    batches = batches_of(run, tmp_path, double=False)
    spec = batches.batch_spec(0)
    batch, starts = batches.batch(spec), batches._starts(spec)
    instances = vrp_dataset(Dataset(problem="vrp", variant=variant, split="train", n=12, count=5))
    assert starts == number_of_starts(instances)
    with torch.no_grad():
        prepared = batches.net.prepare(batches.net.encode(*batch.features))
        choose = sampling(noise(0, 0, range(5), (starts, batches.environment.max_moves(12))))
        found = roll_out(batches.net, prepared, batch, batch.start_nodes(starts), choose)
        long = batch.lengths(found)
    for start in range(starts):
        own = found[:, start].numpy()
        assert valid(instances, own).all()
        np.testing.assert_allclose(lengths(instances, own), long[:, start].numpy(), rtol=1e-9)
    before = [p.detach().clone() for p in batches.net.parameters()]
    for index in range(2):
        assert batches.train(index)[0].isfinite()
    assert all(p.isfinite().all() for p in batches.net.parameters())
    moved = [not torch.equal(a, b) for a, b in zip(before, batches.net.parameters(), strict=True)]
    assert sum(moved) > 0.9 * len(moved)
