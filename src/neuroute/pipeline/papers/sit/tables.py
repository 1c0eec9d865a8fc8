"""Tables of paper `sit`: solvers and baselines by size, public benchmarks, ablations, time and memory, settings."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from neuroute.core.lazy import pd
from neuroute.datasets.benchmarks import study_instances
from neuroute.pipeline.papers.sit import paper as sit
from neuroute.pipeline.papers.sit.paper import ABLATED, PROBLEMS, run_id
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact, tested
from neuroute.pipeline.plan.systems import ELG
from neuroute.pipeline.rendering.benchmark import Nodes, Solved, measured_here, not_measured, records_of
from neuroute.pipeline.rendering.cells import gap_cell, model_here, number, printed_numbers, solver_name, with_budget
from neuroute.pipeline.rendering.grid import (
    GAP,
    LENGTH,
    SECONDS_EACH,
    Grid,
    Method,
    Quantity,
    comparison,
    from_print,
    grid_table,
    lkh_budgets,
    needs_of,
    of_each,
)
from neuroute.pipeline.rendering.render import draw_table
from neuroute.pipeline.rendering.settings import changes_note, licence_table, printed_values
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import (
    AS_TRAINED,
    HERE,
    WHOLE,
    Cell,
    Column,
    Row,
    Table,
    Value,
    described,
    duration,
    fixed,
    plain,
    short,
)
from neuroute.problems.longest import longest_sub_path
from neuroute.specs.objects import Benchmark, Dataset, Problem, Reconstruction, Run, Start


def methods(scale: Scale, problem: Problem) -> list[Method]:
    """The rows of Table 1; besides, the model after the warm-up alone, and the control."""
    runs = {size: run_id(sit.model(scale, problem, size)) for size in sit.SIZES}
    here = sit.SOLVERS[problem] | sit.baselines(scale, problem) | sit.ours(scale, problem, runs)
    rows = from_print(sit.KEY, 1, here, problem=problem.upper())
    first = next(i for i, row in enumerate(rows) if row.label == "Ours greedy")
    besides = {"Ours, warm-up only, greedy": f"warm_{problem}"}
    if problem in scale[sit.SitScale].controls:
        besides["Ours, as long without re-construction, greedy"] = sit.control(problem)
    rows[first:first] = [Method(label, runs={1000: run_id(name)}) for label, name in besides.items()]
    return rows


def table1_grids(scale: Scale) -> list[Grid]:
    grids, decimals = [], dict.fromkeys(sit.SIZES, 2) | {1000: 3}
    for problem in PROBLEMS:
        tests, name = {size: sit.reference(scale, problem, size) for size in sit.SIZES}, problem.upper()
        measures = LENGTH, GAP, SECONDS_EACH
        columns = comparison(tests, f"{name}{{}}".format, *measures, key=short, lengths=decimals.__getitem__, gaps=2)
        grids.append(Grid(methods(scale, problem), columns, head=(name,), where={"problem": name}))
    return grids


@artifact(
    "TSP and CVRP at five sizes: solvers, neural baselines, greedy and PRC", needs=sit.in_one_go(needs_of(table1_grids))
)
def table1(study: Study) -> Table:
    grids = table1_grids(study.scale)
    baselines = ((p.upper(), name, run) for p in PROBLEMS for name, run in sit.BASELINES[p].items())
    trained = [f"{name} on {problem}{study.runs[run].n}" for problem, name, run in baselines if run in study.runs]
    return grid_table(
        study,
        ("Problem", "Method"),
        grids,
        self_improvement=_self_improvement(study),
        models=sit.models_note(study, PROBLEMS),
        reference=sit.reference_note(study, PROBLEMS),
        lkh_budgets=lkh_budgets(study, grids),
        trained=", ".join(trained),
        scale=study.scale[sit.SitScale],
        **sit.system_notes(study, *PROBLEMS),
    )


def _self_improvement(study: Study) -> list[str]:
    """What the rounds add to the warm-up, in greedy gaps at the smallest size."""
    parts = []
    for problem in PROBLEMS:
        dataset = sit.reference(study.scale, problem, 1000).dataset
        before, after = (study.gap(run_id(name), dataset) for name in (f"warm_{problem}", f"{problem}_1k"))
        if before is not None and after is not None:
            control = study.gap(run_id(sit.control(problem)), dataset)
            without = f" (trained as long on insertion's own: {control:.2f} %)" if control is not None else ""
            parts.append(f"from {before:.2f} to {after:.2f} % on {described(dataset)}{without}")
    if not parts:
        return []
    return [
        f"What self-improved training adds to the warm-up on insertion's solutions, in greedy gaps at 1K: "
        f"{'; '.join(parts)}. The paper prints no gaps after the warm-up alone."
    ]


def table8_grid(scale: Scale) -> Grid:
    columns = of_each(scale, "cvrp", sit.TAM_SIZES, sit.tam, LENGTH, SECONDS_EACH)
    return Grid(from_print(sit.KEY, 8, sit.SOLVERS["cvrp"] | sit.ours(scale, "cvrp", run_id("cvrp_1k"))), columns)


@artifact("TAM's test sets", needs=needs_of(table8_grid))
def table8(study: Study) -> Table:
    trained, c = study.runs[run_id("cvrp_1k")].n, study.scale[sit.SitScale].cvrp
    return grid_table(
        study,
        ("Method",),
        table8_grid(study.scale),
        trained=trained,
        solver=solver_name(c.tam_solver),
        without="" if "lkh3" in c.tam_other_solvers else "; LKH3 is not run",
        lkh_budgets=lkh_budgets(study, table8_grid(study.scale)),
    )


REFERENCE = Method(solvers=("concorde", "lkh", "lkh-long", "lkh3"))  # Table 9 has no row for another one


def table9_grids(scale: Scale) -> list[Grid]:
    grids = []
    for problem in PROBLEMS:
        tests = {size: sit.small(scale, problem, size) for size in sit.SMALL_SIZES}
        columns, name = comparison(tests, "n={}".format, time="Total time"), problem.upper()
        # The rows of Table 9; besides, the greedy tours of the model
        models = sit.ours(scale, problem, run_id(f"{problem}_1k"))
        prc = replace(models["Ours PRC10"], label=with_budget("Ours PRC10", 10, scale[sit.SitScale].prc[10]))
        here = {"Concorde": REFERENCE, "HGS": sit.SOLVERS["cvrp"]["HGS"], "Ours PRC": prc}
        *rows, last = from_print(sit.KEY, 9, here | sit.baselines(scale, problem), problem=name)
        small_methods = [*rows, replace(models["Ours greedy"], label="Ours greedy"), last]
        grids.append(Grid(small_methods, columns, head=(name,), where={"problem": name}))
    return grids


@artifact("Small instances", needs=needs_of(table9_grids))
def table9(study: Study) -> Table:
    names = {p: solver_name(sit.sizes(study.scale, p).small_reference) for p in PROBLEMS}
    return grid_table(
        study,
        ("Problem", "Method"),
        table9_grids(study.scale),
        solvers=names,
        prc_words=sit.prc_words(study, 10),
        **sit.system_notes(study, "tsp"),
    )


SEARCHED = ("BQ", "LEHD")  # with beams; by random re-construct
BENCHMARKS: dict[Problem, Benchmark] = {"tsp": "tsplib", "cvrp": "cvrplib"}
# The paper's groups by their printed names, as nodes (with the depot) from and to, both counted in.  Its n > 1K of
# TSPLIB takes in dsj1000, which has exactly 1,000 nodes: 33 instances only with it; CVRPLIB's n are customers.
GROUPS: dict[Problem, dict[str, Nodes]] = {
    "tsp": {"1K<n<=5K": (1000, 5000), "n>5K": (5001, 10**9), "all": (1000, 10**9)},
    "cvrp": {"1K<n<=7K": (1001, 7001), "n>7K": (7002, 10**9), "all": (1001, 10**9)},
}
HEADS = {"1K<n<=5K": "1K < n ≤ 5K", "n>5K": "n > 5K", "1K<n<=7K": "1K < n ≤ 7K", "n>7K": "n > 7K", "all": "All"}
KEYS = {"1K<n<=5K": "to_5k", "n>5K": "above_5k", "1K<n<=7K": "to_7k", "n>7K": "above_7k", "all": "all"}


@dataclass(frozen=True)
class _Benchmark:
    """One of the two benchmarks, as far as this scale measures it."""

    study: Study
    problem: Problem

    @property
    def name(self) -> Benchmark:
        return BENCHMARKS[self.problem]

    @cached_property
    def runs(self) -> dict[str, str]:
        """Printed name -> the model that is measured here."""
        glop = sit.glop_on_benchmark(self.study.scale, self.problem).run
        rivals = {"GLOP": glop} if glop in self.study.runs else {}
        return {"Ours": run_id(f"{self.problem}_1k")} | sit.BASELINES[self.problem] | rivals

    @property
    def here(self) -> Nodes:
        least, below = sit.sizes(self.study.scale, self.problem).benchmark_nodes
        return least, below - 1

    @property
    def evaluations(self) -> list[str]:
        return [f"{run}/{self.name}" for run in self.runs.values()]

    @property
    def searches(self) -> list[str]:
        """The evaluations of searches that end at fewer nodes."""
        searched = [sit.search_on_benchmark(self.study.scale, self.problem, name).id for name in SEARCHED]
        invit = sit.on_library(self.study.scale, self.problem, sit.INVIT[self.problem])
        return [*searched, sit.elg_on_benchmark(self.study.scale, self.problem).id, invit.id]

    @cached_property
    def solved(self) -> Solved:
        """Instances that every model has solved greedily, and whatever was measured of them."""
        common = Solved.by_all(self.study, self.evaluations, self.name)
        searched = records_of(self.study, self.searches, self.name)
        searched = searched[searched.test.isin(common.records.test)]
        self.study.mark(searched)
        return Solved(self.name, pd.concat([common.records, searched]))

    def _gap(self, method: Method, nodes: Nodes, published: Value) -> Cell:
        """Mean gap over the common instances of a group; nothing of a search that was not run on all of them."""
        how = method.run(None), method.decoding.name, nodes
        if len(self.solved.values("gap_pct", *how)) < self.solved.count(nodes):
            return Cell(None, published)
        return self.solved.gap_cell(self.study, *how, published)

    def groups(self) -> list[tuple[str, Nodes, Column]]:
        """List the printed name, the nodes and the column of each group; "" for what the paper does not measure."""
        rows = [(name, nodes, KEYS[name], HEADS[name]) for name, nodes in GROUPS[self.problem].items()]
        if self.here[0] < GROUPS[self.problem]["all"][0]:
            rows.insert(0, ("", self.here, "here", f"Here: {self.here[0]:,} ≤ n < {self.here[1] + 1:,}"))
        group = self.name.upper()
        return [
            (name, nodes, Column(f"gap_{self.name}_{key}_pct", head, "%", group=group, at=self.solved.describe(nodes)))
            for name, nodes, key, head in rows
        ]

    def columns(self) -> list[Column]:
        large = len(study_instances(10**9, GROUPS[self.problem]["all"][0], self.name))
        gaps = [column for *_, column in self.groups()]
        return [*gaps, Column(f"solved_{self.name}", "Solved", f"of {large}", WHOLE, self.name.upper())]

    def cells(self, method: Method) -> list[Cell]:
        """Show mean gaps by group, and how many of the paper's instances the method alone has solved."""
        rows = printed_numbers(self.study, 2, problem=self.problem.upper(), **(method.printed or {}))
        how = method.run(None), method.decoding.name
        gaps = [self._gap(method, nodes, number(rows, name, "gap_pct")) for name, nodes, _ in self.groups()]
        every = Solved(self.name, records_of(self.study, [*self.evaluations, *self.searches], self.name))
        solved = len(every.values("gap_pct", *how, GROUPS[self.problem]["all"]))
        return [*gaps, Cell(solved or None, number(rows, "all", "solved"))]

    def methods(self) -> list[Method]:
        scale, glop = self.study.scale, sit.glop_on_benchmark(self.study.scale, self.problem)
        greedy = self.runs | {"INViT": sit.INVIT[self.problem]}
        here = {
            **{f"{name} greedy": Method(runs=run) for name, run in greedy.items()},
            **sit.ours(scale, self.problem, self.runs["Ours"]),
            "GLOP": Method(runs=self.runs.get("GLOP", {}), decoding=glop.decodings[0]),
            "ELG aug×8": Method(runs=ELG[self.problem], decoding=sit.AUGMENTED),
            **{
                label: Method(runs=self.runs[name], decoding=sit.search_of(scale, name))
                for label, name in sit.SEARCHES.items()
            },
        }
        return from_print(sit.KEY, 2, here, problem=self.problem.upper())


def _table2_needs(scale: Scale) -> Iterator[Need]:
    for problem in PROBLEMS:
        for run in (run_id(f"{problem}_1k"), *sit.BASELINES[problem].values()):
            yield sit.on_library(scale, problem, run)
        for name in SEARCHED:
            yield sit.search_on_benchmark(scale, problem, name)
        yield sit.glop_on_benchmark(scale, problem)
        yield sit.elg_on_benchmark(scale, problem)
        yield sit.on_library(scale, problem, sit.INVIT[problem])


@artifact("Large instances of TSPLIB and CVRPLIB", needs=_table2_needs)
def table2(study: Study) -> Table:
    """Mean gaps by size of the instances, and how many were solved."""
    benchmarks = [_Benchmark(study, problem) for problem in PROBLEMS]
    columns = [column for b in benchmarks for column in b.columns()]
    rows = []
    for methods in zip(*(b.methods() for b in benchmarks), strict=True):
        here = model_here(study, *(method.run(None) for method in methods))
        cells = [cell for b, method in zip(benchmarks, methods, strict=True) for cell in b.cells(method)]
        rows.append(Row((*methods[0].labels, here), tuple(cells)))
    limits, lacking = [], []
    for b in benchmarks:
        least, below = b.here[0], b.here[1] + 1
        limits.append(f"of {b.name.upper()} {measured_here(study, least, below, b.name)}")
        runs = {f"{name} ({b.problem.upper()})": run for name, run in b.runs.items()}
        lacking += not_measured(study, b.solved.records, below, runs, b.name, least)
    trained = [f"{p.upper()}{study.runs[run_id(f'{p}_1k')].n}" for p in PROBLEMS if run_id(f"{p}_1k") in study.runs]
    return draw_table(
        study,
        ("Method", HERE),
        columns,
        rows,
        limits="; ".join(limits),
        scale=study.scale[sit.SitScale],
        elg_nodes=sit.ELG_NODES,
        not_measured=lacking,
        trained=" and ".join(trained),
    )


# Printed name of an initial solution -> its key in the printed numbers, and what makes it here if not insertion.
STARTS: dict[str, tuple[str, Start | None]] = {
    "Model's greedy": ("model_greedy", "greedy"),
    "Nearest neighbour": ("nearest_neighbor", "nearest"),
    "Random insertion": ("random_insertion", None),
}


def table5_grid(scale: Scale, label: Callable[[int], str] = str) -> Grid:
    """Show models trained with three l_max, in columns for those of inference; label: of one in training."""
    test = sit.reference(scale, "tsp", 10_000)
    quantities = []
    for used in sit.LONGEST:
        stops = scale[sit.SitScale].longest[used]
        decoding = sit.prc_of(scale, "tsp", 100).model_copy(update={"longest": stops})
        group, key = f"inference {with_budget(f'{used:,}', used, stops)}".format, f"lmax{used}".format
        columns = comparison({10_000: test}, group, GAP, SECONDS_EACH, key=key)
        quantities += [replace(each, decoding=decoding, where={"lmax_inference": used}) for each in columns]
    runs = {l_max: run_id(sit.with_longest(l_max)) for l_max in sit.LONGEST}
    return Grid([Method(label(role), {"lmax_train": role}, runs=run) for role, run in runs.items()], quantities)


@artifact("The longest partial solution in training and inference", needs=needs_of(table5_grid))
def table5(study: Study) -> Table:
    """Models trained with three l_max, each re-constructing with all three."""
    trained, used = _trained_with(study, 1000), study.scale[sit.SitScale].longest[1000]
    unlike = f"The main model is trained here with l_max {trained:,}, where {used:,} stands for 1,000 in inference."
    grid = table5_grid(study.scale, lambda l_max: with_budget(f"{l_max:,}", l_max, _trained_with(study, l_max)))
    # Which models are one and the same, as their gaps show: they all start from that of 1K.
    rows = grid.rows(study)
    same: dict[tuple[object, ...], list[str]] = {}
    for row in rows:
        gaps = tuple(cell.measured for cell in row.cells[::2])
        if None not in gaps:
            same.setdefault(gaps, []).append(str(row.labels[0]))
    return grid_table(
        study,
        ("l_max in training",),
        grid,
        prc_words=sit.prc_words(study),
        n=grid.tests[0].dataset.n,
        reference=sit.reference_note(study, ["tsp"], [10_000]),
        unlike=unlike if trained != used else "",
        alike=[
            f"The rows {' and '.join(names)} have the same gaps: no validation of these trainings found better weights "
            "than those of the model of 1K, from which they start, so each of them is that model."
            for names in same.values()
            if len(names) > 1
        ],
    )


def _trained_with(study: Study, role: int) -> int:
    """l_max of that model's training here."""
    run = study.runs.get(run_id(sit.with_longest(role)))
    return longest_sub_path(getattr(run.training, "longest", None), run.n) if run else role


def table7_grids(scale: Scale) -> list[Grid]:
    grids = []
    for problem in sit.PROBLEMS:
        quantities = []
        name, methods = problem.upper(), []
        for size in sit.SIZES:
            test = sit.reference(scale, problem, size)
            here, at = f"{name}{test.dataset.n}", described(test.dataset)
            head = Column(f"obj_{short(size)}", here, "Obj.", fixed(3), at=at, paper=f"{name}{size}")
            quantities.append(Quantity(head, LENGTH, test, size))
        runs = {size: run_id(sit.model(scale, problem, size)) for size in sit.SIZES}
        for label, (key, start) in STARTS.items():
            decoding = sit.prc_of(scale, problem, 100).model_copy(update={"start": start or sit.INITIAL[problem]})
            methods.append(Method(label, {"init": key}, runs=runs, decoding=decoding))
        grids.append(Grid(methods, quantities, head=(name,), where={"problem": name}))
    return grids


@artifact("What PRC starts from", needs=sit.in_one_go(needs_of(table7_grids)))
def table7(study: Study) -> Table:
    """Mean lengths after PRC100 from three initial solutions, both problems, all sizes."""
    grids = table7_grids(study.scale)
    # In how many groups random insertion leads to the shortest solutions, here and in print.
    rows = [row for grid in grids for row in grid.rows(study)]
    wins_of = {}
    for name in ("measured", "published"):
        blocks = (zip(*(row.cells for row in block), strict=True) for block in (rows[:3], rows[3:]))
        values = [[getattr(cell, name) for cell in cells] for block in blocks for cells in block]
        full = [of for of in values if None not in of]
        wins_of[name] = f"{sum(of[2] == min(of) for of in full)} of {len(full)}"
    return grid_table(
        study,
        ("Problem", "Initial solution"),
        grids,
        prc_words=sit.prc_words(study),
        wins=wins_of,
        models=sit.models_note(study, sit.PROBLEMS),
    )


UPDATES = {"sub-path": "one per stop", "decision": "one per sub-path", "summed": "one per sub-path, summed"}
# Heading, key of the printed value, and the value of a run here.
ROWS: tuple[tuple[str, str | None, Callable[[Run, Reconstruction], Value]], ...] = (
    ("Dataset size", "dataset_size", lambda run, t: t.samples),
    ("Self-improved iterations", "self_improved_iteration", lambda run, t: t.rounds),
    ("Training epochs", "training_epoch", lambda run, t: t.epochs_per_round),
    ("Training batch size", "training_batch_size", lambda run, t: t.batch_size),
    ("Reconstruction iterations", "reconstruction_iteration", lambda run, t: t.reconstructions),
    ("Reconstruction batch size", "reconstruction_batch_size", lambda _, t: "by memory" if t.reconstructions else None),
    ("Learning rate", "learning_rate", lambda run, t: t.learning_rate),
    ("Decay per training epoch", "decay_per_training_epoch", lambda run, t: t.decay_gamma),
    (
        "Maximum length of partial solutions",
        "partial_solutions_maximum_length",
        lambda run, t: longest_sub_path(t.longest, run.n),
    ),
    # What the paper's table does not have.
    ("Nodes of an instance", None, lambda run, t: run.n),
    ("Epochs whose decay the rate has behind it", None, lambda run, t: t.epochs_before),
    (
        "Initial solutions",
        None,
        lambda run, t: (
            "the model's, greedy"
            if t.initial == "greedy"
            else ", ".join(dict.fromkeys(labels.solver for labels in run.data))
        ),
    ),
    ("Updates", None, lambda run, t: UPDATES[t.step]),
    ("Largest norm of a gradient", None, lambda run, t: t.clip or "no limit"),
    ("Greedy validations", None, lambda run, t: t.validations),
    ("Starts from", None, lambda run, t: run.start.rpartition("/")[2] if run.start else "random weights"),
)


@artifact("Training settings")
def table6(study: Study) -> Table:
    published = printed_values(study)
    names = {
        problem: {"warm_up": "Warm-up"} | {short(size): short(size).upper() for size in sit.SIZES}
        for problem in sit.PROBLEMS
    }
    models = [(problem, name, heading) for problem, of in names.items() for name, heading in of.items()]
    columns = [Column(f"{p}_{name}", heading, format=plain, group=p.upper()) for p, name, heading in models]
    runs = [study.runs.get(run_id(f"warm_{p}" if name == "warm_up" else f"{p}_{name}")) for p, name, _ in models]
    rows = []
    for label, key, value in ROWS:
        cells = []
        for (problem, _, heading), run in zip(models, runs, strict=True):
            here = value(run, run.training) if run and isinstance(run.training, Reconstruction) else None
            cells.append(Cell(here, published.get(f"{problem.upper()}{heading}.{key}")))
        rows.append(Row((label,), tuple(cells)))
    differences, changes = [_differences(study, problem) for problem in sit.PROBLEMS], changes_note(study, runs)
    return draw_table(study, ("Setting",), columns, rows, AS_TRAINED, differences=differences, changes=changes)


def _differences(study: Study, problem: Problem) -> str:
    """Where a training here takes the published code's way instead of the paper's."""
    texts = []
    for size in sit.SIZES:
        run = study.runs.get(run_id(f"{problem}_{short(size)}"))
        if run and isinstance(run.training, Reconstruction):
            t = run.training
            options = {"starts: batch": t.starts == "batch", "rule: from-the-end": t.rule == "from-the-end"}
            options["most_blocks"] = t.most_blocks is not None
            texts += [f"{name} at {short(size).upper()}" for name, used in options.items() if used]
    return f"{problem.upper()}, as in the published code: {', '.join(texts)}." if texts else ""


@artifact("Licences of the codes and data")
def table11(study: Study) -> Table:
    return licence_table(study)


HELD = "-math"  # attention that holds its scores
METRICS = {"time_s": "time_s", "peak_memory_mb": "memory_mb"}  # as recorded -> as printed


@dataclass(frozen=True)
class Timed:
    """A row: the network that is timed, and the models whose gaps are shown."""

    label: str
    network: str
    runs: Mapping[int, str] = field(default_factory=dict)  # the paper's size -> the model
    printed: bool = True  # whether the paper has the row; else it shows time and memory alone


@dataclass(frozen=True)
class Timing:
    """The models of a table on one problem, at some of the paper's sizes."""

    study: Study
    problem: Problem
    sizes: Sequence[int]
    models: Sequence[Timed]

    def table(self, labels: Sequence[str], gaps: bool = True, **values: object) -> Table:
        """Draw it; labels: of the models whose exponents are said; values: of its notes."""
        columns = [column for size in self.sizes for column in self._columns(size, gaps)]
        rows = [self._row(model, gaps) for model in self.models]
        values |= {"exponents": self.exponents_note(labels), **self.timed()}
        return draw_table(self.study, ("Model", HERE) if gaps else ("Method",), columns, rows, **values)

    def _columns(self, size: int, gaps: bool) -> list[Column]:
        name, problem = short(size), self.problem.upper()
        dataset, timed = sit.reference(self.study.scale, self.problem, size).dataset, self._timed(size)
        paper = f"{problem}{size}"
        columns = [
            Column(f"gap_{name}_pct", "Gap", "%", fixed(2), f"{problem}{dataset.n}", described(dataset), paper),
            Column(f"time_{name}_s", "Time", "", duration, f"{problem}{timed.n}", self._at(size), paper),
            Column(f"memory_{name}_mb", "Memory", "MB", fixed(2), f"{problem}{timed.n}", self._at(size), paper),
        ]
        return columns if gaps else columns[1:]

    def _row(self, model: Timed, gaps: bool) -> Row:
        cells: list[Cell] = []
        for size in self.sizes:
            cells += [self._gap(model, size)] if gaps else []
            cells += [
                Cell(self._value_here(model, size, metric), self._published(model, size, name), at=self._at(size))
                for metric, name in METRICS.items()
            ]
        here = (model_here(self.study, next(iter(model.runs.values()), None)),) if gaps else ()
        return Row((model.label, *here), tuple(cells))

    def _gap(self, model: Timed, size: int) -> Cell:
        published, run = self._published(model, size, "gap_pct"), model.runs.get(size)
        if run is None or not model.printed:
            return Cell(None, published)
        return gap_cell(self.study, run, sit.reference(self.study.scale, self.problem, size).dataset, published)

    def _published(self, model: Timed, size: int, metric: str) -> Value:
        if not model.printed:
            return None
        return number(printed_numbers(self.study, self.study.artifact.name, method=model.label), size, metric)

    def _timed(self, size: int) -> Dataset:
        return sit.efficiency(self.study.scale, self.problem, size)

    def _at(self, size: int) -> str:
        return f"{self.problem.upper()}{self._timed(size).n}, one instance"

    def _value_here(self, model: Timed, size: int, metric: str) -> Value:
        """Seconds or MiB of one instance; "OOM" where it does not fit."""
        cell = run_id(f"{self.problem}_1k"), self._timed(size), f"efficiency-{model.network}"
        if self.study.value("out_of_memory", *cell):
            return "OOM"
        share = self.study.value("share_at_once", *cell)
        if share is not None and metric == "peak_memory_mb":  # the memory there is, not what all at once would take
            return f"in {math.ceil(1 / share)} parts"
        return self.study.value(metric, *cell)

    def exponents_note(self, labels: Sequence[str]) -> list[str]:
        """Say how time and memory of these models grow with n."""
        models = {model.label: model for model in self.models}
        nodes, parts = [self._timed(size).n for size in self.sizes], []
        for model in (models[label] for label in labels):
            fits = []
            for metric, name in METRICS.items():
                here = exponent(nodes, [self._value_here(model, size, metric) for size in self.sizes])
                paper = exponent(self.sizes, [self._published(model, size, name) for size in self.sizes])
                if here is not None:
                    in_print = f" ({paper:.2f})" if paper is not None else ""
                    fits.append(f"{name.partition('_')[0]} {here:.2f}{in_print}")
            parts += [f"{model.label}: {', '.join(fits)}"] if fits else []
        if not parts:
            return []
        return [
            "Exponents of n, by least squares on the log-log scale over the sizes measured, the printed numbers' in "
            f"parentheses: {'; '.join(parts)}. With n decisions, time that is linear in n at each decision has "
            "exponent 2."
        ]

    def timed(self) -> dict[str, object]:
        """What the notes say of how time and memory were measured, and of which networks."""
        s = self.study.scale[sit.SitScale]
        names = ("sit", "lehd", "sigd", "pomo") if self.problem == "tsp" else ("sit", "bq")
        shapes = {name.upper(): shape for name, shape in s.efficiency_shapes.items() if name in names}
        text = ", ".join(f"{name} D={shape.depth}, W={shape.width}" for name, shape in shapes.items())
        nodes = ", ".join(f"{self._timed(size).n:,}" for size in self.sizes)
        return {"problem": self.problem.upper(), "nodes": nodes, "shapes": text, "decisions": s.efficiency_decisions}


def exponent(sizes: Sequence[float], values: Sequence[Value]) -> float | None:
    """Fit b of values ~ n^b by least squares on the log-log scale, over the numbers; None with fewer than two."""
    points = [(n, v) for n, v in zip(sizes, values, strict=True) if isinstance(v, int | float) and v > 0]
    if len({n for n, _ in points}) < 2:
        return None
    from neuroute.analysis.power_laws import fit

    return -fit([n for n, _ in points], [v for _, v in points], "log-log").alpha


def _table3_needs(scale: Scale) -> Iterator[Need]:
    tests = [sit.reference(scale, "cvrp", size) for size in ABLATED]
    yield from tested(map(run_id, ("cvrp_1k", sit.NO_SIT, sit.SELF)), tests)
    yield sit.efficiency_of(scale, "cvrp")


@artifact("Without self-improved training, without cross-attention", needs=_table3_needs)
def table3(study: Study) -> Table:
    """Gap, time and memory of our model, of it trained on labels, and of its self-attention twin."""
    labels = ("Ours", "w/o Cross-Attention", "w/o Cross-Attention, fused kernel")
    ours, twin, fused = labels
    unlike = dict.fromkeys(ABLATED, run_id(sit.SELF))
    models = [
        Timed("w/o SIT", "SIT", dict.fromkeys(ABLATED, run_id(sit.NO_SIT))),
        Timed(twin, f"self-attention{HELD}", unlike),
        Timed(fused, "self-attention", unlike, printed=False),
        Timed(ours, "SIT", dict.fromkeys(ABLATED, run_id("cvrp_1k"))),
    ]
    compared = Timing(study, "cvrp", ABLATED, models)
    without = study.runs.get(run_id(sit.NO_SIT))
    labelled = f" (CVRP{without.n} here, {without.training.samples:,} solutions)" if without else ""
    reference = sit.reference_note(study, ["cvrp"], ABLATED)
    return compared.table(labels, reference=reference, labelled=labelled, schedule=_schedule(study))


def _schedule(study: Study) -> str:
    """Say how the twin's learning rate differs from that of ours, where it does."""
    runs = (study.runs.get(run_id(name)) for name in ("warm_cvrp", "cvrp_1k", sit.SELF))
    trainings = [run.training for run in runs if run and isinstance(run.training, Reconstruction)]
    if len(trainings) < 3:
        return ""
    first, rest, whole = trainings
    ends = [t.learning_rate * t.decay_gamma ** (t.epochs_before + t.epochs) for t in (rest, whole)]
    if first.epochs + rest.epochs == whole.epochs and abs(ends[0] / ends[1] - 1) < 1e-6:
        return ""
    return (
        f", {whole.epochs} epochs with a learning rate that ends at {ends[1]:.2g} (ours: {first.epochs} and "
        f"{rest.epochs} epochs, {ends[0]:.2g}), so that attention is not all that differs"
    )


@artifact("Time and memory of greedy decoding", needs=lambda scale: [sit.efficiency_of(scale, "tsp")])
def table4(study: Study) -> Table:
    models = []
    for name in ("POMO", "SIGD", "LEHD"):
        models += [Timed(name, f"{name}{HELD}"), Timed(f"{name}, fused kernel", name, printed=False)]
    compared = Timing(study, "tsp", sit.SIZES, [*models, Timed("Ours", "SIT")])
    return compared.table([model.label for model in compared.models], gaps=False)


def _table10_needs(scale: Scale) -> Iterator[Need]:
    yield from tested(sit.BASELINES["cvrp"]["BQ"], [sit.reference(scale, "cvrp", size) for size in sit.BQ_SIZES])
    for size in scale[sit.SitScale].bq_sit:
        yield from tested(run_id(sit.with_cross_attention(size)), sit.reference(scale, "cvrp", size))
    yield sit.efficiency_of(scale, "cvrp")


@artifact("BQ with cross-attention and self-improved training", needs=_table10_needs)
def table10(study: Study) -> Table:
    """BQ as its authors have it, and with cross-attention and SIT."""
    origin = dict.fromkeys(sit.BQ_SIZES, sit.BASELINES["cvrp"]["BQ"])
    crossed = {int(size): run_id(sit.with_cross_attention(size)) for size in study.scale[sit.SitScale].bq_sit}
    models = [
        Timed("BQ origin", f"BQ{HELD}", origin),
        Timed("BQ origin, fused kernel", "BQ", origin, printed=False),
        Timed("BQ+Cross-Attention+SIT", "BQ+cross-attention", crossed),
    ]
    compared, both = Timing(study, "cvrp", sit.BQ_SIZES, models), models[-1].label
    absent = [short(size).upper() for size in sit.BQ_SIZES if size not in crossed]
    return compared.table(
        [model.label for model in models],
        reference=sit.reference_note(study, ["cvrp"], sit.BQ_SIZES),
        n=study.runs[sit.BASELINES["cvrp"]["BQ"]].n,
        absent=f"This scale trains no {both} at {', '.join(absent)}." if absent else "",
    )
