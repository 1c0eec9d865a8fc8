"""Table 5 of paper `mvmoe`: the auxiliary loss's weight, the normalization, and how many experts a token sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.cells import mean_gap_cell, models_here, references_note, rule_notes, sets_of, trained_note
from neuroute.papers.mvmoe.roles import ABLATIONS, DEFAULT, TRAINED, UNSEEN, VARIANTS, X8, run_id
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

SIZE = 50
GROUPS = {"trained": (TRAINED, "mean of 6 trained VRPs"), "unseen": (UNSEEN, "mean of 10 unseen VRPs")}


def _table5_needs(scale: Scale) -> Iterator[Need]:
    for name in roles.shown(scale, "table5").values():
        for variant in VARIANTS:
            yield from tested(run_id(name), roles.reference(scale, variant, SIZE), X8)


@artifact("Balance loss, normalisation, experts of a token", needs=_table5_needs)
def table5(study: Study) -> Table:
    """Mean gaps of MVMoE/4E on the problems of training and on the unseen ones, one setting changed at a time."""
    scale, published, at = study.scale, printed(study, "table5"), sets_of(study.scale, SIZE)
    tests = {variant: roles.reference(scale, variant, SIZE) for variant in VARIANTS}
    runs = [run_id(name) for name in ABLATIONS["table5"].values()]
    rows = []
    for setting, name in ABLATIONS["table5"].items():
        shown, run, cells = published[published.method_params == setting], run_id(name), []
        for variants, problem in GROUPS.values():
            number_in_print = number(shown[shown.problem == problem], SIZE, "gap_pct")
            cells.append(mean_gap_cell(study, run, [tests[v].dataset for v in variants], number_in_print))
        alpha, norm, top = (part.partition("=")[2] for part in setting.split(";")[:3])
        rows.append(Row((alpha, norm, top, models_here(study, [run])), tuple(cells)))
    columns = [
        Column(f"gap_{key}_pct", f"{len(variants)} {key} problems", "gap %", at=at)
        for key, (variants, _) in GROUPS.items()
    ]
    return Table(
        study.artifact.title,
        ("Alpha", "Normalization", "K", HERE),
        tuple(columns),
        tuple(rows),
        (
            f"{trained_note(study, runs, '50 million', [SIZE])} {BOOTSTRAP}",
            "All are MVMoE/4E in trainings of half the length; the first row is the default, and each other row "
            "changes one setting of it. Means are over the problems' mean gaps.",
            references_note(scale, VARIANTS),
            *rule_notes(study, tests.values(), [run_id(DEFAULT), *runs]),
            WAY,
            "Alpha weighs the loss that balances experts, which adds up over encoder layers and decisions. The paper's "
            "default is 0.01; its published code has 0.001.",
            "With K = 1 the weights of a token's experts are constantly 1, so that a gate learns from the balance loss "
            "alone. In print four rows have both means below the default's: alpha 0.001, layer and no normalization, "
            "and K = 3.",
        ),
    )
