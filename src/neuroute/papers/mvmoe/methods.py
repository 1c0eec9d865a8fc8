"""The methods that Tables 1 and 2 of paper `mvmoe` compare, and what of them is measured here."""

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.roles import MULTI_TASK, SIZES, TRAINED, VARIANTS, X8, run_id
from neuroute.plan.config import Scale
from neuroute.rendering.cells import solver_name
from neuroute.rendering.grid import Method

# Printed row -> the solvers here that may stand for it; the column beside it says which of them does.
CLASSICAL = (
    Method("HGS", {"method": "HGS"}, solvers=("hgs-long", "hgs", "hgs-short")),
    Method("LKH3", {"method": "LKH3"}, solvers=("lkh3", "lkh3-short")),
    Method("OR-Tools", {"method": "OR-Tools", "time_limit_x": 1}, solvers=("ortools", "ortools-short")),
    Method("OR-Tools (x10)", {"method": "OR-Tools", "time_limit_x": 10}, solvers=("ortools-x10",)),
)
IN_PRINT = {"HGS": ("CVRP", "VRPTW"), "LKH3": ("CVRP", "VRPTW", "OVRP", "VRPL")}  # the others: for all problems
# When a search ends, as the solvers' modules have it; the paper's in parentheses, where it is another one.
BUDGETS = {
    "hgs": "2,000 iterations without improvement (20,000)",
    "hgs-long": "20,000 iterations without improvement",
    "hgs-short": "100 iterations without improvement (20,000)",
    "lkh3": "one run of 10,000 trials",
    "lkh3-short": "one run of 50 trials (10,000)",
    "ortools": "0.4 s a customer",
    "ortools-short": "100 solutions (0.4 s a customer)",
    "ortools-x10": "4 s a customer",
    "ortools-network": "0.4 s a customer",
    "pyvrp": "5,000 iterations",
    "pyvrp-long": "60,000 iterations",
    "pyvrp-short": "200 iterations",
}
BY_THE_RULE = ("ortools-network",)  # solvers whose vehicles start as a network's do, where there are backhauls


def classical(scale: Scale, variant: str) -> list[Method]:
    """List the rows of solvers in the paper's order: those printed for the variant, and what else is run on it here."""
    rows = [method for method in CLASSICAL if variant in IN_PRINT.get(str(method.label), VARIANTS)]
    here = dict.fromkeys(labels.solver for size in SIZES for labels in roles.solved(scale, variant, size))
    solvers_of_rows = {next((solver for solver in method.solvers if solver in here), None) for method in rows}
    return [
        *rows,
        *(Method(solver_name(solver), None, solvers=(solver,)) for solver in here if solver not in solvers_of_rows),
    ]


def learned(scale: Scale, variant: str) -> list[Method]:
    """Rows of models, in the paper's order: POMO is trained for each of the trained problems alone."""
    rows = []
    if variant in TRAINED:
        runs = {size: run_id(roles.single(scale, variant, size)) for size in SIZES}
        rows.append(Method("POMO", {"method": "POMO"}, runs=runs, decoding=X8))
    for method in MULTI_TASK:
        runs = {size: run_id(roles.multi(scale, method, size)) for size in SIZES}
        rows.append(Method(method, {"method": method}, runs=runs, decoding=X8))
    return rows
