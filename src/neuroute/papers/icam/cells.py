"""What the tables of paper `icam` have in common: rows and columns of a comparison, and what is to be said of them."""

from collections.abc import Mapping, Sequence

from neuroute.papers.icam import roles
from neuroute.papers.icam.roles import BASELINES, ORIGINAL, PROBLEMS, RIVALS, SIZES, run_id
from neuroute.plan.config import Scale
from neuroute.plan.objects import Labels, Problem
from neuroute.rendering.grid import Tests
from neuroute.rendering.solver_cells import references_by_problem
from neuroute.rendering.study import Study


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
    models = [(f"POMO ({problem.upper()})", run_id(ORIGINAL[problem])) for problem in problems]
    others = [(f"{name} ({p.upper()})", run) for p in problems for name, run in BASELINES[p].items()]
    lent = [(study.runs[run], run) for run in RIVALS if run in study.runs]
    kinds = [(r.role["method"], r.validation.dataset.problem, run) for r, run in lent]
    rivals = [(f"{name} ({problem.upper()})", run) for name, problem, run in kinds if problem in problems]
    texts = [f"{name} at n={study.runs[run].n}" for name, run in (*models, *others, *rivals) if run in study.runs]
    return f"Baselines trained here, each by its own recipe: {', '.join(texts) or 'none'}. The others are as printed."
