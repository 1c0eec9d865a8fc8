"""Tables 1, 3, 7 to 11 and 22 of paper `scaling`: settings and rates; what samples, the gate and log(n) change."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from neuroute.evaluation.accounting.counts import counts
from neuroute.evaluation.accounting.flops import training_per_sample
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.papers.scaling.cells import ADDED, DecoderOnly, model, sets_of
from neuroute.pipeline.papers.scaling.paper import grid, run_id
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.rendering.cells import gap_cell, mean_cell, model_here, number, printed_numbers, summary_cell
from neuroute.pipeline.rendering.columns import AS_CONFIGURED, HERE, WHOLE, described, gap_columns, millions, plain
from neuroute.pipeline.rendering.grid import (
    GAP,
    Grid,
    Measure,
    Method,
    Quantity,
    gaps,
    grid_table,
    needs_of,
    parameters,
)
from neuroute.pipeline.rendering.notes import draw_table
from neuroute.pipeline.rendering.settings import printed_values
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, Value, duration
from neuroute.specs.objects import Decoding, Labels, Supervised

EPOCHS_IN_PRINT = 60.0  # of the paper's trainings in Table 3, by its caption


SAMPLES = Measure(
    "train_size", lambda study, run, _, published, how: Cell(study.runs[run].training.samples / 1e6, published)
)
EPOCHS = Measure("epochs", lambda study, run, _, published, how: Cell(study.runs[run].training.epochs, published))


def _budget(test: Labels) -> list[Quantity]:
    """Head the columns of what a model is trained on."""
    samples = Column("samples_millions", "Training samples", "M", millions)
    return [Quantity(samples, SAMPLES, test), Quantity(Column("epochs", "Epochs", format=WHOLE), EPOCHS, test)]


def table3_grid(scale: Scale) -> Grid:
    tests = sets_of(scale, (100, 1000))
    models = [model(shape, "D={}, W={}", "small01M") for shape in scaling.FEW]
    methods = [replace(each, besides={"epochs": EPOCHS_IN_PRINT}) for each in models]
    return Grid(methods, [parameters(tests[100]), *_budget(tests[100]), *gaps(tests, GAP)])


@artifact("Few samples, seen many times", needs=needs_of(table3_grid))
def table3(study: Study) -> Table:
    return grid_table(study, ("Model",), table3_grid(study.scale))


def table7_grid(scale: Scale) -> Grid:
    label = "Ours greedy (Depth={}, Width={})"
    methods = [
        model(scaling.DEEPEST, f"{label} w/ gated attention", gated_attention="yes"),
        model(scaling.DEEPEST, f"{label} w/o gated attention", "nogate", gated_attention="no"),
    ]
    return Grid(methods, gaps(sets_of(scale), GAP))


@artifact("With and without gated attention", needs=needs_of(table7_grid))
def table7(study: Study) -> Table:
    return grid_table(study, ("Model",), table7_grid(study.scale))


LOG_SETTINGS = {"no": ("w/o log(n)", Decoding(log_n=False)), "yes": ("w/ log(n)", Decoding())}


def _table8_needs(scale: Scale) -> Iterator[Need]:
    return tested(map(run_id, scaling.LOG_N), sets_of(scale).values(), Decoding(), Decoding(log_n=False))


@artifact("With and without log(n)", needs=_table8_needs, printed_files=("table8", "table12", "table13"))
def table8(study: Study) -> Table:
    sets = {n: test.dataset for n, test in sets_of(study.scale).items()}

    def row(shape: scaling.Shape, log_n: str) -> Row:
        setting, decoding = LOG_SETTINGS[log_n]
        gaps = {n: _printed_gap(study, shape, log_n, n) for n in sets}
        cells = (gap_cell(study, run_id(shape), sets[n], gap, decoding) for n, gap in gaps.items())
        labels = (setting, "Ours (D={}, W={})".format(*shape), model_here(study, run_id(shape)))
        return Row(labels, tuple(cells))

    rows = [row(shape, log_n) for log_n in LOG_SETTINGS for shape in scaling.LOG_N]
    return draw_table(study, ("Setting", "Model", HERE), gap_columns(sets), rows)


def _printed_gap(study: Study, shape: scaling.Shape, log_n: str, n: int) -> Value:
    """The printed gap where it belongs: (6, 256) without log(n) is (6, 512), whose row with it is missing."""
    if (shape, log_n) == ((6, 256), "no"):
        return None
    if (shape, log_n) == ((6, 512), "yes"):
        return number(printed_numbers(study, 12 if n == 100 else 13, **shape._asdict()), n, "gap_pct")
    row_in_print = scaling.Shape(6, 256) if shape == (6, 512) else shape
    return number(printed_numbers(study, 8, **row_in_print._asdict(), log_n=log_n), n, "gap_pct")


def table11_grid(scale: Scale) -> Grid:
    tests = sets_of(scale)
    methods = [
        Method(
            ("Ours greedy (Depth=12, Width=128)", f"{millions}M"),
            {"train_size": millions * 1_000_000},
            runs=run_id(scaling.DATA, f"data{millions}M"),
            besides={"train_size": float(millions)},
        )
        for millions in (1, 10)
    ]
    return Grid(methods, [*_budget(tests[100]), *gaps(tests, GAP)])


@artifact("Few and many training samples", needs=needs_of(table11_grid))
def table11(study: Study) -> Table:
    grid = table11_grid(study.scale)
    samples = {t.samples * t.epochs for t in (study.runs[run].training for run in grid.runs)}
    amounts = f"both see {samples.pop():,} in all" if len(samples) == 1 else "the epochs are in the table"
    return grid_table(study, ("Model", "Training set"), grid, amounts=amounts)


@artifact("Configurations of the twelve models", printed_files=("table1", "table18"))
def table1(study: Study) -> Table:

    def row(shape: scaling.Shape) -> Row:
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
        if scaling.is_added(shape):
            return Row((*shape, f"{here}; {ADDED}"), (*cells, Cell()))
        return Row((*shape, here), (*cells, Cell(DecoderOnly(*shape, heads=8).parameters)))

    return draw_table(
        study,
        ("Depth", "Width", HERE),
        (
            Column("heads", "Heads", format=WHOLE),
            Column("qkv_dim", "QKV dim", format=WHOLE),
            Column("ffn_dim", "FFN dim", format=WHOLE),
            Column("parameters_millions", "Parameters", "M", millions),
            Column("parameters_at_paper_shape", "Exact count at the paper's shape", format=WHOLE),
        ),
        [row(shape) for shape in grid(study.scale)],
        AS_CONFIGURED,
    )


@artifact("Training hyper-parameters")
def table9(study: Study) -> Table:
    published = printed_values(study)
    s, run = study.scale[scaling.ScalingScale], study.runs[run_id(scaling.GRID[0])]
    t = run.training
    assert isinstance(t, Supervised)  # declared so
    trainings = {shape: study.runs[run_id(shape)].training for shape in scaling.GRID}
    changed = [shape.name for shape, training in trainings.items() if training != s.recipe(s.model(*shape))]
    rates = sorted({s.recipe(s.model(*shape)).learning_rate for shape in scaling.GRID})
    rate = t.learning_rate if len(rates) == 1 else f"{rates[0]:g} to {rates[-1]:g}, by shape"
    falls = t.final_learning_rate is None  # by a factor, again and again
    end = None if t.final_learning_rate is None else float(f"{t.final_learning_rate / t.learning_rate:.2g}")
    update = {"sub-path": "one per decision"}.get(t.step, f"one ({t.step})")
    rows: list[tuple[str, Any, str | None]] = [
        ("Batch size", t.batch_size, "batch_size"),
        ("Total training steps", t.batches, "total_training_steps"),
        ("Optimizer", "AdamW", "optimizer"),
        ("Weight decay", t.weight_decay, "weight_decay"),
        ("Learning rate", rate, "learning_rate"),
        ("Scheduler", "Exponential" if falls else "Cosine", "scheduler"),
        ("Decay gamma", t.decay_gamma if falls else None, "decay_gamma"),
        ("Decay step", t.decay_every if falls else None, "decay_step"),
        *([] if falls else [("Share of the rate at the end", end, None)]),
        ("Training instances", t.samples, None),
        ("Passes over them", t.epochs, None),
        ("Nodes of a training instance", run.n, None),
        ("Updates in a step", update, None),
        ("Warm-up batches", t.warmup_batches, None),
        ("Precision", t.precision, None),
    ]
    names, first = ", ".join(changed), scaling.GRID[0].name
    change = f"config.yaml changes the training of {names}; the values shown are those of {first}."
    return draw_table(
        study,
        ("Parameter",),
        (Column("value", "Value", format=plain),),
        [Row((name,), (Cell(value, published[key] if key else None),)) for name, value, key in rows],
        AS_CONFIGURED,
        changed=change if changed else "",
    )


@artifact("Training hardware", needs=lambda scale: [Log(run_id(shape), all_seeds=True) for shape in grid(scale)])
def table10(study: Study) -> Table:
    published = study.published(10).set_index("key")

    def row(shape: scaling.Shape) -> Row:
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
        label = "D={}, W={}".format(*shape) + (f", {ADDED}" if scaling.is_added(shape) else "")
        return Row((label, model_here(study, run.id)), cells)

    return draw_table(
        study,
        ("Configuration", HERE),
        (
            Column("device", "Device"),
            Column("wall_time_s", "Training time", format=duration),
            Column("updates", "Updates", format=WHOLE),
            Column("train_pflop", "Training compute", "PFLOP", format=lambda v: f"{v:.3g}"),
        ),
        [row(shape) for shape in grid(study.scale)],
    )


def _threads(summary: dict[str, Any]) -> str:
    count = summary.get("threads")
    return f", {count} thread{'s' if count != 1 else ''}" if count else ""


def _needs(scale: Scale) -> Iterator[Need]:
    for name, (shape, _) in scaling.pilots(scale).items():
        yield Log(f"{scaling.KEY}/{name}", all_seeds=True)
        yield Log(run_id(shape), all_seeds=True)


@artifact("Our own: learning rates by shape", needs=_needs, printed_files=())
def table22(study: Study) -> Table:
    """Show what the rule of the rates is made of, and the rate that each model of the grid has by it."""
    s = study.scale[scaling.ScalingScale]
    assert s.rates is not None  # else no scale's plan has this table
    tried = sorted({rate for rates in s.rates.tried.values() for rate in rates})
    rows, others = [], []
    for shape in scaling.GRID:
        pilots = {rate: f"{scaling.KEY}/{scaling.pilot(shape, rate)}" for rate in s.rates.tried.get(str(shape), ())}
        short = {rate: _last_gap(study, run) for rate, run in pilots.items()}
        gaps = {rate: cell.measured for rate, cell in short.items() if isinstance(cell.measured, float)}
        best = min(gaps, key=gaps.__getitem__) if gaps else None
        if gaps and best != s.rates.best[str(shape)]:
            others.append(shape.name)
        whole = [_last_gap(study, run) if pilots else Cell() for run in (run_id(shape), run_id(shape, "single"))]
        rate_here = s.recipe(s.model(*shape)).learning_rate
        cells = (*(short.get(rate, Cell()) for rate in tried), Cell(best), Cell(rate_here), *whole)
        rows.append(Row((shape.name, model_here(study, run_id(shape))), cells))
    at = described(scaling.validation(study.scale).dataset)
    columns = [
        *(Column(f"gap_{rate:g}_pct", f"{rate:g}", "%", group="Short trainings", at=at) for rate in tried),
        Column("best", "Best tried", format="{:g}".format),
        Column("rate", "Rate by the rule", format="{:g}".format),
        Column("gap_pct", "At this rate", "%", group="Whole trainings", at=at),
        Column("gap_single_pct", f"At {s.training.learning_rate:g}", "%", group="Whole trainings", at=at),
    ]
    return draw_table(study, ("Model", HERE), columns, rows, part=s.rates.part, others=_others(others))


def _last_gap(study: Study, run: str) -> Cell:
    """Mean the last validation gaps of a run's trainings."""
    logs = [study.log(training, "validation") for training in study.trainings(run)]
    return mean_cell([float(log.gap_pct.iloc[-1]) for log in logs if len(log)])


def _others(names: list[str]) -> str:
    """Say whether the scale's rates are the best ones of this table."""
    if not names:
        return "The scale's rates are the best tried at each corner."
    return f"The scale has another rate than the best tried at {', '.join(names)}: correct `rates.best`."
