"""What runs are trained on, in numbers."""

from __future__ import annotations

from neuroute.plan.objects import Reinforced, Run


def drawn_instances(run: Run) -> float | None:
    """Count the instances that a run's batches have on average; None for another kind of training."""
    training = run.training
    if not isinstance(training, Reinforced):
        return None
    return sum(sum(stage.expected_instances().values()) for stage in training.stages)
