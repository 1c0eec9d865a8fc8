"""What runs are trained on, in numbers."""

from __future__ import annotations

from neuroute.plan.objects import GivenRun, Reinforced, Run


def drawn_instances(run: Run) -> float | None:
    """Count the instances that a run's batches have on average; None for weights of a file or another training."""
    training = run.training
    if not isinstance(training, Reinforced) or isinstance(run, GivenRun):
        return None
    return sum(sum(stage.expected_instances().values()) for stage in training.stages)
