"""The methods that Tables 1 and 2 of paper `mvmoe` compare, and what of them is measured here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.roles import MULTI_TASK, SIZES, TRAINED, X8, run_id
from neuroute.plan.needs import Need, Solved, tested
from neuroute.rendering.comparison import Method

if TYPE_CHECKING:
    import pandas as pd

    from neuroute.plan.config import Scale

# Printed row -> the solvers here that may stand for it; the column beside it says which of them does.
CLASSICAL = (
    Method("HGS", {"method": "HGS"}, solvers=("hgs-long", "hgs", "hgs-short")),
    Method("LKH3", {"method": "LKH3"}, solvers=("lkh3",)),
    Method("OR-Tools", {"method": "OR-Tools", "time_limit_x": 1}, solvers=("ortools", "ortools-short")),
    Method("OR-Tools (x10)", {"method": "OR-Tools", "time_limit_x": 10}, solvers=("ortools-x10",)),
)
SOLVERS = {
    "hgs": "HGS",
    "hgs-long": "HGS",
    "hgs-short": "short HGS",
    "lkh3": "LKH3",
    "ortools": "OR-Tools",
    "ortools-short": "short OR-Tools",
    "ortools-x10": "OR-Tools (x10)",
    "ortools-network": "OR-Tools by the networks' rule",
    "pyvrp": "PyVRP",
    "pyvrp-short": "short PyVRP",
}
# When a search ends, as the solvers' modules have it; the paper's in parentheses, where it is another one.
BUDGETS = {
    "hgs": "2,000 iterations without improvement (20,000)",
    "hgs-long": "20,000 iterations without improvement",
    "hgs-short": "100 iterations without improvement (20,000)",
    "lkh3": "one run of 10,000 trials",
    "ortools": "0.4 s a customer",
    "ortools-short": "100 solutions (0.4 s a customer)",
    "ortools-x10": "4 s a customer",
    "ortools-network": "0.4 s a customer",
    "pyvrp": "5,000 iterations",
    "pyvrp-short": "200 iterations",
}
BY_THE_RULE = ("ortools-network",)  # solvers whose vehicles start as a network's do, where there are backhauls


def solver_name(solver: str) -> str:
    return SOLVERS.get(solver, solver)


def classical(scale: Scale, variant: str, printed: pd.DataFrame) -> list[Method]:
    """Rows of solvers, in the paper's order: those printed for the variant, and what else has solved it here."""
    rows = [method for method in CLASSICAL if has_row(printed, method)]
    here = dict.fromkeys(labels.solver for size in SIZES for labels in roles.solved(scale, variant, size))
    named = {next((solver for solver in method.solvers if solver in here), None) for method in rows}
    return [*rows, *(Method(solver_name(solver), None, solvers=(solver,)) for solver in here if solver not in named)]


def has_row(printed: pd.DataFrame, method: Method) -> bool:
    """Whether the paper prints anything of a method; `printed`: of one problem."""
    return len(rows_of(printed, method)) > 0


def rows_of(printed: pd.DataFrame, method: Method) -> pd.DataFrame:
    """What the paper prints of a method; `printed`: of one problem."""
    if method.printed is None:
        return printed.iloc[:0]
    for key, value in method.printed.items():
        printed = printed[printed[key] == value]
    return printed


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


def comparison_needs(scale: Scale, variants: Iterable[str]) -> Iterator[Need]:
    """The rows of solvers and models on these variants."""
    for variant in variants:
        for size in SIZES:
            yield from (Solved(labels) for labels in roles.solved(scale, variant, size))
            for method in learned(scale, variant):
                yield from tested(method.runs[size], roles.reference(scale, variant, size), method.decoding)
