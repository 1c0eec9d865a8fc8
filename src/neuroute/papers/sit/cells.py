"""What the tables of paper `sit` say of their models, references and decodings."""

from collections.abc import Iterable, Sequence

from neuroute.papers.sit import roles
from neuroute.papers.sit.roles import SIZES
from neuroute.plan.objects import Problem
from neuroute.rendering.cells import solver_name
from neuroute.rendering.study import Study

PUBLISHED_REFERENCE = {"tsp": "LKH3", "cvrp": "HGS"}


def prc_words(study: Study, budget: int = 100) -> str:
    """PRC100, or `PRC100 (10 iterations here)`."""
    here = study.scale.sit.prc[budget]
    return f"PRC{budget:,}" + ("" if here == budget else f" ({here:,} iterations here)")


def reference_note(study: Study, problems: Sequence[Problem], sizes: Sequence[int] = SIZES) -> str:
    """Against whose solutions the gaps are, by size."""
    parts = []
    for problem in problems:
        p = roles.sizes(study.scale, problem)
        of: dict[str, list[str]] = {}
        for size in sizes:
            of.setdefault(solver_name(p.references[size]), []).append(roles.short(size).upper())
        names = [name if len(of) == 1 else f"{name} ({', '.join(at)})" for name, at in of.items()]
        parts.append(f"{problem.upper()} by {', '.join(names)}; the paper's by {PUBLISHED_REFERENCE[problem]}")
    return f"Gaps are ratios of mean lengths, against solutions of the {'. Of the '.join(parts)}."


def models_note(study: Study, problems: Iterable[Problem]) -> str:
    """At which of the paper's sizes models are trained here, and what solves the others."""
    parts, missing = [], False
    for problem in problems:
        p = roles.sizes(study.scale, problem)
        trained = [f"{roles.short(size).upper()} ({problem.upper()}{p.sizes[size]} here)" for size in p.training]
        parts.append(f"{problem.upper()} at {', '.join(trained)}")
        missing |= len(p.training) < len(SIZES)
    rest = "; a size without a model of its own takes that of the next smaller one" if missing else ""
    return f"One training of each model (one seed). Ours is trained for {'; '.join(parts)}{rest}."


CONSTRUCTION = (
    "Every decision takes the likeliest node, and the TSP starts at node 0, as in the published code; the paper's "
    "Section 4.2 samples nodes and starts at a random one."
)
INSERTION = (
    "Random insertion, from which PRC starts, is for the CVRP what the published code does: customers in the order of "
    "their angle around the depot, with its slip that makes places next to the depot look too cheap. The paper's "
    "Algorithm 2 inserts at random."
)
