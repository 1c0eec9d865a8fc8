"""The tables inside Figures 4 and 5 of paper `pens`: positional encodings and initial embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.papers.pens.cells import gap_cells, gap_notes, model_here, printed, reference_notes, test_sets
from neuroute.papers.pens.roles import NAMES, SIZES, SMALL, SMALL_SIZES, reference, repeated, run_id
from neuroute.plan.needs import Need, artifact, tested
from neuroute.rendering.columns import HERE, gap_columns
from neuroute.rendering.table import Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study

ENCODED = ("coordns", "pens_a", "pens_r")
MODEL_OF = {"alibi": "PENS-A", "rope": "PENS-R"}


def _table_figure4_needs(scale: Scale) -> Iterator[Need]:
    for name in ENCODED:
        for size in SIZES:
            yield from tested(run_id(name), reference(scale, size), repeated(scale))


@artifact("Figure 4's table: ALiBi, RoPE and coordinates", needs=_table_figure4_needs)
def table_figure4(study: Study) -> Table:
    """ALiBi, RoPE and projected coordinates, none of them rescaled."""
    sets, decoding = test_sets(study, SIZES), repeated(study.scale)
    rows = [
        Row(
            (NAMES[name], model_here(study, run_id(name))),
            gap_cells(study, run_id(name), sets, printed(study, "figure4_table", method=NAMES[name]), decoding),
        )
        for name in ENCODED
    ]
    return Table(
        study.artifact.title,
        ("Model", HERE),
        gap_columns(sets, decimals=2),
        tuple(rows),
        (
            *gap_notes(study, map(run_id, ENCODED), sets, decoding),
            *reference_notes(study, sets),
            "No coordinates are rescaled here.",
            "In the printed numbers CoordNS is better than PENS-A at TSP250 and TSP500, and at TSP1000 (1.51 %) better "
            "than every PENS model, rescaled or not; Tables 2 and 3 leave CoordNS out.",
        ),
    )


def small_needs(scale: Scale) -> Iterator[Need]:
    for name in SMALL:
        for size in SMALL_SIZES:
            yield from tested(run_id(name), reference(scale, size), repeated(scale))


@artifact("Figure 5a: zero and Gaussian initial embeddings", needs=small_needs)
def table_figure5(study: Study) -> Table:
    """Zero and Gaussian initial embeddings, trained on the smallest size."""
    sets, decoding = test_sets(study, SMALL_SIZES), repeated(study.scale)
    rows = []
    for name, (positions, initial) in SMALL.items():
        where = printed(study, "figure5a_table", method=MODEL_OF[positions], init=initial)
        cells = gap_cells(study, run_id(name), sets, where, decoding)
        rows.append(Row((MODEL_OF[positions], f"{initial.capitalize()} init", model_here(study, run_id(name))), cells))
    trained = study.runs[run_id(next(iter(SMALL)))]
    shape = trained.network.arguments
    return Table(
        study.artifact.title,
        ("Model", "Embeddings", HERE),
        gap_columns(sets),
        tuple(rows),
        (
            *gap_notes(study, map(run_id, SMALL), sets, decoding),
            *reference_notes(study, sets),
            "The paper says neither how large its small models are, nor how long they train, nor on how many instances "
            f"they are tested. Here all four have {shape['depth']} layers of width {shape['width']} and "
            f"{shape['heads']} heads and see {trained.training.batches:,} batches of TSP{trained.n}.",
            "In the printed numbers Gaussian embeddings are worse for PENS-A at TSP20 and TSP50; the text says that "
            "they change nothing at TSP20.",
        ),
    )
