"""What REINFORCE draws: sizes, capacities, numbers and from these solutions; its published trainings."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from published_trainings import single_size, three_stages

from neuroute.decoding.multi_start import roll_out
from neuroute.plan.reinforced import Elite, Reinforced
from neuroute.problems.cvrp import cost, is_feasible
from neuroute.problems.tsp import is_permutation, tour_length
from neuroute.problems.vrp import Vrp
from neuroute.training.sampling_streams import distribution, instances_seen, noise, sampling, shapes
from tiny_reinforced import batches_of, make_run, stage

pytestmark = pytest.mark.usefixtures("one_thread")


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
