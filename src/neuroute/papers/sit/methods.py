"""The methods that Tables 1 and 9 of paper `sit` compare, and what of them is measured here."""

from collections.abc import Callable, Iterable, Iterator

from neuroute.papers.sit import roles
from neuroute.papers.sit.roles import BASELINES, INITIAL, SIZES, run_id
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, Tested, tested
from neuroute.plan.objects import Decoding, Problem, beam_search
from neuroute.rendering.cells import with_budget
from neuroute.rendering.grid import Method

CLASSICAL: dict[Problem, dict[str, tuple[str, ...]]] = {  # printed name -> the solvers here that may stand for it
    "tsp": {"LKH3": ("lkh", "lkh3"), "Concorde": ("concorde",), "Random Insertion": (INITIAL["tsp"],)},
    "cvrp": {"HGS": ("hgs", "hgs-short"), "LKH3": ("lkh3",), "Random Insertion": (INITIAL["cvrp"],)},
}
AUGMENTED = {"decoding": "multistart_greedy"}


def methods(scale: Scale, problem: Problem) -> list[Method]:
    """The rows of Table 1, in its order; besides, the model after the warm-up alone, and the control."""
    classical = [Method(name, {"method": name}, solvers=names) for name, names in CLASSICAL[problem].items()]
    cited = ("DIFUSCO", "H-TSP", "GLOP") if problem == "tsp" else ("GLOP-G (LKH3)",)
    return [
        *classical,
        *(Method(f"{name}*" if name == "DIFUSCO" else name, {"method": name}) for name in cited),
        *(Method(f"{name} aug×8", {"method": name} | AUGMENTED) for name in ("POMO", "ELG")),
        *_searched(scale, problem),
        *greedy(problem, SIZES[:3]),
        *_own(scale, problem),
    ]


def greedy(problem: Problem, sizes: tuple[int, ...]) -> list[Method]:
    """Greedy decoding of INViT and the baselines that are trained here, at these of the paper's sizes."""
    runs = BASELINES[problem]
    return [
        Method(
            f"{name} greedy",
            {"method": name, "decoding": "greedy"},
            runs=dict.fromkeys(sizes, runs[name]) if name in runs else {},
        )
        for name in ("INViT-3V", "LEHD", "BQ", "SIGD")
    ]


def _searched(scale: Scale, problem: Problem) -> list[Method]:
    """LEHD with random re-construct, BQ and SIGD with beams: as far as they are run here."""
    s, runs = scale[SitScale], BASELINES[problem]
    rrc = Method(
        with_budget("LEHD RRC1,000", 1000, s.rrc),
        {"method": "LEHD", "decoding": "RRC"},
        runs=dict.fromkeys(roles.searched(scale, problem, "LEHD"), runs["LEHD"]),
        decoding=Decoding(method="rrc", iterations=s.rrc),
    )
    beams = []
    for name in ("BQ", "SIGD"):
        run = runs.get(name) if problem == "tsp" else None  # CVRP solutions are not searched with beams here
        label = with_budget(f"{name} bs16", 16, s.beam) if run else f"{name} bs16"
        found = dict.fromkeys(roles.searched(scale, problem, name), run) if run else {}
        beams.append(Method(label, {"method": name, "decoding": "beam"}, runs=found, decoding=beam_search(s.beam)))
    return [rrc, *beams]


def _own(scale: Scale, problem: Problem) -> list[Method]:
    own = {size: run_id(roles.model(scale, problem, size)) for size in SIZES}
    return [
        Method("Ours, warm-up only, greedy", None, runs={1000: run_id(f"warm_{problem}")}),
        *(
            Method("Ours, as long without re-construction, greedy", None, runs={1000: run_id(roles.control(name))})
            for name in scale[SitScale].controls
            if name == problem
        ),
        Method("Ours greedy", {"method": "Ours", "decoding": "greedy"}, runs=own),
        *(
            Method(
                with_budget(f"Ours PRC{budget:,}", budget, scale[SitScale].prc[budget]),
                {"method": "Ours", "decoding": "PRC", "iters": budget},
                runs=own,
                decoding=roles.prc_of(scale, problem, budget),
            )
            for budget in sorted(scale[SitScale].prc)
        ),
    ]


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
