"""What the tables of paper `pens` have in common: printed numbers, measured gaps, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from neuroute.papers.pens import roles
from neuroute.papers.pens.scale import PensScale
from neuroute.plan.config import Scale
from neuroute.plan.objects import Dataset, Decoding, Labels
from neuroute.rendering.cells import BOOTSTRAP, solver_name
from neuroute.rendering.columns import described

if TYPE_CHECKING:
    from neuroute.rendering.study import Study


def sets_of(scale: Scale, sizes: Iterable[int]) -> dict[int, Labels]:
    """Return the test sets that stand for the paper's sizes."""
    return {size: roles.reference(scale, size) for size in sizes}


def gap_notes(study: Study, runs: Iterable[str], sets: Collection[Dataset], *decodings: Decoding) -> list[str]:
    """What a gap is here: of several solutions of each instance, and how far these are apart, over these cells."""
    spreads = [study.value("gap_spread_pct", run, d, how) for run in runs for d in sets for how in decodings]
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


def reference_notes(study: Study, largest: Dataset | None = None) -> list[str]:
    """Say which solver's tours the gaps are against, here and in the paper; largest: a table's set of that size."""
    usual, solver = (solver_name(s) for s in (study.scale.reference_solver, study.scale[PensScale].largest_solver))
    if largest is None:
        return [f"Gaps are against {usual}'s tours here, against Concorde's optima in the paper."]
    size = max(roles.SIZES)
    here = usual if usual == solver else f"{usual}'s tours, at TSP{size} ({described(largest)}) {solver}"
    return [
        f"Gaps are against {here}'s tours. The paper's are against Concorde's, at TSP{size} after at most six hours an "
        "instance, so that its references there need not be optimal."
    ]
