"""What a run of paper `icam` is trained with, by the headings of its Table 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neuroute.plan.objects import Reinforced, Run, Stage
from neuroute.rendering.table import Value
from neuroute.rendering.trainings import drawn_instances

# Heading -> key of the printed value, which is "both.", "TSP." or "CVRP." and this.
SHOWN = {
    "Optimizer": "optimizer",
    "Clipping parameter": "clipping_parameter_xi",
    "Initial learning rate": "initial_learning_rate",
    "Learning rate of stage 3": "learning_rate_stage3",
    "Weight decay": "weight_decay",
    "Initial α value": "initial_alpha",
    "Loss function of stages 1 & 2": "loss_stage1_2",
    "Loss function of stage 3": "loss_stage3",
    "β of stage 3": "beta_stage3",
    "k of stage 3": "k_stage3",
    "Encoder layers": "encoder_layers",
    "Embedding dimension": "embedding_dim",
    "Feed-forward dimension": "feed_forward_dim",
    "Scale of stage 1": "scale_stage1",
    "Scale of stages 2 & 3": "scale_stage2_3",
    "Batches of each epoch": "batches_per_epoch",
    "Epochs of stage 1": "epochs_stage1",
    "Epochs of stage 2": "epochs_stage2",
    "Epochs of stage 3": "epochs_stage3",
    "Capacity of stage 1": "capacity_stage1",
    "Capacity of stages 2 & 3": "capacity_stage2_3",
    "Gradient clipping, largest norm": "gradient_clipping",
    "Batch size of stage 1": "batch_size_stage1",
    "Batch size of stages 2 & 3": "batch_size_stage2_3",
    "Total epochs": "total_epochs",
}
OWN_ROWS = ("Solutions of an instance", "Epochs after which the rate falls", "Instances drawn, on average", "Precision")
CLIPPING = {"icam": 50.0, "pomo": 10.0}  # of the networks, where the plan says nothing else
RULE = "by N"  # capacity without a range: that of the number of customers


def settings(run: Run | None) -> dict[str, Value]:
    """Heading -> value; nothing without a run that is trained by reinforcement learning.

    A training of one stage has no more than what is said of stage 1.
    """
    if run is None or not isinstance(run.training, Reinforced):
        return {}
    t, arguments = run.training, run.network.arguments
    kind = "icam" if ":Icam" in run.network.kind else "pomo"
    first = t.stages[0]
    drops = sorted({drop for stage in t.stages for drop in stage.drops})
    found: dict[str, Value] = {
        "Optimizer": "Adam",
        "Clipping parameter": arguments.get("clipping", CLIPPING[kind]),
        "Initial learning rate": first.learning_rate,
        "Weight decay": t.weight_decay,
        "Initial α value": 1 if kind == "icam" else None,
        "Loss function of stages 1 & 2": _each([_loss(stage) for stage in t.stages[:2]]),
        "Encoder layers": arguments["depth"],
        "Embedding dimension": arguments["width"],
        "Feed-forward dimension": arguments["feed_forward"],
        "Scale of stage 1": _range(first.sizes),
        "Batches of each epoch": _each([stage.batches_per_epoch for stage in t.stages]),
        "Gradient clipping, largest norm": t.clip if t.clip is not None else "no limit",
        "Batch size of stage 1": _batch(first),
        "Epochs of stage 1": first.epochs,
        "Total epochs": t.epochs,
        "Solutions of an instance": _each(["N" if s.starts is None else s.starts for s in t.stages]),
        "Epochs after which the rate falls": ", ".join(map(str, drops)) or "none",
        "Instances drawn, on average": round(drawn_instances(run) or 0),
        "Precision": t.precision,
    }
    cvrp = run.validation.dataset.problem == "cvrp"
    if cvrp:
        found["Capacity of stage 1"] = _capacity(first)
    return found | _later_stages(t.stages[1:], cvrp)


def _later_stages(stages: Sequence[Stage], cvrp: bool) -> dict[str, Value]:
    """What is said of stages 2 and 3; nothing of a training that has one."""
    if not stages:
        return {}
    last = stages[-1]
    found: dict[str, Value] = {
        "Learning rate of stage 3": last.learning_rate,
        "Loss function of stage 3": _loss(last),
        "β of stage 3": last.elite.beta if last.elite else None,
        "k of stage 3": last.elite.k if last.elite else None,
        "Scale of stages 2 & 3": _each([_range(stage.sizes) for stage in stages]),
        "Epochs of stage 2": stages[0].epochs,
        "Epochs of stage 3": last.epochs,
        "Batch size of stages 2 & 3": _each([_batch(stage) for stage in stages]),
    }
    if cvrp:
        found["Capacity of stages 2 & 3"] = _each([_capacity(stage) for stage in stages])
    return found


def published_value(published: Mapping[str, str], problem: str, key: str) -> Value:
    """Return the printed value, shared by both problems or a problem's own."""
    for name in (f"both.{key}", f"{problem}.{key}", f"{problem}.{key}_max_norm"):
        if name in published:
            return _number(published[name])
    return None


def _each(values: list[Any]) -> Value:
    """The one value of all stages, or each of theirs."""
    different = list(dict.fromkeys(values))
    return different[0] if len(different) == 1 else ", ".join(map(str, values))


def _loss(stage: Stage) -> str:
    return "L_Joint" if stage.elite else "L_POMO"


def _range(ends: tuple[int, int]) -> Value:
    low, high = ends
    return low if low == high else f"[{low},{high}]"


def _capacity(stage: Stage) -> Value:
    return RULE if stage.capacities is None else _range(stage.capacities)


def _batch(stage: Stage) -> Value:
    if stage.batch_nodes is None:
        return stage.batch_size
    return f"floor({stage.batch_size}*({stage.batch_nodes}/N)^2)"


def _number(printed: str) -> Value:
    try:
        number = float(printed)
    except ValueError:
        return printed
    return int(number) if number.is_integer() else number
