"""Training of H-TSP: the lower level on paths, then both levels, the upper one by proximal policy optimization."""

import copy
import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer

from neuroute.core.device import stream_seed
from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import SPEC
from neuroute.networks.weights import all_finite
from neuroute.specs.objects import Dataset
from neuroute.specs.trainings import LARGEST_BATCH
from neuroute.training.batches import Scheme
from neuroute.training.network_checks import check_stages
from neuroute.training.reinforce import BatchSpec, Reinforcement
from neuroute.training.train import keep_stage
from neuroute_systems.htsp.decoding import Episode, PathBatch
from neuroute_systems.htsp.network import Htsp
from neuroute_systems.htsp.system import HtspTraining, Proximal
from neuroute_systems.own_solutions import OwnSolutions


class PathBatches(OwnSolutions, Reinforcement):
    """Batches of paths between the first and the last of nodes that are drawn, for the lower level alone."""

    training: HtspTraining

    def __init__(self, scheme: Scheme) -> None:
        super().__init__(scheme)
        self.whole: Htsp = self.net
        self.net = self.policy = self.whole.lower

    def samples(self, batches: int) -> int:
        return super().samples(batches) * self.training.updates

    def batch(self, spec: BatchSpec, rows: range | None = None) -> PathBatch:
        return PathBatch(super().batch(spec, rows).coords)

    def _stage_network(self) -> Htsp:
        return self.whole


class Steps(NamedTuple):
    """What episodes leave, each (steps, episodes, ...): all episodes have as many steps."""

    states: Tensor  # (n, 8)
    actions: Tensor  # (2,), before they become places
    noise: Tensor  # (2,): the part of these actions that was drawn, in deviations
    anchors: Tensor  # (2,): where the tour then grew
    rewards: Tensor  # (), float64


class Rows(NamedTuple):
    """What the upper level learns from: of each step of each episode one row."""

    states: Tensor  # (rows, n, 8)
    actions: Tensor  # (rows, 2)
    anchors: Tensor  # (rows, 2)
    log_p: Tensor  # (rows,): of the actions
    advantages: Tensor  # (rows,), of mean 0 and deviation 1
    returns: Tensor  # (rows,): what the critic should say


class JointBatches(PathBatches):
    """Batches of both levels: each is a function of (run, index), the weights, and what `state` holds.

    Actor and critic have an optimizer each, and the encoder is in both.  Values of states are those of copies of
    encoder and critic that follow once a pass.
    """

    def __init__(self, scheme: Scheme) -> None:
        super().__init__(scheme)
        assert self.training.upper is not None
        self.how: Proximal = self.training.upper
        upper = self.whole.upper
        self.targets = copy.deepcopy(upper).requires_grad_(False)
        self.entropy = self.how.entropy  # its weight
        self.fragments = torch.empty(0, self.training.stages[0].sizes[0], 2, device=self.device)
        actor, critic = [*upper.actor.parameters(), upper.log_deviation], list(upper.critic.parameters())
        self.actor, self.critic = (self._optimizer(parameters) for parameters in (actor, critic))

    def _optimizer(self, parameters: list[nn.Parameter]) -> Optimizer:
        """Of these and the encoder's, as two groups."""
        groups = [{"params": parameters}, {"params": list(self.whole.upper.encoder.parameters())}]
        return AdamW(groups, lr=self.how.learning_rate, weight_decay=self.training.weight_decay, fused=True)

    def state(self) -> dict[str, Any]:
        moments = {"actor": self.actor.state_dict(), "critic": self.critic.state_dict()}
        return {"targets": self.targets.state_dict(), "entropy": self.entropy, "fragments": self.fragments} | moments

    def restore(self, state: dict[str, Any]) -> None:
        self.targets.load_state_dict(state["targets"])
        self.entropy, self.fragments = state["entropy"], state["fragments"]
        self.actor.load_state_dict(state["actor"])
        self.critic.load_state_dict(state["critic"])

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
            loss = loss + self._learn(each, range(spec.size), PathBatch(shuffled(self.fragments[rows], draws)))
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
        steps = Steps(*(torch.cat(each, dim=1) for each in zip(*parts, strict=True)))
        return steps, -float(steps.rewards.sum(dim=0).mean())

    def _instances(self, index: int, turn: int) -> Tensor:
        """Of the training stream: new ones in each round of each batch."""
        first = (self.training.batches_before + index) * LARGEST_BATCH + turn * self.how.environments
        dataset = Dataset(split="train", n=self.run.n, first=first, count=self.how.environments)
        return torch.from_numpy(SPEC.of("tsp").instances(dataset))

    def _play_round(self, coords: Tensor, draws: torch.Generator) -> Steps:
        episode, upper = Episode(self.whole, coords, self.scheme.memory_gb, augment=False), self.whole.upper
        steps = list[tuple[Tensor, ...]]()
        while not episode.tours.done():
            state = episode.state()
            means = upper.act(state)
            noise = torch.randn(means.shape, generator=draws).to(means)
            action = means + upper.log_deviation.exp() * noise
            fragments, growth = episode.grow(action)
            self.fragments = torch.cat([self.fragments, fragments])[-self.training.buffer :]
            anchors = coords[torch.arange(len(coords)), torch.from_numpy(episode.tours.anchors)].to(state)
            steps.append((state, action, noise, anchors, -growth))
        return Steps(*(torch.stack(each) for each in zip(*steps, strict=True)))

    # -- the upper level ----------------------------------------------------------------------------------------

    def _learn_upper(self, steps: Steps, draws: torch.Generator) -> tuple[Tensor, int]:
        """Pass over rows several times, drawn with replacement; returns the sum of the losses, and the updates."""
        total, updates, upper = torch.zeros((), dtype=torch.float64, device=self.device), 0, self.whole.upper
        for _ in range(self.how.passes):
            rows = self._estimate(steps)
            for _ in range(max(1, len(rows.states) // self.how.minibatch)):
                numbers = torch.randint(len(rows.states), (self.how.minibatch,), generator=draws).to(self.device)
                part = Rows(*(each[numbers] for each in rows))
                entropy = float(entropy_of(upper.log_deviation.detach()))
                total += self._go(self.actor, self._actor_loss(part))
                total += self._go(self.critic, self._critic_loss(part))
                self.entropy = max(self.entropy + self.how.entropy_rate * (self.how.target_entropy - entropy), 0.0)
                updates += 1
            for target, weight in zip(self.targets.parameters(), upper.parameters(), strict=True):
                target.lerp_(weight.detach(), self.how.target_rate)
        return total, updates

    @torch.no_grad()
    def _estimate(self, steps: Steps) -> Rows:
        """Episode by episode, as the targets' values and the deviation are now: published so, after a pass too."""
        states, actions, noise, anchors = (each.transpose(0, 1).flatten(0, 1) for each in steps[:4])
        values = torch.cat([self.targets.value(part) for part in states.split(self.how.minibatch)]).cpu().double()
        values = values.view(steps.rewards.T.shape).T
        advantages = estimate_advantages(steps.rewards, values, self.how.trace)
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-5)
        returns = steps.rewards.flip(0).cumsum(dim=0).flip(0)
        log_deviation = self.whole.upper.log_deviation
        log_p = log_density(noise * log_deviation.exp(), torch.zeros_like(noise), log_deviation)
        return Rows(states, actions, anchors, log_p, *(each.T.flatten().to(states) for each in (advantages, returns)))

    def _actor_loss(self, rows: Rows) -> Tensor:
        """The clipped objective, the entropy, and how far places lie from where tours grew, both in [-1, 1]."""
        how, upper = self.how, self.whole.upper
        means = upper.act(rows.states)
        ratio = (log_density(rows.actions, means, upper.log_deviation) - rows.log_p).exp()
        limited = ratio.clamp(1 - how.clip_ratio, 1 + how.clip_ratio)
        gain = torch.minimum(ratio * rows.advantages, limited * rows.advantages).mean()
        apart = F.mse_loss(means.tanh(), 2 * rows.anchors - 1)
        return how.anchor * apart - gain - self.entropy * entropy_of(upper.log_deviation)

    def _critic_loss(self, rows: Rows) -> Tensor:
        return F.mse_loss(self.whole.upper.value(rows.states), rows.returns) / (rows.returns.std() + 1e-6)

    def _go(self, optimizer: Optimizer, loss: Tensor) -> Tensor:
        """An update of one side of the upper level, whose own part and encoder are clipped each; returns the loss."""
        loss.backward()
        for group in optimizer.param_groups:
            if self.training.clip is not None:
                nn.utils.clip_grad_norm_(group["params"], self.training.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _deviation(self) -> float:
        return float(self.whole.upper.log_deviation.detach().exp().mean())


def log_density(actions: Tensor, means: Tensor, log_deviation: Tensor) -> Tensor:
    """Of independent normal distributions: actions and means (rows, 2), log_deviation (2,) -> (rows,)."""
    apart = (actions - means) / log_deviation.exp()
    return -(0.5 * apart**2 + log_deviation + 0.5 * math.log(2 * math.pi)).sum(dim=-1)


def entropy_of(log_deviation: Tensor) -> Tensor:
    """Of a dimension of normal distributions, in the mean over these."""
    return log_deviation.mean() + 0.5 + 0.5 * math.log(2 * math.pi)


def estimate_advantages(rewards: Tensor, values: Tensor, trace: float) -> Tensor:
    """Generalized advantage estimation (Schulman et al., 2016) of whole episodes, as published: without discount, and
    the last step's is its reward, from which no value is taken.

    rewards and values (steps, episodes) -> the same shape.
    """
    out = [rewards[-1]]
    for step in reversed(range(len(rewards) - 1)):
        out.append(rewards[step] + values[step + 1] + trace * out[-1] - values[step])
    return torch.stack(out[::-1])


def shuffled(points: Tensor, draws: torch.Generator) -> Tensor:
    """points (batch, m, 2), those of each in an order of its own: so paths have other ends."""
    order = torch.rand(points.shape[:2], generator=draws).argsort(dim=1).to(points.device)
    return points.gather(1, order[..., None].expand(-1, -1, 2))


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
