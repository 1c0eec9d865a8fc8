"""The tables inside Figures 4 and 5 of paper `pens`: positional encodings and initial embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.papers.pens.cells import gap_notes, reference_notes, sets_of
from neuroute.papers.pens.roles import NAMES, SIZES, SMALL, SMALL_SIZES, repeated, run_id
from neuroute.plan.needs import artifact
from neuroute.rendering.grid import Grid, Method, gaps, grid_table, needs_of

if TYPE_CHECKING:
    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study
    from neuroute.rendering.table import Table

ENCODED = ("coordns", "pens_a", "pens_r")
MODEL_OF = {"alibi": "PENS-A", "rope": "PENS-R"}


def table_figure4_grid(scale: Scale) -> Grid:
    methods = [
        Method(NAMES[name], {"method": NAMES[name]}, runs=run_id(name), decoding=repeated(scale)) for name in ENCODED
    ]
    return Grid(methods, gaps(sets_of(scale, SIZES), decimals=2), table="figure4_table")


@artifact("Figure 4's table: ALiBi, RoPE and coordinates", needs=needs_of(table_figure4_grid))
def table_figure4(study: Study) -> Table:
    """ALiBi, RoPE and projected coordinates, none of them rescaled."""
    grid = table_figure4_grid(study.scale)
    sets = [labels.dataset for labels in grid.tests]
    return grid_table(
        study,
        ("Model",),
        grid,
        *gap_notes(study, grid.runs, sets, repeated(study.scale)),
        *reference_notes(study, sets[-1]),
        "No coordinates are rescaled here.",
        "In the printed numbers CoordNS is better than PENS-A at TSP250 and TSP500, and at TSP1000 (1.51 %) better "
        "than every PENS model, rescaled or not; Tables 2 and 3 leave CoordNS out.",
    )


def table_figure5_grid(scale: Scale) -> Grid:
    methods = [
        Method(
            (MODEL_OF[positions], f"{initial.capitalize()} init"),
            {"method": MODEL_OF[positions], "init": initial},
            runs=run_id(name),
            decoding=repeated(scale),
        )
        for name, (positions, initial) in SMALL.items()
    ]
    return Grid(methods, gaps(sets_of(scale, SMALL_SIZES)), table="figure5a_table")


@artifact("Figure 5a: zero and Gaussian initial embeddings", needs=needs_of(table_figure5_grid))
def table_figure5(study: Study) -> Table:
    """Zero and Gaussian initial embeddings, trained on the smallest size."""
    grid = table_figure5_grid(study.scale)
    trained = study.runs[run_id(next(iter(SMALL)))]
    shape = trained.network.arguments
    return grid_table(
        study,
        ("Model", "Embeddings"),
        grid,
        *gap_notes(study, grid.runs, [labels.dataset for labels in grid.tests], repeated(study.scale)),
        *reference_notes(study),
        "The paper says neither how large its small models are, nor how long they train, nor on how many instances "
        f"they are tested. Here all four have {shape['depth']} layers of width {shape['width']} and "
        f"{shape['heads']} heads and see {trained.training.batches:,} batches of TSP{trained.n}.",
        "In the printed numbers Gaussian embeddings are worse for PENS-A at TSP20 and TSP50; the text says that "
        "they change nothing at TSP20.",
    )
