"""Tables 1, 9 and 10 of paper `scaling`: models, hyper-parameters and hardware, here and in the paper."""

from __future__ import annotations

from typing import Any

from neuroute.accounting.counts import counts
from neuroute.accounting.flops import training_per_sample
from neuroute.papers.scaling.cells import ADDED, DecoderOnly
from neuroute.papers.scaling.roles import GRID, Shape, grid, is_added, run_id
from neuroute.plan.needs import Log, artifact
from neuroute.plan.objects import Supervised
from neuroute.rendering.cells import model_here, number, printed_numbers
from neuroute.rendering.columns import AS_CONFIGURED, HERE, WHOLE, millions, plain
from neuroute.rendering.notes import notes
from neuroute.rendering.seeds import summary_cell
from neuroute.rendering.settings import printed_values
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, duration


@artifact("Configurations of the twelve models", printed_files=("table1", "table18"))
def table1(study: Study) -> Table:
    """Show shapes and parameters of the twelve models."""

    def row(shape: Shape) -> Row:
        network = study.runs[run_id(shape)].network
        heads, width, count = network.arguments.get("heads"), network.arguments.get("width"), counts(network)
        values = {
            "heads": heads,
            "qkv_dim": width // heads if heads and width else None,
            "ffn_dim": 4 * width if width and network.kind.endswith(":DecoderOnly") else None,
            "params_m": count.parameters / 1e6,
        }
        rows = printed_numbers(study, 1, **shape._asdict())
        cells = (Cell(value, number(rows, None, metric)) for metric, value in values.items())
        here = model_here(study, run_id(shape))
        if is_added(shape):
            return Row((*shape, f"{here}; {ADDED}"), (*cells, Cell()))
        return Row((*shape, here), (*cells, Cell(DecoderOnly(*shape, heads=8).parameters)))

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
        tuple(row(shape) for shape in grid(study.scale)),
        notes(study),
        AS_CONFIGURED,
    )


@artifact("Training hyper-parameters")
def table9(study: Study) -> Table:
    """Show how the twelve models are trained."""
    published = printed_values(study)
    run, *others = (study.runs[run_id(shape)] for shape in GRID)
    t = run.training
    assert isinstance(t, Supervised)  # declared so
    changed = [shape.name for shape, other in zip(GRID[1:], others, strict=True) if other.training != t]
    update = {"sub-path": "one per decision"}.get(t.step, f"one ({t.step})")
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
        ("Updates in a step", update, None),
        ("Warm-up batches", t.warmup_batches, None),
        ("Precision", t.precision, None),
    ]
    names, first = ", ".join(changed), GRID[0].name
    change = f"config.yaml changes the training of {names}; the values shown are those of {first}."
    return Table(
        study.artifact.title,
        ("Parameter",),
        (Column("value", "Value", format=plain),),
        tuple(Row((name,), (Cell(value, published[key] if key else None),)) for name, value, key in rows),
        notes(study, changed=change if changed else ""),
        AS_CONFIGURED,
    )


@artifact("Training hardware", needs=lambda scale: [Log(run_id(shape), all_seeds=True) for shape in grid(scale)])
def table10(study: Study) -> Table:
    """Show what the twelve trainings took."""
    published = study.published(10).set_index("key")

    def row(shape: Shape) -> Row:
        run = study.runs[run_id(shape)]
        summary = study.summary(run.id)
        threads = _threads(summary) if summary.get("device") == "cpu" else ""
        device: str | None = None
        if summary.get("device"):  # weights of a file have none
            device = f"{summary.get('device_name') or summary['device']}{threads} × {summary.get('world_size') or 1}"
        cards = published.value.get("depth={};width={}".format(*shape))
        cells = (
            Cell(device, None if cards is None else f"4090 × {int(cards)}"),
            summary_cell(study, run.id, "wall_time_s"),
            summary_cell(study, run.id, "updates"),
            Cell(training_per_sample(run) * summary["samples"] / 1e15 if "samples" in summary else None),
        )
        label = "D={}, W={}".format(*shape) + (f", {ADDED}" if is_added(shape) else "")
        return Row((label, model_here(study, run.id)), cells)

    return Table(
        study.artifact.title,
        ("Configuration", HERE),
        (
            Column("device", "Device"),
            Column("wall_time_s", "Training time", format=duration),
            Column("updates", "Updates", format=WHOLE),
            Column("train_pflop", "Training compute", "PFLOP", format=lambda v: f"{v:.3g}"),
        ),
        tuple(row(shape) for shape in grid(study.scale)),
        notes(study),
    )


def _threads(summary: dict[str, Any]) -> str:
    count = summary.get("threads")
    return f", {count} thread{'s' if count != 1 else ''}" if count else ""
