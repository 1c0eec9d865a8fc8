"""Table 2 of paper `icam`: CVRPLIB's Set-X (Uchoa et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from neuroute.datasets.benchmarks import Known, studied
from neuroute.papers.icam.cells import CVRP_CONTEXT, ONE_SEED, table_of
from neuroute.papers.icam.roles import BASELINES, MULTI, ORIGINAL, OWN, SINGLE, group, on_set_x, run_id
from neuroute.papers.icam.scale import IcamScale
from neuroute.plan.needs import Need, artifact
from neuroute.rendering.benchmark import not_measured, solved_by_all
from neuroute.rendering.cells import UNTRAINED, model_here, number, printed
from neuroute.rendering.columns import HERE
from neuroute.rendering.table import Cell, Column, Row, Table, duration, fixed

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from neuroute.plan.config import Scale
    from neuroute.plan.objects import Decoding
    from neuroute.rendering.study import Study

BENCHMARK, SET = "cvrplib", "X"
# The paper's groups by their printed names, as customers from and to, both counted in; CVRPLIB's nodes have the depot.
GROUPS = {"n<=200": (1, 200), "200<n<=500": (201, 500), "500<n<=1000": (501, 1000), "all": (1, 1000)}
HEADS = {"n<=200": "N ≤ 200", "200<n<=500": "200 < N ≤ 500", "500<n<=1000": "500 < N ≤ 1000", "all": "Total"}
KEYS = {"n<=200": "to_200", "200<n<=500": "to_500", "500<n<=1000": "to_1000", "all": "all"}
BASELINE_RUNS = {"LEHD": BASELINES["cvrp"]["LEHD"], "BQ": BASELINES["cvrp"]["BQ"], "POMO": run_id(ORIGINAL["cvrp"])}
RUNS = BASELINE_RUNS | {"ICAM": run_id(OWN["cvrp"])}


@dataclass(frozen=True)
class Method:
    """One row: what it is called, in print and here, and by which model and decoding it is measured, if at all."""

    label: str
    printed: str
    run: str | None = None
    decoding: Decoding = SINGLE


METHODS = (
    Method("LEHD greedy", "LEHD", RUNS["LEHD"]),
    Method("BQ* greedy", "BQ", RUNS["BQ"]),
    Method("POMO no augment.", "POMO", RUNS["POMO"], MULTI),
    Method("ELG no augment.", "ELG"),
    Method("ICAM no augment.", "ICAM", RUNS["ICAM"], MULTI),
)


def _table2_needs(scale: Scale) -> list[Need]:
    return [on_set_x(scale, run) for run in RUNS.values()]


@artifact("CVRPLIB's Set-X", needs=_table2_needs)
def table2(study: Study) -> Table:
    """Mean gaps by size of the instances, and mean time."""
    records = _records(study)
    columns = [
        Column(f"gap_x_{KEYS[name]}_pct", HEADS[name], "%", fixed(2), "Gap", _at(records, *GROUPS[name]))
        for name in GROUPS
    ]
    columns.append(Column("time_x_s", "Avg. time", "", duration, "", _at(records, *GROUPS["all"])))
    rows = [_best_known(study, records), *(_row(study, records, method) for method in METHODS)]
    return table_of(study, ("Method", HERE), tuple(columns), rows, *_notes(study, records))


def _records(study: Study) -> pd.DataFrame:
    """Of the set's instances that every model measured here has solved."""
    found = solved_by_all(study, (f"{run}/{group(run, BENCHMARK)}" for run in RUNS.values()), BENCHMARK)
    names = {f"{BENCHMARK}_{k.name}" for k in _set(1, 1000)}
    return found[found.test.isin(names)]


def _set(least: int, most: int) -> list[Known]:
    """The set's instances of so many customers."""
    return studied(most + 2, least + 1, BENCHMARK, (SET,))


def _within(records: pd.DataFrame, least: int, most: int) -> pd.DataFrame:
    return records[(records.n.astype(float) - 1).between(least, most)]


def _at(records: pd.DataFrame, least: int, most: int) -> str:
    """3 of 22 instances; nothing for none."""
    here = _within(records, least, most).test.nunique()
    return f"{here} of {len(_set(least, most))} instances" if here else ""


def _best_known(study: Study, records: pd.DataFrame) -> Row:
    """The costs that gaps are against: 0 by construction."""
    shown, cells = printed(study, "table2", method="BKS"), []
    for name, bounds in GROUPS.items():
        there = len(_within(records, *bounds)) > 0
        cells.append(Cell(0.0 if there else None, number(shown, name, "gap_pct")))
    return Row(("BKS", UNTRAINED), (*cells, Cell(None, number(shown, "all", "time_s"))))


def _row(study: Study, records: pd.DataFrame, method: Method) -> Row:
    shown = printed(study, "table2", method=method.printed)
    own = records[(records.run == method.run) & (records.decoding == method.decoding.id)]

    def mean(metric: str, least: int, most: int) -> float | None:
        values = _within(own[own.metric == metric], least, most).value.astype(float)
        return float(values.mean()) if len(values) else None

    cells = [Cell(mean("gap_pct", *bounds), number(shown, name, "gap_pct")) for name, bounds in GROUPS.items()]
    time = Cell(mean("time_s", *GROUPS["all"]), number(shown, "all", "time_s"))
    return Row((method.label, model_here(study, method.run)), (*cells, time))


def _notes(study: Study, records: pd.DataFrame) -> Iterable[str]:
    least, below = study.scale[IcamScale].cvrp.benchmark_nodes
    trained = [f"{name} at n={study.runs[run].n}" for name, run in RUNS.items() if run in study.runs]
    return (
        "Means of the instances' gaps, of unrounded lengths to the best known costs, which are in the library's "
        f"integer distances; over the instances that every model measured here has solved. This scale measures those "
        f"from {least:,} to {below - 1:,} nodes, depot included; N counts customers.",
        *_missing(records, least, below),
        f"{ONE_SEED} Trained here, on uniform instances alone: {', '.join(trained) or 'none'}.",
        "POMO and ICAM take the best of one solution from each customer, LEHD and BQ are greedy; nothing is augmented. "
        "For POMO and ICAM each axis is scaled to the unit square by itself, as in ICAM's published code, which "
        "changes the instances' shapes and so what distances say; the paper does not state it. LEHD and BQ see both "
        "axes scaled alike.",
        "Times are means per instance, one at a time. BQ* is as BQ's authors print it; ELG is not trained here.",
        CVRP_CONTEXT,
    )


def _missing(records: pd.DataFrame, least: int, below: int) -> list[str]:
    """What of the set, and which models, were not measured; how to get the instances where there are none."""
    if not len(records):
        return not_measured(records, below, RUNS, BENCHMARK, least)
    expected = {k.name for k in _set(least - 1, below - 2)}
    lacking = sorted(expected - {str(test).removeprefix(f"{BENCHMARK}_") for test in records.test})
    without = [name for name, run in RUNS.items() if run not in set(records.run)]
    return [f"Not measured here: {', '.join(names)}." for names in (lacking, without) if names]
