"""What the tables of paper `pens` have in common: printed numbers, measured gaps, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from neuroute.papers.pens import roles
from neuroute.papers.pens.scale import PensScale
from neuroute.rendering.columns import described
from neuroute.rendering.columns import model_here as shape_here
from neuroute.rendering.gaps import BOOTSTRAP, single_gap_cell

if TYPE_CHECKING:
    import pandas as pd

    from neuroute.plan.objects import Dataset, Decoding
    from neuroute.rendering.study import Study
    from neuroute.rendering.table import Cell

SOLVERS = {"concorde": "Concorde", "lkh": "LKH"}
UNTRAINED = "–"  # for a method that is not measured here


def test_sets(study: Study, sizes: Iterable[int]) -> dict[int, Dataset]:
    """The paper's size -> the test set that stands for it."""
    return {size: roles.reference(study.scale, size).dataset for size in sizes}


def printed(study: Study, table: str, **where: object) -> pd.DataFrame:
    """The paper's numbers whose columns (method, scaled, init, ...) hold `where`; n is text: 100, 1-100."""
    rows = study.published(table)
    for key, value in where.items():
        rows = rows[rows[key] == value]
    return rows.assign(n=rows.n.astype(str))


def number(rows: pd.DataFrame, n: object, metric: str = "gap_pct") -> float | None:
    """The one printed value of a size or a group of TSPLIB; None where the paper prints none."""
    values = rows.loc[(rows.n == str(n)) & (rows.metric == metric), "value"].dropna()
    return float(values.item()) if len(values) else None


def gap_cells(
    study: Study, run: str, sets: Mapping[int, Dataset], rows: pd.DataFrame, decoding: Decoding
) -> tuple[Cell, ...]:
    """The gaps of one model on the data sets that stand for the paper's sizes; `rows` holds the printed ones."""
    return tuple(single_gap_cell(study, run, dataset, number(rows, n), decoding) for n, dataset in sets.items())


def model_here(study: Study, run: str | None) -> str:
    """Depth and width of a run's network; a dash for a method that is not trained here."""
    return shape_here(study, run) if run is not None and run in study.runs else UNTRAINED


def gap_notes(study: Study, runs: Iterable[str], sets: Mapping[int, Dataset], *decodings: Decoding) -> list[str]:
    """What a gap is here: of several solutions of each instance, and how far these are apart, over these cells."""
    spreads = [study.value("gap_spread_pct", run, d, how) for run in runs for d in sets.values() for how in decodings]
    found = [spread for spread in spreads if spread is not None]
    repeats = study.scale[PensScale].repeats
    notes = [f"One training of each model. {BOOTSTRAP}"]
    if repeats > 1:
        apart = f"; their gaps' standard deviation is {max(found):.3f} points at most" if found else ""
        notes.append(
            f"Gaps are ratios of mean lengths, the means over {repeats} solutions of each instance with different "
            f"random embeddings{apart}. Models without random embeddings would give the same tour each time, so they "
            "solve each instance once."
        )
    else:
        notes.append("Gaps are ratios of mean lengths. Each instance is solved once here, five times in the paper.")
    return notes


def reference_notes(study: Study, sets: Mapping[int, Dataset]) -> list[str]:
    """Which solver's tours the gaps are against, here and in the paper."""
    usual = _solver(study.scale.reference_solver)
    largest = _solver(study.scale[PensScale].largest_solver)
    size = max(roles.SIZES)
    if size not in sets:
        return [f"Gaps are against {usual}'s tours here, against Concorde's optima in the paper."]
    here = usual if usual == largest else f"{usual}'s tours, at TSP{size} ({described(sets[size])}) {largest}"
    return [
        f"Gaps are against {here}'s tours. The paper's are against Concorde's, at TSP{size} after at most six hours an "
        "instance, so that its references there need not be optimal."
    ]


def _solver(name: str) -> str:
    return SOLVERS.get(name, name)
