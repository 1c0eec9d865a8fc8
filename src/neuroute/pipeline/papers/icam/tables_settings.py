"""Tables 4, 5 and 12 of paper `icam`: complexity, hyper-parameters, and the licences of codes and data."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from neuroute.evaluation.accounting.counts import counts
from neuroute.pipeline.papers.icam.roles import ORIGINAL, OWN, PROBLEMS, STAGED, run_id
from neuroute.pipeline.papers.icam.scale import IcamScale
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering.columns import AS_TRAINED, WHOLE, plain
from neuroute.pipeline.rendering.notes import draw_table
from neuroute.pipeline.rendering.settings import (
    Setting,
    changes_note,
    drawn_instances,
    licence_table,
    printed_values,
    setting_rows,
)
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, Value
from neuroute.specs.objects import Network, Reinforced, Run, Stage

VARIANTS = ("Transformer", "AFT-full", "AFT-simple", "AFT-local", "AFT-conv")


@artifact("Time and space of attention and of AAFM")
def table4(study: Study) -> Table:
    """Complexity of attention and of its attention-free variants, and what is counted of those that are here."""
    published = dict(study.published(4)[["key", "value"]].astype(str).to_numpy())
    # FLOPs of one encoder layer for each pair of nodes: half the second difference in the number of nodes.
    icam, pomo = study.scale[IcamScale].network.model_dump(), study.scale[IcamScale].pomo.model_dump()
    layers = {
        "Transformer": Network(kind=f"{POMO}:Pomo", arguments=pomo | {"depth": 1}),
        "AFT-full": Network(kind=f"{ICAM}:Icam", arguments=icam | {"depth": 1}),
        "AFT-simple": Network(kind=f"{ICAM}:Icam", arguments=icam | {"depth": 1, "adaptation": False}),
    }
    encoders = {name: counts(network).encoder for name, network in layers.items()}
    n = 100  # any will do: the counts are polynomials of degree two
    counted = {name: (count(n + 1) - 2 * count(n) + count(n - 1)) / 2 for name, count in encoders.items()}
    rows = []
    for name in VARIANTS:
        time, space = (published[f"{name}.{what}"] for what in ("time", "space"))
        rows.append(Row((name,), (Cell(None, time), Cell(None, space), Cell(counted.get(name)))))
    columns = (
        Column("time", "Time", format=str),
        Column("space", "Space", format=str),
        Column("operations_per_pair", "Operations per pair of nodes and layer", "FLOPs", WHOLE),
    )
    legend = "Counted here; the paper's entry in parentheses."
    return draw_table(study, ("Model",), columns, rows, legend, shapes=study.scale[IcamScale])


@artifact("Training settings")
def table5(study: Study) -> Table:
    """Hyper-parameters of ICAM as configured here and printed; besides, of the two trainings of POMO."""
    published, columns, subjects, prefixes = printed_values(study), [], [], list[str]()
    for names, label in ((OWN, "ICAM"), (STAGED, "POMO, three stages"), (ORIGINAL, "POMO (original)")):
        for problem in PROBLEMS:
            columns.append(Column(names[problem], problem.upper(), format=plain, group=label))
            subjects.append(ReinforcedRun.of(study.runs.get(run_id(names[problem]))))
            prefixes.append(problem.upper() if names is OWN else "")

    def print_value(i: int, key: str) -> Value:
        """What both problems share, or a problem's own."""
        names = (f"both.{key}", f"{prefixes[i]}.{key}", f"{prefixes[i]}.{key}_max_norm") if prefixes[i] else ()
        return next((published[name] for name in names if name in published), None)

    return draw_table(
        study,
        ("Hyper-parameter",),
        columns,
        setting_rows(ROWS, subjects, print_value),
        AS_TRAINED,
        changes=changes_note(study, study.runs.values()),
    )


@artifact("Licences of the codes")
def table12(study: Study) -> Table:
    return licence_table(study)


ICAM, POMO = "neuroute.networks.icam", "neuroute.networks.pomo"
CLIPPING = {ICAM: 50.0, POMO: 10.0}  # of a module's networks, where the plan says nothing else
RULE = "by N"  # capacity without a range: that of the number of customers


class ReinforcedRun(NamedTuple):
    """A run that is trained by reinforcement learning."""

    run: Run
    training: Reinforced

    @classmethod
    def of(cls, run: Run | None) -> "ReinforcedRun | None":
        """None without a run, or where it is trained in another way."""
        return cls(run, run.training) if run and isinstance(run.training, Reinforced) else None

    @property
    def module(self) -> str:
        """Where the class of its network is; one of the user's own may bear any name."""
        return self.run.network.kind.partition(":")[0]

    @property
    def arguments(self) -> dict[str, Any]:
        return self.run.network.arguments

    @property
    def is_cvrp(self) -> bool:
        return self.run.validation.dataset.problem == "cvrp"

    @property
    def first(self) -> Stage:
        return self.training.stages[0]

    def each(self, value: Callable[[Stage], Any], first: int = 0, last: int | None = None) -> Value:
        """Return the one value of these stages, or each of theirs; None without any."""
        values = [value(stage) for stage in self.training.stages[first:last]]
        return ", ".join(map(str, values)) if len(set(values)) > 1 else values[0] if values else None

    def last(self, value: Callable[[Stage], Any]) -> Value:
        """Return the value of the last stage; None of a training that has one alone."""
        return self.each(value, first=max(1, len(self.training.stages) - 1))


# Heading, key of the printed value, which is "both.", "TSP." or "CVRP." and this, and the value here.
ROWS: tuple[Setting[ReinforcedRun], ...] = (
    ("Optimizer", "optimizer", lambda t: "Adam"),
    ("Clipping parameter", "clipping_parameter_xi", lambda t: t.arguments.get("clipping", CLIPPING.get(t.module))),
    ("Initial learning rate", "initial_learning_rate", lambda t: t.first.learning_rate),
    ("Learning rate of stage 3", "learning_rate_stage3", lambda t: t.last(lambda stage: stage.learning_rate)),
    ("Weight decay", "weight_decay", lambda t: t.training.weight_decay),
    ("Initial α value", "initial_alpha", lambda t: 1 if t.module == ICAM else None),
    ("Loss function of stages 1 & 2", "loss_stage1_2", lambda t: t.each(_loss, last=2)),
    ("Loss function of stage 3", "loss_stage3", lambda t: t.last(_loss)),
    ("β of stage 3", "beta_stage3", lambda t: t.last(lambda stage: stage.elite and stage.elite.beta)),
    ("k of stage 3", "k_stage3", lambda t: t.last(lambda stage: stage.elite and stage.elite.k)),
    ("Encoder layers", "encoder_layers", lambda t: t.arguments["depth"]),
    ("Embedding dimension", "embedding_dim", lambda t: t.arguments["width"]),
    ("Feed-forward dimension", "feed_forward_dim", lambda t: t.arguments["feed_forward"]),
    ("Scale of stage 1", "scale_stage1", lambda t: _range(t.first.sizes)),
    ("Scale of stages 2 & 3", "scale_stage2_3", lambda t: t.each(lambda stage: _range(stage.sizes), first=1)),
    ("Batches of each epoch", "batches_per_epoch", lambda t: t.each(lambda stage: stage.batches_per_epoch)),
    ("Epochs of stage 1", "epochs_stage1", lambda t: t.first.epochs),
    ("Epochs of stage 2", "epochs_stage2", lambda t: t.each(lambda stage: stage.epochs, first=1, last=2)),
    ("Epochs of stage 3", "epochs_stage3", lambda t: t.last(lambda stage: stage.epochs)),
    ("Capacity of stage 1", "capacity_stage1", lambda t: _capacity(t.first) if t.is_cvrp else None),
    ("Capacity of stages 2 & 3", "capacity_stage2_3", lambda t: t.each(_capacity, first=1) if t.is_cvrp else None),
    ("Gradient clipping, largest norm", "gradient_clipping", lambda t: t.training.clip or "no limit"),
    ("Batch size of stage 1", "batch_size_stage1", lambda t: _batch(t.first)),
    ("Batch size of stages 2 & 3", "batch_size_stage2_3", lambda t: t.each(_batch, first=1)),
    ("Total epochs", "total_epochs", lambda t: t.training.epochs),
    # Not in the paper's table.
    ("Solutions of an instance", None, lambda t: t.each(lambda stage: "N" if stage.starts is None else stage.starts)),
    ("Epochs after which the rate falls", None, lambda t: _drops(t.training.stages)),
    ("Instances drawn, on average", None, lambda t: round(drawn_instances(t.run) or 0)),
    ("Precision", None, lambda t: t.training.precision),
)


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


def _drops(stages: Sequence[Stage]) -> str:
    return ", ".join(map(str, sorted({drop for stage in stages for drop in stage.drops}))) or "none"
