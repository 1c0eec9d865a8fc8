"""REINFORCE with multiple optima: against a plain loop, its draws, parts, stages, resuming, and that it learns."""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from neuroute.datasets.labels import load_tours
from neuroute.datasets.streams import dataset_coordinates
from neuroute.decoding.multi_start import complete, multi_start
from neuroute.errors import NeurouteError
from neuroute.networks.icam import Icam
from neuroute.networks.weights import build, load_checkpoint, save_checkpoint
from neuroute.plan.objects import Network, Run
from neuroute.plan.reinforced import Elite, Reinforced, Stage, single_size, three_stages
from neuroute.problems.cvrp import Cvrp, cost, is_feasible
from neuroute.problems.tsp import is_permutation, tour_length
from neuroute.training import reinforce as reinforcement
from neuroute.training import reinforce_cvrp, reinforce_tsp
from neuroute.training.advantages import advantages, weights
from neuroute.training.distributed import World
from neuroute.training.draws import instances_seen, noise, sampling, shapes
from neuroute.training.loop import TrainingLoop
from neuroute.training.reinforce import Reinforcement
from neuroute.training.stages import beside, export_stages, recall_moments
from neuroute.training.supervised import Scheme

from tiny import labels

CPU = torch.device("cpu")
N = 10


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class ReinforcedRun(Run):
    training: Reinforced  # type: ignore[assignment]


def stage(name: str = "only", **more: Any) -> Stage:
    return Stage(**({"name": name, "epochs": 1, "batches_per_epoch": 2, "sizes": (8, 8), "batch_size": 6} | more))


KINDS = {
    "pomo": ("neuroute.networks.pomo:Pomo", {"heads": 2}),
    "icam": ("neuroute.networks.icam:Icam", {}),
    "pomo_cvrp": ("neuroute.networks.pomo_cvrp:PomoCvrp", {"heads": 2}),
    "icam_cvrp": ("neuroute.networks.icam_cvrp:IcamCvrp", {}),
}


def make_run(*stages: Stage, depth: int = 1, kind: str = "pomo", **training: Any) -> ReinforcedRun:
    name, more = KINDS[kind]
    arguments = {"depth": depth, "width": 16, "feed_forward": 32, "train_nodes": N} | more
    return ReinforcedRun(
        paper="icam",
        name="tiny",
        network=Network(kind=name, arguments=arguments),
        training=Reinforced(stages=stages or (stage(),), **training),
        n=N,
        data=(),
        validation=labels("val", 16),
    )


def batches_of(run: Run, folder: Path, *, double: bool = False, net: Any = None, **scheme: Any) -> Reinforcement:
    torch.manual_seed(run.seed)
    net = net or (build(run.network).double() if double else build(run.network))
    settings: dict[str, Any] = {"state_dir": folder, "device": CPU, "world": World(), "memory_gb": 4.0}
    made = Scheme(run, net, net, [], net.state_dict, lambda: False, **(settings | scheme))
    reinforce = reinforce_cvrp if run.network.kind.endswith("Cvrp") else reinforce_tsp
    return reinforce.reinforce(made)


def gradients(batches: Reinforcement, index: int = 0) -> tuple[float, dict[str, Tensor]]:
    loss = batches.accumulate(batches.drawn(index))
    return float(loss), {name: p.grad.clone() for name, p in batches.net.named_parameters() if p.grad is not None}


def close(found: dict[str, Tensor], wanted: dict[str, Tensor], tolerance: float) -> None:
    assert found.keys() == wanted.keys()
    for name, gradient in wanted.items():
        torch.testing.assert_close(found[name], gradient, rtol=tolerance, atol=tolerance)


# -- the gradient ---------------------------------------------------------------------------------------------------


Built = tuple[float, Tensor]  # reward and log-probability of a solution


def choice(net: Any, prepared: Any, known: float, current: int, hidden: set[int], draw: float) -> tuple[int, Tensor]:
    """One decision: what is chosen, and its log-probability."""
    closed = torch.zeros(1, 1, prepared.nodes.shape[1], dtype=torch.float64)
    closed[..., list(hidden)] = -torch.inf
    asked = torch.tensor([[known]], dtype=torch.int64 if isinstance(known, int) else torch.float64)
    p = torch.softmax(net.decide(prepared, asked, torch.tensor([[current]]), closed)[0, 0], dim=0)
    sums = list(itertools.accumulate(p.tolist()))
    chosen = next(i for i, below in enumerate(sums) if below > draw * sums[-1])
    return chosen, torch.log(p[chosen])


def plain_tour(net: Any, instance: tuple[Tensor, ...], start: int, draws: list[float]) -> Built:
    (coords,) = instance
    prepared = net.prepare(net.encode(coords))
    tour, log_p = [start], torch.zeros((), dtype=torch.float64)
    for draw in draws:
        chosen, more = choice(net, prepared, start, tour[-1], set(tour), draw)
        tour.append(chosen)
        log_p = log_p + more
    tour += set(range(coords.shape[1])) - set(tour)
    return -float(tour_length(coords[0].numpy(), np.array(tour))), log_p


def plain_routes(net: Any, instance: tuple[Tensor, ...], start: int, draws: list[float]) -> Built:
    coords, demand, capacity = instance[0], instance[1][0].tolist(), int(instance[2])
    prepared = net.prepare(net.encode(coords, instance[1] / capacity))
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
    return -float((points[1:] - points[:-1]).norm(dim=1).sum()), log_p


def plain_loss(found: list[list[Built]], elite: Elite | None) -> Tensor:
    """Eq. 7 to 11 of icam, a solution at a time."""
    loss = torch.zeros((), dtype=torch.float64)
    for built in found:
        baseline = sum(reward for reward, _ in built) / len(built)
        for reward, log_p in built:
            loss = loss - (reward - baseline) * log_p / (len(found) * len(built))
        if elite:
            for reward, log_p in sorted(built, key=lambda pair: pair[0], reverse=True)[: elite.k]:
                loss = loss - elite.beta * (reward - baseline) * log_p / (len(found) * elite.k)
    return loss


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("elite", "starts"), [(None, None), (None, 5), (Elite(k=3, beta=0.7), None)])
def test_the_gradient_is_that_of_a_plain_loop(
    tmp_path: Path, kind: str, elite: Elite | None, starts: int | None
) -> None:
    cvrp = kind.endswith("cvrp")
    one = stage(batch_size=3, sizes=(6, 6), elite=elite, starts=starts, capacities=(9, 30) if cvrp else None)
    batches = batches_of(make_run(one, depth=2, kind=kind), tmp_path, double=True)
    drawn = batches.drawn(1)
    instances = batches.rollouts.instances(6, drawn.capacity, 4096, 3)
    moves = 10 if cvrp else 4
    uniform = noise(0, 1, range(3), (starts or 6, moves)).double().tolist()
    build_one = plain_routes if cvrp else plain_tour
    loss = plain_loss(
        [
            [
                build_one(batches.net, tuple(a[i : i + 1] for a in instances), j, draws)
                for j, draws in enumerate(numbers)
            ]
            for i, numbers in enumerate(uniform)
        ],
        elite,
    )
    loss.backward()
    wanted = {name: p.grad.clone() for name, p in batches.net.named_parameters() if p.grad is not None}
    batches.net.zero_grad(set_to_none=True)
    value, found = gradients(batches, 1)
    assert value == pytest.approx(float(loss.detach()), rel=1e-11)
    assert len(wanted) == len(list(batches.net.parameters()))
    assert max(float(g.abs().max()) for g in wanted.values()) > 1e-3
    close(found, wanted, 1e-11)


@pytest.mark.parametrize("kind", ["pomo", "icam_cvrp"])
@pytest.mark.parametrize("elite", [None, Elite(k=4)])
def test_in_parts_is_as_a_whole(
    tmp_path: Path, elite: Elite | None, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(stage(batch_size=7, elite=elite), kind=kind)
    loss, whole = gradients(batches_of(run, tmp_path, double=True))
    calls = []
    learn = Reinforcement._learn

    def counted(self: Reinforcement, drawn: Any, rows: Tensor, instances: Any) -> Tensor:
        calls.append((len(rows), self._moves_at_once(drawn, len(rows))))
        return learn(self, drawn, rows, instances)

    monkeypatch.setattr(Reinforcement, "_learn", counted)
    # Instances one by one and each move alone, some of both, all instances and some moves.
    nodes = 8 + kind.endswith("cvrp")
    for memory_gb, together in ((1e-9, 1), (1e-4, 1 << 19), (4.0, 7 * 8 * nodes * 3)):
        calls.clear()
        monkeypatch.setitem(reinforcement.TOGETHER, "cpu", together)
        part_loss, parts = gradients(batches_of(run, tmp_path, double=True, memory_gb=memory_gb))
        assert part_loss == pytest.approx(loss, rel=1e-11)
        close(parts, whole, 1e-12)
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


def test_advantages_over_the_shared_baseline_sum_to_zero() -> None:
    lengths = torch.rand(5, 9, dtype=torch.float64)
    found = advantages(lengths)
    torch.testing.assert_close(found.sum(1), torch.zeros(5, dtype=torch.float64), atol=1e-12, rtol=0)
    assert torch.equal(found.argmax(1), lengths.argmin(1))  # the shorter, the better
    torch.testing.assert_close(weights(lengths, None), found / 9)


def test_elites_count_once_more() -> None:
    lengths = torch.tensor([[3.0, 1, 2, 6], [4, 4, 0, 4]], dtype=torch.float64)
    found = weights(lengths, Elite(k=2, beta=0.5))
    mean = torch.tensor([[3.0], [3]])
    best = torch.tensor([[0.0, 1, 1, 0], [1, 0, 1, 0]])  # of equally long ones the first
    torch.testing.assert_close(found, (mean - lengths) * (1 / 4 + 0.5 * best / 2))
    torch.testing.assert_close(weights(lengths, Elite(k=4, beta=0.5)), 1.5 * weights(lengths, None))
    assert torch.equal(weights(lengths, Elite(k=2, beta=0)), weights(lengths, None))


# -- draws ----------------------------------------------------------------------------------------------------------


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
        found = batches.rollouts.instances(9, None, 0, 4)
        uniform = noise(0, 0, range(4), (9, batches.rollouts.moves(9)))
        with torch.no_grad():
            prepared = batches.rollouts.prepare(found)
            begun = batches.rollouts.begin(found, 9, prepared.nodes.dtype)
            solutions = complete(batches.net, prepared, begun, sampling(uniform))
            lengths = batches.rollouts.lengths(found, solutions)
        for i, j in itertools.product(range(4), range(9)):
            own = solutions[i, j : j + 1].numpy()
            if kind == "pomo":
                assert is_permutation(own).all()
                assert own[0, 0] == j
                assert tour_length(found[0][i].numpy(), own[0]) == pytest.approx(float(lengths[i, j]))
            else:
                one = Cvrp(*(a[i : i + 1].numpy() for a in found))
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
    rates = [pomo.learning_rate(157 * epoch) for epoch in (7999, 8000, 8049, 8050)]
    assert rates == pytest.approx([1e-4, 1e-5, 1e-5, 1e-6])
    assert Reinforced.model_validate_json(cvrp.canonical()) == cvrp


def test_batches_are_what_the_log_counts(tmp_path: Path) -> None:
    stages = (stage("a", sizes=(6, 9), batch_size=9, batch_nodes=6, batches_per_epoch=40), stage("b", epochs=3))
    run = make_run(*stages, batches_before=17)
    batches = batches_of(run, tmp_path)
    sizes = [batches.drawn(i).size for i in range(run.training.batches)]
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
    drawn = [batches.drawn(i) for i in range(5)]
    coords = torch.cat([batches.rollouts.instances(d.n, None, d.number * 4096, d.size)[0] for d in drawn])
    assert len(coords.unique(dim=0)) == 30
    numbers = torch.cat([noise(0, d.number, range(6), (8, 6)).flatten(1) for d in drawn])
    assert len(numbers.unique(dim=0)) == 30
    assert torch.equal(noise(0, 3, [4], (8, 6)), noise(0, 3, range(6), (8, 6))[4:5])
    assert not torch.equal(noise(0, 3, [4], (8, 6)), noise(1, 3, [4], (8, 6)))
    assert float(numbers.mean()) == pytest.approx(0.5, abs=0.03)


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


# -- stages, resuming -----------------------------------------------------------------------------------------------

STAGES = (
    stage("warm", batches_per_epoch=3, learning_rate=1e-2),
    stage("varying", epochs=2, sizes=(6, 9), batch_size=9, batch_nodes=6, learning_rate=1e-2),
    stage("elite", batches_per_epoch=3, elite=Elite(k=3), learning_rate=1e-3),
)


def go(run: Run, folder: Path, kill_at: int | None = None, start: Path | None = None) -> tuple[Reinforcement, Any]:
    """A run to its end, or until it is told to stop after batch `kill_at`."""
    batches = batches_of(run, folder)
    if start is not None:
        batches.net.load_state_dict(load_checkpoint(start)[0].state_dict())
        batches = Reinforcement(batches.scheme, batches.rollouts, start)
    train = batches.train

    def killed(index: int) -> tuple[Tensor, int]:
        if index == kill_at:
            os.kill(os.getpid(), signal.SIGTERM)
        return train(index)

    batches.train = killed  # type: ignore[method-assign]
    total, after = run.training.batches, run.training.validate_after
    validate: Callable[[], dict[str, float]] = lambda: {"none": 0.0}  # noqa: E731
    loop = TrainingLoop(batches.net, batches, total, validate, after, folder, World(), CPU)
    loop.resume()
    loop.run()
    return batches, loop


def same(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def test_a_killed_run_ends_with_the_same_weights(tmp_path: Path) -> None:
    """Stopped inside each stage and at their ends (batches 2 and 6 are the last of theirs)."""
    run = make_run(*STAGES, weight_decay=1e-6, clip=1.0)
    whole, loop = go(run, tmp_path / "whole")
    notes = [line for line in map(json.loads, loop.lines) if line["kind"] == "stage"]
    assert [(note["stage"], note["batch"]) for note in notes] == [("warm", 0), ("varying", 3), ("elite", 7)]
    assert [json.loads(line)["batch"] for line in loop.lines if '"validation"' in line] == [0, 3, 7, 10]
    for kill_at in (1, 2, 4, 6, 8):
        folder = tmp_path / str(kill_at)
        with pytest.raises(NeurouteError, match=f"at batch {kill_at + 1} of 10"):
            go(run, folder, kill_at)
        resumed, again = go(run, folder)
        assert same(resumed.net, whole.net)
        assert again.done == 10
        losses = [[json.loads(x)["loss"] for x in each.lines if '"train"' in x] for each in (loop, again)]
        assert losses[0] == losses[1]


def exported(run: Run, batches: Reinforcement, folder: Path, out: Path) -> None:
    """As the training stage leaves a run."""
    about = {"run": run.id, "network": run.network.model_dump(), "code": "c"}
    save_checkpoint(out / "model.safetensors", batches.net, about)
    export_stages(batches.training, folder, out, build(run.network), about)


def test_stages_as_runs_of_their_own_are_one_run(tmp_path: Path) -> None:
    """Weights at the end of each stage, moments and draws carry over: the fork of a stage is that stage."""
    run = make_run(*STAGES)
    whole, _ = go(run, tmp_path / "whole")
    out = tmp_path / "out"
    exported(run, whole, tmp_path / "whole", out)
    assert {path.name for path in out.iterdir()} == {
        f"{name}{end}" for name in ("warm", "varying", "model") for end in (".safetensors", ".moments.safetensors")
    }
    start = None
    for number, (each, name) in enumerate(zip(STAGES, ("warm", "varying", "model"), strict=True)):
        part = make_run(each, batches_before=run.training.ends[number - 1] if number else 0)
        alone, _ = go(part, tmp_path / name, start=start)
        assert same(alone.net, load_checkpoint(out / f"{name}.safetensors")[0])
        start = out / f"{name}.safetensors"
    fork = make_run(STAGES[2].model_copy(update={"elite": Elite(k=5, beta=0.9)}), batches_before=7)
    other, _ = go(fork, tmp_path / "fork", start=out / "varying.safetensors")
    assert not same(other.net, whole.net)


def test_moments_of_other_parameters_are_refused_and_none_are_no_fault(tmp_path: Path) -> None:
    run = make_run(STAGES[0])
    batches, _ = go(run, tmp_path / "state")
    exported(run, batches, tmp_path / "state", tmp_path)
    wider = batches_of(make_run(depth=2), tmp_path)
    recall_moments(
        tmp_path / "model.safetensors", wider.net, wider.optimizer
    )  # two of its parameters' layers have none
    assert len(wider.optimizer.state) == len(list(batches.net.parameters()))
    other = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(other.parameters())
    with pytest.raises(NeurouteError, match="does not fit this network"):
        recall_moments(tmp_path / "model.safetensors", other, optimizer)
    beside(tmp_path / "model.safetensors").unlink()
    recall_moments(tmp_path / "model.safetensors", other, optimizer)
    assert not optimizer.state


# -- several processes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Alone(World):
    """One of several processes, whose gradients nobody adds up."""

    def sum(self, value: Tensor) -> Tensor:
        return value


@pytest.mark.parametrize("size", [2, 3, 8])
def test_processes_share_a_batch(tmp_path: Path, size: int) -> None:
    """Also more processes than the batch has instances."""
    run = make_run(stage(elite=Elite(k=2)))
    loss, whole = gradients(batches_of(run, tmp_path, double=True))
    ranks = [gradients(batches_of(run, tmp_path, double=True, world=Alone(rank, size))) for rank in range(size)]
    assert sum(value for value, _ in ranks) / size == pytest.approx(loss, rel=1e-11)
    close({name: sum(found[name] for _, found in ranks) for name in whole}, whole, 1e-12)  # type: ignore[misc]


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from test_reinforce import STAGES, batches_of, make_run
from neuroute.training.distributed import join
torch.set_num_threads(1)
folder = Path(sys.argv[2])
with join(torch.device("cpu")) as world:
    batches = batches_of(make_run(*STAGES), folder, double=True, world=world)
    for index in range(10):
        batches.train(index)
    torch.save(batches.net.state_dict(), folder / f"{world.rank}.pt")
"""


def test_two_processes_equal_one(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    arguments = [str(script), str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run([*launch, *arguments], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    alone = batches_of(make_run(*STAGES), tmp_path / "alone", double=True)
    for index in range(10):
        alone.train(index)
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    for name, value in alone.net.state_dict().items():
        assert torch.equal(first[name], second[name])
        torch.testing.assert_close(first[name], value, rtol=1e-8, atol=1e-8)


# -- learning -------------------------------------------------------------------------------------------------------


def nearest(coords: np.ndarray) -> list[int]:
    tour = [0]
    while len(tour) < len(coords):
        apart = np.linalg.norm(coords - coords[tour[-1]], axis=1)
        apart[tour] = np.inf
        tour.append(int(apart.argmin()))
    return tour


def test_it_learns(tmp_path: Path, store: Path) -> None:
    """Single greedy tours of TSP10: gaps far below those of the untrained network and of the nearest neighbour."""
    own = labels("val", 16)
    coords = dataset_coordinates(own.dataset)

    def mean(tours: Any) -> float:
        return float(tour_length(coords, np.asarray(tours)).mean())

    best = mean(load_tours(own, [store]))
    training = stage("warm", batches_per_epoch=150, sizes=(N, N), batch_size=32, learning_rate=2e-3)
    batches = batches_of(make_run(training, depth=2), tmp_path)
    before = mean(multi_start(batches.net, coords, 1)) / best - 1
    for index in range(150):
        batches.train(index)
    after = mean(multi_start(batches.net, coords, 1)) / best - 1
    assert after < before / 3
    assert after < 0.6 * (mean([nearest(instance) for instance in coords]) / best - 1)


def test_memory_at_500_nodes_is_bounded(tmp_path: Path) -> None:
    """What is planned for icam's largest batch: 6 instances of 500 nodes with 500 tours each, in 4 GB."""
    run = make_run(stage(sizes=(500, 500), batch_size=160, batch_nodes=100))
    batches = batches_of(run, tmp_path, net=Icam())
    drawn = batches.drawn(0)
    assert drawn.size == 6
    instances = batches._instances_at_once(drawn)
    moves = batches._moves_at_once(drawn, instances)
    decisions = moves * instances * 500
    assert decisions * 500 <= reinforcement.TOGETHER["cpu"]
    assert decisions * 500 * reinforcement.LEARNING_BYTES < 1e8
