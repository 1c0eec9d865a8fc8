"""Training of H-TSP: the lower level on paths, then both levels, the upper one by proximal policy optimization."""

import copy
import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuroute.core.errors import NeurouteError
from neuroute.core.seeds import stream_seed
from neuroute.datasets.problem_spec import SPEC
from neuroute.networks.weights import all_finite
from neuroute.specs.objects import Dataset
from neuroute.specs.reinforced import LARGEST_BATCH
from neuroute.systems.htsp.decoding import Episode, PathBatch
from neuroute.systems.htsp.network import Htsp, place_of
from neuroute.systems.htsp.system import HtspTraining, Proximal
from neuroute.training.batches import Scheme
from neuroute.training.network_checks import check_stages
from neuroute.training.own_solutions import OwnSolutions
from neuroute.training.reinforce import BatchSpec, Reinforcement
from neuroute.training.stages import keep_stage


class PathBatches(OwnSolutions, Reinforcement):
    """Batches of paths between the first and the last of nodes that are drawn, for the lower level alone."""

    training: HtspTraining

    def __init__(self, scheme: Scheme) -> None:
        super().__init__(scheme)
        self.whole: Htsp = self.net
        self.net = self.acting = self.whole.lower

    def samples(self, batches: int) -> int:
        return super().samples(batches) * self.training.updates

    def batch(self, spec: BatchSpec, rows: range | None = None) -> PathBatch:
        return PathBatch(super().batch(spec, rows).coords)

    def _stage_network(self) -> Htsp:
        return self.whole


class Steps(NamedTuple):
    """What the upper level learns from: of each step of each episode one row."""

    states: Tensor  # (rows, n, 8)
    actions: Tensor  # (rows, 2), before they become places
    log_p: Tensor  # (rows,): of these actions, by the weights that took them
    anchors: Tensor  # (rows, 2): where the tour then grew
    advantages: Tensor  # (rows,), of mean 0 and deviation 1
    returns: Tensor  # (rows,): what the critic should have said


class JointBatches(PathBatches):
    """Batches of both levels: each is a function of (run, index), the weights, and what `state` holds.

    Values of states are those of copies of encoder and critic that follow slowly.
    """

    def __init__(self, scheme: Scheme) -> None:
        super().__init__(scheme)
        assert self.training.upper is not None
        self.how: Proximal = self.training.upper
        self.targets = copy.deepcopy(self.whole.upper).requires_grad_(False)
        self.log_entropy = math.log(self.how.entropy) if self.how.entropy else -math.inf
        self.fragments = torch.empty(0, self.training.stages[0].sizes[0], 2, device=self.device)

    def state(self) -> dict[str, Any]:
        return {"targets": self.targets.state_dict(), "log_entropy": self.log_entropy, "fragments": self.fragments}

    def restore(self, state: dict[str, Any]) -> None:
        self.targets.load_state_dict(state["targets"])
        self.log_entropy, self.fragments = state["log_entropy"], state["fragments"]

    def train(self, index: int) -> tuple[Tensor, int]:
        """Episodes, then the upper level's updates, then the lower level's.  Raises as `Reinforcement.train` does."""
        spec, draws = self.batch_spec(index), torch.Generator().manual_seed(stream_seed(self.run.seed, index))
        number, within = self.training.place(index)
        if within == 0:
            self._notes.append({"kind": "stage", "stage": spec.stage.name})
        steps, growth = self._play(index, draws)
        self._notes.append({"kind": "episodes", "length": growth, "deviation": self._deviation()})
        loss, updates = self._learn_upper(steps, draws)
        for update in range(self.training.updates):
            rows = torch.randint(len(self.fragments), (spec.size,), generator=draws).to(self.device)
            each = spec._replace(number=spec.number * self.training.updates + update)
            loss = loss + self._learn(each, range(spec.size), PathBatch(self.fragments[rows]))
            self._update(index)
        if not all_finite(self.whole):
            raise self._diverged(spec)
        if index + 1 == self.training.ends[number]:
            keep_stage(self.scheme.state_dir, spec.stage.name, self.whole, self.optimizer)
        return loss, updates + self.training.updates

    # -- episodes -----------------------------------------------------------------------------------------------

    @torch.no_grad()
    def _play(self, index: int, draws: torch.Generator) -> tuple[Steps, float]:
        """Steps of all episodes, and by how much a tour grew in one; fragments go into the buffer, the oldest leave."""
        self.whole.eval()
        parts = [self._play_round(self._instances(index, turn), draws) for turn in range(self.how.rounds)]
        self.whole.train()
        *rows, growth = (torch.cat(each) for each in zip(*parts, strict=True))
        states, actions, log_p, anchors, advantages, returns = rows
        advantages = (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
        return Steps(states, actions, log_p, anchors, advantages, returns), float(growth.mean())

    def _instances(self, index: int, turn: int) -> Tensor:
        """Of the training stream: new ones in each round of each batch."""
        first = (self.training.batches_before + index) * LARGEST_BATCH + turn * self.how.environments
        dataset = Dataset(split="train", n=self.run.n, first=first, count=self.how.environments)
        return torch.from_numpy(SPEC.of("tsp").instances(dataset))

    def _play_round(self, coords: Tensor, draws: torch.Generator) -> tuple[Tensor, ...]:
        episode = Episode(self.whole, coords, self.scheme.memory_gb, augment=False)
        rows, values, rewards = list[tuple[Tensor, ...]](), list[Tensor](), list[Tensor]()
        while not episode.tours.is_complete():
            state = episode.state()
            means = self.whole.upper.act(state)
            noise = torch.randn(means.shape, generator=draws).to(means)
            action = means + self.whole.upper.log_deviation.exp() * noise
            fragments, growth = episode.grow(action)
            self.fragments = torch.cat([self.fragments, fragments])[-self.training.buffer :]
            nodes = torch.from_numpy(episode.tours.anchors)
            anchors = coords[torch.arange(len(coords)), nodes].to(state)
            rows.append((state, action, log_density(action, means, self.whole.upper.log_deviation), anchors))
            values.append(self.targets.value(state).double().cpu())
            rewards.append(-growth)
        value, reward = torch.stack(values), torch.stack(rewards)
        advantages = estimate_advantages(reward, value, self.how.discount, self.how.trace)
        estimates = [each.flatten().to(rows[0][0]) for each in (advantages, advantages + value)]
        return *(torch.cat(each) for each in zip(*rows, strict=True)), *estimates, -reward.sum(dim=0)

    # -- the upper level ----------------------------------------------------------------------------------------

    def _learn_upper(self, steps: Steps, draws: torch.Generator) -> tuple[Tensor, int]:
        """Pass over all steps several times; returns the sum of the losses, and the updates."""
        total, updates, upper = torch.zeros((), dtype=torch.float64, device=self.device), 0, self.whole.upper
        for _ in range(self.how.passes):
            order = torch.randperm(len(steps.states), generator=draws).to(self.device)
            for rows in order.split(self.how.minibatch):
                loss = self._loss(Steps(*(part[rows] for part in steps)))
                loss.backward()
                self._go(self.how.learning_rate)
                for target, weight in zip(self.targets.parameters(), upper.parameters(), strict=True):
                    target.lerp_(weight.detach(), self.how.target_rate)
                total, updates = total + loss.detach(), updates + 1
        entropy = float(upper.log_deviation.detach().sum()) + 1 + math.log(2 * math.pi)
        self.log_entropy += self.how.learning_rate * (self.how.target_entropy - entropy)
        return total, updates

    def _loss(self, steps: Steps) -> Tensor:
        """The clipped objective, the critic's errors, the entropy, and how far places lie from where tours grew."""
        how, upper = self.how, self.whole.upper
        means, values = upper(steps.states)
        ratio = (log_density(steps.actions, means, upper.log_deviation) - steps.log_p).exp()
        limited = ratio.clamp(1 - how.clip_ratio, 1 + how.clip_ratio)
        gain = torch.minimum(ratio * steps.advantages, limited * steps.advantages).mean()
        loss = how.value * F.mse_loss(values, steps.returns) - gain
        loss = loss + how.anchor * F.mse_loss(place_of(means), steps.anchors)
        return loss - math.exp(self.log_entropy) * upper.log_deviation.sum()  # which the entropy is, but for a constant

    def _go(self, rate: float) -> None:
        """An update of the upper level, which alone has gradients, at a rate of its own."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        if self.training.clip is not None:
            nn.utils.clip_grad_norm_(self.whole.upper.parameters(), self.training.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _deviation(self) -> float:
        return float(self.whole.upper.log_deviation.detach().exp().mean())


def log_density(actions: Tensor, means: Tensor, log_deviation: Tensor) -> Tensor:
    """Of independent normal distributions: actions and means (rows, 2), log_deviation (2,) -> (rows,)."""
    apart = (actions - means) / log_deviation.exp()
    return -(0.5 * apart**2 + log_deviation + 0.5 * math.log(2 * math.pi)).sum(dim=-1)


def estimate_advantages(rewards: Tensor, values: Tensor, discount: float, trace: float) -> Tensor:
    """Generalized advantage estimation (Schulman et al., 2016), of whole episodes, after which nothing comes.

    rewards and values (steps, episodes) -> the same shape.
    """
    ahead, value, out = torch.zeros_like(rewards[0]), torch.zeros_like(rewards[0]), []
    for step in reversed(range(len(rewards))):
        surprise = rewards[step] + discount * value - values[step]
        ahead = surprise + discount * trace * ahead
        value = values[step]
        out.append(ahead)
    return torch.stack(out[::-1])


def levels(scheme: Scheme) -> PathBatches:
    """Raises NeurouteError for other networks, paths of another size than fragments have, and several processes for
    both levels.
    """
    run, training = scheme.run, check_stages(scheme)
    fragment = scheme.require(Htsp).fragment
    assert isinstance(training, HtspTraining)
    size = min(run.n, fragment)
    if training.stages[0].sizes[0] != size:
        raise NeurouteError(f"{run.id}: fragments have {size} nodes; give stages `sizes: [{size}, {size}]`")
    if training.upper is None:
        return PathBatches(scheme)
    if scheme.world.size > 1:
        raise NeurouteError(f"{run.id}: both levels are trained by one process, not {scheme.world.size}; ask for a GPU")
    return JointBatches(scheme)
