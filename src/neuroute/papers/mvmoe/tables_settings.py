"""Table 3 of paper `mvmoe`: the 16 problems and their constraints."""

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.roles import MULTI_TASK, SIZES, VARIANTS, run_id, test_set
from neuroute.plan.needs import artifact
from neuroute.plan.objects import Reinforced
from neuroute.problems.vrp_variants import SWITCHES
from neuroute.rendering.columns import WHOLE
from neuroute.rendering.notes import notes
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table

# The paper's letters -> what they stand for.
CONSTRAINTS = {
    "C": "capacity",
    "O": "open route",
    "B": "backhaul",
    "L": "duration limit",
    "TW": "time window",
}
YES, NO = "yes", "no"


@artifact("Constraints of the 16 problems")
def table3(study: Study) -> Table:
    """Which constraints each problem has, and whether models are trained on it."""
    published = study.published(3).set_index("key")
    trained = _trained(study)
    rows = []
    for variant in VARIANTS:
        letters = str(published.value[variant]).split("+")
        cells = [Cell(_word(c in _letters(variant)), _word(c in letters)) for c in CONSTRAINTS]
        is_trained = None if trained is None else _word(variant in trained)
        cells.append(Cell(is_trained, _word(published.note[variant] == "trained")))
        cells += [Cell(test_set(study.scale, variant, size).n) for size in SIZES]
        rows.append(Row((variant,), tuple(cells)))
    columns = [Column(f"has_{c.lower()}", c, format=str, group="Constraints") for c in CONSTRAINTS]
    columns.append(Column("trained", "In training", format=str))
    columns += [Column(f"customers_{size}", f"for n={size}", format=WHOLE, group="Customers here") for size in SIZES]
    return Table(
        study.artifact.title,
        ("Problem",),
        tuple(columns),
        tuple(rows),
        notes(study, letters=", ".join(f"{letter}: {meaning}" for letter, meaning in CONSTRAINTS.items())),
        "As applied here, with the paper's entry in parentheses.",
    )


def _letters(variant: str) -> list[str]:
    """The paper's letters of what holds in the environment."""
    on = SWITCHES[variant]
    has = {"C": True, "O": on.open, "B": on.backhaul, "L": on.limit, "TW": on.windows}
    return [letter for letter, holds in has.items() if holds]


def _trained(study: Study) -> set[str] | None:
    """The problems that the multi-task models draw their batches from; None where the plan has no such run."""
    runs = [study.runs.get(run_id(roles.multi(study.scale, method, size))) for method in MULTI_TASK for size in SIZES]
    stages_of_runs = [run.training.stages for run in runs if run is not None and isinstance(run.training, Reinforced)]
    return (
        {variant for stages in stages_of_runs for stage in stages for variant in stage.variants}
        if stages_of_runs
        else None
    )


def _word(holds: bool) -> str:
    return YES if holds else NO
