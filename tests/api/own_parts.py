"""Networks and losses of a user's own, right and wrong, as `neuroute.train` meets them."""

import random
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from neuroute.networks.base import MultiStartNetwork, PathNetwork
from neuroute.training.batches import Scheme
from neuroute.training.own_loss import draw_batch, sampled


class Path(PathNetwork):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = width, 1, 8
        self.score = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 1))

    def encode(self, coords: Tensor) -> Tensor:
        return coords

    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        ends = rows[:, [0, -1]].flatten(1)[:, None].expand(-1, rows.shape[1] - 2, -1)
        scores: Tensor = self.score(torch.cat([rows[:, 1:-1], ends], dim=-1)).squeeze(-1)
        return scores


class Tied(Path):
    """Two layers of one weight, and buffers that are parts of one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 1))
        self.score[1].weight = self.score[0].weight
        parts = torch.arange(10.0)
        self.register_buffer("head_part", parts[:6])
        self.register_buffer("tail_part", parts.view(2, 5).t()[3:])


class Complex(Path):
    def __init__(self) -> None:
        super().__init__()
        self.phase = nn.Parameter(torch.zeros(3, dtype=torch.complex64))


class Dropping(Path):
    def __init__(self) -> None:
        super().__init__()
        self.score.insert(2, nn.Dropout(0.5))


class Prepared(NamedTuple):
    nodes: Tensor


class Starts(MultiStartNetwork):
    """Likes near nodes, as much as its one weight says."""

    def __init__(self, train_nodes: int = 8) -> None:
        super().__init__()
        self.width, self.depth, self.train_nodes = 2, 1, train_nodes
        self.nearness = nn.Parameter(torch.tensor(1.0))

    def encode(self, coords: Tensor) -> Tensor:
        return coords

    def prepare(self, coords: Tensor) -> Prepared:
        return Prepared(coords)

    def decide(self, prepared: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        here = prepared.nodes.gather(1, current[..., None].expand(-1, -1, 2))
        return mask - self.nearness * torch.cdist(here, prepared.nodes)


class WrongSignature(Path):
    def decide(self) -> Tensor:  # type: ignore[override]
        raise AssertionError


class WrongShape(Path):
    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        return super().decide(rows)[..., None]


class WrongRows(Path):
    def encode(self, coords: Tensor) -> Tensor:
        return coords[:, 1:]


class NoGradient(Path):
    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        return super().decide(rows).detach()


class NotANumber(Path):
    def decide(self, rows: Tensor, attention_scale: float = 1.0) -> Tensor:
        return super().decide(rows) * torch.nan


class NoMask(Starts):
    def decide(self, prepared: Prepared, context: Tensor, current: Tensor, mask: Tensor) -> Tensor:
        return super().decide(prepared, context, current, torch.zeros_like(mask))


class NoNodes(Starts):
    def prepare(self, coords: Tensor) -> Any:
        return coords


class Squares:
    """The sum of squared weights: Adam's first step is the learning rate, down each of them."""

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme

    def train(self, index: int) -> Tensor:
        return torch.stack([p.square().sum() for p in self.scheme.net.parameters()]).sum()


class Drawing(Squares):
    """From every generator that has no owner."""

    def train(self, index: int) -> Tensor:
        return super().train(index) * (torch.rand(()) + np.random.random() - random.random())  # noqa: NPY002


class Reinforce(Squares):
    """The mean over an instance's tours as the baseline, as POMO has it."""

    def train(self, index: int) -> Tensor:
        lengths, logs = sampled(self.scheme, draw_batch(self.scheme, index), index)
        assert lengths.shape == logs.shape == (4, 8)
        assert (logs.detach() < 0).all()
        return ((lengths - lengths.mean(dim=1, keepdim=True)) * logs).mean()


class Number(Squares):
    def train(self, index: int) -> Any:
        return 1.5


class Detached(Squares):
    def train(self, index: int) -> Tensor:
        return super().train(index).detach()


class Infinite(Squares):
    def train(self, index: int) -> Tensor:
        return super().train(index) / 0


class LaterNoNumber(Squares):
    def train(self, index: int) -> Tensor:
        return super().train(index) * (1 if index < 2 else torch.nan)


class Broken(Squares):
    def train(self, index: int) -> Tensor:
        return torch.zeros(2) @ torch.zeros(3)
