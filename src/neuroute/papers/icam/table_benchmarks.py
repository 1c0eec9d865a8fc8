"""Table 2 of paper `icam`: CVRPLIB's Set-X (Uchoa et al., 2017)."""

from neuroute.datasets.benchmarks import study_instances
from neuroute.papers.icam.roles import BASELINES, ELG, MULTI, ORIGINAL, OWN, group, on_set_x, run_id
from neuroute.papers.icam.scale import IcamScale
from neuroute.plan.config import Scale
from neuroute.plan.decoding_names import name_of
from neuroute.plan.needs import Need, artifact
from neuroute.plan.objects import Benchmark
from neuroute.rendering.benchmark import Solved, measured_here, not_measured
from neuroute.rendering.cells import UNTRAINED, model_here, number, printed_numbers
from neuroute.rendering.columns import HERE
from neuroute.rendering.grid import Method
from neuroute.rendering.notes import notes
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, duration, fixed

BENCHMARK: Benchmark = "cvrplib"
SET = "X"
# The paper's groups by their printed names, as nodes from and to, both counted in: its customers and the depot.
GROUPS = {"n<=200": (2, 201), "200<n<=500": (202, 501), "500<n<=1000": (502, 1001), "all": (2, 1001)}
HEADS = {"n<=200": "N ≤ 200", "200<n<=500": "200 < N ≤ 500", "500<n<=1000": "500 < N ≤ 1000", "all": "Total"}
KEYS = {"n<=200": "to_200", "200<n<=500": "to_500", "500<n<=1000": "to_1000", "all": "all"}
RUNS = BASELINES["cvrp"] | {"POMO": run_id(ORIGINAL["cvrp"]), "ELG": ELG["cvrp"], "ICAM": run_id(OWN["cvrp"])}


METHODS = (
    Method("LEHD greedy", {"method": "LEHD"}, runs=RUNS["LEHD"]),
    Method("BQ* greedy", {"method": "BQ"}, runs=RUNS["BQ"]),
    Method("POMO no augment.", {"method": "POMO"}, runs=RUNS["POMO"], decoding=MULTI),
    Method("ELG no augment.", {"method": "ELG"}, runs=RUNS["ELG"], decoding=MULTI),
    Method("ICAM no augment.", {"method": "ICAM"}, runs=RUNS["ICAM"], decoding=MULTI),
)


def _table2_needs(scale: Scale) -> list[Need]:
    return [on_set_x(scale, run) for run in RUNS.values()]


@artifact("CVRPLIB's Set-X", needs=_table2_needs)
def table2(study: Study) -> Table:
    """Mean gaps by size of the instances, and mean time."""
    solved = Solved.by_all(study, (f"{run}/{group(run, BENCHMARK)}" for run in RUNS.values()), BENCHMARK)
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
    how = run, name_of(method.decoding)
    cells = [solved.gap_cell(study, *how, nodes, number(rows, name, "gap_pct")) for name, nodes in GROUPS.items()]
    time = Cell(solved.mean("time_s", *how, GROUPS["all"]), number(rows, "all", "time_s"))
    return Row((*method.labels, model_here(study, run)), (*cells, time))


def _models_here(study: Study) -> dict[str, str]:
    """The models of this scale, which may do without ELG."""
    return {name: run for name, run in RUNS.items() if run in study.runs or run != ELG["cvrp"]}


def _notes(study: Study, solved: Solved) -> tuple[str, ...]:
    least, below = study.scale[IcamScale].cvrp.benchmark_nodes
    trained = [f"{name} at n={study.runs[run].n}" for name, run in RUNS.items() if run in study.runs]
    return notes(
        study,
        here=measured_here(study, least, below, BENCHMARK),
        not_measured=not_measured(study, solved.records, below, _models_here(study), BENCHMARK, least, (SET,)),
        trained=", ".join(trained) or "none",
    )
