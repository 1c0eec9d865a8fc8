"""Table 1 of paper `sit`: solvers and neural baselines at five sizes."""

from neuroute.papers.sit import roles
from neuroute.papers.sit.baselines import SOLVERS, baselines, elg_note, glop_note, invit_note, ours, pomo_note
from neuroute.papers.sit.cells import in_one_go, models_note, reference_note
from neuroute.papers.sit.roles import BASELINES, PROBLEMS, SIZES, run_id
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import artifact
from neuroute.plan.objects import Problem
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
        "others (DIFUSCO, H-TSP) are as printed: OOM is out of memory, N/A "
        "beyond the time limit or infeasible, — not reported; DIFUSCO's (*) are its authors'. "
        f"{pomo_note(study)} {elg_note(study)} {invit_note(study)} {glop_note(study, *PROBLEMS)}"
    )
