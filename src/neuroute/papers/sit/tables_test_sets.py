"""Tables 8 and 9 of paper `sit`: TAM's test sets, and small instances."""

from dataclasses import replace

from neuroute.papers.sit import roles
from neuroute.papers.sit.baselines import SOLVERS, baselines, glop_note, invit_note, ours, pomo_note
from neuroute.papers.sit.cells import prc_words
from neuroute.papers.sit.roles import PROBLEMS, SMALL_SIZES, TAM_SIZES, run_id
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import artifact
from neuroute.plan.objects import Problem
from neuroute.rendering.cells import solver_name, with_budget
from neuroute.rendering.grid import (
    LENGTH,
    SECONDS_EACH,
    Grid,
    Method,
    comparison,
    from_print,
    grid_table,
    lkh_budgets,
    needs_of,
    of_each,
)
from neuroute.rendering.study import Study
from neuroute.rendering.table import Table

# -- Table 8 ----------------------------------------------------------------------------------------------------------


def table8_grid(scale: Scale) -> Grid:
    columns = of_each(scale, "cvrp", TAM_SIZES, roles.tam, LENGTH, SECONDS_EACH)
    return Grid(from_print(roles.PAPER, 8, SOLVERS["cvrp"] | ours(scale, "cvrp", run_id("cvrp_1k"))), columns)


@artifact("TAM's test sets", needs=needs_of(table8_grid))
def table8(study: Study) -> Table:
    """Mean length and time on instances like those of TAM."""
    trained, c = study.runs[run_id("cvrp_1k")].n, study.scale[SitScale].cvrp
    return grid_table(
        study,
        ("Method",),
        table8_grid(study.scale),
        trained=trained,
        solver=solver_name(c.tam_solver),
        without="" if "lkh3" in c.tam_other_solvers else "; LKH3 is not run",
        lkh_budgets=lkh_budgets(study, table8_grid(study.scale)),
    )


# -- Table 9 ----------------------------------------------------------------------------------------------------------


REFERENCE = Method(solvers=("concorde", "lkh", "lkh-long", "lkh3"))  # Table 9 has no row for another one


def table9_grids(scale: Scale) -> list[Grid]:
    grids = []
    for problem in PROBLEMS:
        tests = {size: roles.small(scale, problem, size) for size in SMALL_SIZES}
        columns = comparison(tests, "n={}".format, time="Total time")
        name = problem.upper()
        grids.append(Grid(_small_methods(scale, problem), columns, head=(name,), where={"problem": name}))
    return grids


@artifact("Small instances", needs=needs_of(table9_grids))
def table9(study: Study) -> Table:
    """Mean length, gap and total time on small instances."""
    names = {p: solver_name(roles.sizes(study.scale, p).small_reference) for p in PROBLEMS}
    return grid_table(
        study,
        ("Problem", "Method"),
        table9_grids(study.scale),
        solvers=names,
        prc_words=prc_words(study, 10),
        pomo=pomo_note(study),
        invit=invit_note(study),
        glop=glop_note(study, "tsp"),
    )


def _small_methods(scale: Scale, problem: Problem) -> list[Method]:
    """The rows of Table 9; besides, the greedy tours of the model."""
    models = ours(scale, problem, run_id(f"{problem}_1k"))
    prc = replace(models["Ours PRC10"], label=with_budget("Ours PRC10", 10, scale[SitScale].prc[10]))
    here = {"Concorde": REFERENCE, "HGS": SOLVERS["cvrp"]["HGS"], "Ours PRC": prc} | baselines(scale, problem)
    *rows, last = from_print(roles.PAPER, 9, here, problem=problem.upper())
    return [*rows, replace(models["Ours greedy"], label="Ours greedy"), last]
