"""What stands here for the rows that the tables of paper `icam` print, by their labels."""

from collections.abc import Mapping, Sequence

from neuroute.pipeline.papers.icam import paper as icam
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
WAYS = {"single trajec.": icam.SINGLE, "no augment.": icam.MULTI, "aug×8": icam.AUGMENTED}


def models(scale: Scale, problem: Problem) -> dict[str, Method]:
    """Models of Tables 1, 3, 6, 7 and 11, greedy and from many starts; searches are in Table 11."""
    partitions = dict.fromkeys(icam.TAM_SIZES, icam.GLOP_G_2K) | {1000: icam.GLOP_G}
    there = {run.id for run in borrow_runs(Config(), scale, [icam.ATT_GCN_LARGE, icam.DIMES_LARGE])}

    def maps(run: str, large: str, sizes: set[int]) -> Method:
        """Maps of edges, of two networks where the scale has two."""
        runs = {size: large if large in there and size in sizes else run for size in icam.SIZES}
        return Method(runs=runs, decoding=icam.SEARCHED)

    return {
        **{f"{name} greedy": Method(runs=run) for name, run in icam.BASELINES[problem].items()},
        **ways({"POMO": icam.ORIGINAL, "POMO (original)": icam.ORIGINAL, "ICAM": icam.OWN}, problem),
        "GLOP (more revisions)": Method(runs=icam.GLOP, decoding=icam.REVISED),
        "GLOP-G (LKH3)": Method(runs=partitions, decoding=icam.PARTED),
        "MDAM bs50": Method(runs=icam.MDAM[problem], decoding=icam.decoder_beams(scale)),
        "ELG aug×8": Method(runs=icam.ELG[problem], decoding=icam.AUGMENTED),
        "ELG": Method(runs=icam.ELG[problem], decoding=icam.MULTI),
        "Att-GCN+MCTS": maps(icam.ATT_GCN, icam.ATT_GCN_LARGE, set(icam.SIZES) - {100}),
        "DIMES AS+MCTS": maps(icam.DIMES, icam.DIMES_LARGE, {1000}),
        "DIFUSCO greedy+2-opt": Method(runs=icam.DIFUSCO, decoding=icam.MERGED),
        "H-TSP": Method(runs=icam.HTSP, decoding=icam.GROWN),
        "Pointerformer aug×8": Method(runs=icam.POINTERFORMER, decoding=icam.AUGMENTED),
    }


def ways(names: Mapping[str, Mapping[Problem, str]], problem: Problem, label: str = "") -> dict[str, Method]:
    """Networks of many starts, decoded in three ways; names: printed name -> run; label: of_rows instead."""
    return {
        f"{name} {way}": Method(label and f"{label} {way}", runs=icam.run_id(runs[problem]), decoding=decoding)
        for name, runs in names.items()
        for way, decoding in WAYS.items()
    }


def searched(scale: Scale) -> dict[str, Method]:
    """Table 11's searches, at the sizes at which they are run here."""
    run, of_baselines = icam.run_id(icam.OWN["tsp"]), icam.BASELINES["tsp"]

    def at(run: str, decoding: Decoding) -> Method:
        sizes = icam.searched(scale, "beam" if decoding.method == "beam" else "rrc")
        return Method(runs=dict.fromkeys(sizes, run), decoding=decoding)

    return {
        "BQ bs16": at(of_baselines["BQ"], icam.beam(scale)),
        "LEHD RRC100": at(of_baselines["LEHD"], icam.rrc(scale)),
        "ICAM RRC100": at(run, icam.rrc(scale, "all")),
        "ICAM bs16": at(run, icam.beam(scale, "all")),
    }


def sets_of(scale: Scale, problem: Problem) -> dict[int, Labels]:
    """Return the test sets of Tables 1 and 7 to 11."""
    return {size: icam.reference(scale, problem, size) for size in icam.SIZES}


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
    names = {icam.run_id(run): f"POMO ({problem.upper()})" for problem, run in icam.ORIGINAL.items()}
    names |= {run: f"{name} ({problem.upper()})" for problem, of in icam.BASELINES.items() for name, run in of.items()}
    for run in (study.runs[name] for name in icam.RIVALS if name in of_rows):
        names[run.id] = f"{run.role['method']} ({run.validation.dataset.problem.upper()})"
    texts = dict.fromkeys(f"{name} {_size(study.runs[run])}" for run, name in names.items() if run in of_rows)
    return f"Baselines trained here, each by its own recipe: {', '.join(texts) or 'none'}. The others are as printed."
