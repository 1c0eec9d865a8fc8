"""Training of H-TSP: advantages and losses by plain loops, what a batch leaves, what is refused."""

import math
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.evaluation.flops import training_per_sample
from neuroute.specs.objects import Network, Run
from neuroute.training.batches import World
from neuroute.training.sampling_streams import noise, sampling
from neuroute_systems.htsp.decoding import PathBatch
from neuroute_systems.htsp.network import Htsp
from neuroute_systems.htsp.system import HtspTraining, Proximal
from neuroute_systems.htsp.training import (
    JointBatches,
    PathBatches,
    Rows,
    estimate_advantages,
    levels,
    shuffled,
)
from reinforcing import assert_alike, backward, gradients
from tiny import N, copy_weights, same_weights, scheme_of
from tiny_reinforced import stage
from tiny_systems import htsp_run as make_run

pytestmark = pytest.mark.usefixtures("one_thread")


def batches_of(run: Run, folder: Path, *, double: bool = True, **more: Any) -> Any:
    return levels(scheme_of(run, None, folder, double=double, **more))


# -- the upper level --------------------------------------------------------------------------------------------------


def test_an_advantage_is_the_surprise_now_and_a_share_of_the_next() -> None:
    """The last step's is its reward, as published."""
    generator = torch.Generator().manual_seed(0)
    rewards, values = (torch.randn(6, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    found = estimate_advantages(rewards, values, 0.9)
    for episode in range(3):
        reward, value = rewards[:, episode].tolist(), values[:, episode].tolist()
        wanted = reward[-1]
        for step in reversed(range(5)):
            assert float(found[step + 1, episode]) == pytest.approx(wanted, abs=1e-12)
            wanted = reward[step] + value[step + 1] - value[step] + 0.9 * wanted
        assert float(found[0, episode]) == pytest.approx(wanted, abs=1e-12)


def plain_losses(batches: JointBatches, rows: Rows) -> tuple[Tensor, Tensor]:
    """Of actor and critic, one row after the other."""
    how, upper, zero = batches.how, batches.whole.upper, torch.zeros((), dtype=torch.float64)
    deviation, count = upper.log_deviation.exp(), len(rows.states)
    actor, critic = zero, zero
    for state, action, anchor, before, advantage, wanted in zip(*rows, strict=True):
        means, value = (each[0] for each in upper(state[None]))
        density = (-0.5 * ((action - means) / deviation) ** 2).exp() / (deviation * math.sqrt(2 * math.pi))
        ratio = density.prod() / before.exp()
        limited = min(max(ratio.item(), 1 - how.clip_ratio), 1 + how.clip_ratio)
        is_limited = limited * advantage.item() < ratio.item() * advantage.item()
        apart = ((means.tanh() - (2 * anchor - 1)) ** 2).mean()
        actor = actor + (how.anchor * apart - (limited if is_limited else ratio) * advantage) / count
        critic = critic + (value - wanted) ** 2 / count
    entropy = (0.5 * (2 * math.pi * math.e * deviation**2).log()).mean()
    return actor - batches.entropy * entropy, critic / (rows.returns.std() + 1e-6)


def test_losses_are_those_of_plain_rows(tmp_path: Path) -> None:
    """Whose ratios lie inside and outside of the limits, with advantages of both signs."""
    batches = batches_of(make_run(), tmp_path)
    steps, _ = batches._play(0, torch.Generator().manual_seed(0))
    rows = batches._estimate(steps)
    rewards = steps.rewards.T
    wanted_returns = torch.stack([rewards[:, step:].sum(dim=1) for step in range(3)], dim=1)
    torch.testing.assert_close(rows.returns, wanted_returns.flatten())
    rows = rows._replace(log_p=rows.log_p + 0.4 * torch.randn(len(rows.log_p), dtype=torch.float64))
    upper = batches.whole.upper
    for part, loss in enumerate((batches._actor_loss, batches._critic_loss)):
        assert_alike(backward(upper, loss(rows)), backward(upper, plain_losses(batches, rows)[part]), 1e-9)


def test_targets_follow_once_a_pass_and_the_entropy_loses_weight(tmp_path: Path) -> None:
    batches = batches_of(make_run(upper=True), tmp_path)
    before, start = copy_weights(batches.targets), batches.entropy
    steps, _ = batches._play(0, torch.Generator().manual_seed(0))
    updates = batches._learn_upper(steps, torch.Generator().manual_seed(1))[1]
    how, rows = batches.how, steps.rewards.numel()
    assert updates == how.passes * (rows // how.minibatch)
    after, now = batches.targets.state_dict(), batches.whole.upper.state_dict()
    moved = sum(float((after[name] - before[name]).norm()) for name in before)
    gone = sum(float((now[name] - before[name]).norm()) for name in before)
    assert 0 < moved < 2 * how.passes * how.target_rate * gone
    assert start - 0.3 * updates * how.entropy_rate < batches.entropy < start  # 0.42 at first, and 0.2 is wanted


def test_what_episodes_leave(tmp_path: Path) -> None:
    """Log-probabilities of the actions by the weights that took them, rewards, fragments of the last steps."""
    batches = batches_of(make_run(buffer=20), tmp_path)
    steps, growth = batches._play(0, torch.Generator().manual_seed(0))
    assert steps.rewards.shape == (3, 8)  # steps, environments of two rounds
    assert growth == pytest.approx(-float(steps.rewards.sum()) / 8)
    upper, rows = batches.whole.upper, batches._estimate(steps)
    with torch.no_grad():
        normal = torch.distributions.Normal(upper.act(rows.states), upper.log_deviation.exp())
    torch.testing.assert_close(rows.log_p, normal.log_prob(rows.actions).sum(dim=1))
    assert batches.fragments.shape == (20, 6, 2)  # of 24
    again, same = batches_of(make_run(), tmp_path)._play(0, torch.Generator().manual_seed(0))
    assert same == growth
    assert torch.equal(again.actions, steps.actions)


# -- the lower level --------------------------------------------------------------------------------------------------


def test_paths_learn_as_tours_do(tmp_path: Path) -> None:
    """The gradient is that of one graph through all constructions; the upper level has none."""
    batches = batches_of(make_run(upper=False), tmp_path)
    spec = batches.batch_spec(0)
    net, batch = batches.net, batches.batch(spec)
    prepared = net.prepare(net.encode(batch.coords))
    starts = batch.start_nodes(6)
    choose = sampling(noise(0, 0, range(spec.size), (6, 4)))
    rollout, log_p = batch.rollout(starts, torch.float64), torch.zeros(spec.size, 6, dtype=torch.float64)
    while not rollout.done():
        logs = net.decide(prepared, rollout.context, rollout.current, rollout.action_mask).log_softmax(-1)
        stops = choose(logs.detach())
        log_p = log_p + logs.gather(2, stops[..., None])[..., 0]
        rollout.step(stops)
    lengths = batch.lengths(rollout.solutions())
    wanted = backward(net, ((lengths - lengths.mean(dim=1, keepdim=True)) * log_p).mean())
    assert_alike(gradients(batches), wanted, 1e-9)
    assert isinstance(batch, PathBatch)
    assert all(p.grad is None for p in batches.whole.upper.parameters())


def test_fragments_are_learnt_between_any_two_of_their_nodes() -> None:
    points = torch.rand(200, 6, 2)
    paths = shuffled(points, torch.Generator().manual_seed(0))
    torch.testing.assert_close(paths.sum(dim=1), points.sum(dim=1))
    for end in (0, -1):
        places = (points == paths[:, end, None]).all(dim=2).int().argmax(dim=1)
        assert set(places.tolist()) == set(range(6))


def test_both_levels_move_and_only_they(tmp_path: Path) -> None:
    """Rates are each level's own; a state that goes on elsewhere ends alike."""
    run = make_run()
    whole, other = (batches_of(run, tmp_path / name, double=False) for name in ("whole", "other"))
    before = copy_weights(whole.whole)
    whole.train(0)
    kept, weights, moments = (
        deepcopy(each) for each in (whole.state(), whole.whole.state_dict(), whole.optimizer.state_dict())
    )
    other.whole.load_state_dict(weights)
    other.optimizer.load_state_dict(moments)
    other.restore(kept)
    torch.manual_seed(5)
    for batches in (whole, other):
        batches.train(1)
    now = whole.whole.state_dict()
    assert same_weights(other.whole.state_dict(), now)
    still = [name for name, tensor in now.items() if torch.equal(tensor, before[name])]
    assert still == []
    assert [note["kind"] for note in whole.notes()] == ["stage", "episodes", "episodes"]


def test_the_whole_network_is_left_and_counted(tmp_path: Path) -> None:
    run = make_run()
    batches = batches_of(run, tmp_path, double=False)
    assert isinstance(batches, JointBatches)
    assert batches.samples(3) == run.training.samples * run.training.epochs == 3 * 2 * 5
    assert isinstance(batches._stage_network(), Htsp)
    both, lower = training_per_sample(run), training_per_sample(make_run(upper=False))
    assert both > lower > 0
    assert type(batches_of(make_run(upper=False), tmp_path)) is PathBatches


# -- what is refused --------------------------------------------------------------------------------------------------


def test_settings_that_do_not_fit() -> None:
    for more in ({"stages": (stage(sizes=(5, 6)),)}, {"stages": (stage("a"), stage("b", sizes=(6, 6)))}):
        with pytest.raises(ValidationError, match="fragments have one size"):
            HtspTraining(**more)
    with pytest.raises(ValidationError, match="updates: of the lower level"):
        HtspTraining(stages=(stage(),), updates=2)
    with pytest.raises(ValidationError, match="clip_ratio"):
        Proximal(clip_ratio=0)


def test_runs_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(NeurouteError, match=r"fragments have 6 nodes; give stages `sizes: \[6, 6\]`"):
        batches_of(make_run(stage={"sizes": (8, 8)}), tmp_path)
    pomo = Network(kind="neuroute.networks.pomo:Pomo", arguments={"depth": 1, "width": 16, "heads": 2})
    with pytest.raises(NeurouteError, match="is for Htsp, not Pomo"):
        batches_of(make_run().model_copy(update={"network": pomo}), tmp_path)
    with pytest.raises(NeurouteError, match="trained by one process, not 2"):
        batches_of(make_run(), tmp_path, world=replace(World(), size=2))
    diverging = batches_of(make_run(), tmp_path)
    diverging.whole.upper.log_deviation.data.fill_(math.nan)
    with pytest.raises(NeurouteError, match="diverged at batch 0, stage 'only'"):
        diverging.train(0)


def test_smaller_instances_are_fragments_of_their_own(tmp_path: Path) -> None:
    run = make_run(network={"fragment": 12, "added": 8}, stage={"sizes": (N, N)})
    batches = batches_of(run, tmp_path, double=False)
    batches.train(0)
    assert batches.fragments.shape == (8, N, 2)
