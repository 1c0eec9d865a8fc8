"""What stands here for the rows that the tables of paper `icam` print, by their labels."""

from collections.abc import Mapping, Sequence

from neuroute.pipeline.papers.icam import roles
from neuroute.pipeline.papers.icam.roles import (
    AUGMENTED,
    BASELINES,
    MULTI,
    ORIGINAL,
    OWN,
    RIVALS,
    SINGLE,
    SIZES,
    run_id,
)
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.papers import borrow_runs
from neuroute.pipeline.rendering.cells import references_by_problem
from neuroute.pipeline.rendering.grid import Grid, Method, Tests
from neuroute.pipeline.rendering.study import Study
from neuroute.specs.objects import Decoding, Labels, Problem, Run

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
    partitions = dict.fromkeys(roles.TAM_SIZES, roles.GLOP_G_2K) | {1000: roles.GLOP_G}
    there = {run.id for run in borrow_runs(Config(), scale, [roles.ATT_GCN_LARGE, roles.DIMES_LARGE])}

    def maps(run: str, large: str, sizes: set[int]) -> Method:
        """Maps of edges, of two networks where the scale has two."""
        runs = {size: large if large in there and size in sizes else run for size in SIZES}
        return Method(runs=runs, decoding=roles.SEARCHED)

    return {
        **{f"{name} greedy": Method(runs=run) for name, run in BASELINES[problem].items()},
        **ways({"POMO": ORIGINAL, "POMO (original)": ORIGINAL, "ICAM": OWN}, problem),
        "GLOP (more revisions)": Method(runs=roles.GLOP, decoding=roles.REVISED),
        "GLOP-G (LKH3)": Method(runs=partitions, decoding=roles.PARTED),
        "MDAM bs50": Method(runs=roles.MDAM[problem], decoding=roles.decoder_beams(scale)),
        "ELG aug×8": Method(runs=roles.ELG[problem], decoding=AUGMENTED),
        "ELG": Method(runs=roles.ELG[problem], decoding=MULTI),
        "Att-GCN+MCTS": maps(roles.ATT_GCN, roles.ATT_GCN_LARGE, set(SIZES) - {100}),
        "DIMES AS+MCTS": maps(roles.DIMES, roles.DIMES_LARGE, {1000}),
        "DIFUSCO greedy+2-opt": Method(runs=roles.DIFUSCO, decoding=roles.MERGED),
        "H-TSP": Method(runs=roles.HTSP, decoding=roles.GROWN),
        "Pointerformer aug×8": Method(runs=roles.POINTERFORMER, decoding=AUGMENTED),
    }


def ways(names: Mapping[str, Mapping[Problem, str]], problem: Problem, label: str = "") -> dict[str, Method]:
    """Networks of many starts, decoded in three ways; names: printed name -> run; label: of_rows instead."""
    return {
        f"{name} {way}": Method(label and f"{label} {way}", runs=run_id(runs[problem]), decoding=decoding)
        for name, runs in names.items()
        for way, decoding in WAYS.items()
    }


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


def sets_of(scale: Scale, problem: Problem) -> dict[int, Labels]:
    """Return the test sets of Tables 1 and 7 to 11."""
    return {size: roles.reference(scale, problem, size) for size in SIZES}


def reference_note(tests: Mapping[Problem, Tests], published: Mapping[Problem, str]) -> str:
    """Say against whose solutions the gaps on these test sets are, here and in print, and whose instances they are."""
    note = references_by_problem(tests, published)
    files = [labels.dataset.file for sets in tests.values() for labels in sets.values()]
    which = "Those of no file" if any(files) else "Test instances"
    anew = f" {which} are drawn anew, from the same distribution; the paper's are LEHD's."
    return note + ("" if all(files) else anew)


def _size(run: Run) -> str:
    blocks = run.network.arguments.get("blocks")  # of GLOP, whose revisers have a size each
    return f"in blocks of {', '.join(map(str, blocks))}" if blocks else f"at n={run.n}"


def baselines_note(study: Study, grids: Sequence[Grid]) -> str:
    """Which baselines of a table's rows are trained here, and on what, each once."""
    of_rows = {run for grid in grids for run in grid.runs} & study.runs.keys()
    names = {run_id(run): f"POMO ({problem.upper()})" for problem, run in ORIGINAL.items()}
    names |= {run: f"{name} ({problem.upper()})" for problem, of in BASELINES.items() for name, run in of.items()}
    for run in (study.runs[name] for name in RIVALS if name in of_rows):
        names[run.id] = f"{run.role['method']} ({run.validation.dataset.problem.upper()})"
    texts = dict.fromkeys(f"{name} {_size(study.runs[run])}" for run, name in names.items() if run in of_rows)
    return f"Baselines trained here, each by its own recipe: {', '.join(texts) or 'none'}. The others are as printed."
