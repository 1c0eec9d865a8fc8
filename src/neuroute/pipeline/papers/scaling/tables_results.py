"""Tables 2, 4, 12, 17 and 18 of paper `scaling`: the paper's rows and columns, measured beside published."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from neuroute.evaluation.accounting.counts import counts
from neuroute.evaluation.accounting.flops import solution, solution_paper
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.papers.scaling.cells import (
    MEAN_OF_RATIOS,
    DecoderOnly,
    model,
    of_grid,
    sets_of,
    solver,
    solver_notes,
)
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact, tested
from neuroute.pipeline.rendering.cells import gap_cell, model_here, number, printed_numbers, select
from neuroute.pipeline.rendering.columns import HERE, WHOLE, described
from neuroute.pipeline.rendering.grid import (
    GAP,
    SECONDS,
    Grid,
    Measure,
    Quantity,
    gaps,
    grid_table,
    needs_of,
    parameters,
    record,
)
from neuroute.pipeline.rendering.notes import draw_table
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, Value, duration, fixed
from neuroute.specs.objects import Dataset, Decoding, beam_search


def table2_grid(scale: Scale) -> Grid:
    tests = sets_of(scale)
    sized = scaling.equal_sized(scale)
    methods = [replace(model(shape, "D={}, W={}"), runs=run) for shape, run in sized.items()]
    return Grid(methods, [parameters(tests[100]), *gaps(tests, GAP)])


@artifact(
    "Deep and narrow against wide at equal parameters", needs=needs_of(table2_grid), printed_files=("table2", "table5")
)
def table2(study: Study) -> Table:
    grid = table2_grid(study.scale)
    n = grid.tests[0].dataset.n
    first, *deep = (solution_paper(counts(study.runs[run].network).decision, n) for run in grid.runs)
    ratios = ", ".join(f"{cost / first:.2f}× for {m.label}" for m, cost in zip(grid.methods[1:], deep, strict=True))
    return grid_table(study, ("Model",), grid, ratios=ratios)


def _table4_needs(scale: Scale) -> Iterator[Need]:
    s = scale[scaling.ScalingScale]
    for shape in scaling.BUDGETED:
        labels = scaling.reference(scale, 100, s.budget_count)
        yield from tested(scaling.run_id(shape), labels, *map(beam_search, s.budgets[str(shape)].values()))


@artifact("Optimality gap under limited and sufficient inference budgets", needs=_table4_needs)
def table4(study: Study) -> Table:
    s = study.scale[scaling.ScalingScale]
    dataset = scaling.reference(study.scale, 100, s.budget_count).dataset
    at, columns = described(dataset), []
    for budget, paper in (("limited", ""), ("sufficient", "> 1 h")):
        heads = f"{budget.capitalize()} budget", at, paper
        columns.append(Column(f"{budget}_beam", "Beam", "", WHOLE, *heads))
        columns.append(Column(f"{budget}_gap_pct", "Gap", "%", fixed(4), *heads))
        columns.append(Column(f"{budget}_time_s", "Time", "", duration, *heads))

    def row(shape: scaling.Shape) -> Row:
        run, rows = scaling.run_id(shape), printed_numbers(study, 4, **shape._asdict())
        cells = []
        for budget, beam in s.budgets[str(shape)].items():
            numbers, decoding = select(rows, budget=budget), Decoding(method="beam", beam=beam)
            size, gap, time = (number(numbers, None, metric) for metric in ("beam_size", "gap_pct", "time_s"))
            cells.append(Cell(beam, size))
            cells.append(gap_cell(study, run, dataset, gap, decoding))
            cells.append(Cell(study.value("time_s", run, dataset, decoding), time))
        label = f"({shape.depth}, {shape.width}, {number(rows, None, 'params_m'):.1f}M)"
        return Row((label, model_here(study, run)), tuple(cells))

    return draw_table(study, ("Depth, width, parameters", HERE), columns, [row(shape) for shape in scaling.BUDGETED])


def table12_grid(scale: Scale) -> Grid:
    test = scaling.reference(scale, 100)
    at = described(test.dataset)
    return Grid(
        [solver(scale), *of_grid(scale, "Greedy, depth={}, width={}")],
        [
            Quantity(Column("gap_pct", "Gap", "%", at=at), GAP, test, 100),
            Quantity(Column("gap_mean_of_ratios_pct", "Mean of ratios", "%", at=at), MEAN_OF_RATIOS, test, 100),
            Quantity(Column("time_s", "Time", format=duration, at=at), SECONDS, test, 100),
        ],
    )


@artifact("In-domain greedy results of the twelve models", needs=needs_of(table12_grid))
def table12(study: Study) -> Table:
    grid = table12_grid(study.scale)
    return grid_table(
        study,
        ("Method",),
        grid,
        reference_solver=study.scale.reference_solver,
        solver_notes=solver_notes(study, grid.tests),
    )


def _batched(scale: Scale) -> dict[int, Decoding]:
    """Return greedy decoding in each of the paper's batch sizes, as large as they are here."""
    count = scaling.reference(scale, 100).dataset.count
    return {role: Decoding(batch_size=min(n, count)) for role, n in scale[scaling.ScalingScale].latency_batches.items()}


@artifact(
    "FLOPs and latency by batch size",
    needs=lambda s: tested(
        map(scaling.run_id, scaling.TIMED), scaling.reference(s, 100), Decoding(), *_batched(s).values()
    ),
    printed_files=("table1", "table17"),
)
def table17(study: Study) -> Table:
    dataset = scaling.reference(study.scale, 100).dataset
    sizes, decodings = study.scale[scaling.ScalingScale].latency_batches, _batched(study.scale)

    def row(shape: scaling.Shape) -> Row:
        run, rows = scaling.run_id(shape), printed_numbers(study, 17, **shape._asdict())
        heads = printed_numbers(study, 1, **shape._asdict(), metric="heads").value.item()
        decision = DecoderOnly(*shape, int(heads)).decision
        cells = [
            Cell(study.value("gflops_paper", run, dataset), number(rows, None, "gflops")),
            Cell(study.value("gflops_shrinking", run, dataset)),
            Cell(solution_paper(decision, 100) / 1e9),
            Cell(solution(decision, 100) / 1e9),
        ]
        for role, decoding in decodings.items():
            seconds = number(select(rows, batch_size=role), None, "time_s")
            cells.append(Cell(study.value("time_s", run, dataset, decoding), seconds))
        return Row(("Greedy, depth={}, width={}".format(*shape), model_here(study, run)), tuple(cells))

    per_solution, recomputed = "Compute per solution", "Recomputed at the paper's size"
    columns = [
        Column("gflops_paper", "Paper's count", "GFLOPs", _significant, per_solution),
        Column("gflops_shrinking", "Real count", "GFLOPs", _significant, per_solution),
        Column("gflops_paper_at_paper_shape", "Paper's count", "GFLOPs", fixed(1), recomputed),
        Column("gflops_shrinking_at_paper_shape", "Real count", "GFLOPs", fixed(1), recomputed),
    ]
    for role, decoding in decodings.items():
        label = f"Batch {role}" + ("" if sizes[role] == role else f" ({decoding.batch_size} here)")
        columns.append(Column(f"time_batch{role}_s", label, "", duration, "Time", described(dataset)))
    return draw_table(study, ("Method", HERE), columns, [row(shape) for shape in scaling.TIMED])


def _gap_alone(study: Study, run: str, dataset: Dataset, published: Value, decoding: Decoding) -> Cell:
    """Show a gap without its interval; claims are judged by it all the same."""
    of = study, run, dataset, published, decoding
    return replace(record("gap_pct")(*of), behind=gap_cell(*of).behind)


def table18_grid(scale: Scale) -> Grid:
    test, gap_alone = scaling.searched(scale), Measure("gap_pct", _gap_alone)
    quantities = []
    for role, beam in scale[scaling.ScalingScale].beams.items():
        name = "Greedy" if role == 1 else f"Beam {role}"
        heading = name if role == beam else f"{name} ({beam} here)"
        column = Column(f"gap_beam{role}_pct", heading, "%", fixed(4), at=described(test.dataset))
        quantities.append(Quantity(column, gap_alone, test, 100, beam_search(beam), {"beam": role}))
    return Grid(of_grid(scale, "D={}, W={}"), quantities)


@artifact("Beam search with growing widths", needs=needs_of(table18_grid))
def table18(study: Study) -> Table:
    grid = table18_grid(study.scale)
    gaps = [[cell.measured for cell in row.cells] for row in grid.rows(study)]
    steps = [step for row in gaps for step in pairwise(row)]
    worse = sum(isinstance(a, float) and isinstance(b, float) and b > a for a, b in steps)
    return grid_table(study, ("Model",), grid, steps=len(steps), worse=worse)


def _significant(value: Any) -> str:
    """Format with four significant digits."""
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
