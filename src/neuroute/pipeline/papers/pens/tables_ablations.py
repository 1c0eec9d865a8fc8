"""Table 1 and the tables inside Figures 4 and 5 of paper `pens`: scaling factors, encodings, initial embeddings."""

from neuroute.pipeline.papers.pens import paper as pens
from neuroute.pipeline.papers.pens.paper import NAMES, SIZES, gap_notes, reference_notes, repeated, run_id
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering.cells import MEAN_OF_GAPS
from neuroute.pipeline.rendering.columns import described
from neuroute.pipeline.rendering.grid import (
    MEAN_GAP,
    Grid,
    Measure,
    Method,
    Quantity,
    gaps,
    grid_table,
    needs_of,
    record,
)
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Column, Table, fixed
from neuroute.specs.objects import Dataset

ENCODED = ("coordns", "pens_a", "pens_r")
MODEL_OF = {"alibi": "PENS-A", "rope": "PENS-R"}


def table_figure4_grid(scale: Scale) -> Grid:
    methods = [
        Method(NAMES[name], {"method": NAMES[name]}, runs=run_id(name), decoding=repeated(scale)) for name in ENCODED
    ]
    return Grid(methods, gaps(pens.sets_of(scale, SIZES), MEAN_GAP, decimals=2), table="figure4_table")


@artifact(
    "Figure 4's table: ALiBi, RoPE and coordinates",
    needs=needs_of(table_figure4_grid),
    printed_files=("figure4_table",),
)
def table_figure4(study: Study) -> Table:
    grid = table_figure4_grid(study.scale)
    sets = [labels.dataset for labels in grid.tests]
    return grid_table(
        study,
        ("Model",),
        grid,
        gap_notes=gap_notes(study, grid.runs, sets, repeated(study.scale)),
        reference_notes=reference_notes(study, sets[-1]),
    )


def table_figure5_grid(scale: Scale) -> Grid:
    methods = [
        Method(
            (MODEL_OF[positions], f"{initial.capitalize()} init"),
            {"method": MODEL_OF[positions], "init": initial},
            runs=run_id(name),
            decoding=repeated(scale),
        )
        for name, (positions, initial) in pens.SMALL.items()
    ]
    return Grid(methods, gaps(pens.sets_of(scale, pens.SMALL_SIZES), MEAN_GAP), table="figure5a_table")


@artifact(
    "Figure 5a: zero and Gaussian initial embeddings",
    needs=needs_of(table_figure5_grid),
    printed_files=("figure5a_table",),
)
def table_figure5(study: Study) -> Table:
    grid = table_figure5_grid(study.scale)
    trained = study.runs[run_id(next(iter(pens.SMALL)))]
    return grid_table(
        study,
        ("Model", "Embeddings"),
        grid,
        gap_notes=gap_notes(study, grid.runs, [labels.dataset for labels in grid.tests], repeated(study.scale)),
        reference_notes=reference_notes(study),
        trained=trained,
    )


MODELS = ("pens_a", "pens_r")


def table1_grid(scale: Scale) -> Grid:
    quantities, factor = [], Measure("scale_factor", record("rescale_factor"))
    for size, test in pens.sets_of(scale, SIZES).items():
        where = f"TSP{test.dataset.n}", described(test.dataset), f"TSP{size}"
        gap = Column(f"gap_tsp{size}_pct", "Gap", "%", fixed(2), *where)
        quantities.append(Quantity(gap, MEAN_GAP, test, size))
        quantities.append(Quantity(Column(f"factor_tsp{size}", "Factor", "", fixed(2), *where), factor, test, size))
    methods = [
        Method((NAMES[name], label), {"method": NAMES[name], "scaled": scaled}, runs=run_id(name), decoding=decoding)
        for name in MODELS
        for label, scaled, decoding in (("original", "no", repeated(scale)), ("rescaled", "yes", pens.rescaled(scale)))
    ]
    return Grid(methods, quantities)


@artifact(
    "The best scaling factors and what they change",
    needs=lambda scale: [*needs_of(table1_grid)(scale), *(pens.rescaling(scale, name) for name in MODELS)],
)
def table1(study: Study) -> Table:
    grid = table1_grid(study.scale)
    sets = {size: labels.dataset for size, labels in pens.sets_of(study.scale, SIZES).items()}
    largest = sets[max(SIZES)]
    here = []
    for name in MODELS:
        before = study.value(MEAN_OF_GAPS, run_id(name), largest, repeated(study.scale))
        after = study.value(MEAN_OF_GAPS, run_id(name), largest, pens.rescaled(study.scale))
        if before is not None and after is not None:
            here.append(f"{NAMES[name]} from {before:.2f} to {after:.2f} %")
    gain = [f"At TSP{max(SIZES)} (TSP{largest.n} here) rescaling takes {', '.join(here)} here."] if here else []
    return grid_table(
        study,
        ("Model", "Coordinates"),
        grid,
        gap_notes=gap_notes(study, grid.runs, sets.values(), repeated(study.scale), pens.rescaled(study.scale)),
        reference_notes=reference_notes(study, sets[max(SIZES)]),
        without_minimum=_without_minimum(study, sets),
        gain=gain,
    )


def _without_minimum(study: Study, sets: dict[int, Dataset]) -> list[str]:
    """Where a sweep's parabola has no minimum between its ends."""
    paper_size = {dataset.n: size for size, dataset in sets.items()}
    models = []
    for name in MODELS:
        arrays = study.arrays(f"{run_id(name)}/rescaling")
        if "interior" not in arrays:
            continue
        inside = dict(zip(arrays["sizes"].tolist(), arrays["interior"].tolist(), strict=True))
        where = [f"TSP{paper_size[n]} (TSP{n} here)" for n, interior in inside.items() if not interior]
        models += [f"{NAMES[name]} at {', '.join(where)}"] if where else []
    if not models:
        return []
    return [
        f"The parabola has no minimum between the factors that it is fitted to for {'; '.join(models)}: the factor "
        "there is the best of those tried, and a wider or finer sweep may find a better one."
    ]
