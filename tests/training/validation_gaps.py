"""Validations that give chosen gaps: what a training makes of them, whatever its weights are worth on this CPU."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from neuroute.plan.objects import Run
from neuroute.training import train

Weights = dict[str, torch.Tensor]


def copy_weights(net: torch.nn.Module) -> Weights:
    return {name: value.clone() for name, value in net.state_dict().items()}


def same_weights(a: Weights, b: Weights) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def set_gaps(monkeypatch: pytest.MonkeyPatch, gaps: Sequence[float]) -> list[Weights]:
    """Let the validations of each training give `gaps` in turn.  Returns a list that gets the weights at each."""
    weights: list[Weights] = []

    def validation(run: Run, net: torch.nn.Module, *_: Any) -> Callable[[], dict[str, float]]:
        following = iter(gaps)

        def validate() -> dict[str, float]:
            weights.append(copy_weights(net))
            return {run.validation.dataset.id: next(following)}

        return validate

    monkeypatch.setattr(train, "_validation", validation)
    return weights
