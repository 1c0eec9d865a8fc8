"""What a network of the user's own has to do before it is trained, and one line for what it does instead."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from neuroute.core.errors import NeurouteError
from neuroute.datasets.problem_spec import spec_of
from neuroute.decoding.environment import ENVIRONMENT, precision_of
from neuroute.decoding.multi_start import start_rollout
from neuroute.networks.base import RoutingNetwork
from neuroute.networks.weights import build, is_bundled, network_class
from neuroute.specs.objects import Labels, Network, Run
from neuroute.specs.trainings import Reinforced
from neuroute.training.batches import Scheme

FAILURES = (TypeError, ValueError, RuntimeError, LookupError, AttributeError)
COUNT = 2  # instances that are tried
MOST_NODES = 1000  # of them, where it is not sure that there is a GPU


@contextmanager
def in_one_line(*kinds: str) -> Iterator[None]:
    """Say in one line where code of the user's own, of these dotted names, fails; leave all else as it is."""
    modules = {kind.partition(":")[0] for kind in kinds if not is_bundled(kind)}
    try:
        yield
    except torch.OutOfMemoryError:
        raise
    except FAILURES as error:
        files = {str(getattr(sys.modules.get(module), "__file__", None)): module for module in modules}
        steps = traceback.extract_tb(error.__traceback__)
        own_steps = [step for step in steps if step.filename in files or "ipykernel" in step.filename]
        if not own_steps:
            raise
        step, text = own_steps[-1], " ".join(str(error).split())
        place = f"{Path(step.filename).name}, line {step.lineno}, in {step.name}"
        raise NeurouteError(f"{place}: {type(error).__name__}: {text}") from error


def check_network(net: RoutingNetwork, network: Network, labels: Labels, device: torch.device) -> None:
    """Let a network outside this package decide once on two of these instances, and look at its logits.

    Raises NeurouteError if it cannot, or if their shape, device, numbers or gradient are not what a training needs.
    """
    if is_bundled(network.kind):
        return
    problem = labels.dataset.problem
    if net.problem != problem:
        raise NeurouteError(f"{network.kind}: is a network of problem '{net.problem}', not of '{problem}'")
    batch = ENVIRONMENT.of(problem).batch(spec_of(labels).instances(labels.dataset)[:COUNT], device)
    try:
        with torch.random.fork_rng(), in_one_line(network.kind):
            net.eval()
            logits, mask = _decide(net, batch) if net.multi_start else _decide_on_path(net, problem, batch)
            net.train()
    except FAILURES as error:  # not in its own module: what it returned does not fit
        text = " ".join(str(error).split())
        raise NeurouteError(f"{network.kind}: encode, prepare and decide do not fit together ({text})") from error
    what = f"{network.kind}: decide returns"
    if not isinstance(logits, Tensor):
        raise NeurouteError(f"{what} {type(logits).__name__}, where a tensor of logits is needed")
    if logits.shape != mask.shape:
        meaning = "(batch, available)" if problem == "tsp" else "(batch, available, 2): straight, and through the depot"
        meaning = "(batch, tours, nodes)" if net.multi_start else meaning
        raise NeurouteError(f"{what} logits {_shape(logits)}, where {_shape(mask)} are needed: {meaning}")
    if logits.device.type != device.type:
        raise NeurouteError(f"{what} logits on {logits.device}, but it is trained on {device}")
    if not logits.requires_grad:
        raise NeurouteError(f"{what} logits without a gradient: leave no_grad, detach and argmax to the training")
    if not logits[mask == 0].isfinite().all():
        raise NeurouteError(f"{what} logits that are no finite numbers, of nodes that may come next")
    if not (logits[mask < 0] == -torch.inf).all():
        raise NeurouteError(f"{what} finite logits of nodes that may not come next: add the mask to them")


def _decide(net: Any, batch: Any) -> tuple[Tensor, Tensor]:
    """Return logits of many starts, and a mask that is below 0 where they have to be -inf."""
    prepared = net.prepare(net.encode(*batch.features))
    rollout = start_rollout(net, batch, batch.start_nodes(3), precision_of(prepared))
    return net.decide(prepared, rollout.context, rollout.current, rollout.action_mask), rollout.action_mask


def _decide_on_path(net: Any, problem: str, batch: Any) -> tuple[Tensor, Tensor]:
    """Return logits of the first decision of paths, and zeros in the shape that they have to have."""
    nodes = batch.coords.shape[1]
    rows, more, shape = net.encode(*batch.features), tuple[Tensor, ...](), [len(batch), nodes - 2]
    if problem != "tsp":  # with what is left of the capacity; straight or by the depot
        more, shape = (batch.coords.new_ones(len(batch)),), [*shape, 2]
    if not isinstance(rows, Tensor) or rows.shape[:2] != (len(batch), nodes):
        rows_shape = _shape(rows) if isinstance(rows, Tensor) else type(rows).__name__
        raise NeurouteError(f"{type(net).__name__}: encode returns {rows_shape}, not ({len(batch)}, {nodes}, E)")
    return net.decide(rows, *more), batch.coords.new_zeros(shape)


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def check_run(run: Run) -> None:
    """Look at the network of a run before anything is solved for it, as its training does, on the CPU.

    Raises NeurouteError as `check_network` does, and for one of many starts where paths are learnt, or the other way.
    """
    kind = network_class(run.network.kind)
    if kind.multi_start and run.training.learns_decisions:
        raise NeurouteError(f"{run.id}: {kind.__name__} builds many solutions at once; take a network of one path here")
    if not kind.multi_start and isinstance(run.training, Reinforced) and not hasattr(kind, "own_method"):
        raise _single(run)
    if kind.problem != run.validation.dataset.problem or run.n <= MOST_NODES:
        check_network(build(run.network), run.network, run.validation, torch.device("cpu"))


# -- what a training by REINFORCE refuses before it begins -----------------------------------------------------------


def check(scheme: Scheme) -> None:
    """Raises NeurouteError for a network of a single solution, and for stages that draw what the problem lacks."""
    check_stages(scheme)
    if not getattr(scheme.net, "multi_start", False):
        raise _single(scheme.run)


def _single(run: Run) -> NeurouteError:
    return NeurouteError(f"{run.id}: reinforcement learning takes a network with many starts, such as Pomo")


def check_stages(scheme: Scheme) -> Reinforced:
    """Raises NeurouteError for stages that draw what the problem lacks."""
    run, training = scheme.run, scheme.training
    capacities = [stage.name for stage in training.stages if stage.capacities]
    if capacities and run.validation.dataset.problem == "tsp":
        raise NeurouteError(f"{run.id}: stage '{capacities[0]}' draws capacities; a TSP has none, leave them out")
    if any(stage.variants for stage in training.stages) or training.balance:
        raise NeurouteError(f"{run.id}: `variants` and `balance` are for problem 'vrp' and its experts; leave them out")
    return training  # type: ignore[no-any-return]
