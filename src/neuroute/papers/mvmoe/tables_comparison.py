"""Tables 1 and 2 of paper `mvmoe`: the problems of training, and those that no model has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.cells import (
    GAP,
    LIGHT,
    NETWORK,
    TEST_SETS,
    gap_cell,
    joined,
    models_here,
    references_note,
    rule_notes,
    sets_of,
    trained_note,
)
from neuroute.papers.mvmoe.methods import classical, comparison_needs, learned, rows_of
from neuroute.papers.mvmoe.roles import MULTI_TASK, SIZES, TRAINED, UNSEEN, run_id
from neuroute.papers.mvmoe.solver_cells import SOLVER_NOTES, budgets_note, solver_row
from neuroute.plan.needs import Need, artifact
from neuroute.rendering.cells import number, printed
from neuroute.rendering.columns import HERE
from neuroute.rendering.gaps import BOOTSTRAP
from neuroute.rendering.solver_cells import Solvers
from neuroute.rendering.table import Cell, Column, Row, Table, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from neuroute.plan.config import Scale
    from neuroute.plan.objects import Labels
    from neuroute.rendering.comparison import Method
    from neuroute.rendering.study import Study

WAY = "Models take the best of one greedy solution from each customer (with backhauls: each linehaul) and image, of 8."
NEGATIVE = (
    "POMO's printed -0.008 % on VRPL is against OR-Tools (x10); the published LKH3 script fixes VRPL's vehicles at 8 "
    "(n = 50) or 12 (n = 100)."
)


def _table1_needs(scale: Scale) -> Iterator[Need]:
    return comparison_needs(scale, TRAINED)


@artifact("The six problems of the training", needs=_table1_needs)
def table1(study: Study) -> Table:
    """Mean length, gap and total time on the problems that models are trained on."""
    return _comparison(
        study,
        TRAINED,
        "The text compares POMO-CVRP's mean of 16.815 %, which is of n = 100 (Table 4), with 2.102 % and 1.925 % of "
        "POMO-MTL and MVMoE/4E, which are of n = 50.",
        NEGATIVE,
    )


def _table2_needs(scale: Scale) -> Iterator[Need]:
    return comparison_needs(scale, UNSEEN)


@artifact("The ten problems that no model has seen", needs=_table2_needs)
def table2(study: Study) -> Table:
    """Mean length, gap and total time on the problems that no model is trained on."""
    return _comparison(
        study,
        UNSEEN,
        "The text has MVMoE ahead of POMO-MTL on all of these problems; in print MVMoE/4E-L is behind it at n = 50 on "
        "OVRPB, OVRPBL and OVRPBTW.",
    )


def _comparison(study: Study, variants: Sequence[str], *notes: str) -> Table:
    solvers, published = Solvers.of(study), printed(study, study.artifact.name)
    methods = {variant: learned(study.scale, variant) for variant in variants}
    runs = [run_id(roles.multi(study.scale, method, size)) for method in MULTI_TASK for size in SIZES]
    rows = []
    for variant in variants:
        tests = {size: roles.reference(study.scale, variant, size) for size in SIZES}
        shown = published[published.problem == variant]
        for method in classical(study.scale, variant, shown):
            rows.append(solver_row(solvers, variant, method, tests, shown, runs))
        rows += [_model_row(study, variant, method, tests, shown) for method in methods[variant]]
    every = [run for its in methods.values() for method in its for run in method.runs.values()]
    tests_of_all = [roles.reference(study.scale, variant, size) for size in SIZES for variant in variants]
    return Table(
        study.artifact.title,
        ("Problem", "Method", HERE),
        _columns(study.scale),
        tuple(rows),
        (
            *_means(study, variants, published),
            f"{trained_note(study, every)} {BOOTSTRAP}",
            references_note(study.scale, variants),
            *rule_notes(study, tests_of_all, runs),
            budgets_note(study.scale, variants),
            *SOLVER_NOTES,
            WAY,
            NETWORK,
            LIGHT,
            *notes,
            TEST_SETS,
        ),
    )


def _columns(scale: Scale) -> tuple[Column, ...]:
    out: list[Column] = []
    for size in SIZES:
        group, at = f"n={size}", sets_of(scale, size)
        out += [
            Column(f"obj_{size}", "Obj.", "", group=group, at=at),
            Column(f"gap_{size}_pct", "Gap", "%", group=group, at=at),
            Column(f"time_{size}_s", "Total time", "", duration, group, at),
        ]
    return tuple(out)


def _model_row(study: Study, variant: str, method: Method, tests: dict[int, Labels], published: pd.DataFrame) -> Row:
    shown, cells = rows_of(published, method), list[Cell]()
    for size, labels in tests.items():
        run, dataset = method.runs[size], labels.dataset
        obj, gap, time = (number(shown, size, metric) for metric in ("obj", "gap_pct", "time_s"))
        cells += [
            Cell(study.value("length", run, dataset, method.decoding), obj),
            gap_cell(study, run, dataset, gap, method.decoding),
            Cell(study.value("time_s", run, dataset, method.decoding), time),
        ]
    return Row((variant, method.label, models_here(study, method.runs.values())), tuple(cells))


def _means(study: Study, variants: Sequence[str], published: pd.DataFrame) -> list[str]:
    """Mean gaps over the table's problems, here and in print: of POMO those of six models, of the others of one."""
    notes = []
    for size in SIZES:
        here, print_ = dict[str, str](), dict[str, str]()
        for method in learned(study.scale, variants[0]):
            name = method.label
            rows = published[(published.method == name) & (published.n == size) & (published.metric == "gap_pct")]
            print_[name] = f"{rows.value.mean():.3f}"
            if (mean := _mean_gap(study, name, variants, size)) is not None:
                here[name] = f"{mean:.3f}"
        measured = f"{joined(here)}; in print " if here else "in print "
        notes.append(f"Mean gaps in % over the {len(variants)} problems at n={size}: {measured}{joined(print_)}.")
    return notes


def _mean_gap(study: Study, name: str, variants: Sequence[str], size: int) -> float | None:
    """Of a method's gaps on the problems, where all of them were measured."""
    gaps = []
    for variant in variants:
        method = next(each for each in learned(study.scale, variant) if each.label == name)
        dataset = roles.reference(study.scale, variant, size).dataset
        gaps.append(study.value(GAP, method.runs[size], dataset, method.decoding))
    found = [gap for gap in gaps if gap is not None]
    return sum(found) / len(found) if len(found) == len(gaps) else None
