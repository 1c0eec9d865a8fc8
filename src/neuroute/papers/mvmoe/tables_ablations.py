"""Table 5 of paper `mvmoe`: the auxiliary loss's weight, the normalization, and how many experts a token sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.cells import mean_over, models_here, references_note, rule_notes, sets_of, trained_note
from neuroute.papers.mvmoe.roles import ABLATIONS, DEFAULT, TRAINED, UNSEEN, VARIANTS, X8, run_id
from neuroute.papers.mvmoe.tables_comparison import WAY
from neuroute.plan.needs import Need, Tested, artifact
from neuroute.rendering.cells import BOOTSTRAP
from neuroute.rendering.grid import Grid, Method, Quantity, grid_table, needs_of
from neuroute.rendering.table import Column, Table

if TYPE_CHECKING:
    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study

SIZE = 50
GROUPS = {"trained": (TRAINED, "mean of 6 trained VRPs"), "unseen": (UNSEEN, "mean of 10 unseen VRPs")}


def table5_grid(scale: Scale) -> Grid:
    methods = []
    for setting, name in ABLATIONS["table5"].items():
        alpha, norm, top = (part.partition("=")[2] for part in setting.split(";")[:3])
        where = {"method_params": setting}
        methods.append(Method((alpha, norm, top), where, runs=run_id(name), decoding=X8))
    quantities = []
    for key, (variants, problem) in GROUPS.items():
        tests = tuple(roles.reference(scale, variant, SIZE) for variant in variants)
        column = Column(f"gap_{key}_pct", f"{len(variants)} {key} problems", "gap %", at=sets_of(scale, SIZE))
        quantities.append(
            Quantity(column, mean_over(tests), tests[0], SIZE, where={"problem": problem}, others=tests[1:])
        )
    return Grid(methods, quantities, name_models=models_here)


def _table5_needs(scale: Scale) -> list[Need]:
    trained = {run_id(name) for name in roles.shown(scale, "table5").values()}
    return [need for need in needs_of(table5_grid)(scale) if isinstance(need, Tested) and need.run in trained]


@artifact("Balance loss, normalisation, experts of a token", needs=_table5_needs)
def table5(study: Study) -> Table:
    """Mean gaps of MVMoE/4E on the problems of training and on the unseen ones, one setting changed at a time."""
    grid = table5_grid(study.scale)
    tests = [roles.reference(study.scale, variant, SIZE) for variant in VARIANTS]
    return grid_table(
        study,
        ("Alpha", "Normalization", "K"),
        grid,
        f"{trained_note(study, grid.runs, '50 million', [SIZE])} {BOOTSTRAP}",
        "All are MVMoE/4E in trainings of half the length; the first row is the default, and each other row "
        "changes one setting of it. Means are over the problems' mean gaps.",
        references_note(study.scale, VARIANTS),
        *rule_notes(study, tests, [run_id(DEFAULT), *grid.runs]),
        WAY,
        "Alpha weighs the loss that balances experts, which adds up over encoder layers and decisions. The paper's "
        "default is 0.01; its published code has 0.001.",
        "With K = 1 the weights of a token's experts are constantly 1, so that a gate learns from the balance loss "
        "alone. In print four rows have both means below the default's: alpha 0.001, layer and no normalization, "
        "and K = 3.",
    )
