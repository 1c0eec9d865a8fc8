"""The methods that Tables 1 and 2 of paper `mvmoe` compare, and what of them is measured here."""

from collections.abc import Callable
from functools import partial

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.roles import MULTI_TASK, SIZES, TRAINED, X8, run_id
from neuroute.plan.config import Scale
from neuroute.rendering.cells import solver_name
from neuroute.rendering.grid import Method, from_print

# Printed row -> the solvers here that may stand for it; the column beside it says which of them does.
SOLVERS = {
    "HGS": Method(solvers=("hgs-long", "hgs", "hgs-short")),
    "LKH3": Method(solvers=("lkh3", "lkh3-short")),
    "OR-Tools": Method(solvers=("ortools", "ortools-short")),
    "OR-Tools (x10)": Method(solvers=("ortools-x10",)),
}
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


def rows(scale: Scale, variant: str) -> list[Method]:
    """List the printed rows of a problem in Table 1 or 2; besides, after those of solvers, what else is run on it."""
    table = 1 if variant in TRAINED else 2
    in_print = from_print(roles.PAPER, table, SOLVERS | learned(scale, variant), problem=variant)
    solvers = [row for row in in_print if row.solvers]
    here = dict.fromkeys(labels.solver for size in SIZES for labels in roles.solved(scale, variant, size))
    of_rows = {next((solver for solver in row.solvers if solver in here), None) for row in solvers}
    others = [Method(solver_name(solver), solvers=(solver,)) for solver in here if solver not in of_rows]
    return [*solvers, *others, *(row for row in in_print if not row.solvers)]


def learned(scale: Scale, variant: str) -> dict[str, Method]:
    """Name the models that stand for a problem's rows: POMO is trained for each of the trained problems alone."""
    of: dict[str, Callable[[int], str]] = {"POMO": partial(roles.single, scale, variant)} if variant in TRAINED else {}
    of |= {name: partial(roles.multi, scale, name) for name in MULTI_TASK}
    return {
        f"{name} aug×8": Method(name, runs={size: run_id(run(size)) for size in SIZES}, decoding=X8)
        for name, run in of.items()
    }
