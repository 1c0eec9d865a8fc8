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

from neuroute.accounting.flops import training_per_sample
from neuroute.core.errors import NeurouteError
from neuroute.specs.objects import Network, Run
from neuroute.systems.htsp.decoding import PathBatch
from neuroute.systems.htsp.network import Htsp, place_of
from neuroute.systems.htsp.system import HtspTraining, Proximal
from neuroute.systems.htsp.training import JointBatches, PathBatches, Steps, estimate_advantages, levels
from neuroute.training.distributed import World
from neuroute.training.sampling_streams import noise, sampling
from reinforcing import assert_alike, backward, gradients
from tiny import N, copy_weights, same_weights, scheme_of
from tiny_reinforced import stage
from tiny_systems import htsp_run as make_run

pytestmark = pytest.mark.usefixtures("one_thread")


def batches_of(run: Run, folder: Path, *, double: bool = True, **more: Any) -> Any:
    return levels(scheme_of(run, None, folder, double=double, **more))


# -- the upper level --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("discount", "trace"), [(1.0, 0.9), (0.95, 0.7), (1.0, 1.0), (0.9, 0.0)])
def test_advantages_are_sums_of_surprises(discount: float, trace: float) -> None:
    """Of each step all later ones, weighed by (discount * trace)^distance; after the last step nothing is worth."""
    generator = torch.Generator().manual_seed(0)
    rewards, values = (torch.randn(6, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    found = estimate_advantages(rewards, values, discount, trace)
    for episode in range(3):
        reward, value = rewards[:, episode].tolist(), [*values[:, episode].tolist(), 0.0]
        surprise = [r + discount * value[t + 1] - value[t] for t, r in enumerate(reward)]
        for t in range(6):
            wanted = sum((discount * trace) ** (later - t) * surprise[later] for later in range(t, 6))
            assert float(found[t, episode]) == pytest.approx(wanted, abs=1e-12)


def plain_loss(batches: JointBatches, steps: Steps) -> Tensor:
    """One row after the other."""
    how, upper, total = batches.how, batches.whole.upper, torch.zeros((), dtype=torch.float64)
    deviation = upper.log_deviation.exp()
    for state, action, before, anchor, advantage, wanted in zip(*steps, strict=True):
        means, value = (each[0] for each in upper(state[None]))
        density = (-0.5 * ((action - means) / deviation) ** 2).exp() / (deviation * math.sqrt(2 * math.pi))
        ratio = density.prod() / before.exp()
        limited = min(max(ratio.item(), 1 - how.clip_ratio), 1 + how.clip_ratio)
        is_limited = limited * advantage.item() < ratio.item() * advantage.item()
        total = total - (limited if is_limited else ratio) * advantage
        total = total + how.value * (value - wanted) ** 2
        total = total + how.anchor * ((place_of(means) - anchor) ** 2).mean()
    return total / len(steps.states) - math.exp(batches.log_entropy) * upper.log_deviation.sum()


def test_the_loss_is_that_of_plain_rows(tmp_path: Path) -> None:
    """Whose ratios lie inside and outside of the limits, with advantages of both signs."""
    batches = batches_of(make_run(), tmp_path)
    steps, _ = batches._play(0, torch.Generator().manual_seed(0))
    assert len(steps.states) == 2 * 4 * 3  # rounds, environments, steps
    steps = steps._replace(log_p=steps.log_p + 0.4 * torch.randn(len(steps.log_p), dtype=torch.float64))
    upper = batches.whole.upper
    wanted = backward(upper, plain_loss(batches, steps))
    assert_alike(backward(upper, batches._loss(steps)), wanted, 1e-9)


def test_what_episodes_leave(tmp_path: Path) -> None:
    """Log-probabilities of the actions by the weights that took them, returns, fragments of the last steps."""
    batches = batches_of(make_run(buffer=20), tmp_path)
    steps, growth = batches._play(0, torch.Generator().manual_seed(0))
    upper = batches.whole.upper
    with torch.no_grad():
        means, values = upper(steps.states)
    normal = torch.distributions.Normal(means, upper.log_deviation.exp())
    torch.testing.assert_close(steps.log_p, normal.log_prob(steps.actions).sum(dim=1))
    assert float(steps.advantages.mean()) == pytest.approx(0, abs=1e-9)
    assert float(steps.advantages.std(correction=0)) == pytest.approx(1, abs=1e-6)
    raw = steps.returns - values
    torch.testing.assert_close(steps.advantages, (raw - raw.mean()) / (raw.std(correction=0) + 1e-8))
    assert batches.fragments.shape == (20, 6, 2)  # of 24
    assert growth > 0
    again, same = batches_of(make_run(), tmp_path)._play(0, torch.Generator().manual_seed(0))
    assert same == growth
    assert torch.equal(again.actions, steps.actions)


def test_targets_follow_slowly_and_the_entropy_is_steered(tmp_path: Path) -> None:
    run = make_run(upper=True)
    batches = batches_of(run, tmp_path)
    before = copy_weights(batches.targets)
    steps, _ = batches._play(0, torch.Generator().manual_seed(0))
    start, updates = batches.log_entropy, batches._learn_upper(steps, torch.Generator().manual_seed(1))[1]
    assert updates == 2 * 3  # passes, minibatches of 10 of 24 rows
    after, now = batches.targets.state_dict(), batches.whole.upper.state_dict()
    moved = [float((after[name] - before[name]).norm()) for name in before]
    gone = [float((now[name] - before[name]).norm()) for name in before]
    assert 0 < sum(moved) < 0.05 * sum(gone)
    assert batches.log_entropy < start  # two dimensions of deviation 0.37 have more entropy than 0.2


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
    while not rollout.is_complete():
        logs = net.decide(prepared, rollout.context, rollout.current, rollout.mask).log_softmax(-1)
        stops = choose(logs.detach())
        log_p = log_p + logs.gather(2, stops[..., None])[..., 0]
        rollout.go(stops)
    lengths = batch.lengths(rollout.solutions())
    wanted = backward(net, ((lengths - lengths.mean(dim=1, keepdim=True)) * log_p).mean())
    assert_alike(gradients(batches), wanted, 1e-9)
    assert isinstance(batch, PathBatch)
    assert all(p.grad is None for p in batches.whole.upper.parameters())


def test_both_levels_move_and_only_they(tmp_path: Path) -> None:
    """Rates are each level's own; a state that goes on elsewhere ends alike."""
    run = make_run()
    whole, other = (batches_of(run, tmp_path / name, double=False) for name in ("whole", "other"))
    before = copy_weights(whole.whole)
    whole.train(0)
    kept, weights, moments = whole.state(), whole.whole.state_dict(), deepcopy(whole.optimizer.state_dict())
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
    with pytest.raises(NeurouteError, match="diverged at batch 0, in stage 'only'"):
        diverging.train(0)


def test_smaller_instances_are_fragments_of_their_own(tmp_path: Path) -> None:
    run = make_run(network={"fragment": 12, "added": 8}, stage={"sizes": (N, N)})
    batches = batches_of(run, tmp_path, double=False)
    batches.train(0)
    assert batches.fragments.shape == (8, N, 2)
