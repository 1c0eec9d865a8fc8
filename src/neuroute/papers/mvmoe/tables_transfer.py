"""Table 4 of paper `mvmoe`: POMO trained for one problem on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.cells import (
    MEAN_GAP,
    mean_over,
    models_here,
    references_note,
    rule_notes,
    sets_of,
    trained_note,
)
from neuroute.papers.mvmoe.roles import MULTI_TASK, TRAINED, X8, run_id
from neuroute.papers.mvmoe.tables_comparison import WAY
from neuroute.plan.needs import artifact
from neuroute.rendering.cells import BOOTSTRAP, printed
from neuroute.rendering.grid import Grid, Method, Quantity, grid_table, needs_of
from neuroute.rendering.table import Column, Table

if TYPE_CHECKING:
    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study

SIZE = 100


def table4_grid(scale: Scale) -> Grid:
    tests, at = {variant: roles.reference(scale, variant, SIZE) for variant in TRAINED}, sets_of(scale, SIZE)
    methods = [
        Method(f"POMO-{name}", {"train_problem": name}, runs=run_id(roles.single(scale, name, SIZE)), decoding=X8)
        for name in TRAINED
    ]
    quantities = [
        Quantity(Column(f"gap_{name.lower()}_pct", name, "gap %", at=at), MEAN_GAP, test, SIZE, where={"problem": name})
        for name, test in tests.items()
    ]
    average, (first, *others) = Column("gap_mean_pct", "Average", "gap %", at=at), tests.values()
    mean = mean_over(tests.values())
    quantities.append(Quantity(average, mean, first, SIZE, None, {"problem": "mean of 6"}, tuple(others)))
    return Grid(methods, quantities, name_models=models_here)


@artifact("POMO on problems that it is not trained for", needs=needs_of(table4_grid))
def table4(study: Study) -> Table:
    """Gaps of the six single-task models on the six problems of training, and their means."""
    grid = table4_grid(study.scale)
    return grid_table(
        study,
        ("Model",),
        grid,
        f"{trained_note(study, grid.runs)} {BOOTSTRAP}",
        references_note(study.scale, TRAINED),
        *rule_notes(study, grid.tests, grid.runs),
        f"{WAY} Masks are those of the problem that is solved; a network reads what its own problem has, so one "
        "that is trained without windows sees none.",
        _multi_task(study),
    )


def _multi_task(study: Study) -> str:
    """The multi-task models' means beside which the text puts this table's; one of them is of another size there."""
    published = printed(study, "table1", n=SIZE, metric="gap_pct")
    means = [f"{name} {published[published.method == name].value.mean():.3f} %" for name in MULTI_TASK]
    return (
        "The text puts POMO-CVRP's printed mean of 16.815 % beside 2.102 % and 1.925 % of POMO-MTL and MVMoE/4E, which "
        f"are of n = 50; at n = {SIZE} Table 1 has {', '.join(means)}."
    )
