"""REINFORCE against greedy rollouts of earlier weights, as a run states it (Kool et al., 2019)."""

import math
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from neuroute.specs.data import Spec
from neuroute.specs.trainings import Reinforced


class GreedyBaseline(Spec):
    """Solutions are compared with greedy ones of a frozen copy of the best weights so far (Kool et al., 2019).

    At the end of each epoch the weights take its place if their greedy solutions of `instances` instances, drawn anew
    after each replacement, are shorter by more than `margin` on average and, with `alpha`, if a paired
    one-sided t-test says so at that level (Kool et al., 2019).
    """

    instances: int = Field(default=640, ge=2)
    margin: float = Field(default=0.0, ge=0)
    alpha: float | None = Field(default=None, gt=0, lt=1)


class Rollouts(Reinforced):
    """REINFORCE whose solutions are compared with a `baseline`, not with each other."""

    shares_baseline: ClassVar[bool] = False
    scheme: ClassVar[str] = "neuroute_systems.rollouts.training:reinforce"
    kind: Literal["neuroute_systems.rollouts.spec:Rollouts"] = "neuroute_systems.rollouts.spec:Rollouts"  # type: ignore[assignment]
    baseline: GreedyBaseline

    @model_validator(mode="after")
    def _stages_fit_the_baseline(self) -> "Rollouts":
        if self.scaled:
            raise ValueError("scaled: advantages over the others of an instance; with a `baseline` leave it out")
        for stage in self.stages:
            if stage.starts is None or stage.elite:
                raise ValueError(f"stages: {stage.name}: with a `baseline` give `starts`, such as 1, and no elite")
        return self

    def shortened(self, batches: int, epochs: int = 2) -> Reinforced:
        """Two epochs, as the baseline may begin with the second one; it is judged on as many instances for a batch."""
        short, most = super().shortened(batches, epochs), max(stage.batches_per_epoch for stage in self.stages)
        instances = max(2, math.ceil(self.baseline.instances * min(1.0, batches / epochs / most)))
        return short.model_copy(update={"baseline": self.baseline.model_copy(update={"instances": instances})})
