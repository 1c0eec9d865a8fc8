"""Tables 1 to 3, 6 and 7 of paper `icam`: baselines, Set-X of CVRPLIB, larger instances."""

from collections.abc import Callable, Iterator, Sequence

from neuroute.datasets.benchmarks import study_instances
from neuroute.pipeline.papers.icam import roles
from neuroute.pipeline.papers.icam.methods import (
    REFERENCE,
    SOLVERS,
    baselines_note,
    models,
    reference_note,
    sets_of,
    ways,
)
from neuroute.pipeline.papers.icam.roles import (
    LARGE_SIZES,
    MULTI,
    ORIGINAL,
    OWN,
    PROBLEMS,
    SIZES,
    STAGED,
    TAM_SIZES,
    run_id,
)
from neuroute.pipeline.papers.icam.scale import IcamScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact, tested
from neuroute.pipeline.rendering.benchmark import Solved, measured_here, not_measured
from neuroute.pipeline.rendering.cells import (
    UNTRAINED,
    model_here,
    number,
    printed_numbers,
    references_by_problem,
)
from neuroute.pipeline.rendering.columns import HERE, described
from neuroute.pipeline.rendering.grid import (
    GAP,
    LENGTH,
    SECONDS_EACH,
    Grid,
    Method,
    comparison,
    from_print,
    grid_table,
    lkh_budgets,
    needs_of,
    of_each,
)
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.settings import drawn_instances
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, duration, fixed
from neuroute.specs.objects import Benchmark, Problem, Reinforced


def table3_grid(scale: Scale) -> Grid:
    columns = of_each(scale, "cvrp", TAM_SIZES, roles.tam, LENGTH, GAP, SECONDS_EACH)
    return Grid(from_print(roles.PAPER, 3, models(scale, "cvrp") | REFERENCE["cvrp"]), columns)


@artifact("CVRP in TAM's capacities", needs=needs_of(table3_grid))
def table3(study: Study) -> Table:
    grid = table3_grid(study.scale)
    tests = {size: roles.tam(study.scale, size) for size in TAM_SIZES}
    return grid_table(
        study,
        ("Method",),
        grid,
        reference=references_by_problem({"cvrp": tests}, {"cvrp": "LKH3, at 1K, 2K and 5K as TAM printed it"}),
        trained=_trained(study, "cvrp"),
        baselines=baselines_note(study, [grid]),
    )


def table6_grid(scale: Scale) -> Grid:
    columns = of_each(scale, "tsp", LARGE_SIZES, roles.large, LENGTH, GAP, SECONDS_EACH)
    return Grid(from_print(roles.PAPER, 6, models(scale, "tsp") | REFERENCE["tsp"]), columns)


@artifact("Larger TSP instances", needs=needs_of(table6_grid))
def table6(study: Study) -> Table:
    grid = table6_grid(study.scale)
    tests = {size: roles.large(study.scale, size) for size in LARGE_SIZES}
    return grid_table(
        study,
        ("Method",),
        grid,
        reference=references_by_problem({"tsp": tests}, {"tsp": "LKH3"}),
        trained=_trained(study, "tsp"),
        baselines=baselines_note(study, [grid]),
    )


def _trained(study: Study, problem: Problem) -> str:
    """How far the test sets lie beyond the sizes of training."""
    run = study.runs.get(run_id(OWN[problem]))
    if run is None or not isinstance(run.training, Reinforced):
        return "The paper trains on 100 to 500 nodes."
    low, high = (f(size for stage in run.training.stages for size in stage.sizes) for f in (min, max))
    return f"ICAM is trained on {low} to {high} nodes here, on 100 to 500 in the paper."


BENCHMARK: Benchmark = "cvrplib"
SET = "X"
# The paper's groups by their printed names, as nodes from and to, both counted in: its customers and the depot.
GROUPS = {"n<=200": (2, 201), "200<n<=500": (202, 501), "500<n<=1000": (502, 1001), "all": (2, 1001)}
HEADS = {"n<=200": "N ≤ 200", "200<n<=500": "200 < N ≤ 500", "500<n<=1000": "500 < N ≤ 1000", "all": "Total"}
KEYS = {"n<=200": "to_200", "200<n<=500": "to_500", "500<n<=1000": "to_1000", "all": "all"}
RUNS = roles.BASELINES["cvrp"] | {
    "POMO": run_id(ORIGINAL["cvrp"]),
    "ELG": roles.ELG["cvrp"],
    "ICAM": run_id(OWN["cvrp"]),
}


METHODS = (
    Method("LEHD greedy", {"method": "LEHD"}, runs=RUNS["LEHD"]),
    Method("BQ* greedy", {"method": "BQ"}, runs=RUNS["BQ"]),
    Method("POMO no augment.", {"method": "POMO"}, runs=RUNS["POMO"], decoding=MULTI),
    Method("ELG no augment.", {"method": "ELG"}, runs=RUNS["ELG"], decoding=MULTI),
    Method("ICAM no augment.", {"method": "ICAM"}, runs=RUNS["ICAM"], decoding=MULTI),
)


@artifact("CVRPLIB's Set-X", needs=lambda scale: [roles.on_set_x(scale, run) for run in RUNS.values()])
def table2(study: Study) -> Table:
    """Mean gaps by size of the instances, and mean time."""
    solved = Solved.by_all(study, (f"{run}/{roles.group(run, BENCHMARK)}" for run in RUNS.values()), BENCHMARK)
    names = {
        f"{BENCHMARK}_{k.name}" for k in study_instances(GROUPS["all"][1] + 1, GROUPS["all"][0], BENCHMARK, (SET,))
    }
    solved = Solved(BENCHMARK, solved.records[solved.records.test.isin(names)])
    at = {name: solved.describe(nodes, (SET,)) for name, nodes in GROUPS.items()}
    columns = [Column(f"gap_x_{KEYS[name]}_pct", HEADS[name], "%", fixed(2), "Gap", at[name]) for name in GROUPS]
    columns.append(Column("time_x_s", "Avg. time", "", duration, "", at["all"]))
    rows = (_best_known(study, solved), *(_row(study, solved, method) for method in METHODS))
    return Table(study.artifact.title, ("Method", HERE), tuple(columns), rows, _notes(study, solved))


def _best_known(study: Study, solved: Solved) -> Row:
    """Show the costs that gaps are against: 0 by construction."""
    rows = printed_numbers(study, 2, method="BKS")
    cells = [
        Cell(0.0 if solved.count(nodes) else None, number(rows, name, "gap_pct")) for name, nodes in GROUPS.items()
    ]
    return Row(("BKS", UNTRAINED), (*cells, Cell(None, number(rows, "all", "time_s"))))


def _row(study: Study, solved: Solved, method: Method) -> Row:
    run, rows = method.run(None), printed_numbers(study, 2, **(method.printed or {}))
    how = run, method.decoding.name
    cells = [solved.gap_cell(study, *how, nodes, number(rows, name, "gap_pct")) for name, nodes in GROUPS.items()]
    time = Cell(solved.mean("time_s", *how, GROUPS["all"]), number(rows, "all", "time_s"))
    return Row((*method.labels, model_here(study, run)), (*cells, time))


def _notes(study: Study, solved: Solved) -> tuple[str, ...]:
    least, below = study.scale[IcamScale].cvrp.benchmark_nodes
    trained = [f"{name} at n={study.runs[run].n}" for name, run in RUNS.items() if run in study.runs]
    expected = {name: run for name, run in RUNS.items() if run in study.runs or name != "ELG"}  # a scale may lack ELG
    return notes(
        study,
        here=measured_here(study, least, below, BENCHMARK),
        not_measured=not_measured(study, solved.records, below, expected, BENCHMARK, least, (SET,)),
        trained=", ".join(trained) or "none",
    )


# What Table 7 compares: names of the runs, what is said of them, and their printed name.
TRAININGS = (
    (ORIGINAL, "POMO trained at one size", "POMO (original)"),
    (STAGED, "POMO in the three stages", "POMO"),
    (OWN, "ICAM", "ICAM"),
)


def _both_problems_grids(scale: Scale, table: int, more: Callable[[Problem], dict[str, Method]]) -> list[Grid]:
    """Show the printed rows of each problem at all four sizes; more: what else stands for them."""
    grids = []
    for problem in PROBLEMS:
        columns = comparison(sets_of(scale, problem), "TSP/CVRP{}".format, lengths=4, time="Total time")
        name = problem.upper()
        methods = from_print(roles.PAPER, table, models(scale, problem) | more(problem), problem=name)
        grids.append(Grid(methods, columns, head=(name,), where={"problem": name}))
    return grids


def _both_problems(study: Study, grids: Sequence[Grid], **values: object) -> Table:
    """Draw mean length, gap and total time of the methods of each problem; values: of the notes besides."""
    tests = {problem: sets_of(study.scale, problem) for problem in PROBLEMS}
    reference = reference_note(tests, {"tsp": "Concorde", "cvrp": "LKH3"})
    varying = _varying_sizes(study)
    return grid_table(study, ("Problem", "Method"), grids, varying_sizes=varying, reference=reference, **values)


def _varying_sizes(study: Study) -> list[str]:
    """What training at varying sizes adds at the largest size, as far as it was measured."""
    parts, largest, apart = [], SIZES[-1], False
    for problem in PROBLEMS:
        dataset = roles.reference(study.scale, problem, largest).dataset
        gaps = [study.gap(run_id(of[problem]), dataset, MULTI) for of, _, _ in TRAININGS]
        if gaps[0] is None or gaps[1:] == [None, None]:
            continue
        there = [(label, name, gap) for (_, label, name), gap in zip(TRAININGS, gaps, strict=True) if gap is not None]
        gaps_here = ", ".join(f"{label} {gap:.2f} %" for label, _, gap in there)
        gaps_in_print = ", ".join(f"{_printed_many(study, problem, name):.3f}" for _, name, _ in there)
        parts.append(f"on {described(dataset)} {gaps_here} (in print {gaps_in_print} %)")
        apart |= gaps[1] is not None
    if not parts:
        return []
    what = "What training at varying sizes adds" if apart else "What ICAM and training at varying sizes add together"
    return [f"{what} at the largest size, in gaps without augmentation: {'; '.join(parts)}."]


def _printed_many(study: Study, problem: Problem, method: str) -> float:
    """Return Table 7's gap at the largest size without augmentation."""
    rows = printed_numbers(study, 7, problem=problem.upper(), method=method, decoding="multistart_greedy", aug=1)
    return float(number(rows, SIZES[-1], "gap_pct") or 0)


def table1_grids(scale: Scale) -> list[Grid]:
    return _both_problems_grids(scale, 1, SOLVERS.__getitem__)


def _table1_needs(scale: Scale) -> Iterator[Need]:
    """The rows, and what training at varying sizes adds at the largest one."""
    yield from needs_of(table1_grids)(scale)
    for problem in PROBLEMS:
        runs = (run_id(names[problem]) for names, *_ in TRAININGS)
        yield from tested(runs, roles.reference(scale, problem, SIZES[-1]), MULTI)


@artifact("TSP and CVRP at four sizes", needs=_table1_needs, printed_files=("table1", "table7"))
def table1(study: Study) -> Table:
    grids = table1_grids(study.scale)
    return _both_problems(
        study,
        grids,
        lkh_budgets=lkh_budgets(study, grids),
        beams=roles.decoder_beams(study.scale).beam,
        baselines=baselines_note(study, grids),
    )


def table7_grids(scale: Scale) -> list[Grid]:
    return _both_problems_grids(
        scale, 7, lambda problem: REFERENCE[problem] | ways({"POMO": STAGED}, problem, "POMO, three stages,")
    )


@artifact("ICAM and POMO in the same training", needs=needs_of(table7_grids))
def table7(study: Study) -> Table:
    """Mean length, gap and total time of POMO as its authors train it, of POMO in the three stages, and of ICAM."""
    parts = []
    for problem in PROBLEMS:
        runs = {
            label: study.runs[run_id(of[problem])] for of, label, _ in TRAININGS if run_id(of[problem]) in study.runs
        }
        amounts = {label: drawn_instances(run) for label, run in runs.items()}
        texts = [f"{label} {amount:,.0f}" for label, amount in amounts.items() if amount is not None]
        parts += [f"{problem.upper()}: {', '.join(texts)}"] if texts else []
    amounts_note = [f"Instances that the trainings here draw, on average: {'; '.join(parts)}."] if parts else []
    return _both_problems(study, table7_grids(study.scale), amounts=amounts_note)
