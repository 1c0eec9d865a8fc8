"""Tables 3, 7, 8 and 11 of paper `scaling`: what fewer samples, the gate and the log(n) factor change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from neuroute.accounting.counts import DecoderOnly
from neuroute.papers.scaling.cells import draw, model, sets_of
from neuroute.papers.scaling.roles import DATA, DEEPEST, FEW, LOG_N, Shape, run_id
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, artifact, tested
from neuroute.plan.objects import Dataset, Decoding, Labels, Supervised
from neuroute.rendering.cells import BOOTSTRAP, gap_cell, model_here, number, printed_numbers
from neuroute.rendering.columns import HERE, WHOLE, gap_columns, millions
from neuroute.rendering.grid import GAP, Grid, Measure, Method, Quantity, gaps, needs_of, parameters
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, Value

EPOCHS = 60.0  # of the paper's trainings in Table 3, by its caption


def _training(study: Study, run: str) -> Supervised:
    training = study.runs[run].training
    assert isinstance(training, Supervised)  # declared so
    return training


def _samples_cell(study: Study, run: str, _: Dataset, published: Value, __: Decoding) -> Cell:
    return Cell(_training(study, run).samples / 1e6, published)


def _epochs_cell(study: Study, run: str, _: Dataset, published: Value, __: Decoding) -> Cell:
    return Cell(_training(study, run).epochs, published)


def _budget(test: Labels) -> list[Quantity]:
    """Head the columns of what a model is trained on."""
    samples = Column("samples_millions", "Training samples", "M", millions)
    return [
        Quantity(samples, Measure("train_size", _samples_cell), test),
        Quantity(Column("epochs", "Epochs", format=WHOLE), Measure("epochs", _epochs_cell), test),
    ]


def table3_grid(scale: Scale) -> Grid:
    tests = sets_of(scale, (100, 1000))
    models = [model(shape, "D={}, W={}", "small01M") for shape in FEW]
    methods = [replace(each, besides={"epochs": EPOCHS}) for each in models]
    return Grid(methods, [parameters(tests[100]), *_budget(tests[100]), *gaps(tests, GAP)])


@artifact("Few samples, seen many times", needs=needs_of(table3_grid))
def table3(study: Study) -> Table:
    """Show what models learn from few samples."""
    note = (
        "The caption's budget of 10⁵ samples is the training set: over 60 epochs the models see 6 million samples, "
        "a tenth of the 60 million of the other tables."
    )
    return draw(study, ("Model",), table3_grid(study.scale), note)


def table7_grid(scale: Scale) -> Grid:
    label = "Ours greedy (Depth={}, Width={})"
    methods = [
        model(DEEPEST, f"{label} w/ gated attention", gated_attention="yes"),
        model(DEEPEST, f"{label} w/o gated attention", "nogate", gated_attention="no"),
    ]
    return Grid(methods, gaps(sets_of(scale), GAP))


@artifact("With and without gated attention", needs=needs_of(table7_grid))
def table7(study: Study) -> Table:
    """Show what the gate adds."""
    with_gate, without = (DecoderOnly(*DEEPEST, 8, gate).parameters for gate in (True, False))
    note = (
        f"The gate is also capacity: at the paper's shape the model without it has {without / 1e6:.2f}M "
        f"parameters instead of {with_gate / 1e6:.2f}M, {100 * (1 - without / with_gate):.1f} % fewer."
    )
    return draw(study, ("Model",), table7_grid(study.scale), note)


LOG_SETTINGS = {"no": ("w/o log(n)", Decoding(log_n=False)), "yes": ("w/ log(n)", Decoding())}


def _table8_needs(scale: Scale) -> Iterator[Need]:
    for shape in LOG_N:
        for labels in sets_of(scale).values():
            yield from tested(run_id(shape), labels, Decoding(), Decoding(log_n=False))


@artifact("With and without log(n)", needs=_table8_needs, printed_files=("table8", "table12", "table13"))
def table8(study: Study) -> Table:
    """Show what the log(n) factor adds."""
    sets = {n: test.dataset for n, test in sets_of(study.scale).items()}

    def row(shape: Shape, log_n: str) -> Row:
        setting, decoding = LOG_SETTINGS[log_n]
        gaps = {n: _printed_gap(study, shape, log_n, n) for n in sets}
        cells = (gap_cell(study, run_id(shape), sets[n], gap, decoding) for n, gap in gaps.items())
        labels = (setting, "Ours (D={}, W={})".format(*shape), model_here(study, run_id(shape)))
        return Row(labels, tuple(cells))

    without, with_it = (float(_printed_gap(study, Shape(6, 512), log_n, 1000) or 0) for log_n in LOG_SETTINGS)
    return Table(
        study.artifact.title,
        ("Setting", "Model", HERE),
        gap_columns(sets),
        tuple(row(shape, log_n) for log_n in LOG_SETTINGS for shape in LOG_N),
        (
            BOOTSTRAP,
            "Both settings are of the same trainings.",
            "The paper has one wide model here, called (6, 256), but its row without log(n) holds the numbers of "
            "(6, 512), which the text names: they stand there, and beside them the (6, 512) of Tables 12 and 13. For "
            "(6, 256) without log(n) there are no printed numbers.",
            "The text's 32.83 % improvement at TSP1000 therefore compares two models; the gaps of (6, 512), "
            f"{without:.3f} % and {with_it:.3f} %, differ by {100 * (1 - with_it / without):.1f} %.",
            "In the printed numbers log(n) makes (6, 128) worse at TSP200.",
            "The factor is one at the training size, so the two settings agree at TSP100 by construction.",
        ),
    )


def _printed_gap(study: Study, shape: Shape, log_n: str, n: int) -> Value:
    """The printed gap where it belongs: (6, 256) without log(n) is (6, 512), whose row with it is missing."""
    if (shape, log_n) == ((6, 256), "no"):
        return None
    if (shape, log_n) == ((6, 512), "yes"):
        return number(printed_numbers(study, 12 if n == 100 else 13, **shape._asdict()), n, "gap_pct")
    row_in_print = Shape(6, 256) if shape == (6, 512) else shape
    return number(printed_numbers(study, 8, **row_in_print._asdict(), log_n=log_n), n, "gap_pct")


def table11_grid(scale: Scale) -> Grid:
    tests = sets_of(scale)
    methods = [
        Method(
            ("Ours greedy (Depth=12, Width=128)", f"{millions}M"),
            {"train_size": millions * 1_000_000},
            runs=run_id(DATA, f"data{millions}M"),
            besides={"train_size": float(millions)},
        )
        for millions in (1, 10)
    ]
    return Grid(methods, [*_budget(tests[100]), *gaps(tests, GAP)])


@artifact("Few and many training samples", needs=needs_of(table11_grid))
def table11(study: Study) -> Table:
    """Show what more samples add."""
    grid = table11_grid(study.scale)
    sample_counts = {_training(study, run).samples * _training(study, run).epochs for run in grid.runs}
    return draw(
        study,
        ("Model", "Training set"),
        grid,
        "The paper does not say how often its models saw each sample; here "
        + (f"both see {sample_counts.pop():,} in all." if len(sample_counts) == 1 else "the epochs are in the table."),
        "The printed 1.357 % of 10M at TSP1000 is also that of the 60M model in Table 13; at TSP200 the 10M model "
        "(0.461 %) is better than that one (0.550 %, itself off the trend of its neighbours).",
    )
