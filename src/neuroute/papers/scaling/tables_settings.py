"""Tables 1, 9 and 10 of paper `scaling`: models, hyper-parameters and hardware, here and in the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuroute.accounting.cost import training_per_sample
from neuroute.accounting.counts import DecoderOnly
from neuroute.papers.scaling import roles
from neuroute.papers.scaling.grid import counts_here
from neuroute.papers.scaling.roles import depth_and_width, run_id
from neuroute.plan.needs import Log, Need, artifact
from neuroute.plan.objects import Supervised
from neuroute.rendering.cells import model_here, number, printed
from neuroute.rendering.columns import AS_CONFIGURED, HERE, WHOLE, millions
from neuroute.rendering.table import Cell, Column, Row, Table, duration

if TYPE_CHECKING:
    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study


@artifact("Configurations of the twelve models")
def table1(study: Study) -> Table:
    """Configurations of the twelve models."""

    def row(shape: str) -> Row:
        (depth, width), run = depth_and_width(shape), study.runs[run_id(shape)]
        here = run.network.arguments
        heads, count = here.get("heads"), counts_here(run.network)
        values = {
            "heads": heads,
            "qkv_dim": here["width"] // heads if heads and "width" in here else None,
            "ffn_dim": 4 * count.width if isinstance(count, DecoderOnly) else None,
            "params_m": count.parameters / 1e6,
        }
        exact = DecoderOnly(depth, width, heads=8).parameters
        rows = printed(study, 1, depth=depth, width=width)
        cells = [Cell(value, number(rows, None, metric)) for metric, value in values.items()]
        return Row(
            (depth, width, model_here(study, run.id)),
            (*cells, Cell(exact)),
        )

    return Table(
        study.artifact.title,
        ("Depth", "Width", HERE),
        (
            Column("heads", "Heads", format=WHOLE),
            Column("qkv_dim", "QKV dim", format=WHOLE),
            Column("ffn_dim", "FFN dim", format=WHOLE),
            Column("parameters_millions", "Parameters", "M", millions),
            Column("parameters_at_paper_shape", "Exact count at the paper's shape", format=WHOLE),
        ),
        tuple(row(shape) for shape in roles.GRID),
        (
            "No run is needed: the counts follow from depth and width, D (13 W² + 7 W + 2) + 2 W² + 6 W + 1.",
            "The paper prints 36.00M for (42, 256) and 143.80M for (42, 512); the exact counts round to 35.99M and "
            "143.81M, so these two look rounded to one decimal and padded.",
        ),
        AS_CONFIGURED,
    )


@artifact("Training hyper-parameters")
def table9(study: Study) -> Table:
    """Training hyper-parameters."""
    published = study.published(9).set_index("key").value
    run = study.runs[run_id(roles.GRID[0])]
    t = run.training
    assert isinstance(t, Supervised)  # declared so
    changed = [depth_and_width(s) for s in roles.GRID if study.runs[run_id(s)].training != t]
    rows: list[tuple[str, Any, str | None]] = [
        ("Batch size", t.batch_size, "batch_size"),
        ("Total training steps", t.batches, "total_training_steps"),
        ("Optimizer", "AdamW", "optimizer"),
        ("Weight decay", t.weight_decay, "weight_decay"),
        ("Learning rate", t.learning_rate, "learning_rate"),
        ("Scheduler", "Exponential", "scheduler"),
        ("Decay gamma", t.decay_gamma, "decay_gamma"),
        ("Decay step", t.decay_every, "decay_step"),
        ("Training instances", t.samples, None),
        ("Passes over them", t.epochs, None),
        ("Nodes of a training instance", run.n, None),
        ("Updates in a step", {"sub-path": "one per decision"}.get(t.step, f"one ({t.step})"), None),
        ("Warm-up batches", t.warmup_batches, None),
        ("Precision", t.precision, None),
    ]
    notes = [
        "A step is a batch; learning-rate decay counts batches. The paper leaves open how many optimizer updates a "
        "step makes; the reading taken here is in the row 'Updates in a step'.",
        "The last six rows are not in the paper's table. Its text speaks of 60 million instances; 60,000 steps of "
        "1,024 make 61.44 million.",
    ]
    if changed:
        notes.append(
            f"config.yaml changes the training of {', '.join(f'({d}, {w})' for d, w in changed)}; the values shown are "
            f"those of {depth_and_width(roles.GRID[0])}."
        )
    text: Any = lambda v: v if isinstance(v, str) else f"{v:,}" if isinstance(v, int) else f"{v:g}"  # noqa: E731
    return Table(
        study.artifact.title,
        ("Parameter",),
        (Column("value", "Value", format=text),),
        tuple(Row((name,), (Cell(value, _number(published[key]) if key else None),)) for name, value, key in rows),
        tuple(notes),
        AS_CONFIGURED,
    )


def _table10_needs(scale: Scale) -> list[Need]:
    return [Log(run_id(shape)) for shape in roles.GRID]


@artifact("Training hardware", needs=_table10_needs)
def table10(study: Study) -> Table:
    """Training hardware."""
    published = study.published(10).set_index("key")

    def row(shape: str) -> Row:
        (depth, width), run = depth_and_width(shape), study.runs[run_id(shape)]
        summary = study.summary(run.id)
        world = int(summary.get("world_size") or 1)
        threads = _threads(summary) if summary.get("device") == "cpu" else ""
        device = f"{summary.get('device_name') or summary.get('device')}{threads} × {world}"
        cards = int(published.value[f"depth={depth};width={width}"])
        return Row(
            (f"D={depth}, W={width}", model_here(study, run.id)),
            (
                Cell(device, f"4090 × {cards}"),
                Cell(summary.get("wall_time_s")),
                Cell(summary.get("updates")),
                Cell(training_per_sample(run) * summary["samples"] / 1e15),
            ),
        )

    return Table(
        study.artifact.title,
        ("Configuration", HERE),
        (
            Column("device", "Device"),
            Column("wall_time_s", "Training time", format=duration),
            Column("updates", "Updates", format=WHOLE),
            Column("train_pflop", "Training compute", "PFLOP", format=lambda v: f"{v:.3g}"),
        ),
        tuple(row(shape) for shape in roles.GRID),
        (
            "Training time, updates and compute are not in the paper's table. Compute is counted, not metered: three "
            "times the forward pass of every trained decision.",
            "The paper trains (6, 512) on eight cards but (12, 512), twice its size, on four.",
        ),
    )


def _threads(summary: dict[str, Any]) -> str:
    count = summary.get("threads")
    return f", {count} thread{'s' if count != 1 else ''}" if count else ""


def _number(text: str) -> float | int | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
