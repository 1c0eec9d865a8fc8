"""The readings of a step, trained side by side on small budgets: our own (docs/choices.md, "What is a step?")."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from neuroute.papers.scaling import roles
from neuroute.papers.scaling.roles import PAPER
from neuroute.papers.scaling.scale import ScalingScale, Steps
from neuroute.plan.config import Scale
from neuroute.plan.objects import Labels, Supervised
from neuroute.plan.trainings import Step

READINGS: tuple[Step, ...] = get_args(Step)  # the default first
Budget = Literal["few samples", "same passes", "larger rate", "same time"]
BUDGETS: tuple[Budget, ...] = get_args(Budget)
TESTED = (100, 200, 500)  # the paper's sizes


class Reading(NamedTuple):
    """A reading of the step with a budget."""

    budget: Budget
    step: Step

    @property
    def name(self) -> str:
        """Name the run.  `sub-path` sets the time, so that its run of the same passes is that of the same time."""
        budget = "same passes" if self == ("same time", READINGS[0]) else self.budget
        return f"steps_{budget.partition(' ')[2]}_{self.step.replace('-', '_')}"

    @property
    def run(self) -> str:
        return f"{PAPER}/{self.name}"


def readings(scale: Scale) -> dict[Reading, Supervised]:
    """Return how each is trained; `sub-path`, which makes the most updates, has no larger rate."""
    s = scale[ScalingScale].steps
    if s is None:
        return {}
    every = [Reading(budget, step) for budget in BUDGETS for step in READINGS]
    return {each: _training(s, each) for each in every if each != ("larger rate", READINGS[0])}


def _training(s: Steps, each: Reading) -> Supervised:
    """Whatever its number of batches, the rate falls by the same factor."""
    t = s.training
    change: dict[str, object] = {"step": each.step}
    if each.budget == "few samples":
        change["samples"] = s.few_samples
    if each.budget == "larger rate":
        change["learning_rate"] = s.larger_rate
    if each.budget == "same time" and each.step != READINGS[0]:
        change["epochs"] = s.same_time[each.step]  # type: ignore[index]
    changed = t.model_copy(update=change)
    return changed.model_copy(update={"decay_gamma": t.decay_gamma ** (t.batches / changed.batches)})


def tests(scale: Scale) -> list[Labels]:
    """Return the test sets: of the training's size first."""
    return [roles.reference(scale, size) for size in TESTED]
