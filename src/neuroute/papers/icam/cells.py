"""What the tables of paper `icam` have in common: rows and columns of a comparison, and what is to be said of them."""

from collections.abc import Callable, Mapping, Sequence

from neuroute.papers.icam import roles
from neuroute.papers.icam.roles import BASELINES, MULTI, ORIGINAL, OWN, PROBLEMS, SIZES, STAGED, run_id
from neuroute.plan.objects import Dataset, Labels, Problem, Reinforced, Run
from neuroute.rendering.cells import both, model_cells, model_here, printed, solver_name
from neuroute.rendering.columns import HERE, described
from neuroute.rendering.comparison import Method
from neuroute.rendering.gaps import BOOTSTRAP
from neuroute.rendering.solver_cells import TIMES, Solvers
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, duration, fixed

Tests = Mapping[int, Labels]  # the paper's size -> the labelled test set that stands for it

WAYS_NOTE = (
    "Single trajec.: one solution of each instance, of the TSP the one from node 0, of the CVRP one whose first "
    "customer the model chooses, as the published code does. No augment.: the best of one solution from each node, "
    "which the paper's tables call by the model's bare name. Aug×8: the best of these over the eight symmetric images."
)
ALPHAS = (
    "As in the published code, each encoder layer, the decoder's module and the compatibility have an alpha of their "
    "own, 14 in all with the paper's 12 layers; the paper writes of one. The compatibility's bias is inside the tanh."
)
CVRP_CONTEXT = (
    "The CVRP's decoder knows the last stop and the load that is left, and N counts the customers, as in the published "
    "code; the paper writes of first and last node for both problems."
)
ONE_SEED = "One training of each model (one seed)."
TOTALS = f"Times are totals over the test set, the paper's on one RTX 3090. {TIMES}"
# What Table 7 compares: names of the runs, what is said of them, and their printed name.
TRAINED = (
    (ORIGINAL, "POMO trained at one size", "POMO (original)"),
    (STAGED, "POMO in the three stages", "POMO"),
    (OWN, "ICAM", "ICAM"),
)


def test_sets(study: Study, problem: Problem) -> dict[int, Labels]:
    """Of Tables 1 and 7 to 11."""
    return {size: roles.reference(study.scale, problem, size) for size in SIZES}


def with_capacity(dataset: Dataset) -> str:
    """A test set in words, its capacity too where that is not its size's rule."""
    return described(dataset) + (f", C={dataset.capacity}" if dataset.capacity else "")


def short(size: int) -> str:
    """2k for 2000."""
    return f"{size // 1000}k"


def columns_of(
    tests: Mapping[Problem, Tests], names: Mapping[int, str], decimals: int, time: str = "Total time"
) -> tuple[Column, ...]:
    """Length, gap and time of each of the paper's sizes; `names`: size -> what it is called, as 1000 or 5K."""
    out: list[Column] = []
    for size, name in names.items():
        problems = "/".join(problem.upper() for problem in tests)
        group, key = f"{problems}{name}", name.lower()
        at = both({problem: with_capacity(found[size].dataset) for problem, found in tests.items()})
        out += [
            Column(f"obj_{key}", "Obj.", "", fixed(decimals), group, at),
            Column(f"gap_{key}_pct", "Gap", "%", fixed(3), group, at),
            Column(f"time_{key}_s", time, "", duration, group, at),
        ]
    return tuple(out)


def row_of(
    study: Study, solvers: Solvers, problem: Problem, method: Method, tests: Tests, *, total: bool = True
) -> Row:
    """(method, here) and length, gap and time on each test set; times in all or, without `total`, per instance.

    The printed numbers are those of the artifact's own table.
    """
    shown = printed(study, study.artifact.name, problem=problem.upper(), **(method.printed or {}))
    cells: list[Cell] = []
    for size, labels in tests.items():
        if method.solvers:
            run = _greedy_run(study, problem, labels.dataset)
            cells += solvers.cells(labels, run, method.solvers, shown, size, total=total)
        else:
            model = method.runs.get(size)
            cells += model_cells(study, model, labels.dataset, shown, size, method.decoding, total=total)
    if method.solvers:
        here = solvers.here(list(tests.values()), method.solvers)
    else:
        here = model_here(study, next(iter(method.runs.values()), None))
    return Row((method.label, here), tuple(cells))


def _greedy_run(study: Study, problem: Problem, dataset: Dataset) -> str:
    """A run whose greedy decoding of the test set keeps the lengths of the reference solutions, if there is one."""
    runs = (run_id(OWN[problem]), *BASELINES[problem].values())
    return next((run for run in runs if study.lengths(run, dataset) is not None), runs[0])


def reference_note(tests: Mapping[Problem, Tests], published: Mapping[Problem, str]) -> str:
    """Against whose solutions the gaps are, here and in print."""
    parts = []
    for problem, found in tests.items():
        of: dict[str, list[str]] = {}
        for size, labels in found.items():
            of.setdefault(solver_name(labels.solver), []).append(str(size))
        names = [name if len(of) == 1 else f"{name} ({', '.join(at)})" for name, at in of.items()]
        parts.append(f"{problem.upper()} by {', '.join(names)}; the paper's by {published[problem]}")
    return (
        f"Gaps are ratios of mean lengths, against solutions of the {'. Of the '.join(parts)}. Test instances are "
        "drawn anew, from the same distribution; the paper's are LEHD's."
    )


def baselines_note(study: Study, problems: Sequence[Problem] = PROBLEMS) -> str:
    """Which baselines are trained here, and on what."""
    own = [(f"POMO ({problem.upper()})", run_id(ORIGINAL[problem])) for problem in problems]
    others = [(f"{name} ({p.upper()})", run) for p in problems for name, run in BASELINES[p].items()]
    found = [f"{name} at n={study.runs[run].n}" for name, run in (*own, *others) if run in study.runs]
    return f"Baselines trained here, each by its own recipe: {', '.join(found) or 'none'}. The others are as printed."


def varying_sizes(study: Study) -> list[str]:
    """What training at varying sizes adds at the largest size, as far as it was measured."""
    parts, largest, apart = [], SIZES[-1], False
    for problem in PROBLEMS:
        dataset = roles.reference(study.scale, problem, largest).dataset
        gaps = [study.gap(run_id(of[problem]), dataset, MULTI) for of, _, _ in TRAINED]
        if gaps[0] is None or gaps[1:] == [None, None]:
            continue
        there = [(label, name, gap) for (_, label, name), gap in zip(TRAINED, gaps, strict=True) if gap is not None]
        measured = ", ".join(f"{label} {gap:.2f} %" for label, _, gap in there)
        shown = ", ".join(f"{_printed_many(study, problem, name):.3f}" for _, name, _ in there)
        parts.append(f"on {described(dataset)} {measured} (in print {shown} %)")
        apart |= gaps[1] is not None
    if not parts:
        return []
    what = "What training at varying sizes adds" if apart else "What ICAM and training at varying sizes add together"
    return [f"{what} at the largest size, in gaps without augmentation: {'; '.join(parts)}."]


def _printed_many(study: Study, problem: Problem, method: str) -> float:
    """Table 7's gap at the largest size without augmentation."""
    rows = printed(study, "table7", problem=problem.upper(), method=method, decoding="multistart_greedy", aug=1)
    return float(rows[(rows.n == SIZES[-1]) & (rows.metric == "gap_pct")].value.item())


def drawn_instances(run: Run) -> float | None:
    """Instances that a run's batches have on average; None for another kind of training."""
    training = run.training
    if not isinstance(training, Reinforced):
        return None
    return sum(sum(stage.expected_instances().values()) for stage in training.stages)


def amounts_note(study: Study) -> list[str]:
    """How much each of the three kinds of training draws: their lengths differ in the paper as well."""
    parts = []
    for problem in PROBLEMS:
        runs = {label: study.runs[run_id(of[problem])] for of, label, _ in TRAINED if run_id(of[problem]) in study.runs}
        amounts = {label: drawn_instances(run) for label, run in runs.items()}
        found = [f"{label} {amount:,.0f}" for label, amount in amounts.items() if amount is not None]
        parts += [f"{problem.upper()}: {', '.join(found)}"] if found else []
    return [f"Instances that the trainings here draw, on average: {'; '.join(parts)}."] if parts else []


def table_of(study: Study, labels: tuple[str, ...], columns: tuple[Column, ...], rows: list[Row], *notes: str) -> Table:
    """A table under the artifact's title."""
    return Table(study.artifact.title, labels, columns, tuple(rows), tuple(notes))


def both_problems(
    study: Study, methods: Callable[[Problem], Sequence[Method]], *notes: str, amounts: Sequence[str] = ()
) -> Table:
    """Tables 1 and 7: mean length, gap and total time of the methods of each problem, at all four sizes.

    notes: what is to be said of these methods; amounts: of what they were trained on.
    """
    solvers = Solvers.of(study)
    tests = {problem: test_sets(study, problem) for problem in PROBLEMS}
    rows = []
    for problem in PROBLEMS:
        for method in methods(problem):
            row = row_of(study, solvers, problem, method, tests[problem])
            rows.append(Row((problem.upper(), *row.labels), row.cells))
    return table_of(
        study,
        ("Problem", "Method", HERE),
        columns_of(tests, {size: str(size) for size in SIZES}, 4),
        rows,
        *varying_sizes(study),
        *amounts,
        f"{ONE_SEED} {BOOTSTRAP}",
        reference_note(tests, {"tsp": "Concorde", "cvrp": "LKH3"}),
        WAYS_NOTE,
        *notes,
        ALPHAS,
        CVRP_CONTEXT,
    )
