"""Tables 4, 5 and 7 of paper `sit`: efficiency, the longest partial solution, and what PRC starts from."""

import pandas as pd

from neuroute.papers.sit import roles
from neuroute.papers.sit.cells import CONSTRUCTION, INSERTION, models_note, prc_words, reference_note
from neuroute.papers.sit.efficiency_cells import (
    ATTENTION,
    HELD,
    at_one,
    efficiency_cells,
    efficiency_columns,
    exponents_note,
    protocol_note,
)
from neuroute.papers.sit.roles import LONGEST, PROBLEMS, SIZES, run_id
from neuroute.plan.objects import Decoding, Problem
from neuroute.problems.longest import longest_sub_path
from neuroute.rendering.cells import both, gap_cell, model_here, number, printed, with_budget
from neuroute.rendering.columns import HERE, described
from neuroute.rendering.gaps import BOOTSTRAP
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, duration, fixed

STARTS = {  # printed name of an initial solution -> its key in the printed numbers
    "Model's greedy": "model_greedy",
    "Nearest neighbour": "nearest_neighbor",
    "Random insertion": "random_insertion",
}


def table4(study: Study) -> Table:
    """Time and memory of one instance, decoded greedily."""
    shown = {name: printed(study, "table4", method=name) for name in ("POMO", "SIGD", "LEHD", "Ours")}
    nothing = shown["Ours"].iloc[:0]
    rows: list[Row] = []
    networks: dict[str, str] = {}
    for name in ("POMO", "SIGD", "LEHD"):
        fused = f"{name}, fused kernel"
        networks |= {name: f"{name}{HELD}", fused: name}
        rows.append(_efficiency_row(study, name, f"{name}{HELD}", shown[name]))
        rows.append(_efficiency_row(study, fused, name, nothing))
    networks["Ours"] = "SIT"
    rows.append(_efficiency_row(study, "Ours", "SIT", shown["Ours"]))
    columns: list[Column] = []
    for size in SIZES:
        columns += efficiency_columns(size, at_one(roles.efficiency(study.scale, "tsp", size)))
    return Table(
        study.artifact.title,
        ("Method",),
        tuple(columns),
        tuple(rows),
        (
            protocol_note(study, "tsp", SIZES),
            ATTENTION,
            *exponents_note(study, "tsp", networks, SIZES, shown),
            "OOM: out of memory; here, beyond the memory that this scale allows.",
            "For LEHD greedy at 5K the paper prints 119.2 s here and 1.5 min in Table 1; Section 4 describes a network "
            "with 2 representative nodes, Appendix C repeats the last one 15 times, as is done here.",
        ),
    )


def _efficiency_row(study: Study, label: str, network: str, shown: pd.DataFrame) -> Row:
    cells: list[Cell] = []
    for size in SIZES:
        cells += efficiency_cells(study, "tsp", network, shown, size)
    return Row((label,), tuple(cells))


def table5(study: Study) -> Table:
    """Models trained with three l_max, each re-constructing with all three."""
    labels = roles.reference(study.scale, "tsp", 10_000)
    here, dataset = study.scale.sit.longest, labels.dataset
    rows = []
    for trained in LONGEST:
        run, cells = run_id(roles.with_longest(trained)), []
        for used in LONGEST:
            shown = printed(study, "table5", lmax_train=trained, lmax_inference=used)
            decoding = roles.prc_with_longest(study.scale, used)
            seconds = study.value("time_s", run, dataset, decoding)
            time = seconds / dataset.count if seconds is not None else None
            cells.append(gap_cell(study, run, dataset, number(shown, 10_000, "gap_pct"), decoding))
            cells.append(Cell(time, number(shown, 10_000, "time_s")))
        rows.append(Row((with_budget(f"{trained:,}", trained, _trained_with(study, trained)),
                         model_here(study, run)), tuple(cells)))  # fmt: skip
    columns = []
    for used in LONGEST:
        group = "inference " + with_budget(f"{used:,}", used, here[used])
        columns.append(Column(f"gap_lmax{used}_pct", "Gap", "%", fixed(3), group, described(dataset)))
        columns.append(Column(f"time_lmax{used}_s", "Time", "", duration, group, described(dataset)))
    return Table(
        study.artifact.title,
        ("l_max in training", HERE),
        tuple(columns),
        tuple(rows),
        (
            f"{prc_words(study)} from random insertion. One training of each model (one "
            f"seed), on TSP{dataset.n}. {BOOTSTRAP}",
            reference_note(study, ["tsp"], [10_000]),
            *_unlike(study),
            *_alike(rows),
            "Times are per instance: the time of the test set, with the making of the initial solution, divided by its "
            "instances.",
            "The row 1,000 is the main model of 10K. The paper prints 2.319 % for l_max 1,000 in training and "
            "inference, but 2.11 % for PRC100 at TSP10K in Table 1, with the same time.",
            CONSTRUCTION,
        ),
    )


def _unlike(study: Study) -> list[str]:
    """Where the main model's l_max is not what stands for the paper's in inference."""
    trained, used = _trained_with(study, 1000), study.scale.sit.longest[1000]
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


def table7(study: Study) -> Table:
    """Mean lengths after PRC100 from three initial solutions, both problems, all sizes."""
    rows = []
    for problem in PROBLEMS:
        for label, key in STARTS.items():
            shown = printed(study, "table7", problem=problem.upper(), init=key)
            cells: list[Cell] = []
            models: dict[str, None] = {}
            for size in SIZES:
                run, labels = (
                    run_id(roles.model(study.scale, problem, size)),
                    roles.reference(study.scale, problem, size),
                )
                models[model_here(study, run)] = None
                length = study.value("length", run, labels.dataset, _start(study, problem, key))
                cells.append(Cell(length, number(shown, size, "obj"), at=described(labels.dataset)))
            rows.append(Row((problem.upper(), label, "; ".join(models)), tuple(cells)))
    columns = []
    for size in SIZES:
        at = both({p: described(roles.reference(study.scale, p, size).dataset) for p in PROBLEMS})
        columns.append(Column(f"obj_{roles.short(size)}", roles.short(size).upper(), "Obj.", fixed(3), at=at))
    return Table(
        study.artifact.title,
        ("Problem", "Initial solution", HERE),
        tuple(columns),
        tuple(rows),
        (
            f"Mean lengths after {prc_words(study)}. {_wins(rows)}",
            models_note(study, PROBLEMS),
            INSERTION,
            CONSTRUCTION,
        ),
    )


def _wins(rows: list[Row]) -> str:
    """In how many groups random insertion leads to the shortest solutions, here and in print."""
    found = {}
    for name in ("measured", "published"):
        wins = total = 0
        for block in (rows[:3], rows[3:]):
            for cells in zip(*(row.cells for row in block), strict=True):
                values = [getattr(cell, name) for cell in cells]
                total += None not in values
                wins += None not in values and values[2] == min(values)
        found[name] = f"{wins} of {total}"
    return f"Random insertion leads to the shortest in {found['measured']} groups here, {found['published']} in print."


def _start(study: Study, problem: Problem, key: str) -> Decoding:
    if key == "random_insertion":
        return roles.prc_of(study.scale, problem, 100)
    return roles.prc_from(study.scale, "greedy" if key == "model_greedy" else "nearest")
