"""REINFORCE with multiple optima: against a plain loop, in parts, its advantages, what is refused, that it learns."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.icam import Icam
from neuroute.plan.reinforced import Elite
from neuroute.problems.tsp import tour_length
from neuroute.training import reinforce
from neuroute.training.policy_gradient import weights
from neuroute.training.reinforce import Reinforcement
from neuroute.training.sampling_streams import noise
from reinforcing import Built, assert_alike, backward, gradients, plain_loss
from tiny_reinforced import KINDS, batches_of, make_run, stage

pytestmark = pytest.mark.usefixtures("one_thread")


# -- the gradient ---------------------------------------------------------------------------------------------------


def choice(net: Any, prepared: Any, known: float, current: int, hidden: set[int], draw: float) -> tuple[int, Tensor]:
    """One decision: what is chosen, and its log-probability."""
    closed = torch.zeros(1, 1, prepared.nodes.shape[1], dtype=torch.float64)
    closed[..., list(hidden)] = -torch.inf
    asked = torch.tensor([[known]], dtype=torch.int64 if isinstance(known, int) else torch.float64)
    p = torch.softmax(net.decide(prepared, asked, torch.tensor([[current]]), closed)[0, 0], dim=0)
    sums = list(itertools.accumulate(p.tolist()))
    chosen = next(i for i, below in enumerate(sums) if below > draw * sums[-1])
    return chosen, torch.log(p[chosen])


def plain_tour(net: Any, instance: TspBatch, start: int, draws: list[float]) -> Built:
    coords = instance.coords
    prepared = net.prepare(net.encode(coords))
    tour, log_p = [start], torch.zeros((), dtype=torch.float64)
    for draw in draws:
        chosen, more = choice(net, prepared, start, tour[-1], set(tour), draw)
        tour.append(chosen)
        log_p = log_p + more
    tour += set(range(coords.shape[1])) - set(tour)
    return -round(float(tour_length(coords[0].numpy(), np.array(tour))), 9), log_p


def plain_routes(net: Any, instance: CvrpBatch, start: int, draws: list[float]) -> Built:
    coords, demand, capacity = instance.coords, instance.demand[0].tolist(), int(instance.capacity)
    prepared = net.prepare(net.encode(coords, instance.demand / capacity))
    walk, left, log_p = [0, start + 1], capacity - demand[start + 1], torch.zeros((), dtype=torch.float64)
    for draw in draws:
        if set(walk) == set(range(len(demand))):
            break
        hidden = {i for i, d in enumerate(demand) if i and (i in walk or d > left)}
        hidden |= {0} if walk[-1] == 0 else set()
        chosen, more = choice(net, prepared, left / capacity, walk[-1], hidden, draw)
        walk.append(chosen)
        left = left - demand[chosen] if chosen else capacity
        log_p = log_p + more
    points = coords[0][[*walk, 0]]
    return -round(float((points[1:] - points[:-1]).norm(dim=1).sum()), 9), log_p


@pytest.mark.usefixtures("rounded_lengths")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("elite", "starts"), [(None, None), (None, 5), (Elite(k=3, beta=0.7), None)])
def test_the_gradient_is_that_of_a_plain_loop(
    tmp_path: Path, kind: str, elite: Elite | None, starts: int | None
) -> None:
    cvrp = kind.endswith("cvrp")
    one = stage(batch_size=3, sizes=(6, 6), elite=elite, starts=starts, capacities=(9, 30) if cvrp else None)
    batches = batches_of(make_run(one, depth=2, kind=kind), tmp_path, double=True)
    spec = batches.batch_spec(1)
    batch = batches.batch(spec)
    moves = 10 if cvrp else 4
    uniform = noise(0, 1, range(3), (starts or 6, moves)).double().tolist()
    build_one = plain_routes if cvrp else plain_tour
    built = [
        [build_one(batches.net, batch[slice(i, i + 1)], j, draws) for j, draws in enumerate(numbers)]
        for i, numbers in enumerate(uniform)
    ]
    wanted = backward(batches.net, plain_loss(built, elite))
    assert len(wanted[1]) == len(list(batches.net.parameters()))
    assert max(float(g.abs().max()) for g in wanted[1].values()) > 1e-3
    assert_alike(gradients(batches, 1), wanted, 1e-11)


def test_norms_over_a_batch_look_at_all_of_it_however_busy_fewer_keep_a_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(stage(batch_size=7), kind="pointerformer")
    whole = gradients(batches_of(run, tmp_path, double=True))
    monkeypatch.setitem(reinforce.MAX_NODES_PER_BATCH, "cpu", 3 * 8 * 8)
    assert_alike(gradients(batches_of(run, tmp_path, double=True)), whole, 1e-11)
    monkeypatch.setattr(reinforce, "LEAST_NODES", 1)
    monkeypatch.setattr(Reinforcement, "_graphs", lambda *_: 2)
    assert_alike(gradients(batches_of(run, tmp_path, double=True)), whole, 1e-11)


@pytest.mark.usefixtures("rounded_lengths")
@pytest.mark.parametrize("kind", ["pomo", "icam_cvrp", "elg", "elg_cvrp"])
@pytest.mark.parametrize("elite", [None, Elite(k=4)])
def test_in_parts_is_as_a_whole(
    tmp_path: Path, elite: Elite | None, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One pass, two passes, two passes by parts: the same draws, solutions and gradients."""
    run = make_run(stage(batch_size=7, elite=elite), kind=kind)
    whole_batch = batches_of(run, tmp_path, double=True)
    assert whole_batch._in_one_pass(whole_batch.batch_spec(0), 7)
    whole = gradients(whole_batch)
    calls = []
    learn = Reinforcement._learn_again

    def counted(self: Reinforcement, spec: Any, rows: range, *given: Any) -> Tensor:
        calls.append((len(rows), self._moves_per_part(spec, len(rows))))
        return learn(self, spec, rows, *given)

    monkeypatch.setattr(Reinforcement, "_in_one_pass", lambda *_: False)
    monkeypatch.setattr(Reinforcement, "_learn_again", counted)
    # Instances one by one and each move alone, some of both, all instances and some moves.
    nodes = 8 + kind.endswith("cvrp")
    for memory_gb, together in ((1e-9, 1), (1e-4, 1 << 19), (4.0, 7 * 8 * nodes * 3)):
        calls.clear()
        monkeypatch.setitem(reinforce.MAX_NODES_PER_BATCH, "cpu", together)
        assert_alike(gradients(batches_of(run, tmp_path, double=True, memory_gb=memory_gb)), whole, 1e-11)
        sizes, moves = zip(*calls, strict=True)
        assert sum(sizes) == 7
        assert {1e-9: len(sizes) == 7, 1e-4: 1 < len(sizes) < 7, 4.0: moves == (3,)}[memory_gb]
        assert memory_gb > 1e-9 or set(moves) == {1}


def test_bf16_is_near(tmp_path: Path) -> None:
    run = make_run(stage(batch_size=16))
    fine, coarse = (batches_of(make_run(*run.training.stages, precision=p), tmp_path) for p in ("fp32", "bf16"))
    wanted, found = gradients(fine)[1], gradients(coarse)[1]  # of other tours here and there: rounding moves choices
    names = list(wanted)
    a, b = (torch.cat([g[name].flatten() for name in names]) for g in (wanted, found))
    assert b.isfinite().all()
    assert torch.cosine_similarity(a, b, dim=0) > 0.5
    assert all(gradient.dtype == torch.float32 for gradient in found.values())


# -- advantages -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scaled", "wanted"), [(None, [0, 2, 1, -3]), ("largest", [0, 1, 0.5, -1.5]), ("deviation", [0, 2, 1, -3])]
)
def test_advantages_are_scaled(scaled: Any, wanted: list[float]) -> None:
    """Where all solutions are as long none counts, and nothing is divided by 0."""
    lengths = torch.tensor([[3.0, 1, 2, 6], [4, 4, 4, 4]], dtype=torch.float64)
    unit = 3.5**0.5 if scaled == "deviation" else 1.0
    found = weights(lengths, None, scaled=scaled)
    torch.testing.assert_close(found[0], torch.tensor(wanted).double() / unit / 4, rtol=1e-7, atol=0)
    assert not found[1].any()


def test_elites_count_once_more() -> None:
    lengths = torch.tensor([[3.0, 1, 2, 6], [4, 4, 0, 4]], dtype=torch.float64)
    found = weights(lengths, Elite(k=2, beta=0.5))
    mean = torch.tensor([[3.0], [3]])
    best = torch.tensor([[0.0, 1, 1, 0], [1, 0, 1, 0]])  # of equally long ones the first
    torch.testing.assert_close(found, (mean - lengths) * (1 / 4 + 0.5 * best / 2))
    torch.testing.assert_close(weights(lengths, Elite(k=4, beta=0.5)), 1.5 * weights(lengths, None))
    assert torch.equal(weights(lengths, Elite(k=2, beta=0)), weights(lengths, None))


# -- what is refused ------------------------------------------------------------------------------------------------


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    for wrong, what in (
        ({"sizes": (3, 8)}, "sizes: 3 to 8"),
        ({"sizes": (9, 8)}, "sizes: 9 to 8"),
        ({"sizes": (8, 20), "batch_nodes": 8, "batch_size": 5}, "leaves none at 20"),
        ({"batch_size": 5000}, "the most are 4096"),
        ({"elite": Elite(k=9)}, "elite.k: the best 9 of 8"),
        ({"elite": Elite(k=5), "starts": 4}, "elite.k: the best 5 of 4"),
        ({"starts": 9}, "starts: 9"),
        ({"capacities": (8, 20)}, "capacities"),
        ({"drops": (1,)}, "drops"),
        ({"name": "Stage 1"}, "name"),
    ):
        with pytest.raises(ValueError, match=what):
            stage(**wrong)
    with pytest.raises(ValueError, match="names of their own"):
        make_run(stage("a"), stage("a"))
    with pytest.raises(NeurouteError, match="stage 'only' draws capacities"):
        batches_of(make_run(stage(capacities=(50, 100))), tmp_path)
    with pytest.raises(NeurouteError, match="with many starts"):
        batches_of(make_run(), tmp_path, net=torch.nn.Linear(1, 1))


@pytest.mark.parametrize("kind", ["icam", "icam_cvrp", "pomo_cvrp"])
def test_a_training_that_diverges_says_so_at_once(kind: str, tmp_path: Path) -> None:
    """So that nothing is validated with weights that are no numbers: greedy routes would be built forever."""
    first = stage("first", batches_per_epoch=9, batch_size=4, learning_rate=1e30)
    training = batches_of(make_run(first, kind=kind), tmp_path)
    with pytest.raises(NeurouteError, match=r"icam/tiny: diverged at batch \d, in stage 'first'.*learning rate"):
        all(training.train(index) for index in range(8))
    assert not (tmp_path / "stages").exists()
    training = batches_of(make_run(kind=kind), tmp_path)
    training.train(0)
    next(training.net.parameters()).register_hook(lambda gradient: gradient * torch.nan)
    with pytest.raises(NeurouteError, match="diverged at batch 1"):
        training.train(1)


# -- learning -------------------------------------------------------------------------------------------------------


def test_memory_at_500_nodes_is_bounded(tmp_path: Path) -> None:
    """What is planned for icam's largest batch: 6 instances of 500 nodes with 500 tours each, in 4 GB."""
    run = make_run(stage(sizes=(500, 500), batch_size=160, batch_nodes=100))
    batches = batches_of(run, tmp_path, net=Icam())
    spec = batches.batch_spec(0)
    assert spec.size == 6
    instances = batches._instances_per_part(spec, 6)
    assert not batches._in_one_pass(spec, instances)
    decisions = batches._moves_per_part(spec, instances) * instances * 500
    assert decisions * 500 <= reinforce.MAX_NODES_PER_BATCH["cpu"]
    assert decisions * 500 * reinforce.LEARNING_BYTES < 1e8
