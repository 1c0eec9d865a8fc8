"""Tables 8 to 11 of paper `icam`: after each stage, without the adaptation, with other last stages, with searches."""

from collections.abc import Iterator

from neuroute.pipeline.papers.icam import roles
from neuroute.pipeline.papers.icam.methods import (
    REFERENCE,
    WAYS,
    baselines_note,
    models,
    reference_note,
    searched,
    sets_of,
)
from neuroute.pipeline.papers.icam.roles import ABLATIONS, BETAS, KS, MULTI, OWN, SINGLE, SIZES, STAGES, run_id
from neuroute.pipeline.papers.icam.scale import IcamScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact, tested
from neuroute.pipeline.rendering.cells import UNTRAINED, gap_cell, number, printed_numbers, with_budget
from neuroute.pipeline.rendering.columns import described, gap_columns
from neuroute.pipeline.rendering.grid import Grid, Method, comparison, from_print, gaps, grid_table, needs_of
from neuroute.pipeline.rendering.notes import draw_table
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table
from neuroute.specs.objects import Decoding, GivenRun, Problem, Reinforced, StageEvaluation, Test

TSP: Problem = "tsp"
LARGEST = SIZES[-1]
IN_PRINT = {SINGLE: "single_greedy", MULTI: "multistart_greedy"}


def _table8_needs(scale: Scale) -> Iterator[Need]:
    tests = tuple(Test(labels=test, decoding=MULTI) for test in sets_of(scale, TSP).values())
    yield StageEvaluation(run=run_id(OWN[TSP]), stages=STAGES, tests=tests)  # the model itself is of the last one
    yield from tested(run_id(OWN[TSP]), sets_of(scale, TSP).values(), MULTI)


@artifact("After each stage of the training", needs=_table8_needs)
def table8(study: Study) -> Table:
    tests = sets_of(study.scale, TSP)
    sets = {size: labels.dataset for size, labels in tests.items()}
    rows = []
    for i, stage in enumerate((*STAGES, None), 1):
        published = printed_numbers(study, "table8", checkpoint=f"after_stage_{i}")
        run = run_id(OWN[TSP]) if stage is None else roles.at_stage(OWN[TSP], stage)
        gaps = {size: number(published, size, "gap_pct") for size in sets}
        cells = [gap_cell(study, run, dataset, gaps[size], MULTI) for size, dataset in sets.items()]
        rows.append(Row((f"After stage {i}", _sizes(study, i - 1)), tuple(cells)))
    return draw_table(
        study,
        ("Checkpoint", "Trained on, here"),
        gap_columns(sets),
        rows,
        reference=reference_note({TSP: tests}, {TSP: "Concorde"}),
    )


def _sizes(study: Study, stage: int) -> str:
    """The sizes of a stage of the main run."""
    run = study.runs.get(run_id(OWN[TSP]))
    if run is None or not isinstance(run.training, Reinforced) or isinstance(run, GivenRun):
        return UNTRAINED
    low, high = run.training.stages[stage].sizes
    return f"n={low}" if low == high else f"n={low} to {high}"


def table9_grid(scale: Scale) -> Grid:
    methods = [
        Method(variant, {"variant": variant}, runs=run_id(name), decoding=MULTI) for variant, name in ABLATIONS.items()
    ]
    return Grid(methods, gaps(sets_of(scale, TSP)))


@artifact("Without the adaptation", needs=needs_of(table9_grid))
def table9(study: Study) -> Table:
    """Gaps with the adaptation function in the attention-free modules, in the compatibility, in both and in neither."""
    reference = reference_note({TSP: sets_of(study.scale, TSP)}, {TSP: "Concorde"})
    return grid_table(study, ("Variant",), table9_grid(study.scale), reference=reference)


def _table10_needs(scale: Scale) -> Iterator[Need]:
    forks = (run_id(roles.fork(k, beta)) for k, beta in (roles.MAIN, *scale[IcamScale].forks))
    return tested(forks, roles.reference(scale, TSP, LARGEST), roles.SINGLE, MULTI)


@artifact("Parameters of the third stage", needs=_table10_needs)
def table10(study: Study) -> Table:
    """Gaps at the paper's TSP1000 with several k and beta of the last stage."""
    labels = roles.reference(study.scale, TSP, LARGEST)
    ways = {way: WAYS[way] for way in ("single trajec.", "no augment.")}
    columns = [
        Column(f"gap_{decoding.name}_b{beta:g}_pct", f"β = {beta:g}", "%", group=way, at=described(labels.dataset))
        for way, decoding in ways.items()
        for beta in BETAS
    ]

    def cell(k: int, beta: float, decoding: Decoding) -> Cell:
        name, run = IN_PRINT[decoding], run_id(roles.fork(k, beta))
        published = number(printed_numbers(study, 10, k=k, beta=beta, decoding=name), LARGEST, "gap_pct")
        return gap_cell(study, run, labels.dataset, published, decoding) if run in study.runs else Cell(None, published)

    rows = [
        Row(
            (with_budget(f"k = {k}", k, study.scale[IcamScale].elites[k]),),
            tuple(cell(k, beta, way) for way in ways.values() for beta in BETAS),
        )
        for k in KS
    ]
    trained_here = [
        f"k = {k} with β = {beta:g}"
        for k, beta in study.scale[IcamScale].forks
        if run_id(roles.fork(k, beta)) in study.runs
    ]
    return draw_table(
        study,
        ("Best solutions",),
        columns,
        rows,
        reference=reference_note({TSP: {LARGEST: labels}}, {TSP: "Concorde"}),
        forks=f"Others trained here: {'; '.join(trained_here) or 'none'}.",
    )


def table11_grid(scale: Scale) -> Grid:
    columns = comparison(sets_of(scale, TSP), "TSP{}".format, lengths=4, time="Total time")
    return Grid(from_print(roles.PAPER, 11, models(scale, TSP) | searched(scale) | REFERENCE[TSP]), columns)


@artifact("Inference strategies", needs=needs_of(table11_grid))
def table11(study: Study) -> Table:
    """Mean length, gap and total time with beams, random re-construct and augmentation."""
    grid, iterations, beam = table11_grid(study.scale), roles.rrc(study.scale).iterations, roles.beam(study.scale).beam
    return grid_table(
        study,
        ("Method",),
        grid,
        reference=reference_note({TSP: sets_of(study.scale, TSP)}, {TSP: "Concorde"}),
        scale=study.scale[IcamScale],
        searches="" if (iterations, beam) == (100, 16) else f", with {iterations} iterations and beams of {beam}",
        baselines=baselines_note(study, [grid]),
    )
