"""What stands here for the rows that the tables of paper `sit` print, and what is to be said of other networks."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from neuroute.pipeline.papers.sit import roles
from neuroute.pipeline.papers.sit.roles import AUGMENTED, BASELINES, INITIAL, POMO_SIZES, SIZES, SMALL_SIZES
from neuroute.pipeline.papers.sit.scale import SitScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, Tested, tested
from neuroute.pipeline.rendering.cells import ONE_SEED, references_by_problem
from neuroute.pipeline.rendering.columns import joined, short
from neuroute.pipeline.rendering.grid import Method
from neuroute.pipeline.rendering.study import Study
from neuroute.specs.objects import Decoding, Problem

SOLVERS: dict[Problem, dict[str, Method]] = {
    "tsp": {
        "LKH3": Method(solvers=("lkh", "lkh-long", "lkh3")),
        "Concorde": Method(solvers=("concorde", "concorde-6h")),
        "Random Insertion": Method(solvers=(INITIAL["tsp"],)),
    },
    "cvrp": {
        "HGS": Method(solvers=("hgs-timed", "hgs", "hgs-short")),
        "LKH3": Method(solvers=("lkh3",)),
        "Random Insertion": Method(solvers=(INITIAL["cvrp"],)),
    },
}


def baselines(scale: Scale, problem: Problem) -> dict[str, Method]:
    """Other networks in Tables 1 and 9, by label, at the sizes at which they are run here."""

    def at(run: str, sizes: Iterable[int], decoding: Decoding = roles.GREEDY) -> Method:
        return Method(runs=dict.fromkeys(sizes, run), decoding=decoding)

    of, greedy_sizes = BASELINES[problem], (*SMALL_SIZES, *SIZES[:3])
    partitions = {size: roles.GLOP_G[size] for size in SIZES[:3]}
    return {
        "GLOP": Method(runs=roles.GLOP, decoding=roles.REVISED),
        "GLOP-G (LKH3)": Method(runs=partitions, decoding=roles.PARTED),
        "DIFUSCO": at(roles.DIFUSCO, roles.DIFUSCO_SIZES, roles.SEARCHED),
        "H-TSP": at(roles.HTSP, (*SMALL_SIZES, *SIZES[:3]), roles.GROWN),  # out of memory above, in print
        "POMO aug×8": at(roles.POMO_RUNS[problem], (*SMALL_SIZES, *POMO_SIZES), AUGMENTED),
        "ELG aug×8": at(roles.ELG[problem], POMO_SIZES, AUGMENTED),
        "INViT-3V greedy": Method(runs=roles.INVIT[problem]),  # one image and start: it costs the same at any size
        **{f"{name} greedy": at(run, greedy_sizes) for name, run in of.items()},
        **{
            label: at(of[name], roles.searched(scale, problem, name), roles.search_of(scale, name))
            for label, name in SEARCHES.items()
        },
    }


SEARCHES = {"LEHD RRC1,000": "LEHD", "BQ bs16": "BQ", "SIGD bs16": "SIGD"}


def ours(scale: Scale, problem: Problem, runs: str | Mapping[int, str]) -> dict[str, Method]:
    """SIT, greedy and with PRC."""
    return {
        "Ours greedy": Method(runs=runs),
        **{
            f"Ours PRC{budget:,}": Method(runs=runs, decoding=roles.prc_of(scale, problem, budget))
            for budget in scale[SitScale].prc
        },
    }


def _trained_on(study: Study, runs: Mapping[Problem, str]) -> str:
    """The problems and sizes that these runs are trained on here."""
    return joined(f"{p.upper()}{study.runs[run].n}" for p, run in runs.items() if run in study.runs)


def pomo_note(study: Study) -> str:
    sizes = _trained_on(study, roles.POMO_RUNS)
    return f"POMO is trained as its authors do{f' (on {sizes})' if sizes else ''} and starts from every node."


def elg_note(study: Study) -> str:
    sizes = _trained_on(study, roles.ELG)
    if not sizes:
        return "ELG is as printed."
    return (
        f"ELG is trained by its own recipe (on {sizes}) and starts from every node; its published code starts "
        "from 100, to which the printed times are nearer than to 1,000."
    )


def invit_note(study: Study) -> str:
    sizes = _trained_on(study, roles.INVIT)
    if not sizes:
        return "INViT is as printed."
    return (
        f"INViT is trained by its own recipe (on {sizes}) and decodes one image, of the TSP from one random "
        "node; its authors take the best of several images."
    )


def difusco_note(study: Study) -> str:
    if roles.DIFUSCO not in study.runs:
        return "DIFUSCO is as printed: *, by its authors."
    return (
        f"DIFUSCO is trained by its own recipe (on TSP{study.runs[roles.DIFUSCO].n}); its printed rows (*) are its "
        "authors', and fit its tree search, which at 10K is around the 2-opt tour in its code, on the map here."
    )


def htsp_note(study: Study) -> str:
    """How H-TSP is measured here, if it is."""
    if roles.HTSP not in study.runs:
        return "H-TSP is as printed."
    run = study.runs[roles.HTSP]
    fragment, added = (run.network.arguments[name] for name in ("fragment", "added"))
    return f"H-TSP is trained on TSP{run.n}: {added} nodes join a tour at a time, ordered in fragments of {fragment}."


def glop_note(study: Study, *problems: Problem) -> str:
    """How GLOP and GLOP-G are measured here, if they are."""
    if roles.GLOP not in study.runs:
        return "GLOP is as printed."
    arguments = study.runs[roles.GLOP].network.arguments
    shared = arguments.get("shared", False)
    blocks = joined(str(block) for block in arguments["blocks"][:3])  # a fourth is for instances of the first's size
    note = f"GLOP revises random insertion in blocks of {blocks} nodes{' by one reviser' if shared else ''}."
    if "cvrp" in problems:
        sizes = dict.fromkeys(study.runs[run].n for run in roles.GLOP_G.values() if run in study.runs)
        note += f" GLOP-G is trained on CVRP{joined(str(n) for n in sizes)}; its routes are solved by LKH (elkai)."
    return note


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
