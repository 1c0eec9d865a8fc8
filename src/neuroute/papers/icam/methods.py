"""What stands here for the rows that the tables of paper `icam` print, by their labels."""

from collections.abc import Mapping

from neuroute.papers.icam import roles
from neuroute.papers.icam.roles import AUGMENTED, BASELINES, MULTI, ORIGINAL, OWN, SINGLE, STAGED, TAM_SIZES, run_id
from neuroute.plan.config import Scale
from neuroute.plan.objects import Decoding, Problem
from neuroute.rendering.grid import Method

# The solvers of a table that has a row for each; and of one that has a single row.
SOLVERS: dict[Problem, dict[str, Method]] = {
    "tsp": {"Concorde": Method(solvers=("concorde",)), "LKH3": Method(solvers=("lkh", "lkh-long", "lkh3"))},
    "cvrp": {"LKH3": Method(solvers=("lkh3",)), "HGS": Method(solvers=("hgs", "hgs-short"))},
}
REFERENCE: dict[Problem, dict[str, Method]] = {
    "tsp": {
        "Concorde": Method(solvers=("concorde", "lkh", "lkh-long", "lkh3")),
        "LKH3": Method(solvers=("lkh3", "lkh", "lkh-long", "concorde")),
    },
    "cvrp": {"LKH3": Method(solvers=("lkh3", "hgs", "hgs-short"))},
}
WAYS = {"single trajec.": SINGLE, "no augment.": MULTI, "aug×8": AUGMENTED}


def models(scale: Scale, problem: Problem) -> dict[str, Method]:
    """Models of Tables 1, 3, 6, 7 and 11, greedy and from many starts; searches are in Table 11."""
    partitions = dict.fromkeys(TAM_SIZES, roles.GLOP_G_2K) | {1000: roles.GLOP_G}
    return {
        **{f"{name} greedy": Method(runs=run) for name, run in BASELINES[problem].items()},
        **ways({"POMO": ORIGINAL, "POMO (original)": ORIGINAL, "ICAM": OWN}, problem),
        "GLOP (more revisions)": Method(runs=roles.GLOP, decoding=roles.REVISED),
        "GLOP-G (LKH3)": Method(runs=partitions, decoding=roles.PARTED),
        "MDAM bs50": Method(runs=roles.MDAM[problem], decoding=roles.decoder_beams(scale)),
        "ELG aug×8": Method(runs=roles.ELG[problem], decoding=AUGMENTED),
        "ELG": Method(runs=roles.ELG[problem], decoding=MULTI),
        "Pointerformer aug×8": Method(runs=roles.POINTERFORMER, decoding=AUGMENTED),
    }


def ways(names: Mapping[str, Mapping[Problem, str]], problem: Problem, label: str = "") -> dict[str, Method]:
    """Networks of many starts, decoded in three ways; names: printed name -> run; label: shown instead."""
    return {
        f"{name} {way}": Method(label and f"{label} {way}", runs=run_id(runs[problem]), decoding=decoding)
        for name, runs in names.items()
        for way, decoding in WAYS.items()
    }


def pomo_in_stages(problem: Problem) -> dict[str, Method]:
    """Table 7's bare POMO, which is trained in the three stages."""
    return ways({"POMO": STAGED}, problem, "POMO, three stages,")


def searched(scale: Scale) -> dict[str, Method]:
    """Table 11's searches, at the sizes at which they are run here."""
    run, of_baselines = run_id(OWN["tsp"]), BASELINES["tsp"]

    def at(run: str, decoding: Decoding) -> Method:
        sizes = roles.searched(scale, "beam" if decoding.method == "beam" else "rrc")
        return Method(runs=dict.fromkeys(sizes, run), decoding=decoding)

    return {
        "BQ bs16": at(of_baselines["BQ"], roles.beam(scale)),
        "LEHD RRC100": at(of_baselines["LEHD"], roles.rrc(scale)),
        "ICAM RRC100": at(run, roles.rrc(scale, "all")),
        "ICAM bs16": at(run, roles.beam(scale, "all")),
    }
