"""The methods that the tables of paper `icam` compare, and what of them is measured here."""

from __future__ import annotations

from collections.abc import Sequence

from neuroute.papers.icam import roles
from neuroute.papers.icam.roles import (
    AUGMENTED,
    BASELINES,
    LARGE_SIZES,
    MULTI,
    ORIGINAL,
    OWN,
    SINGLE,
    SIZES,
    STAGED,
    TAM_SIZES,
    run_id,
)
from neuroute.plan.config import Scale
from neuroute.plan.objects import Decoding, Problem
from neuroute.rendering.cells import with_budget
from neuroute.rendering.grid import Method

# What stands for the paper's solver wherever the table has no row for another one.
REFERENCE: dict[Problem, Method] = {
    "tsp": Method("Concorde", {"method": "Concorde"}, solvers=("concorde", "lkh", "lkh3")),
    "cvrp": Method("LKH3", {"method": "LKH3"}, solvers=("lkh3", "hgs", "hgs-short")),
}
CLASSICAL: dict[Problem, tuple[Method, ...]] = {
    "tsp": (
        Method("Concorde", {"method": "Concorde"}, solvers=("concorde",)),
        Method("LKH3", {"method": "LKH3"}, solvers=("lkh", "lkh3")),
    ),
    "cvrp": (
        Method("LKH3", {"method": "LKH3"}, solvers=("lkh3",)),
        Method("HGS", {"method": "HGS"}, solvers=("hgs", "hgs-short")),
    ),
}
CITED: dict[Problem, tuple[str, ...]] = {  # from their own papers, or run by the paper's authors alone
    "tsp": (
        "Att-GCN+MCTS*",
        "DIMES AS+MCTS*",
        "SO-mixed*",
        "DIFUSCO greedy+2-opt*",
        "H-TSP",
        "GLOP (more revisions)",
    ),
    "cvrp": ("GLOP-G (LKH3)",),
}
WAYS: dict[str, tuple[str, int, Decoding]] = {  # in the tables' words -> printed decoding and images, decoding here
    "single trajec.": ("single_greedy", 1, SINGLE),
    "no augment.": ("multistart_greedy", 1, MULTI),
    "aug×8": ("multistart_greedy", 8, AUGMENTED),
}


def comparison(problem: Problem) -> list[Method]:
    """The rows of Table 1, in its order."""
    pointerformer = [_cited_x8("Pointerformer")] if problem == "tsp" else []
    return [
        *CLASSICAL[problem],
        *_cited(*CITED[problem]),
        *(greedy(name, problem, SIZES) for name in ("BQ", "LEHD")),
        Method("MDAM bs50", {"method": "MDAM"}),
        ways("POMO", ORIGINAL[problem], SIZES)[2],
        _cited_x8("ELG"),
        *pointerformer,
        *ways("ICAM", OWN[problem], SIZES),
    ]


def trained(problem: Problem) -> list[Method]:
    """The rows of Table 7: the label says how POMO was trained where the paper prints its bare name."""
    return [
        REFERENCE[problem],
        *ways("POMO (original)", ORIGINAL[problem], SIZES),
        *ways("POMO", STAGED[problem], SIZES, label="POMO, three stages,"),
        *ways("ICAM", OWN[problem], SIZES),
    ]


def strategies(scale: Scale) -> list[Method]:
    """The rows of Table 11."""
    rrc, beam = roles.rrc(scale), roles.beam(scale)

    def searched(name: str, run: str, decoding: Decoding) -> Method:
        by_beam = decoding.method == "beam"
        label = f"{name} bs16" if by_beam else f"{name} RRC100"
        paper, here = (16, decoding.beam) if by_beam else (100, decoding.iterations)
        sizes = roles.searched(scale, "beam" if by_beam else "rrc")
        printed = {"method": name, "decoding": "beam" if by_beam else "RRC"}
        return Method(with_budget(label, paper, here), printed, runs=dict.fromkeys(sizes, run), decoding=decoding)

    single, multi, augmented = ways("ICAM", OWN["tsp"], SIZES)
    baselines, own = BASELINES["tsp"], run_id(OWN["tsp"])
    return [
        REFERENCE["tsp"],
        greedy("BQ", "tsp", SIZES),
        searched("BQ", baselines["BQ"], beam),
        greedy("LEHD", "tsp", SIZES),
        searched("LEHD", baselines["LEHD"], rrc),
        single,
        multi,
        searched("ICAM", own, roles.rrc(scale, "all")),
        searched("ICAM", own, roles.beam(scale, "all")),
        augmented,
    ]


def large() -> list[Method]:
    """The rows of Table 6."""
    return [
        Method("LKH3", {"method": "LKH3"}, solvers=("lkh3", "lkh", "concorde")),
        *(greedy(name, "tsp", LARGE_SIZES) for name in ("LEHD", "BQ")),
        ways("POMO", ORIGINAL["tsp"], LARGE_SIZES)[1],
        Method("ELG", {"method": "ELG"}),
        ways("ICAM", OWN["tsp"], LARGE_SIZES)[1],
    ]


def tam() -> list[Method]:
    """The rows of Table 3."""
    return [
        REFERENCE["cvrp"],
        *_cited("TAM-AM*", "TAM-LKH3*", "TAM-HGS*", "GLOP-G (LKH3)"),
        *(greedy(name, "cvrp", TAM_SIZES) for name in ("LEHD", "BQ")),
        *ways("ICAM", OWN["cvrp"], TAM_SIZES)[:2],
    ]


def greedy(name: str, problem: Problem, sizes: Sequence[int]) -> Method:
    """Greedy decoding of a baseline that is trained here."""
    run = BASELINES[problem][name]
    return Method(f"{name} greedy", {"method": name, "decoding": "greedy"}, runs=dict.fromkeys(sizes, run))


def ways(name: str, run: str, sizes: Sequence[int], *, label: str = "") -> list[Method]:
    """One network of many starts, decoded in the three ways; run: its name; label: what is shown for `name`."""
    return [
        Method(
            f"{label or name} {way}",
            {"method": name, "decoding": decoding, "aug": images},
            runs=dict.fromkeys(sizes, run_id(run)),
            decoding=here,
        )
        for way, (decoding, images, here) in WAYS.items()
    ]


def _cited(*labels: str) -> list[Method]:
    return [Method(label, {"method": label.removesuffix("*")}) for label in labels]


def _cited_x8(name: str) -> Method:
    return Method(f"{name} aug×8", {"method": name, "aug": 8})
