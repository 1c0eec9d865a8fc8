"""What a training by REINFORCE refuses before it begins."""

from neuroute.core.errors import NeurouteError
from neuroute.plan.objects import Run
from neuroute.plan.reinforced import Reinforced
from neuroute.training.batches import Scheme


def check(scheme: Scheme) -> None:
    """Raises NeurouteError for a network of a single solution, and for stages that draw what the problem lacks."""
    check_stages(scheme)
    if not getattr(scheme.net, "multi_start", False):
        raise NeurouteError(f"{scheme.run.id}: reinforcement learning takes a network with many starts, such as Pomo")


def check_stages(scheme: Scheme) -> Reinforced:
    """Raises NeurouteError for stages that draw what the problem lacks."""
    run, training = scheme.run, training_of(scheme.run)
    capacities = [stage.name for stage in training.stages if stage.capacities]
    if capacities and run.validation.dataset.problem == "tsp":
        raise NeurouteError(f"{run.id}: stage '{capacities[0]}' draws capacities; a TSP has none, leave them out")
    if any(stage.variants for stage in training.stages) or training.balance:
        raise NeurouteError(f"{run.id}: `variants` and `balance` are for problem 'vrp' and its experts; leave them out")
    return training


def training_of(run: Run) -> Reinforced:
    if not isinstance(run.training, Reinforced):
        raise TypeError(f"{run.id} is not trained by reinforcement learning")
    return run.training
