"""What the tables of paper `mvmoe` have in common: measured cells, and what is to be said of them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from neuroute.core.errors import NeurouteError
from neuroute.pipeline.papers.mvmoe import paper as mvmoe
from neuroute.pipeline.papers.mvmoe.paper import SIZES
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.rendering.cells import (
    MEAN_OF_GAPS,
    ONE_SEED,
    UNTRAINED,
    behind,
    model_here,
    over_trainings,
    resampled_mean_of_gaps,
    solver_name,
)
from neuroute.pipeline.rendering.grid import Measure, Method, from_print
from neuroute.pipeline.rendering.settings import drawn_instances
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Value
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.objects import Dataset, Decoding, Labels

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
BY_THE_RULE = ("ortools-network",)  # solvers whose vehicles start as a network's do, where there are backhauls


def rows(scale: Scale, variant: str) -> list[Method]:
    """List the printed rows of a problem in Table 1 or 2; besides, after those of solvers, what else is run on it."""
    table = 1 if variant in mvmoe.TRAINED else 2
    in_print = from_print(mvmoe.KEY, table, SOLVERS | learned(scale, variant), problem=variant)
    solvers = [row for row in in_print if row.solvers]
    here = dict.fromkeys(labels.solver for size in SIZES for labels in mvmoe.solved(scale, variant, size))
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


FEASIBLE = "reference_feasible_pct"  # of the reference solutions, what networks may drive, too


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


def quoted(study: Study, quantity: str) -> float:
    """Return a number that stands in the paper's text, but in no table.  Raises NeurouteError if there is not one."""
    rows = study.published("quoted")
    rows = rows[rows.quantity == quantity]
    if len(rows) != 1:
        raise NeurouteError(f"{study.artifact.id}: {len(rows)} quoted values of {quantity}; one is needed")
    return float(rows.value.item())


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
    of_rule = {True: "held to the networks' rule", False: "free start"}
    rules = dict.fromkeys(f"{solver_name(t.solver)}, {of_rule[t.solver in BY_THE_RULE]}" for t in tests)
    return {"rules": "; ".join(rules), "feasible": _feasible(study, tests, runs)}


def _feasible(study: Study, tests: Sequence[Labels], runs: Sequence[str]) -> list[str]:
    """What was counted of the references here, by size."""
    by_size: dict[int, list[str]] = {}
    for labels in tests:
        every = (study.value(FEASIBLE, run, labels.dataset, mvmoe.X8) for run in runs)
        share = next((value for value in every if value is not None), None)
        if share is not None:
            by_size.setdefault(labels.dataset.n, []).append(f"{labels.dataset.variant} {share:.0f} %")
    if not by_size:
        return []
    parts = [f"{', '.join(texts)} (n={n})" for n, texts in by_size.items()]
    return [f"Of the reference solutions here networks could drive: {'; '.join(parts)}."]


def budgets_note(scale: Scale, variants: Sequence[str]) -> str:
    """When the searches of the solvers end that are run on these problems."""
    every = (
        labels.solver for variant in variants for size in mvmoe.SIZES for labels in mvmoe.solved(scale, variant, size)
    )
    texts = [f"{solver_name(solver)} {BUDGETS[solver]}" for solver in dict.fromkeys(every) if solver in BUDGETS]
    return ", ".join(texts)


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


def joined(values: Mapping[str, str]) -> str:
    """POMO-MTL 2.10, MVMoE/4E 1.93."""
    return ", ".join(f"{name} {value}" for name, value in values.items())
