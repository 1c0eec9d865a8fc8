"""Tables of methods x quantities: each row a method, each column what is measured of it on one test set.

The specs are plain values, made from a scale alone, so that a plan can ask which tests a table reads (`Grid.reads`).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files

from neuroute.core.errors import NeurouteError
from neuroute.core.lazy import pd
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, Solved
from neuroute.pipeline.rendering.cells import (
    Solvers,
    gap_cell,
    is_construction,
    mean_cell,
    mean_of_gaps_cell,
    model_here,
    number,
    printed_numbers,
    select,
    solver_name,
    with_budget,
)
from neuroute.pipeline.rendering.render import draw_table
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import (
    HERE,
    Cell,
    Column,
    Format,
    Row,
    Table,
    Value,
    described,
    duration,
    fixed,
    gap_column,
    joined,
    millions,
    short,
)
from neuroute.specs.objects import Dataset, Decoding, Labels, Problem, Test

GREEDY = Decoding()
ONE_RUN = "one run of as many trials as nodes (LKH's default)"
IN_ROUNDS = "from 5,000 nodes on a first tour and ten rounds of 200,000 trials over nodes, six hours at most"
# When its search ends, as the solvers' modules have it.
LKH_BUDGETS = {
    "lkh": f"{ONE_RUN}, {IN_ROUNDS}",
    "lkh-long": f"ten runs of as many trials as nodes, {IN_ROUNDS}",
    "lkh3": f"{ONE_RUN}, 600 s and one more a node at most",
}
Tests = Mapping[int, Labels]  # the paper's size -> the labelled test set that stands for it
ModelCell = Callable[["Study", str, Dataset, Value, Decoding], Cell]
SolverValue = Callable[[Solvers, Labels, str], float | None]


@dataclass(frozen=True)
class Measure:
    """A kind of number, and how it is read.

    Attributes:
        metric: its name in the published CSV, unit included: `gap_pct`, `time_s`.
        of_model: (study, run, test set, printed value, decoding) -> the cell of a model.
        of_solver: (solvers, labels, solver) -> the value of a solver, None where it has none.
    """

    metric: str
    of_model: ModelCell
    of_solver: SolverValue | None = None


def record(metric: str, unit: float = 1, *, each: bool = False) -> ModelCell:
    """Read a value of the records, divided by `unit` (1e6 for millions) or by the number of test instances (`each`)."""

    def cell(study: Study, run: str, dataset: Dataset, published: Value, decoding: Decoding) -> Cell:
        values = study.values(metric, run, dataset, decoding)
        return mean_cell([value / (dataset.count if each else unit) for value in values], published)

    return cell


LENGTH = Measure("obj", record("length"), Solvers.mean)
GAP = Measure("gap_pct", gap_cell, Solvers.gap)
MEAN_GAP = Measure("gap_pct", mean_of_gaps_cell, Solvers.mean_of_gaps)
SECONDS = Measure("time_s", record("time_s"), Solvers.total_seconds)
SECONDS_EACH = Measure("time_s", record("time_s", each=True), Solvers.seconds)
PARAMETERS = Measure("params_m", record("parameters", 1e6))


@dataclass(frozen=True)
class Method:
    """A row: what singles out its printed numbers, and by which solvers or models it is measured here, if at all.

    Attributes:
        label: what the row is called, one text for each label column.
        printed: column of the printed numbers -> its value in this row; None: the paper has no such row.
        solvers: the first that has solved a test set stands for the row.
        runs: the model, or the paper's size -> the model.
        decoding: of the models, where the column has none of its own.
        tests: the paper's size -> its test set, instead of the column's.
        also_printed: metric -> a printed number that stands elsewhere.
    """

    label: str | tuple[str, ...] = ""
    printed: Mapping[str, object] | None = None
    solvers: tuple[str, ...] = ()
    runs: str | Mapping[int, str] = field(default_factory=dict)
    decoding: Decoding = GREEDY
    tests: Tests = field(default_factory=dict)
    also_printed: Mapping[str, float] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.label,) if isinstance(self.label, str) else self.label

    def run(self, n: int | None) -> str | None:
        """Return the model of one of the paper's sizes."""
        if isinstance(self.runs, str):
            return self.runs
        return self.runs.get(n) if n is not None else None

    def test(self, quantity: Quantity) -> Labels:
        """Return the test set of a column, or the method's own that stands for the same size."""
        return self.tests.get(quantity.n, quantity.test) if quantity.n is not None else quantity.test


@dataclass(frozen=True)
class Quantity:
    """A column: what is measured, and on which test set.

    Attributes:
        column: its heading, unit and format.
        measure: how its cells are read.
        test: the labelled test set here.
        n: the paper's size, by which the printed numbers name the test set; None: of no size.
        decoding: instead of the methods'.
        where: column of the printed numbers -> value, beside the method's.
        others: further test sets that the measure reads.
    """

    column: Column
    measure: Measure
    test: Labels
    n: int | None = None
    decoding: Decoding | None = None
    where: Mapping[str, object] = field(default_factory=dict)
    others: tuple[Labels, ...] = ()


@dataclass(frozen=True)
class Grid:
    """Methods that are measured in the same quantities: a table, or the rows of one problem in it.

    Attributes:
        methods: the rows.
        quantities: the columns.
        head: labels before those of the methods.
        where: column of the printed numbers -> value, of all rows.
        table: whose printed numbers are read; None: the artifact's own.
        name_models: (study, *runs) -> what the column "Here" says of them.
    """

    methods: Sequence[Method]
    quantities: Sequence[Quantity]
    head: tuple[str, ...] = ()
    where: Mapping[str, object] = field(default_factory=dict)
    table: int | str | None = None
    name_models: Callable[..., str] = model_here

    def reads(self) -> Iterator[Test]:
        """Yield the test of every cell that a model is measured for."""
        for method in self.methods:
            for quantity in self.quantities:
                run = method.run(quantity.n)
                if run is not None and not method.solvers:
                    for labels in (method.test(quantity), *quantity.others):
                        yield Test(run=run, labels=labels, decoding=quantity.decoding or method.decoding)

    @property
    def tests(self) -> list[Labels]:
        """The test sets of all columns, each once."""
        return list(dict.fromkeys(quantity.test for quantity in self.quantities))

    @property
    def runs(self) -> list[str]:
        """The models of all rows, each once."""
        return list(dict.fromkeys(run for method in self.methods for run in self._runs_of(method)))

    def _runs_of(self, method: Method) -> list[str]:
        return list(dict.fromkeys(run for quantity in self.quantities if (run := method.run(quantity.n)) is not None))

    def rows(self, study: Study) -> list[Row]:
        """Draw the rows: labels, the last of them the model or solver here, and a cell for each quantity.

        Raises NeurouteError if records, or the file of printed numbers, are missing or broken.
        """
        numbers = printed_numbers(study, self.table or study.artifact.name, **self.where)
        solvers = Solvers.of(study)
        rows = []
        for method in self.methods:
            here = solvers.here(self.tests, method.solvers) if method.solvers else ""
            labels = (*self.head, *method.labels, here or self.name_models(study, *self._runs_of(method)))
            of_method = None if method.printed is None else select(numbers, **method.printed)
            if of_method is not None and of_method.empty and not numbers.empty:
                where = ", ".join(f"{column} {value!r}" for column, value in (method.printed or {}).items())
                raise NeurouteError(f"{study.artifact.id}: no printed number of {where}; correct `printed`, or None")
            cells = [self._cell(study, solvers, method, quantity, of_method) for quantity in self.quantities]
            rows.append(Row(labels, tuple(cells)))
            for quantity in self.quantities:
                study.note_cell(labels, quantity.column.key, method.run(quantity.n))
        return rows

    @staticmethod
    def _cell(study: Study, solvers: Solvers, method: Method, quantity: Quantity, numbers: pd.DataFrame | None) -> Cell:
        measure, run, test = quantity.measure, method.run(quantity.n), method.test(quantity)
        published: Value = method.also_printed.get(measure.metric)
        if numbers is not None and published is None:
            published = number(select(numbers, **quantity.where), quantity.n, measure.metric)
        cell = Cell(None, published)
        if measure in (GAP, MEAN_GAP) and is_construction(test.solver):
            return cell
        if method.solvers:
            solver = solvers.first(test, method.solvers)
            if solver is not None and measure.of_solver is not None:
                cell = Cell(measure.of_solver(solvers, test, solver), published)
        elif run is not None:
            cell = measure.of_model(study, run, test.dataset, published, quantity.decoding or method.decoding)
        if cell.measured is None:
            return cell
        return replace(cell, at=quantity.column.at if test == quantity.test else described(test.dataset))


def from_print(paper: str, table: int | str, here: Mapping[str, Method], **where: str) -> list[Method]:
    """List the rows of a printed table in its order, each with what stands for it here.

    Args:
        paper: its key.
        table: the number, or the file of `papers/<key>/published` without .csv.
        here: printed label, of method and decoding (`LEHD RRC1,000`), -> what stands for it; its own label goes first.
        where: rows of the file in which these columns have these values.
    """
    name = f"table{table}" if isinstance(table, int) else table
    with (files(f"neuroute.pipeline.papers.{paper}") / "published" / f"{name}.csv").open(encoding="utf-8") as file:
        lines = [line for line in csv.DictReader(file) if line.items() >= where.items()]
    rows = {}
    for line in lines:
        method, params = line["method"], line["method_params"]
        words, budget = _label(method, dict(pair.split("=") for pair in params.split(";") if pair))
        ours = here.get(words, Method())
        d = ours.decoding
        searched = {"rrc": d.iterations, "prc": d.iterations, "beam": d.beam}.get(d.method, budget)
        starred = f"{method}*" if line["note"].startswith("cited") else method
        label = ours.label or with_budget(words.replace(method, starred, 1), budget, searched)
        columns = {"method": method} | ({"method_params": params} if params else {})
        rows[method, params] = replace(ours, label=label, printed=columns)
    return list(rows.values())


def _label(method: str, params: Mapping[str, str]) -> tuple[str, int]:
    """Name a printed row by its method and decoding: LEHD RRC1,000; and the iterations or beams that it says."""
    budget = params.get("iters", params.get("beam", ""))
    count = int(budget) if budget.isdigit() else 0
    words = {
        "beam": f"bs{count}",
        "multistart_greedy": "aug×8" if params.get("aug") == "8" else "no augment.",
        "single_greedy": "single trajec.",
    }
    decoding = params.get("decoding", "")
    way = words.get(decoding, f"{decoding}{count:,}" if count else decoding)
    times = f"(x{times})" if (times := params.get("time_limit_x", "1")) != "1" else ""
    return " ".join(part for part in (method, way, times) if part), count


def needs_of(grids_of: Callable[[Scale], Grid | Sequence[Grid]]) -> Callable[[Scale], Iterator[Need]]:
    """Return what `artifact` takes as needs: of a table's grids at a scale, all tests of models, and of solvers."""

    def needs(scale: Scale) -> Iterator[Need]:
        grids = grids_of(scale)
        for grid in [grids] if isinstance(grids, Grid) else grids:
            yield from grid.reads()
            for method in grid.methods:
                for test in grid.tests if method.solvers else ():
                    yield Solved(test)
                    for solver in method.solvers:
                        yield Solved(test.model_copy(update={"solver": solver}), optional=True)

    return needs


def grid_table(study: Study, labels: tuple[str, ...], grids: Grid | Sequence[Grid], **values: object) -> Table:
    """Draw grids of the same columns beneath each other.

    Args:
        study: what was measured, and what is printed.
        labels: headings of the label columns; "Here" follows them.
        grids: one or several, with as many quantities each.
        values: what the artifact's notes fill in, by name (`published/<table>.md`).

    Raises NeurouteError if records, or the file of printed numbers, are missing or broken.
    """
    grids = [grids] if isinstance(grids, Grid) else grids
    columns = [
        replace(
            columns[0],
            **{key: joined(getattr(column, key) for column in columns) for key in ("label", "group", "at", "paper")},
        )
        for columns in zip(*([quantity.column for quantity in grid.quantities] for grid in grids), strict=True)
    ]
    rows = [row for grid in grids for row in grid.rows(study)]
    return draw_table(study, (*labels, HERE), columns, rows, **values)


def lkh_budgets(study: Study, grids: Grid | Sequence[Grid]) -> list[str]:
    """Say how long LKH searched where it stands for a row: one note, or none."""
    solvers = Solvers.of(study)
    searches = {
        (grid.tests[0].dataset.problem.upper(), solver)
        for grid in ([grids] if isinstance(grids, Grid) else grids)
        for method in grid.methods
        for test in grid.tests
        if (solver := solvers.first(test, method.solvers)) in LKH_BUDGETS
    }
    texts = [f"{problem}, {solver_name(solver)}: {LKH_BUDGETS[solver]}" for problem, solver in sorted(searches)]
    return [f"Budgets of LKH here, of an instance: {'; '.join(texts)}."] if texts else []


def parameters(test: Labels) -> Quantity:
    """Head the column of parameters in millions, which any test set tells."""
    return Quantity(Column("parameters_millions", "Parameters", "M", millions), PARAMETERS, test)


def gaps(tests: Tests, measure: Measure = GAP, decimals: int = 3) -> list[Quantity]:
    """Head a column of gaps, in %, for each of the paper's sizes: `GAP` of mean lengths, or `MEAN_GAP` of instances."""
    return [Quantity(gap_column(n, test.dataset, decimals), measure, test, n) for n, test in tests.items()]


def of_each(
    scale: Scale, problem: Problem, sizes: Iterable[int], test: Callable[[Scale, int], Labels], *measures: Measure
) -> list[Quantity]:
    """Head the columns of sizes of thousands of nodes, TSP1K, TSP5K, as `comparison` does.

    Args:
        scale: at which test sets are made.
        problem: tsp, cvrp or a variant, for the headings.
        sizes: the paper's, in nodes.
        test: (scale, size) -> the test set that stands for it.
        measures: as `comparison` takes them.
    """
    tests = {size: test(scale, size) for size in sizes}
    return comparison(tests, f"{problem.upper()}{{}}".format, *measures, key=short, lengths=2)


def comparison(
    tests: Tests,
    group: Callable[[int], str],
    *measures: Measure,
    key: Callable[[int], str] = str,
    lengths: int | Callable[[int], int] = 3,
    gaps: int = 3,
    time: str = "Time",
    at: Callable[[int], str] | None = None,
) -> list[Quantity]:
    """Head columns of length, gap (%) and time (s) for each of the paper's sizes.

    Args:
        tests: the paper's size -> the test set that stands for it.
        group: size, of the paper's or here -> the heading over its columns.
        measures: default: `LENGTH`, `GAP`, `SECONDS`.
        key: the paper's size -> its part in the names of CSV columns.
        lengths: decimals of lengths, for all sizes or by the paper's size.
        gaps: decimals of gaps.
        time: heading of the seconds.
        at: the paper's size -> its test set in words, where it is not one alone.
    """
    quantities = []
    for n, test in tests.items():
        decimals = lengths if isinstance(lengths, int) else lengths(n)
        heads: dict[str, tuple[str, str, str, Format]] = {
            "obj": (f"obj_{key(n)}", "Obj.", "", fixed(decimals)),
            "gap_pct": (f"gap_{key(n)}_pct", "Gap", "%", fixed(gaps)),
            "time_s": (f"time_{key(n)}_s", time, "", duration),
        }
        for measure in measures or (LENGTH, GAP, SECONDS):
            where = at(n) if at else described(test.dataset)
            column = Column(*heads[measure.metric], group(test.dataset.n), where, group(n))
            quantities.append(Quantity(column, measure, test, n))
    return quantities
