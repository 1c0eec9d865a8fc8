"""Tables 5 and 7 of paper `sit`: the longest partial solution, and what PRC starts from."""

from __future__ import annotations

from collections.abc import Callable

from neuroute.papers.sit import roles
from neuroute.papers.sit.baselines import in_one_go, models_note, prc_words, reference_note
from neuroute.papers.sit.roles import LONGEST, PROBLEMS, SIZES, run_id
from neuroute.papers.sit.scale import SitScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import artifact
from neuroute.plan.objects import Decoding, Problem
from neuroute.problems.longest import longest_sub_path
from neuroute.rendering.cells import with_budget
from neuroute.rendering.columns import described, short
from neuroute.rendering.grid import GAP, LENGTH, SECONDS_EACH, Grid, Method, Quantity, grid_table, needs_of
from neuroute.rendering.study import Study
from neuroute.rendering.table import Column, Row, Table, duration, fixed

STARTS = {  # printed name of an initial solution -> its key in the printed numbers
    "Model's greedy": "model_greedy",
    "Nearest neighbour": "nearest_neighbor",
    "Random insertion": "random_insertion",
}


def table5_grid(scale: Scale, label: Callable[[int], str] = str) -> Grid:
    """Show models trained with three l_max, in columns for those of inference; label: of one in training."""
    test = roles.reference(scale, "tsp", 10_000)
    quantities = []
    for used in LONGEST:
        group, at = (
            "inference " + with_budget(f"{used:,}", used, scale[SitScale].longest[used]),
            described(test.dataset),
        )
        decoding, where = roles.prc_with_longest(scale, used), {"lmax_inference": used}
        gap = Column(f"gap_lmax{used}_pct", "Gap", "%", fixed(3), group, at)
        time = Column(f"time_lmax{used}_s", "Time", "", duration, group, at)
        quantities += [
            Quantity(gap, GAP, test, 10_000, decoding, where),
            Quantity(time, SECONDS_EACH, test, 10_000, decoding, where),
        ]
    methods = [Method(label(l_max), {"lmax_train": l_max}, runs=run_id(roles.with_longest(l_max))) for l_max in LONGEST]
    return Grid(methods, quantities)


@artifact("The longest partial solution in training and inference", needs=needs_of(table5_grid))
def table5(study: Study) -> Table:
    """Models trained with three l_max, each re-constructing with all three."""
    grid = table5_grid(study.scale, lambda l_max: with_budget(f"{l_max:,}", l_max, _trained_with(study, l_max)))
    return grid_table(
        study,
        ("l_max in training",),
        grid,
        prc_words=prc_words(study),
        n=grid.tests[0].dataset.n,
        reference=reference_note(study, ["tsp"], [10_000]),
        unlike=_unlike(study),
        alike=_alike(grid.rows(study)),
    )


def _unlike(study: Study) -> list[str]:
    """Where the main model's l_max is not what stands for the paper's in inference."""
    trained, used = _trained_with(study, 1000), study.scale[SitScale].longest[1000]
    if trained == used:
        return []
    return [f"The main model is trained here with l_max {trained:,}, where {used:,} stands for 1,000 in inference."]


def _alike(rows: list[Row]) -> list[str]:
    """Which models are one and the same, as their gaps show: they all start from that of 1K."""
    same: dict[tuple[object, ...], list[str]] = {}
    for row in rows:
        gaps = tuple(cell.measured for cell in row.cells[::2])
        if None not in gaps:
            same.setdefault(gaps, []).append(str(row.labels[0]))
    return [
        f"The rows {' and '.join(names)} have the same gaps: no validation of these trainings found better weights "
        "than those of the model of 1K, from which they start, so each of them is that model."
        for names in same.values()
        if len(names) > 1
    ]


def _trained_with(study: Study, role: int) -> int:
    """l_max of that model's training here."""
    run = study.runs.get(run_id(roles.with_longest(role)))
    return longest_sub_path(getattr(run.training, "longest", None), run.n) if run else role


def table7_grids(scale: Scale) -> list[Grid]:
    grids = []
    for problem in PROBLEMS:
        quantities = []
        for size in SIZES:
            test = roles.reference(scale, problem, size)
            name, where = f"{problem.upper()}{test.dataset.n}", described(test.dataset)
            paper = f"{problem.upper()}{size}"
            head = Column(f"obj_{short(size)}", name, "Obj.", fixed(3), at=where, paper=paper)
            quantities.append(Quantity(head, LENGTH, test, size))
        runs = {size: run_id(roles.model(scale, problem, size)) for size in SIZES}
        methods = [
            Method(label, {"init": key}, runs=runs, decoding=_start(scale, problem, key))
            for label, key in STARTS.items()
        ]
        name = problem.upper()
        grids.append(Grid(methods, quantities, head=(name,), where={"problem": name}))
    return grids


@artifact("What PRC starts from", needs=in_one_go(needs_of(table7_grids)))
def table7(study: Study) -> Table:
    """Mean lengths after PRC100 from three initial solutions, both problems, all sizes."""
    grids = table7_grids(study.scale)
    return grid_table(
        study,
        ("Problem", "Initial solution"),
        grids,
        prc_words=prc_words(study),
        wins=_wins([row for grid in grids for row in grid.rows(study)]),
        models=models_note(study, PROBLEMS),
    )


def _wins(rows: list[Row]) -> str:
    """In how many groups random insertion leads to the shortest solutions, here and in print."""
    counts = {}
    for name in ("measured", "published"):
        wins = total = 0
        for block in (rows[:3], rows[3:]):
            for cells in zip(*(row.cells for row in block), strict=True):
                values = [getattr(cell, name) for cell in cells]
                total += None not in values
                wins += None not in values and values[2] == min(values)
        counts[name] = f"{wins} of {total}"
    return (
        f"Random insertion leads to the shortest in {counts['measured']} groups here, {counts['published']} in print."
    )


def _start(scale: Scale, problem: Problem, key: str) -> Decoding:
    if key == "random_insertion":
        return roles.prc_of(scale, problem, 100)
    return roles.prc_from(scale, "greedy" if key == "model_greedy" else "nearest")
