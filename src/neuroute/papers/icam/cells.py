"""What the tables of paper `icam` have in common: rows and columns of a comparison, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from neuroute.papers.icam import roles
from neuroute.papers.icam.roles import BASELINES, MULTI, ORIGINAL, OWN, PROBLEMS, SIZES, STAGED, run_id
from neuroute.plan.config import Scale
from neuroute.plan.objects import Labels, Problem
from neuroute.rendering.cells import BOOTSTRAP, ONE_SEED, number, printed
from neuroute.rendering.columns import described
from neuroute.rendering.grid import Grid, Method, Tests, comparison, grid_table
from neuroute.rendering.solver_cells import TIMES, references_by_problem
from neuroute.rendering.table import Table
from neuroute.rendering.trainings import drawn_instances

if TYPE_CHECKING:
    from neuroute.rendering.study import Study

WAYS_NOTE = (
    "Single trajec.: one solution of each instance, of the TSP the one from node 0, of the CVRP one whose first "
    "customer the model chooses, as the published code does. No augment.: the best of one solution from each node, "
    "which the paper's tables call by the model's bare name. Aug×8: the best of these over the eight symmetric images."
)
ALPHAS = (
    "As in the published code, each encoder layer, the decoder's module and the compatibility have an alpha of their "
    "own, 14 in all with the paper's 12 layers; the paper writes of one. The compatibility's bias is inside the tanh."
)
CVRP_CONTEXT = (
    "The CVRP's decoder knows the last stop and the load that is left, and N counts the customers, as in the published "
    "code; the paper writes of first and last node for both problems."
)
TOTALS = f"Times are totals over the test set, the paper's on one RTX 3090. {TIMES}"
# What Table 7 compares: names of the runs, what is said of them, and their printed name.
TRAINED = (
    (ORIGINAL, "POMO trained at one size", "POMO (original)"),
    (STAGED, "POMO in the three stages", "POMO"),
    (OWN, "ICAM", "ICAM"),
)


def sets_of(scale: Scale, problem: Problem) -> dict[int, Labels]:
    """Return the test sets of Tables 1 and 7 to 11."""
    return {size: roles.reference(scale, problem, size) for size in SIZES}


def reference_note(tests: Mapping[Problem, Tests], published: Mapping[Problem, str]) -> str:
    """Say against whose solutions the gaps are, here and in print."""
    return (
        f"{references_by_problem(tests, published)} Test instances are "
        "drawn anew, from the same distribution; the paper's are LEHD's."
    )


def baselines_note(study: Study, problems: Sequence[Problem] = PROBLEMS) -> str:
    """Which baselines are trained here, and on what."""
    own = [(f"POMO ({problem.upper()})", run_id(ORIGINAL[problem])) for problem in problems]
    others = [(f"{name} ({p.upper()})", run) for p in problems for name, run in BASELINES[p].items()]
    found = [f"{name} at n={study.runs[run].n}" for name, run in (*own, *others) if run in study.runs]
    return f"Baselines trained here, each by its own recipe: {', '.join(found) or 'none'}. The others are as printed."


def varying_sizes(study: Study) -> list[str]:
    """What training at varying sizes adds at the largest size, as far as it was measured."""
    parts, largest, apart = [], SIZES[-1], False
    for problem in PROBLEMS:
        dataset = roles.reference(study.scale, problem, largest).dataset
        gaps = [study.gap(run_id(of[problem]), dataset, MULTI) for of, _, _ in TRAINED]
        if gaps[0] is None or gaps[1:] == [None, None]:
            continue
        there = [(label, name, gap) for (_, label, name), gap in zip(TRAINED, gaps, strict=True) if gap is not None]
        measured = ", ".join(f"{label} {gap:.2f} %" for label, _, gap in there)
        shown = ", ".join(f"{_printed_many(study, problem, name):.3f}" for _, name, _ in there)
        parts.append(f"on {described(dataset)} {measured} (in print {shown} %)")
        apart |= gaps[1] is not None
    if not parts:
        return []
    what = "What training at varying sizes adds" if apart else "What ICAM and training at varying sizes add together"
    return [f"{what} at the largest size, in gaps without augmentation: {'; '.join(parts)}."]


def _printed_many(study: Study, problem: Problem, method: str) -> float:
    """Return Table 7's gap at the largest size without augmentation."""
    rows = printed(study, 7, problem=problem.upper(), method=method, decoding="multistart_greedy", aug=1)
    return float(number(rows, SIZES[-1], "gap_pct") or 0)


def amounts_note(study: Study) -> list[str]:
    """How much each of the three kinds of training draws: their lengths differ in the paper as well."""
    parts = []
    for problem in PROBLEMS:
        runs = {label: study.runs[run_id(of[problem])] for of, label, _ in TRAINED if run_id(of[problem]) in study.runs}
        amounts = {label: drawn_instances(run) for label, run in runs.items()}
        found = [f"{label} {amount:,.0f}" for label, amount in amounts.items() if amount is not None]
        parts += [f"{problem.upper()}: {', '.join(found)}"] if found else []
    return [f"Instances that the trainings here draw, on average: {'; '.join(parts)}."] if parts else []


def both_problems_grids(scale: Scale, methods: Callable[[Problem], Sequence[Method]]) -> list[Grid]:
    """Show the methods of each problem at all four sizes (Tables 1 and 7)."""
    grids = []
    for problem in PROBLEMS:
        columns = comparison(sets_of(scale, problem), "TSP/CVRP{}".format, lengths=4, time="Total time")
        name = problem.upper()
        grids.append(Grid(methods(problem), columns, head=(name,), where={"problem": name}))
    return grids


def both_problems(study: Study, grids: Sequence[Grid], *notes: str, amounts: Sequence[str] = ()) -> Table:
    """Draw mean length, gap and total time of the methods of each problem.

    notes: what is to be said of these methods; amounts: of what they were trained on.
    """
    tests = {problem: sets_of(study.scale, problem) for problem in PROBLEMS}
    return grid_table(
        study,
        ("Problem", "Method"),
        grids,
        *varying_sizes(study),
        *amounts,
        f"{ONE_SEED} {BOOTSTRAP}",
        reference_note(tests, {"tsp": "Concorde", "cvrp": "LKH3"}),
        WAYS_NOTE,
        *notes,
        ALPHAS,
        CVRP_CONTEXT,
    )
