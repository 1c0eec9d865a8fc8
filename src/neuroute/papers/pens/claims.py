"""What paper `pens` claims, and how it is looked at here."""

from __future__ import annotations

from neuroute.papers.pens.roles import BQ, NAMES, SIZES, reference, repeated, rescaled, run_id
from neuroute.plan.claims import claim
from neuroute.plan.objects import Decoding
from neuroute.rendering.cells import number, printed_numbers
from neuroute.rendering.claims import Finding, Side, less, mean_of_gaps_side
from neuroute.rendering.study import Study

FIGURES = ("figure1", "figure3", "figure4", "figure5", "figure6")
LARGEST = max(SIZES)


def _pens_side(study: Study, name: str, decoding: Decoding, table: int | str, label: str = "", **where: object) -> Side:
    """One of the paper's models at the largest size."""
    gap = number(printed_numbers(study, table, method=NAMES[name], **where), LARGEST, "gap_pct")
    dataset = reference(study.scale, LARGEST).dataset
    return mean_of_gaps_side(study, label or NAMES[name], run_id(name), dataset, gap, decoding)


@claim(
    "On instances 100 times larger than those of training, ALiBi generalises better than projected coordinates.",
    where="abstract; Section 5.3, Figure 4",
    artifact="table_figure4",
)
def alibi_beats_coordinates(study: Study) -> Finding:
    """Compare PENS-A with CoordNS at the largest size, neither rescaled."""
    alibi, other = (_pens_side(study, name, repeated(study.scale), "figure4_table") for name in ("pens_a", "coordns"))
    return less(alibi, other, reference(study.scale, LARGEST).dataset)


@claim(
    "Rescaling the coordinates of large instances improves the solutions; for PENS-A it halves the gap.",
    where="abstract; Section 5.2, Table 1",
    artifact="table1",
)
def rescaling_helps(study: Study) -> Finding:
    """Compare PENS-A with and without rescaling at the largest size."""
    after = _pens_side(study, "pens_a", rescaled(study.scale), 1, "PENS-A, rescaled", scaled="yes")
    before = _pens_side(study, "pens_a", repeated(study.scale), 1, "PENS-A", scaled="no")
    return less(after, before, reference(study.scale, LARGEST).dataset)


@claim(
    "Without sparsification PENS is ahead of earlier neural solvers on instances with up to 10,000 cities.",
    where="abstract; Section 5.4, Tables 2 and 3",
    artifact="table3",
)
def ahead_of_others(study: Study) -> Finding:
    """Compare rescaled PENS-A with BQ, the better at the largest size of the two solvers that are trained here."""
    dataset = reference(study.scale, LARGEST).dataset
    pens = _pens_side(study, "pens_a", rescaled(study.scale), 3, "PENS-A, rescaled", scaled="yes")
    gap = number(printed_numbers(study, 3, method="BQ-NCO"), LARGEST, "gap_pct")
    return less(pens, mean_of_gaps_side(study, "BQ-NCO", BQ, dataset, gap), dataset)
