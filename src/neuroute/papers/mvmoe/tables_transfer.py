"""Table 4 of paper `mvmoe`: POMO trained for one problem on the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.cells import (
    gap_cell,
    mean_gap_cell,
    models_here,
    references_note,
    rule_notes,
    sets_of,
    trained_note,
)
from neuroute.papers.mvmoe.roles import MULTI_TASK, TRAINED, X8, run_id
from neuroute.papers.mvmoe.tables_comparison import WAY
from neuroute.plan.needs import Need, artifact, tested
from neuroute.rendering.cells import number, printed
from neuroute.rendering.columns import HERE
from neuroute.rendering.gaps import BOOTSTRAP
from neuroute.rendering.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study

SIZE = 100


def _table4_needs(scale: Scale) -> Iterator[Need]:
    for trained in TRAINED:
        for variant in TRAINED:
            yield from tested(run_id(roles.single(scale, trained, SIZE)), roles.reference(scale, variant, SIZE), X8)


@artifact("POMO on problems that it is not trained for", needs=_table4_needs)
def table4(study: Study) -> Table:
    """Gaps of the six single-task models on the six problems of training, and their means."""
    scale = study.scale
    tests = {variant: roles.reference(scale, variant, SIZE) for variant in TRAINED}
    sets = [labels.dataset for labels in tests.values()]
    published, at = printed(study, "table4"), sets_of(scale, SIZE)
    runs = {variant: run_id(roles.single(scale, variant, SIZE)) for variant in TRAINED}
    rows = []
    for variant, run in runs.items():
        shown = published[published.train_problem == variant]
        of = {str(problem): shown[shown.problem == problem] for problem in shown.problem}
        cells = [
            gap_cell(study, run, labels.dataset, number(of[name], SIZE, "gap_pct")) for name, labels in tests.items()
        ]
        cells.append(mean_gap_cell(study, run, sets, number(of["mean of 6"], SIZE, "gap_pct")))
        rows.append(Row((f"POMO-{variant}", models_here(study, [run])), tuple(cells)))
    columns = [Column(f"gap_{name.lower()}_pct", name, "gap %", at=at) for name in TRAINED]
    columns.append(Column("gap_mean_pct", "Average", "gap %", at=at))
    return Table(
        study.artifact.title,
        ("Model", HERE),
        tuple(columns),
        tuple(rows),
        (
            f"{trained_note(study, runs.values())} {BOOTSTRAP}",
            references_note(scale, TRAINED),
            *rule_notes(study, tests.values(), list(runs.values())),
            f"{WAY} Masks are those of the problem that is solved; a network reads what its own problem has, so one "
            "that is trained without windows sees none.",
            _multi_task(study),
        ),
    )


def _multi_task(study: Study) -> str:
    """The multi-task models' means beside which the text puts this table's; one of them is of another size there."""
    published = printed(study, "table1", n=SIZE, metric="gap_pct")
    means = [f"{name} {published[published.method == name].value.mean():.3f} %" for name in MULTI_TASK]
    return (
        "The text puts POMO-CVRP's printed mean of 16.815 % beside 2.102 % and 1.925 % of POMO-MTL and MVMoE/4E, which "
        f"are of n = 50; at n = {SIZE} Table 1 has {', '.join(means)}."
    )
