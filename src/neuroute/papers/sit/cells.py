"""What the tables of paper `sit` say of their models, references and decodings."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from neuroute.papers.sit import roles
from neuroute.papers.sit.roles import SIZES
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, Tested, tested
from neuroute.plan.objects import Problem
from neuroute.rendering.cells import ONE_SEED
from neuroute.rendering.columns import short
from neuroute.rendering.solver_cells import references_by_problem
from neuroute.rendering.study import Study

INSERTION = (
    "Random insertion, from which PRC starts, is for the CVRP what the published code does: customers in the order of "
    "their angle around the depot, with its slip that makes places next to the depot look too cheap. The paper's "
    "Algorithm 2 inserts at random."
)


def prc_words(study: Study, budget: int = 100) -> str:
    """Name a search: PRC100, or `PRC100 (10 iterations here)`."""
    here = study.scale[SitScale].prc[budget]
    return f"PRC{budget:,}" + ("" if here == budget else f" ({here:,} iterations here)")


def reference_note(study: Study, problems: Sequence[Problem], sizes: Sequence[int] = SIZES) -> str:
    """Say against whose solutions the gaps are, by size."""
    tests = {p: {size: roles.reference(study.scale, p, size) for size in sizes} for p in problems}
    return references_by_problem(tests, {"tsp": "LKH3", "cvrp": "HGS"}, lambda size: short(size).upper())


def models_note(study: Study, problems: Iterable[Problem]) -> str:
    """Say at which of the paper's sizes models are trained here, and what solves the others."""
    parts, missing = [], False
    for problem in problems:
        p = roles.sizes(study.scale, problem)
        trained = [f"{short(size).upper()} ({problem.upper()}{p.sizes[size]} here)" for size in p.training]
        parts.append(f"{problem.upper()} at {', '.join(trained)}")
        missing |= len(p.training) < len(SIZES)
    rest = "; a size without a model of its own takes that of the next smaller one" if missing else ""
    return f"{ONE_SEED} Ours is trained for {'; '.join(parts)}{rest}."


def in_one_go(needs: Callable[[Scale], Iterable[Need]]) -> Callable[[Scale], Iterator[Need]]:
    """Measure all budgets of PRC along one search with the largest."""

    def merged(scale: Scale) -> Iterator[Need]:
        for need in needs(scale):
            if isinstance(need, Tested):
                problem = need.test.labels.dataset.problem
                if need.test.decoding in [roles.prc_of(scale, problem, budget) for budget in scale[SitScale].prc]:
                    yield from tested(need.run, need.test.labels, roles.prc(scale, problem))
                    continue
            yield need

    return merged
