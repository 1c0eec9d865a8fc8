"""Tables 1, 8 and 9 of paper `sit`: solvers and baselines at five sizes, on TAM's test sets and on small instances."""

from dataclasses import replace

from neuroute.papers.sit import roles
from neuroute.papers.sit.baselines import (
    SOLVERS,
    baselines,
    difusco_note,
    elg_note,
    glop_note,
    htsp_note,
    in_one_go,
    invit_note,
    models_note,
    ours,
    pomo_note,
    prc_words,
    reference_note,
)
from neuroute.papers.sit.roles import BASELINES, PROBLEMS, SIZES, SMALL_SIZES, TAM_SIZES, run_id
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import artifact
from neuroute.plan.objects import Problem
from neuroute.rendering.cells import solver_name, with_budget
from neuroute.rendering.columns import described, short
from neuroute.rendering.grid import (
    GAP,
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


def methods(scale: Scale, problem: Problem) -> list[Method]:
    """The rows of Table 1; besides, the model after the warm-up alone, and the control."""
    runs = {size: run_id(roles.model(scale, problem, size)) for size in SIZES}
    here = SOLVERS[problem] | baselines(scale, problem) | ours(scale, problem, runs)
    rows = from_print(roles.PAPER, 1, here, problem=problem.upper())
    first = next(i for i, row in enumerate(rows) if row.label == "Ours greedy")
    besides = {"Ours, warm-up only, greedy": f"warm_{problem}"}
    if problem in scale[SitScale].controls:
        besides["Ours, as long without re-construction, greedy"] = roles.control(problem)
    rows[first:first] = [Method(label, runs={1000: run_id(name)}) for label, name in besides.items()]
    return rows


# -- Table 1 ----------------------------------------------------------------------------------------------------------


def table1_grids(scale: Scale) -> list[Grid]:
    grids = []
    for problem in PROBLEMS:
        columns = comparison(
            {size: roles.reference(scale, problem, size) for size in SIZES},
            f"{problem.upper()}{{}}".format,
            LENGTH,
            GAP,
            SECONDS_EACH,
            key=short,
            lengths=lambda size: 3 if size == 1000 else 2,
            gaps=2,
        )
        name = problem.upper()
        grids.append(Grid(methods(scale, problem), columns, head=(name,), where={"problem": name}))
    return grids


@artifact(
    "TSP and CVRP at five sizes: solvers, neural baselines, greedy and PRC", needs=in_one_go(needs_of(table1_grids))
)
def table1(study: Study) -> Table:
    """Mean length, gap and time of every method that the paper lists."""
    grids = table1_grids(study.scale)
    return grid_table(
        study,
        ("Problem", "Method"),
        grids,
        self_improvement=_self_improvement(study),
        models=models_note(study, PROBLEMS),
        reference=reference_note(study, PROBLEMS),
        lkh_budgets=lkh_budgets(study, grids),
        baselines=_baselines(study),
    )


def _self_improvement(study: Study) -> list[str]:
    """What the rounds add to the warm-up, in greedy gaps at the smallest size."""
    parts = []
    for problem in PROBLEMS:
        dataset = roles.reference(study.scale, problem, 1000).dataset
        before, after = (study.gap(run_id(name), dataset) for name in (f"warm_{problem}", f"{problem}_1k"))
        if before is not None and after is not None:
            control = study.gap(run_id(roles.control(problem)), dataset)
            without = f" (trained as long on insertion's own: {control:.2f} %)" if control is not None else ""
            parts.append(f"from {before:.2f} to {after:.2f} % on {described(dataset)}{without}")
    if not parts:
        return []
    return [
        f"What self-improved training adds to the warm-up on insertion's solutions, in greedy gaps at 1K: "
        f"{'; '.join(parts)}. The paper prints no gaps after the warm-up alone."
    ]


def _baselines(study: Study) -> str:
    trained = [
        f"{name} on {problem.upper()}{study.runs[run].n}"
        for problem in PROBLEMS
        for name, run in BASELINES[problem].items()
        if run in study.runs
    ]
    s = study.scale[SitScale]
    return (
        f"Baselines trained here, each by its own recipe: {', '.join(trained)}; greedy up to the paper's 10K, random "
        f"re-construct up to {s.rrc_max_nodes:,} nodes (of at most {s.rrc_longest:,} stops at a time: the times "
        f"printed at 5K and 10K leave none for more), beams up to {s.beam_max_nodes:,}. The "
        "others are as printed: OOM is out of memory, N/A beyond the time limit or infeasible, — not reported. "
        f"{difusco_note(study)} "
        f"{pomo_note(study)} {elg_note(study)} {invit_note(study)} {glop_note(study, *PROBLEMS)} "
        f"{htsp_note(study)}"
    )


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
        htsp=htsp_note(study),
    )


def _small_methods(scale: Scale, problem: Problem) -> list[Method]:
    """The rows of Table 9; besides, the greedy tours of the model."""
    models = ours(scale, problem, run_id(f"{problem}_1k"))
    prc = replace(models["Ours PRC10"], label=with_budget("Ours PRC10", 10, scale[SitScale].prc[10]))
    here = {"Concorde": REFERENCE, "HGS": SOLVERS["cvrp"]["HGS"], "Ours PRC": prc} | baselines(scale, problem)
    *rows, last = from_print(roles.PAPER, 9, here, problem=problem.upper())
    return [*rows, replace(models["Ours greedy"], label="Ours greedy"), last]
