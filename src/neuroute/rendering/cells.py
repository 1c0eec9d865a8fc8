"""What the tables of paper `sit` have in common: printed numbers, measured cells, and what is to be said of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from neuroute.papers.sit import roles
from neuroute.papers.sit.roles import SIZES
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.objects import Dataset, Decoding, Problem
from neuroute.rendering.columns import described
from neuroute.rendering.columns import model_here as shape_here
from neuroute.rendering.gaps import single_gap_cell
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Value

PUBLISHED_REFERENCE = {"tsp": "LKH3", "cvrp": "HGS"}
UNTRAINED = "–"  # for a method that is not measured here
SOLVERS = {
    "concorde": "Concorde",
    "lkh": "LKH",
    "lkh3": "LKH3",
    "hgs": "HGS",
    "hgs-short": "short HGS",
    "insertion": "random insertion",
    "insertion-angle": "insertion by angle",
    "insertion-published": "insertion by angle, as published",
}


def printed(study: Study, table: str, **where: object) -> pd.DataFrame:
    """The paper's numbers whose columns (method, problem, decoding, iters, ...) hold `where`."""
    rows = study.published(table)
    for key, value in where.items():
        rows = rows[rows[key] == value]
    return rows


def number(rows: pd.DataFrame, n: object, metric: str) -> Value:
    """The one printed value of a size; where the paper prints none, what it prints instead: OOM, N/A, — or <1s."""
    found = rows[(rows.n.astype(str) == str(n)) & (rows.metric == metric)]
    if not len(found):
        return None
    value, text = found.value.item(), found.printed.item()
    if pd.isna(text):
        return "N/A"  # which pandas reads as missing
    if pd.isna(value) or str(text).startswith("<"):
        return str(text)
    return float(value)


def model_cells(
    study: Study,
    run: str | None,
    dataset: Dataset,
    rows: pd.DataFrame,
    size: int,
    decoding: Decoding | str = "greedy",
    *,
    total: bool = False,
) -> tuple[Cell, Cell, Cell]:
    """Mean length, gap in % and seconds of one model, per instance or in `total`; `rows` holds the printed ones.

    Without a run the printed ones alone.
    """
    obj, gap, time = (number(rows, size, metric) for metric in ("obj", "gap_pct", "time_s"))
    if run is None:
        return Cell(None, obj), Cell(None, gap), Cell(None, time)
    at = described(dataset)
    seconds = study.value("time_s", run, dataset, decoding)
    if seconds is not None and not total:
        seconds /= dataset.count
    return (
        Cell(study.value("length", run, dataset, decoding), obj, at=at),
        gap_cell(study, run, dataset, gap, decoding),
        Cell(seconds, time, at=at),
    )


def gap_cell(
    study: Study, run: str, dataset: Dataset, published: Value = None, decoding: Decoding | str = "greedy"
) -> Cell:
    """The gap in % of one training, with its bootstrap interval where there are several instances.

    `published` may be text.
    """
    cell = single_gap_cell(study, run, dataset, None, decoding)
    if dataset.count == 1:
        cell = replace(cell, low=None, high=None)
    return replace(cell, published=published, at=described(dataset))


def model_here(study: Study, run: str | None) -> str:
    """Depth and width of a run's network; a dash for a method that is not trained here."""
    return shape_here(study, run) if run is not None and run in study.runs else UNTRAINED


def with_budget(label: str, paper: int, here: int) -> str:
    """PRC100, or `PRC100, here 10`."""
    return label if paper == here else f"{label}, here {here:,}"


def both(at: Mapping[Problem, str]) -> str:
    """What the columns that two problems share were measured on."""
    return " and ".join(at.values())


def prc_words(study: Study, budget: int = 100) -> str:
    """PRC100, or `PRC100 (10 iterations here)`."""
    here = study.scale[SitScale].prc[budget]
    return f"PRC{budget:,}" + ("" if here == budget else f" ({here:,} iterations here)")


def reference_note(study: Study, problems: Sequence[Problem], sizes: Sequence[int] = SIZES) -> str:
    """Against whose solutions the gaps are, by size."""
    parts = []
    for problem in problems:
        p = roles.sizes(study.scale, problem)
        of: dict[str, list[str]] = {}
        for size in sizes:
            of.setdefault(solver_name(p.references[size]), []).append(roles.short(size).upper())
        names = [name if len(of) == 1 else f"{name} ({', '.join(at)})" for name, at in of.items()]
        parts.append(f"{problem.upper()} by {', '.join(names)}; the paper's by {PUBLISHED_REFERENCE[problem]}")
    return f"Gaps are ratios of mean lengths, against solutions of the {'. Of the '.join(parts)}."


def solver_name(solver: str) -> str:
    return SOLVERS.get(solver, solver)


def models_note(study: Study, problems: Iterable[Problem]) -> str:
    """At which of the paper's sizes models are trained here, and what solves the others."""
    parts, missing = [], False
    for problem in problems:
        p = roles.sizes(study.scale, problem)
        trained = [f"{roles.short(size).upper()} ({problem.upper()}{p.sizes[size]} here)" for size in p.training]
        parts.append(f"{problem.upper()} at {', '.join(trained)}")
        missing |= len(p.training) < len(SIZES)
    rest = "; a size without a model of its own takes that of the next smaller one" if missing else ""
    return f"One training of each model (one seed). Ours is trained for {'; '.join(parts)}{rest}."


CONSTRUCTION = (
    "Every decision takes the likeliest node, and the TSP starts at node 0, as in the published code; the paper's "
    "Section 4.2 samples nodes and starts at a random one."
)
INSERTION = (
    "Random insertion, from which PRC starts, is for the CVRP what the published code does: customers in the order of "
    "their angle around the depot, with its slip that makes places next to the depot look too cheap. The paper's "
    "Algorithm 2 inserts at random."
)
