"""What the tables of paper `icam` have in common: rows and columns of a comparison, and what is to be said of them."""

from collections.abc import Mapping, Sequence

from neuroute.papers.icam import roles
from neuroute.papers.icam.roles import BASELINES, ORIGINAL, PROBLEMS, RIVALS, SIZES, run_id
from neuroute.plan.config import Scale
from neuroute.plan.objects import Labels, Problem
from neuroute.rendering.grid import Tests
from neuroute.rendering.solver_cells import TIMES, references_by_problem
from neuroute.rendering.study import Study

WAYS_NOTE = (
    "Single trajec.: one solution of each instance, of the TSP the one from node 0, of the CVRP one whose first "
    "customer the model chooses, as the published code does. No augment.: the best of one solution from each node, "
    "which the paper's tables call by the model's bare name. Aug×8: the best of these over the eight symmetric images."
)
ELG_NOTE = (
    "ELG, where it is measured here, starts from every node, whatever the size (its published code: from 100), and "
    "scales a library's instances by one factor for both axes."
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
OTHER_PAPERS = (
    "For the same models the papers differ at TSP1000: LEHD greedy 3.168 % here and in `scaling`, 3.11 % in `sit`, "
    "3.06 % in `pens`; BQ greedy 2.272 % here, 2.274, 2.30 and 2.19 % there."
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


def mdam_note(scale: Scale) -> str:
    """How MDAM searches here."""
    return (
        f"MDAM, where it is measured here, has {roles.decoder_beams(scale).beam} beams of each decoder (in print 50), "
        "and batch norms of the instances that are solved together, as published: here at most 256, fewer where memory "
        "is short."
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
