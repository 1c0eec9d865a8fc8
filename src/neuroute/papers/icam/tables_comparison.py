"""Tables 1 and 7 of paper `icam`: both problems at four sizes, beside baselines, and beside POMO trained alike."""

from collections.abc import Callable, Iterator, Sequence

from neuroute.papers.icam import roles
from neuroute.papers.icam.methods import (
    REFERENCE,
    SOLVERS,
    baselines_note,
    models,
    pomo_in_stages,
    reference_note,
    sets_of,
)
from neuroute.papers.icam.roles import MULTI, ORIGINAL, OWN, PROBLEMS, SIZES, STAGED, run_id
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, artifact, tested
from neuroute.plan.objects import Problem
from neuroute.rendering.cells import number, printed_numbers
from neuroute.rendering.columns import described
from neuroute.rendering.grid import Grid, Method, comparison, from_print, grid_table, lkh_budgets, needs_of
from neuroute.rendering.settings import drawn_instances
from neuroute.rendering.study import Study
from neuroute.rendering.table import Table

# What Table 7 compares: names of the runs, what is said of them, and their printed name.
TRAININGS = (
    (ORIGINAL, "POMO trained at one size", "POMO (original)"),
    (STAGED, "POMO in the three stages", "POMO"),
    (OWN, "ICAM", "ICAM"),
)


def _both_problems_grids(scale: Scale, table: int, more: Callable[[Problem], dict[str, Method]]) -> list[Grid]:
    """Show the printed rows of each problem at all four sizes; more: what else stands for them."""
    grids = []
    for problem in PROBLEMS:
        columns = comparison(sets_of(scale, problem), "TSP/CVRP{}".format, lengths=4, time="Total time")
        name = problem.upper()
        methods = from_print(roles.PAPER, table, models(scale, problem) | more(problem), problem=name)
        grids.append(Grid(methods, columns, head=(name,), where={"problem": name}))
    return grids


def _both_problems(study: Study, grids: Sequence[Grid], **values: object) -> Table:
    """Draw mean length, gap and total time of the methods of each problem; values: of the notes besides."""
    tests = {problem: sets_of(study.scale, problem) for problem in PROBLEMS}
    reference = reference_note(tests, {"tsp": "Concorde", "cvrp": "LKH3"})
    varying = _varying_sizes(study)
    return grid_table(study, ("Problem", "Method"), grids, varying_sizes=varying, reference=reference, **values)


def _varying_sizes(study: Study) -> list[str]:
    """What training at varying sizes adds at the largest size, as far as it was measured."""
    parts, largest, apart = [], SIZES[-1], False
    for problem in PROBLEMS:
        dataset = roles.reference(study.scale, problem, largest).dataset
        gaps = [study.gap(run_id(of[problem]), dataset, MULTI) for of, _, _ in TRAININGS]
        if gaps[0] is None or gaps[1:] == [None, None]:
            continue
        there = [(label, name, gap) for (_, label, name), gap in zip(TRAININGS, gaps, strict=True) if gap is not None]
        gaps_here = ", ".join(f"{label} {gap:.2f} %" for label, _, gap in there)
        gaps_in_print = ", ".join(f"{_printed_many(study, problem, name):.3f}" for _, name, _ in there)
        parts.append(f"on {described(dataset)} {gaps_here} (in print {gaps_in_print} %)")
        apart |= gaps[1] is not None
    if not parts:
        return []
    what = "What training at varying sizes adds" if apart else "What ICAM and training at varying sizes add together"
    return [f"{what} at the largest size, in gaps without augmentation: {'; '.join(parts)}."]


def _printed_many(study: Study, problem: Problem, method: str) -> float:
    """Return Table 7's gap at the largest size without augmentation."""
    rows = printed_numbers(study, 7, problem=problem.upper(), method=method, decoding="multistart_greedy", aug=1)
    return float(number(rows, SIZES[-1], "gap_pct") or 0)


def _amounts_note(study: Study) -> list[str]:
    """How much each of the three kinds of training draws: their lengths differ in the paper as well."""
    parts = []
    for problem in PROBLEMS:
        runs = {
            label: study.runs[run_id(of[problem])] for of, label, _ in TRAININGS if run_id(of[problem]) in study.runs
        }
        amounts = {label: drawn_instances(run) for label, run in runs.items()}
        texts = [f"{label} {amount:,.0f}" for label, amount in amounts.items() if amount is not None]
        parts += [f"{problem.upper()}: {', '.join(texts)}"] if texts else []
    return [f"Instances that the trainings here draw, on average: {'; '.join(parts)}."] if parts else []


# -- Table 1 ----------------------------------------------------------------------------------------------------------


def table1_grids(scale: Scale) -> list[Grid]:
    return _both_problems_grids(scale, 1, SOLVERS.__getitem__)


def _table1_needs(scale: Scale) -> Iterator[Need]:
    """The rows, and what training at varying sizes adds at the largest one."""
    yield from needs_of(table1_grids)(scale)
    for problem in roles.PROBLEMS:
        for names in (roles.OWN, roles.ORIGINAL, roles.STAGED):
            labels = roles.reference(scale, problem, roles.SIZES[-1])
            yield from tested(roles.run_id(names[problem]), labels, roles.MULTI)


@artifact("TSP and CVRP at four sizes", needs=_table1_needs, printed_files=("table1", "table7"))
def table1(study: Study) -> Table:
    """Mean length, gap and total time of every method that the paper lists."""
    grids = table1_grids(study.scale)
    return _both_problems(
        study,
        grids,
        lkh_budgets=lkh_budgets(study, grids),
        beams=roles.decoder_beams(study.scale).beam,
        baselines=baselines_note(study),
    )


# -- Table 7 ----------------------------------------------------------------------------------------------------------


def table7_grids(scale: Scale) -> list[Grid]:
    return _both_problems_grids(scale, 7, lambda problem: REFERENCE[problem] | pomo_in_stages(problem))


@artifact("ICAM and POMO in the same training", needs=needs_of(table7_grids))
def table7(study: Study) -> Table:
    """Mean length, gap and total time of POMO as its authors train it, of POMO in the three stages, and of ICAM."""
    return _both_problems(study, table7_grids(study.scale), amounts=_amounts_note(study))
