"""Tables of paper `mvmoe`: sixteen problems, ablations, time, and public benchmarks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np

from neuroute.analysis.contrasts import Gap
from neuroute.core.lazy import pd
from neuroute.datasets.benchmarks import PublishedInstance, published_instances
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe.paper import MULTI_TASK, SIZES, TRAINED, run_id
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact
from neuroute.pipeline.rendering.benchmark import none_there
from neuroute.pipeline.rendering.cells import (
    MEAN_OF_GAPS,
    ONE_SEED,
    UNTRAINED,
    behind,
    model_here,
    number,
    over_trainings,
    printed_numbers,
    resampled_mean_of_gaps,
    select,
    solver_name,
    with_budget,
)
from neuroute.pipeline.rendering.grid import (
    LENGTH,
    MEAN_GAP,
    SECONDS,
    Grid,
    Measure,
    Method,
    Quantity,
    comparison,
    from_print,
    grid_table,
    needs_of,
)
from neuroute.pipeline.rendering.render import draw_table
from neuroute.pipeline.rendering.settings import drawn_instances
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import WHOLE, Cell, Column, Row, Table, Value, duration
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.objects import Dataset, Decoding, Labels, Reinforced, Test

# Printed row -> the solvers here that may stand for it; the column beside it says which of them does.
SOLVERS = {
    "HGS": Method(solvers=("hgs-long", "hgs", "hgs-short")),
    "LKH3": Method(solvers=("lkh3", "lkh3-short")),
    "OR-Tools": Method(solvers=("ortools", "ortools-short")),
    "OR-Tools (x10)": Method(solvers=("ortools-x10",)),
}
# When a search ends, as the solvers' modules have it; the paper's in parentheses, where it is another one.
BUDGETS = {
    "hgs": "2,000 iterations without improvement (20,000)",
    "hgs-long": "20,000 iterations without improvement",
    "hgs-short": "100 iterations without improvement (20,000)",
    "lkh3": "one run of 10,000 trials",
    "lkh3-short": "one run of 50 trials (10,000)",
    "ortools": "0.4 s a customer",
    "ortools-short": "100 solutions (0.4 s a customer)",
    "ortools-x10": "4 s a customer",
    "ortools-network": "0.4 s a customer",
    "pyvrp": "5,000 iterations",
    "pyvrp-long": "60,000 iterations",
    "pyvrp-short": "200 iterations",
}


def rows(scale: Scale, variant: str) -> list[Method]:
    """List the printed rows of a problem in Table 1 or 2; besides, after those of solvers, what else is run on it."""
    table = 1 if variant in mvmoe.TRAINED else 2
    in_print = from_print(mvmoe.KEY, table, SOLVERS | learned(scale, variant), problem=variant)
    solvers = [row for row in in_print if row.solvers]
    here = dict.fromkeys(labels.solver for size in SIZES for labels in mvmoe.by_all_solvers(scale, variant, size))
    of_rows = {next((solver for solver in row.solvers if solver in here), None) for row in solvers}
    others = [Method(solver_name(solver), solvers=(solver,)) for solver in here if solver not in of_rows]
    return [*solvers, *others, *(row for row in in_print if not row.solvers)]


def learned(scale: Scale, variant: str) -> dict[str, Method]:
    """Name the models that stand for a problem's rows: POMO is trained for each of the trained problems alone."""
    of: dict[str, Callable[[int], str]] = (
        {"POMO": partial(mvmoe.single, scale, variant)} if variant in mvmoe.TRAINED else {}
    )
    of |= {name: partial(mvmoe.multi, scale, name) for name in mvmoe.MULTI_TASK}
    return {
        f"{name} aug×8": Method(name, runs={size: mvmoe.run_id(run(size)) for size in SIZES}, decoding=mvmoe.X8)
        for name, run in of.items()
    }


def sets_of(scale: Scale, size: int) -> str:
    """What stands for all test sets of one of the paper's sizes, in words."""
    return of_each(scale[mvmoe.MvmoeScale].sizes[size], scale[mvmoe.MvmoeScale].test_counts[size])


def of_each(customers: int, count: int) -> str:
    """6 customers, 3 instances of each problem."""
    return f"{customers} customers, {count:,} instance{'s' * (count != 1)} of each problem"


def mean_gap_cell(
    study: Study, run: str, datasets: Sequence[Dataset], published: Value = None, decoding: Decoding | str = mvmoe.X8
) -> Cell:
    """Show the mean over test sets of their mean gaps in %, where all of them were measured.

    They are resampled together: the i-th instances of all problems lie on the same ground (`datasets.vrp_stream`), so
    their gaps go up and down together, and an interval as of unrelated instances would be half as wide.  There is none
    where a test set has one instance; of several trainings the range is that of theirs.
    """
    each = [study.values(MEAN_OF_GAPS, run, dataset, decoding) for dataset in datasets]
    if not each or not all(each):
        return Cell(None, published)
    of_trainings = [math.fsum(gaps) / len(gaps) for gaps in zip(*each, strict=True)]
    resampled = [resampled_mean_of_gaps(study, run, dataset, decoding) for dataset in datasets if dataset.count > 1]
    there = [samples for samples in resampled if samples is not None]
    samples = np.asarray(np.mean(there, axis=0)) if len(there) == len(datasets) else None
    cell = over_trainings(of_trainings, samples, published)
    return replace(cell, behind=behind(study, run, of_trainings, samples, *datasets))


def mean_over(tests: Iterable[Labels]) -> Measure:
    """Measure the mean gap over several test sets."""
    sets = [labels.dataset for labels in tests]
    return Measure("gap_pct", lambda study, run, _, published, how: mean_gap_cell(study, run, sets, published, how))


def models_here(study: Study, *runs: str) -> str:
    """Name depth, width and training sizes of the runs that play a role; a dash for none."""
    trained = [study.runs[run] for run in dict.fromkeys(runs) if run in study.runs]
    if not trained:
        return UNTRAINED
    sizes = " and ".join(dict.fromkeys(str(run.n) for run in trained))
    return f"{model_here(study, trained[0].id)}, trained at n={sizes}"


def models_note(study: Study, runs: Mapping[str, str]) -> str:
    """Which models play the roles here; runs: printed name -> run."""
    of: dict[str, list[str]] = {}
    for name, run in runs.items():
        if run in study.runs:
            of.setdefault(models_here(study, run), []).append(name)
    texts = [f"{', '.join(names)} ({words})" for words, names in of.items()]
    return f"Models here: {'; '.join(texts) or 'none'}."


def references_note(scale: Scale, variants: Sequence[str]) -> str:
    """Against whose solutions gaps are."""
    of: dict[str, list[str]] = {}
    for variant in variants:
        small, large = (solver_name(mvmoe.reference(scale, variant, size).solver) for size in SIZES)
        of.setdefault(small if small == large else f"{small} and, at n = {SIZES[1]}, {large}", []).append(variant)
    *few, (most, _) = sorted(of.items(), key=lambda item: len(item[1]))
    names = [*(f"{name} ({', '.join(its)})" for name, its in few), most + " (all others)" * bool(few)]
    return ", ".join(names)


def rule_notes(study: Study, tests: Iterable[Labels], runs: Sequence[str]) -> dict[str, object]:
    """Which backhaul rule the solvers were held to, and which part of the references networks may drive, too.

    `runs`: whose evaluations may tell.
    """
    tests = [labels for labels in tests if SWITCHES[str(labels.dataset.variant)].backhaul]
    of_rule = {"ortools-network": "held to the networks' rule"}  # where vehicles start as a network's do
    rules = dict.fromkeys(f"{solver_name(t.solver)}, {of_rule.get(t.solver, 'free start')}" for t in tests)
    by_size: dict[int, list[str]] = {}
    for labels in tests:
        every = (study.value("reference_feasible_pct", run, labels.dataset, mvmoe.X8) for run in runs)
        share = next((value for value in every if value is not None), None)
        if share is not None:
            by_size.setdefault(labels.dataset.n, []).append(f"{labels.dataset.variant} {share:.0f} %")
    parts = [f"{', '.join(texts)} (n={n})" for n, texts in by_size.items()]
    feasible = [f"Of the reference solutions here networks could drive: {'; '.join(parts)}."] * bool(parts)
    return {"rules": "; ".join(rules), "feasible": feasible}


def trained_note(study: Study, runs: Iterable[str], in_print: str = "100 million", sizes: Sequence[int] = SIZES) -> str:
    """How many trainings, how long in comparison to the paper's, and which of its `sizes` no model is trained for."""
    amount = amounts(study, [run for run in dict.fromkeys(runs) if run in study.runs])
    note = f"{ONE_SEED} Each draws {amount} instances here, {in_print} in the paper." if amount else ONE_SEED
    if SIZES[-1] not in sizes or SIZES[-1] in study.scale[mvmoe.MvmoeScale].trained_sizes:
        return note
    return (
        f"{note} No model of the paper's n = {SIZES[-1]} is trained here; what needs one takes that of n = {SIZES[0]}."
    )


def amounts(study: Study, runs: Iterable[str]) -> str:
    """Say how many instances trainings draw, 8,000 or 8,000 to 16,000; nothing for none."""
    counts = sorted({round(amount) for run in runs if (amount := drawn_instances(study.runs[run])) is not None})
    return " to ".join(f"{amount:,}" for amount in dict.fromkeys((*counts[:1], *counts[-1:])))


# -- rows of Tables 7 and 8 of paper `mvmoe`: one for each instance of a public benchmark, and their mean ------------


@dataclass(frozen=True)
class Library:
    """A set of a benchmark, as the paper calls it and as it is called here."""

    title: str
    benchmark: str
    problem: str  # in print
    set: str  # of the benchmark's; "": any
    rounded: bool  # whether the paper's lengths are sums of rounded legs

    @property
    def instances(self) -> dict[str, PublishedInstance]:
        every = published_instances(self.benchmark).items()
        return {name: k for name, k in every if not self.set or k.set == self.set}

    def length(self, value: float | None) -> Value:
        """As the paper has it: a whole number where legs are rounded."""
        return round(value) if value is not None and self.rounded else value


@dataclass(frozen=True)
class Solver:
    """One pair of columns: what singles out its printed numbers, and how it is measured here."""

    label: str
    printed: Mapping[str, object]
    run: str
    group: str
    decoding: Decoding


def rows_and_notes(study: Study, library: Library, solvers: Sequence[Solver]) -> tuple[list[Row], list[str]]:
    """A row for each instance that is printed or measured, and the mean of those printed; what was not measured.

    A row: the best length known, then each method's length and gap in %.  Means here are over the instances that every
    method measured here has solved.  Notes: by instances and methods; how to get the instances where there are none.
    """
    published = printed_numbers(study, study.artifact.name, problem=library.problem)
    metric, gaps, instances = "gap_rounded_pct" if library.rounded else "gap_pct", list[Gaps](), library.instances
    of_set = study.records[(study.records.distribution == library.benchmark) & (study.records.metric == metric)]
    for solver in solvers:
        of_run = of_set[(of_set.group == solver.group) & (of_set.decoding == solver.decoding.name)]
        of_run = of_run[of_run.run.isin(study.trainings(solver.run))]
        study.mark(of_run)
        study.note_seeds(solver.run, of_run.run.nunique())
        by_name = {
            str(test).removeprefix(f"{library.benchmark}_"): tuple(of_test.value)
            for test, of_test in of_run.groupby("test")
        }
        gaps.append({name: gap for name, gap in by_name.items() if name in instances})
    best = published[published.metric == "best_known"]
    names, solved = [str(name) for name in best.instance], {name for of in gaps for name in of}
    others = [name for name in instances if name in solved and name not in names]
    of_each = [select(published, **solver.printed) for solver in solvers]
    rows = []
    for name in (*names, *others):
        known_here = instances[name].optimum if name in solved else None
        known_in_print = _one(best[best.instance == name].value)
        at = f"{name}, as listed here"
        cells = [Cell(library.length(known_here), library.length(known_in_print), at=at)]
        for solver, of, printed_rows in zip(solvers, gaps, of_each, strict=True):
            there = printed_rows[printed_rows.instance == name]
            length_in_print, gap_in_print = (_one(there[there.metric == key].value) for key in ("obj", "gap_pct"))
            length, gap, behind = None, None, None
            if (each := of.get(name)) is not None:
                gap = fmean(each)
                length = instances[name].optimum * (1 + gap / 100)
                if model := study.runs.get(solver.run):
                    kind, times = model.network.kind.partition(":")[2], (instances[name].nodes - 1) / model.n
                    behind = Gap(each, np.zeros(1), "", 1, kind, "vrp", times, solver.run)
            cells.append(Cell(library.length(length), library.length(length_in_print)))
            cells.append(Cell(gap, gap_in_print, behind=behind))
        rows.append(Row((library.title, name), tuple(cells)))
    # Instances that every method measured here has solved.
    some, cells = [of for of in gaps if of], [Cell()]
    common = [name for name in names if some and all(name in of for of in some)]
    for of, printed_rows in zip(gaps, of_each, strict=True):
        mean_here = fmean(fmean(of[name]) for name in common) if of and common else None
        in_print = _one(printed_rows[printed_rows.instance == f"mean of {len(names)}"].value)
        at = "" if mean_here is None else f"{len(common)} of {len(names)} instances"
        cells += [Cell(), Cell(mean_here, in_print, at=at)]
    label = f"Mean of {len(names)}" + (f", here of {len(common)}" if common and len(common) < len(names) else "")
    rows.append(Row((library.title, label), tuple(cells)))
    if not any(gaps):
        return rows, [none_there(library.benchmark)]
    notes = []
    if lacking := sum(name not in solved for name in names):
        notes.append(f"{library.title}: {lacking} of the {len(names)} printed instances were not measured here.")
    if others:
        text = "of the instances here are not in the paper's table; they come last."
        notes.append(f"{library.title}: {len(others)} {text}")
    if 0 < len(common) < len(names):
        parts = []
        for solver, printed_rows in zip(solvers, of_each, strict=True):
            there = printed_rows[(printed_rows.metric == "gap_pct") & printed_rows.instance.isin(common)]
            parts.append(f"{solver.label.partition(',')[0]} {there.value.mean():.3f} %")
        means = ", ".join(parts)
        notes.append(f"{library.title}: over the instances of the mean here, printed means are {means}.")
    if without := [solver.label for solver, of in zip(solvers, gaps, strict=True) if not of]:
        notes.append(f"Not measured on {library.title}: {', '.join(without)}.")
    return rows, notes


Gaps = dict[str, tuple[float, ...]]  # instance -> the gap in % of each training


def _one(values: pd.Series[float]) -> float | None:
    return float(values.item()) if len(values) else None


LARGER = SIZES[-1]  # customers of the instances that Tables 6 to 8's models are trained on
SET_X = Library("Set-X", "cvrplib", "CVRP", "X", rounded=True)
SOLOMON = Library("Set-Solomon", "solomon", "VRPTW", "", rounded=False)


PARAMETERS = "Parameters"  # label of the last row
IN_PRINT = {"POMO-MTL": "1.25M", "MVMoE/4E": "3.68M"}  # Section 5; that of 4E-L is not printed


@artifact(
    "Seconds of one large instance", needs=lambda scale: [mvmoe.construction(scale, method) for method in MULTI_TASK]
)
def table6(study: Study) -> Table:
    published, scale = printed_numbers(study, "table6"), study.scale
    runs = {method: run_id(mvmoe.multi(scale, method, LARGER)) for method in MULTI_TASK}
    rows = []
    for variant in mvmoe.VARIANTS:
        cells, dataset = [], mvmoe.constructed(scale, variant)
        for method, run in runs.items():
            in_print = select(published, problem=variant, method=method)
            seconds = study.value("time_s", run, dataset, mvmoe.MULTI)
            cells.append(Cell(seconds, number(in_print, mvmoe.CONSTRUCTED, "time_s")))
        rows.append(Row((variant,), tuple(cells)))
    dataset = mvmoe.constructed(scale, mvmoe.VARIANTS[0])
    counts = [study.value("parameters", run, dataset, mvmoe.MULTI) for run in runs.values()]
    sizes = [None if count is None else f"{count:,.0f}" for count in counts]
    rows.append(Row((PARAMETERS,), tuple(map(Cell, sizes, (IN_PRINT.get(method) for method in runs)))))
    m = scale[mvmoe.MvmoeScale]
    at = of_each(m.construction_size, m.construction_count)
    heads = f"n={m.construction_size}", at, f"n={mvmoe.CONSTRUCTED}"
    columns = [Column(f"time_{mvmoe.MULTI_TASK[method]}_s", method, "", duration, *heads) for method in runs]
    both = [(row.cells[1].measured, row.cells[2].measured) for row in rows]
    times = [(base, light) for base, light in both if isinstance(base, float) and isinstance(light, float)]
    slower = sum(light > base for base, light in times)
    text = f"Here MVMoE/4E-L is slower than MVMoE/4E on {slower} of {len(times)} problems." if times else ""
    return draw_table(study, ("Problem",), columns, rows, models=models_note(study, runs), slower=text)


def _larger_models(scale: Scale, problem: str) -> dict[str, str]:
    """POMO of a problem and the models of several -> runs for the larger size."""
    multi = {method: mvmoe.multi(scale, method, LARGER) for method in MULTI_TASK}
    return {name: run_id(run) for name, run in ({"POMO": mvmoe.single(scale, problem, LARGER)} | multi).items()}


def _table7_needs(scale: Scale) -> Iterator[Need]:
    for run in _larger_models(scale, "CVRP").values():
        yield mvmoe.on_set_x(scale, run, "set_x")
    nodes, sets = (0, mvmoe.MOST_OF_SOLOMON + 1), tuple(scale[mvmoe.MvmoeScale].solomon)
    for run in _larger_models(scale, "VRPTW").values():
        yield scale.on_benchmark(run, "solomon", nodes, sets=sets, decodings=(mvmoe.X8,))


@artifact("CVRPLIB's Set-X and Solomon's instances", needs=_table7_needs)
def table7(study: Study) -> Table:
    """Lengths and gaps on Set-X up to 250 customers and on Solomon's R1, RC1 and RC2."""
    solvers_of, rows, instances = {}, list[Row](), list[str]()
    for library, group in ((SET_X, "set_x"), (SOLOMON, "solomon")):
        models = _larger_models(study.scale, library.problem)
        solvers = [Solver(name, {"method": name}, run, group, mvmoe.X8) for name, run in models.items()]
        solvers_of[library] = solvers
        rows_of, notes_of = rows_and_notes(study, library, solvers)
        rows, instances = rows + rows_of, instances + notes_of
    models = {f"POMO ({library.problem})": of[0].run for library, of in solvers_of.items()}
    models |= {solver.label: solver.run for solver in solvers[1:]}
    columns, note = _columns(["POMO", *MULTI_TASK]), models_note(study, models)
    return draw_table(study, ("Set", "Instance"), columns, rows, instances=instances, models=note)


def _table8_needs(scale: Scale) -> Iterator[Need]:
    for run in _larger_models(scale, "CVRP").values():
        yield mvmoe.on_set_x(scale, run, "set_x_large", mvmoe.on_large(scale))
    for run in mvmoe.lehd(scale).values():
        yield mvmoe.on_set_x(scale, run, "set_x_large", mvmoe.GREEDY, mvmoe.rrc(scale))


@artifact("Larger instances of Set-X", needs=_table8_needs)
def table8(study: Study) -> Table:
    """Lengths and gaps on Set-X above 500 customers, also by LEHD with and without experts."""
    scale, rrc = study.scale, mvmoe.rrc(study.scale)
    how, lehd, models = mvmoe.on_large(scale), mvmoe.lehd(scale), _larger_models(scale, "CVRP")
    solvers = [Solver(name, {"method": name}, run, "set_x_large", how) for name, run in models.items()]
    for decoding, words in ((mvmoe.GREEDY, "greedy"), (rrc, "RRC")):
        for name, run in lehd.items():
            label = name if words == "greedy" else with_budget(f"{name} RRC100", 100, rrc.iterations)
            row = {"method": name, "decoding": words}
            solvers.append(Solver(label, row, run, "set_x_large", decoding))
    rows, instances = rows_and_notes(study, SET_X, solvers)
    of = sorted({study.runs[run].training.epochs for run in lehd.values() if run in study.runs})
    plural = "s" * (of != [1])
    epochs = f"LEHD is trained for {' or '.join(map(str, of))} epoch{plural} here, for 20 in the paper." if of else ""
    return draw_table(
        study,
        ("Set", "Instance"),
        _columns([solver.label for solver in solvers]),
        rows,
        instances=instances,
        models=models_note(study, models | lehd),
        epochs=epochs,
        unlike="" if how == mvmoe.X8 else "Not so here: each instance is solved without images. In the paper: ",
    )


def _columns(labels: Sequence[str]) -> tuple[Column, ...]:
    """The best length known, and length and gap of each method."""
    out = [Column("best_known", "Best known", "", _length)]
    for label in labels:
        key = "".join(c if c.isalnum() else "_" for c in label.partition(",")[0].lower())
        at = "the instance of the row"
        out.append(Column(f"obj_{key}", "Obj.", "", _length, label, at))
        out.append(Column(f"gap_{key}_pct", "Gap", "%", group=label, at=at))
    return tuple(out)


def _length(value: Any) -> str:
    """27,591 and 1,249.0: integers as Set-X has them, others with the one decimal that is printed of Solomon's."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


GROUPS = {"trained": (TRAINED, "mean of 6 trained VRPs"), "unseen": (mvmoe.UNSEEN, "mean of 10 unseen VRPs")}


def _grids(scale: Scale, variants: Sequence[str]) -> list[Grid]:
    """Show length, gap and total time of the solvers and models of each problem."""
    grids = []
    for variant in variants:
        tests, at = {size: mvmoe.reference(scale, variant, size) for size in SIZES}, partial(sets_of, scale)
        columns = comparison(tests, "n={}".format, LENGTH, MEAN_GAP, SECONDS, time="Total time", at=at)
        grids.append(Grid(rows(scale, variant), columns, (variant,), {"problem": variant}, name_models=models_here))
    return grids


@artifact("The six problems of the training", needs=needs_of(partial(_grids, variants=TRAINED)))
def table1(study: Study) -> Table:
    return _comparison(study, TRAINED)


@artifact("The ten problems that no model has seen", needs=needs_of(partial(_grids, variants=mvmoe.UNSEEN)))
def table2(study: Study) -> Table:
    return _comparison(study, mvmoe.UNSEEN)


def _comparison(study: Study, variants: Sequence[str]) -> Table:
    scale, grids = study.scale, _grids(study.scale, variants)
    multi = [run_id(mvmoe.multi(scale, method, size)) for method in MULTI_TASK for size in SIZES]
    tests = [mvmoe.reference(scale, variant, size) for size in SIZES for variant in variants]
    notes, published = [], printed_numbers(study, study.artifact.name)
    for size in SIZES:
        here, print_ = dict[str, str](), dict[str, str]()
        for key, method in learned(scale, variants[0]).items():
            name = str(method.label)
            print_[name] = f"{select(published, method=name, n=size, metric='gap_pct').value.mean():.3f}"
            of_variants = [(learned(scale, v)[key], mvmoe.reference(scale, v, size).dataset) for v in variants]
            gaps = [study.value(MEAN_OF_GAPS, str(m.run(size)), dataset, m.decoding) for m, dataset in of_variants]
            numbers = [gap for gap in gaps if gap is not None]
            if len(numbers) == len(gaps):
                here[name] = f"{sum(numbers) / len(numbers):.3f}"
        there, in_print = (", ".join(map(" ".join, of.items())) for of in (here, print_))
        words = f"at n={scale[mvmoe.MvmoeScale].sizes[size]} {there}; " if here else ""
        means = f"{words}in print, at n={size}, {in_print}"
        notes.append(f"Mean gaps in % over the {len(variants)} problems: {means}.")
    every = (
        labels.solver
        for variant in variants
        for size in mvmoe.SIZES
        for labels in mvmoe.by_all_solvers(scale, variant, size)
    )
    texts = [f"{solver_name(solver)} {BUDGETS[solver]}" for solver in dict.fromkeys(every) if solver in BUDGETS]
    return grid_table(
        study,
        ("Problem", "Method"),
        grids,
        means=notes,
        trained=trained_note(study, [run for grid in grids for run in grid.runs]),
        references=references_note(scale, variants),
        **rule_notes(study, tests, multi),
        budgets=", ".join(texts),
    )


def table4_grid(scale: Scale) -> Grid:
    tests, at = {variant: mvmoe.reference(scale, variant, SIZES[-1]) for variant in TRAINED}, sets_of(scale, SIZES[-1])
    methods, quantities = [], []
    for name, test in tests.items():
        run, column = run_id(mvmoe.single(scale, name, LARGER)), Column(f"gap_{name.lower()}_pct", name, "gap %", at=at)
        methods.append(Method(f"POMO-{name}", {"train_problem": name}, runs=run, decoding=mvmoe.X8))
        quantities.append(Quantity(column, MEAN_GAP, test, LARGER, where={"problem": name}))
    average, (first, *others) = Column("gap_mean_pct", "Average", "gap %", at=at), tests.values()
    mean = mean_over(tests.values())
    quantities.append(Quantity(average, mean, first, SIZES[-1], None, {"problem": "mean of 6"}, tuple(others)))
    return Grid(methods, quantities, name_models=models_here)


@artifact("POMO on problems that it is not trained for", needs=needs_of(table4_grid))
def table4(study: Study) -> Table:
    """Gaps of the six single-task models on the six problems of training, and their means."""
    grid = table4_grid(study.scale)
    return grid_table(
        study,
        ("Model",),
        grid,
        trained=trained_note(study, grid.runs),
        references=references_note(study.scale, TRAINED),
        **rule_notes(study, grid.tests, grid.runs),
    )


def table5_grid(scale: Scale) -> Grid:
    methods = []
    for setting, name in mvmoe.ABLATIONS["table5"].items():
        alpha, norm, top = (part.partition("=")[2] for part in setting.split(";")[:3])
        where = {"method_params": setting}
        methods.append(Method((alpha, norm, top), where, runs=run_id(name), decoding=mvmoe.X8))
    quantities = []
    for key, (variants, problem) in GROUPS.items():
        tests = tuple(mvmoe.reference(scale, variant, SIZES[0]) for variant in variants)
        column = Column(f"gap_{key}_pct", f"{len(variants)} {key} problems", "gap %", at=sets_of(scale, SIZES[0]))
        quantities.append(
            Quantity(column, mean_over(tests), tests[0], SIZES[0], where={"problem": problem}, others=tests[1:])
        )
    return Grid(methods, quantities, name_models=models_here)


def _table5_needs(scale: Scale) -> list[Need]:
    trained = {run_id(name) for name in mvmoe.trained_ablations(scale, "table5").values()}
    return [need for need in needs_of(table5_grid)(scale) if isinstance(need, Test) and need.run in trained]


@artifact("Balance loss, normalisation, experts of a token", needs=_table5_needs)
def table5(study: Study) -> Table:
    """Mean gaps of MVMoE/4E on the problems of training and on the unseen ones, one setting changed at a time."""
    grid = table5_grid(study.scale)
    tests = [mvmoe.reference(study.scale, variant, SIZES[0]) for variant in mvmoe.VARIANTS]
    return grid_table(
        study,
        ("Alpha", "Normalization", "K"),
        grid,
        trained=trained_note(study, grid.runs, "50 million", [SIZES[0]]),
        references=references_note(study.scale, mvmoe.VARIANTS),
        **rule_notes(study, tests, [run_id(mvmoe.DEFAULT), *grid.runs]),
    )


# The paper's letters -> what they stand for.
CONSTRAINTS = {"C": "capacity", "O": "open route", "B": "backhaul", "L": "duration limit", "TW": "time window"}


@artifact("Constraints of the 16 problems")
def table3(study: Study) -> Table:
    """Which constraints each problem has, and whether models are trained on it."""
    published = study.published(3).set_index("key")
    # The problems that the multi-task models draw their batches from; None where the plan has no such run.
    runs = [study.runs.get(run_id(mvmoe.multi(study.scale, method, size))) for method in MULTI_TASK for size in SIZES]
    trainings = [run.training for run in runs if run is not None and isinstance(run.training, Reinforced)]
    trained = {variant for t in trainings for stage in t.stages for variant in stage.variants} or None
    rows = []
    for variant in mvmoe.VARIANTS:
        letters, on = str(published.value[variant]).split("+"), SWITCHES[variant]
        here = {"C": True, "O": on.open, "B": on.backhaul, "L": on.limit, "TW": on.windows}
        cells = [Cell(_word(here[c]), _word(c in letters)) for c in CONSTRAINTS]
        is_trained = None if trained is None else _word(variant in trained)
        cells.append(Cell(is_trained, _word(published.note[variant] == "trained")))
        cells += [Cell(mvmoe.test_set(study.scale, variant, size).n) for size in SIZES]
        rows.append(Row((variant,), tuple(cells)))
    columns = [Column(f"has_{c.lower()}", c, format=str, group="Constraints") for c in CONSTRAINTS]
    columns.append(Column("trained", "In training", format=str))
    columns += [Column(f"customers_{size}", f"for n={size}", format=WHOLE, group="Customers here") for size in SIZES]
    meanings = ", ".join(f"{letter}: {meaning}" for letter, meaning in CONSTRAINTS.items())
    legend = "As applied here, with the paper's entry in parentheses."
    return draw_table(study, ("Problem",), columns, rows, legend, letters=meanings)


def _word(holds: bool) -> str:
    return "yes" if holds else "no"
