"""Table 1 of paper `icam`: both problems at four sizes, beside solvers and neural baselines."""

from neuroute.papers.icam.cells import (
    ALPHAS,
    CVRP_CONTEXT,
    ONE_SEED,
    WAYS_NOTE,
    baselines_note,
    columns_of,
    reference_note,
    row_of,
    table_of,
    test_sets,
    varying_sizes,
)
from neuroute.papers.icam.methods import comparison
from neuroute.papers.icam.roles import PROBLEMS, SIZES
from neuroute.papers.sit.solver_cells import TIMES, Solvers
from neuroute.rendering.columns import HERE
from neuroute.rendering.gaps import BOOTSTRAP
from neuroute.rendering.study import Study
from neuroute.rendering.table import Row, Table

OTHER_PAPERS = (
    "For the same models the papers differ at TSP1000: LEHD greedy 3.168 % here and in `scaling`, 3.11 % in `sit`, "
    "3.06 % in `pens`; BQ greedy 2.272 % here, 2.274, 2.30 and 2.19 % there."
)


def table1(study: Study) -> Table:
    """Mean length, gap and total time of every method that the paper lists."""
    solvers = Solvers.of(study)
    tests = {problem: test_sets(study, problem) for problem in PROBLEMS}
    rows = []
    for problem in PROBLEMS:
        for method in comparison(problem):
            row = row_of(study, solvers, problem, method, tests[problem])
            rows.append(Row((problem.upper(), *row.labels), row.cells))
    return table_of(
        study,
        ("Problem", "Method", HERE),
        columns_of(tests, {size: str(size) for size in SIZES}, 4),
        rows,
        *varying_sizes(study),
        f"{ONE_SEED} {BOOTSTRAP}",
        reference_note(tests, {"tsp": "Concorde", "cvrp": "LKH3"}),
        WAYS_NOTE,
        f"Times are totals over the test set, the paper's on one RTX 3090. {TIMES}",
        f"{baselines_note(study)} Rows with an asterisk are those methods' own numbers; − is not reported.",
        "Gaps of rows with an asterisk are their papers', against other reference solutions: DIMES at TSP500 is 1.93 % "
        "above the Concorde of this table (printed 1.76 %), DIFUSCO 1.69 % (1.49 %), SO-mixed at TSP200 0.78 % (0.636 "
        "%), Att-GCN+MCTS there 1.03 % (0.884 %).",
        "The text finds only Att-GCN+MCTS ahead of ICAM at TSP100; in print GLOP (0.046 %) and POMO aug×8 (0.134 %) "
        "are, too (ICAM aug×8 0.148 %).",
        OTHER_PAPERS,
        ALPHAS,
        CVRP_CONTEXT,
    )
