"""REINFORCE with multiple optima: against a plain loop, in parts, advantages, draws, and what is refused."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from published_trainings import single_size, three_stages
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.decoding.cvrp import CvrpBatch
from neuroute.decoding.multi_start import roll_out
from neuroute.decoding.tsp import TspBatch
from neuroute.networks.icam import Icam
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.tsp import is_permutation, tour_length
from neuroute.problems.vrp import Vrp
from neuroute.specs.trainings import Elite, Reinforced
from neuroute.training import reinforce
from neuroute.training.policy_gradient import weights
from neuroute.training.reinforce import Reinforcement
from neuroute.training.sampling_streams import distribution, instances_seen, noise, sampling, shapes
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
    learn = Reinforcement._learn_in_two_passes

    def counted(self: Reinforcement, spec: Any, rows: range, *given: Any) -> Tensor:
        calls.append((len(rows), self._moves_per_part(spec, len(rows))))
        return learn(self, spec, rows, *given)

    monkeypatch.setattr(Reinforcement, "_in_one_pass", lambda *_: False)
    monkeypatch.setattr(Reinforcement, "_learn_in_two_passes", counted)
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


@pytest.mark.parametrize("kind", ["icam", "icam_cvrp", "pomo_cvrp"])
def test_a_training_that_diverges_says_so_at_once(kind: str, tmp_path: Path) -> None:
    """So that nothing is validated with weights that are no numbers: greedy routes would be built forever."""
    first = stage("first", batches_per_epoch=9, batch_size=4, learning_rate=1e30)
    training = batches_of(make_run(first, kind=kind), tmp_path)
    with pytest.raises(NeurouteError, match=r"icam/tiny: diverged at batch \d, stage 'first'.*learning rate"):
        all(training.train(index) for index in range(8))
    assert not (tmp_path / "stages").exists()
    training = batches_of(make_run(kind=kind), tmp_path)
    training.train(0)
    next(training.net.parameters()).register_hook(lambda gradient: gradient * torch.nan)
    with pytest.raises(NeurouteError, match="diverged at batch 1"):
        training.train(1)


# -- draws -----------------------------------------------------------------------------------------------------------


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


def test_samples_follow_the_probabilities() -> None:
    closed = torch.tensor([0.0, -torch.inf, 0, 0, -torch.inf])
    logits = (torch.tensor([0.3, 9, -0.5, 1.2, 9]) + closed).expand(1, 40_000, 5)
    chosen = sampling(noise(7, 0, [0], (40_000, 1)))(logits).flatten()
    shares = torch.bincount(chosen, minlength=5) / 40_000
    torch.testing.assert_close(shares, torch.softmax(logits[0, 0], 0), atol=0.01, rtol=0)
    assert shares[1] == shares[4] == 0


@pytest.mark.parametrize("uniform", [0.0, 1 - 2.0**-24])
@pytest.mark.parametrize("n", [4, 50, 500])
def test_what_is_closed_is_never_chosen(uniform: float, n: int) -> None:
    logits = torch.randn(3, 200, n, generator=torch.Generator().manual_seed(1)) * 20
    logits[..., [0, -1]] = -torch.inf
    logits[torch.rand(3, 200, n) < 0.4] = -torch.inf
    logits[..., n // 2] = 0
    chosen = sampling(torch.full((3, 200, 1), uniform))(logits)
    assert logits.gather(-1, chosen[..., None]).isfinite().all()


def test_sampled_solutions_are_feasible_and_lengths_theirs(tmp_path: Path) -> None:
    for kind in ("pomo", "pomo_cvrp"):
        batches = batches_of(make_run(depth=2, kind=kind), tmp_path, double=True)
        batch = batches.batch(batches.batch_spec(0)._replace(n=9, size=4))
        uniform = noise(0, 0, range(4), (9, batches.environment.max_moves(9)))
        with torch.no_grad():
            prepared = batches.net.prepare(batches.net.encode(*batch.features))
            solutions = roll_out(batches.net, prepared, batch, batch.start_nodes(9), sampling(uniform))
            lengths = batch.lengths(solutions)
        for i, j in itertools.product(range(4), range(9)):
            own = solutions[i, j : j + 1].numpy()
            if kind == "pomo":
                assert is_permutation(own).all()
                assert own[0, 0] == j
                assert tour_length(batch.coords[i].numpy(), own[0]) == pytest.approx(float(lengths[i, j]))
            else:
                one = Vrp(*(a[i : i + 1].numpy() for a in (batch.coords, batch.demand, batch.capacity)))
                assert is_feasible(one, own).all()
                assert own[0, 0, 0] == j + 1
                assert cost(one, own)[0] == pytest.approx(float(lengths[i, j]))


def test_all_sizes_and_capacities_are_drawn_and_batches_follow_the_rule() -> None:
    second = three_stages("cvrp").stages[1]
    sizes, capacities = shapes(second, 5, 0, 50_000)
    assert capacities is not None
    assert set(sizes.tolist()) == set(range(100, 501))
    assert set(capacities.tolist()) == set(range(50, 101))
    assert sizes.mean() == pytest.approx(300, abs=2)
    assert abs(np.corrcoef(sizes, capacities)[0, 1]) < 0.02
    later, _ = shapes(second, 5, 1234, 10)
    np.testing.assert_array_equal(later, sizes[1234:1244])
    assert not np.array_equal(shapes(second, 6, 0, 100)[0], sizes[:100])
    assert all(second.batch_of(n) == int(128 * (100 / n) ** 2) for n in range(100, 501))
    assert [three_stages("tsp").stages[1].batch_of(n) for n in (100, 200, 500)] == [160, 40, 6]


def test_the_published_trainings() -> None:
    tsp, cvrp = three_stages("tsp"), three_stages("cvrp")
    assert (tsp.epochs, cvrp.epochs) == (2500, 1000)
    assert [s.epochs for s in tsp.stages] == [100, 2200, 200]
    assert [s.epochs for s in cvrp.stages] == [100, 700, 200]
    assert [tsp.stages[0].batch_of(100), cvrp.stages[0].batch_of(100)] == [256, 128]
    assert (tsp.clip, cvrp.clip, tsp.weight_decay) == (None, 5.0, 0)
    assert [tsp.learning_rate(i) for i in (0, 2_299_999, 2_300_000)] == [1e-4, 1e-4, 1e-5]
    assert [s.elite for s in tsp.stages] == [None, None, Elite(k=20, beta=0.1)]
    pomo = single_size("cvrp")
    assert pomo.weight_decay == 1e-6
    rates = [pomo.learning_rate(157 * epoch) for epoch in (30_399, 30_400, 30_449, 30_450)]
    assert rates == pytest.approx([1e-4, 1e-5, 1e-5, 1e-6])
    assert Reinforced.model_validate_json(cvrp.canonical()) == cvrp


def test_batches_are_what_the_log_counts(tmp_path: Path) -> None:
    stages = (stage("a", sizes=(6, 9), batch_size=9, batch_nodes=6, batches_per_epoch=40), stage("b", epochs=3))
    run = make_run(*stages, batches_before=17)
    batches = batches_of(run, tmp_path)
    sizes = [batches.batch_spec(i).size for i in range(run.training.batches)]
    assert set(sizes[:40]) == {9, 6, 5, 4}
    assert sizes[40:] == [6] * 6
    assert [batches.samples(i) for i in range(47)] == [0, *np.cumsum(sizes)]
    np.testing.assert_array_equal(instances_seen(run.training, 0), [0, *np.cumsum(sizes)])
    assert run.training.validate_after == {40, 46}
    many = make_run(stage("a", sizes=(6, 9), batch_size=9, batch_nodes=6, batches_per_epoch=20_000)).training
    expected = many.stages[0].expected_instances()
    assert list(expected) == [6, 7, 8, 9]
    assert sum(expected.values()) == pytest.approx(instances_seen(many, 0)[-1], rel=0.01)
    assert stage(epochs=5, validations=4).batches == 10
    assert make_run(stage(epochs=5, validations=4)).training.validate_after == {2, 5, 8, 10}


def test_no_batch_sees_what_another_saw(tmp_path: Path) -> None:
    batches = batches_of(make_run(stage(batches_per_epoch=5)), tmp_path)
    specs = [batches.batch_spec(i) for i in range(5)]
    coords = torch.cat([batches.batch(spec).coords for spec in specs])
    assert len(coords.unique(dim=0)) == 30
    numbers = torch.cat([noise(0, spec.number, range(6), (8, 6)).flatten(1) for spec in specs])
    assert len(numbers.unique(dim=0)) == 30
    assert torch.equal(noise(0, 3, [4], (8, 6)), noise(0, 3, range(6), (8, 6))[4:5])
    assert not torch.equal(noise(0, 3, [4], (8, 6)), noise(1, 3, [4], (8, 6)))
    assert float(numbers.mean()) == pytest.approx(0.5, abs=0.03)


def test_distributions_are_drawn_evenly_and_by_number_alone() -> None:
    mixed = stage(distributions=("uniform", "centred", "half-centred"))
    drawn = [distribution(mixed, 3, number) for number in range(300)]
    assert all(80 < drawn.count(name) < 120 for name in mixed.distributions)
    assert distribution(stage(), 3, 5) == "uniform"
    batches = batches_of(make_run(mixed.model_copy(update={"epochs": 4}), kind="elg_cvrp"), Path())
    assert [batches.batch_spec(i).distribution for i in range(8)] == [distribution(mixed, 0, i) for i in range(8)]
