"""Table 1 of paper `icam`: both problems at four sizes, beside solvers and neural baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.papers.icam import roles
from neuroute.papers.icam.cells import TOTALS, baselines_note, both_problems, both_problems_grids
from neuroute.papers.icam.methods import comparison
from neuroute.plan.needs import Need, artifact, tested
from neuroute.rendering.grid import Grid, needs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study
    from neuroute.rendering.table import Table

OTHER_PAPERS = (
    "For the same models the papers differ at TSP1000: LEHD greedy 3.168 % here and in `scaling`, 3.11 % in `sit`, "
    "3.06 % in `pens`; BQ greedy 2.272 % here, 2.274, 2.30 and 2.19 % there."
)


def table1_grids(scale: Scale) -> list[Grid]:
    return both_problems_grids(scale, comparison)


def _table1_needs(scale: Scale) -> Iterator[Need]:
    """The rows, and what training at varying sizes adds at the largest one."""
    yield from needs_of(table1_grids)(scale)
    for problem in roles.PROBLEMS:
        for names in (roles.OWN, roles.ORIGINAL, roles.STAGED):
            labels = roles.reference(scale, problem, roles.SIZES[-1])
            yield from tested(roles.run_id(names[problem]), labels, roles.MULTI)


@artifact("TSP and CVRP at four sizes", needs=_table1_needs)
def table1(study: Study) -> Table:
    """Mean length, gap and total time of every method that the paper lists."""
    return both_problems(
        study,
        table1_grids(study.scale),
        TOTALS,
        f"{baselines_note(study)} Rows with an asterisk are those methods' own numbers; − is not reported.",
        "Gaps of rows with an asterisk are their papers', against other reference solutions: DIMES at TSP500 is 1.93 % "
        "above the Concorde of this table (printed 1.76 %), DIFUSCO 1.69 % (1.49 %), SO-mixed at TSP200 0.78 % (0.636 "
        "%), Att-GCN+MCTS there 1.03 % (0.884 %).",
        "The text finds only Att-GCN+MCTS ahead of ICAM at TSP100; in print GLOP (0.046 %) and POMO aug×8 (0.134 %) "
        "are, too (ICAM aug×8 0.148 %).",
        OTHER_PAPERS,
    )
