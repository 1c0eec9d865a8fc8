"""Tables 1 to 5 of paper `mvmoe`: seen and unseen problems, their constraints, single problems, and ablations."""

from collections.abc import Sequence
from functools import partial

from neuroute.pipeline.papers.mvmoe import roles
from neuroute.pipeline.papers.mvmoe.cells import (
    budgets_note,
    joined,
    learned,
    mean_over,
    models_here,
    references_note,
    rows,
    rule_notes,
    sets_of,
    trained_note,
)
from neuroute.pipeline.papers.mvmoe.roles import (
    DEFAULT,
    MULTI_TASK,
    SIZES,
    TRAINED,
    UNSEEN,
    VARIANTS,
    X8,
    run_id,
    test_set,
)
from neuroute.pipeline.papers.mvmoe.scale import MvmoeScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, Tested, artifact
from neuroute.pipeline.rendering.cells import MEAN_OF_GAPS, printed_numbers
from neuroute.pipeline.rendering.columns import WHOLE
from neuroute.pipeline.rendering.grid import (
    LENGTH,
    MEAN_GAP,
    SECONDS,
    Grid,
    Method,
    Quantity,
    comparison,
    grid_table,
    needs_of,
)
from neuroute.pipeline.rendering.notes import draw_table
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table
from neuroute.problems.vrp import SWITCHES
from neuroute.specs.objects import Reinforced

GROUPS = {"trained": (TRAINED, "mean of 6 trained VRPs"), "unseen": (UNSEEN, "mean of 10 unseen VRPs")}


def _grids(scale: Scale, variants: Sequence[str]) -> list[Grid]:
    """Show length, gap and total time of the solvers and models of each problem."""
    grids = []
    for variant in variants:
        columns = comparison(
            {size: roles.reference(scale, variant, size) for size in SIZES},
            "n={}".format,
            LENGTH,
            MEAN_GAP,
            SECONDS,
            time="Total time",
            at=lambda size: sets_of(scale, size),
        )
        grids.append(Grid(rows(scale, variant), columns, (variant,), {"problem": variant}, name_models=models_here))
    return grids


@artifact("The six problems of the training", needs=needs_of(partial(_grids, variants=TRAINED)))
def table1(study: Study) -> Table:
    return _comparison(study, TRAINED)


@artifact("The ten problems that no model has seen", needs=needs_of(partial(_grids, variants=UNSEEN)))
def table2(study: Study) -> Table:
    return _comparison(study, UNSEEN)


def _comparison(study: Study, variants: Sequence[str]) -> Table:
    scale, grids = study.scale, _grids(study.scale, variants)
    multi = [run_id(roles.multi(scale, method, size)) for method in MULTI_TASK for size in SIZES]
    tests = [roles.reference(scale, variant, size) for size in SIZES for variant in variants]
    notes, published = [], printed_numbers(study, study.artifact.name)
    for size in SIZES:
        here, print_ = dict[str, str](), dict[str, str]()
        for method in learned(study.scale, variants[0]).values():
            name = str(method.label)
            lines = published[(published.method == name) & (published.n == size) & (published.metric == "gap_pct")]
            print_[name] = f"{lines.value.mean():.3f}"
            if (mean := _mean_gap(study, name, variants, size)) is not None:
                here[name] = f"{mean:.3f}"
        words = f"at n={study.scale[MvmoeScale].sizes[size]} {joined(here)}; " if here else ""
        notes.append(
            f"Mean gaps in % over the {len(variants)} problems: {words}in print, at n={size}, {joined(print_)}."
        )
    return grid_table(
        study,
        ("Problem", "Method"),
        grids,
        means=notes,
        trained=trained_note(study, [run for grid in grids for run in grid.runs]),
        references=references_note(scale, variants),
        **rule_notes(study, tests, multi),
        budgets=budgets_note(scale, variants),
    )


def _mean_gap(study: Study, name: str, variants: Sequence[str], size: int) -> float | None:
    """Of a method's gaps on the problems, where all of them were measured."""
    gaps = []
    for variant in variants:
        method = learned(study.scale, variant)[f"{name} aug×8"]
        dataset = roles.reference(study.scale, variant, size).dataset
        gaps.append(study.value(MEAN_OF_GAPS, str(method.run(size)), dataset, method.decoding))
    numbers = [gap for gap in gaps if gap is not None]
    return sum(numbers) / len(numbers) if len(numbers) == len(gaps) else None


def table4_grid(scale: Scale) -> Grid:
    tests, at = {variant: roles.reference(scale, variant, SIZES[-1]) for variant in TRAINED}, sets_of(scale, SIZES[-1])
    methods = [
        Method(f"POMO-{name}", {"train_problem": name}, runs=run_id(roles.single(scale, name, SIZES[-1])), decoding=X8)
        for name in TRAINED
    ]
    quantities = [
        Quantity(
            Column(f"gap_{name.lower()}_pct", name, "gap %", at=at), MEAN_GAP, test, SIZES[-1], where={"problem": name}
        )
        for name, test in tests.items()
    ]
    average, (first, *others) = Column("gap_mean_pct", "Average", "gap %", at=at), tests.values()
    mean = mean_over(tests.values())
    quantities.append(Quantity(average, mean, first, SIZES[-1], None, {"problem": "mean of 6"}, tuple(others)))
    return Grid(methods, quantities, name_models=models_here)


@artifact("POMO on problems that it is not trained for", needs=needs_of(table4_grid))
def table4(study: Study) -> Table:
    """Gaps of the six single-task models on the six problems of training, and their means."""
    grid = table4_grid(study.scale)
    return grid_table(
        study,
        ("Model",),
        grid,
        trained=trained_note(study, grid.runs),
        references=references_note(study.scale, TRAINED),
        **rule_notes(study, grid.tests, grid.runs),
    )


def table5_grid(scale: Scale) -> Grid:
    methods = []
    for setting, name in roles.ABLATIONS["table5"].items():
        alpha, norm, top = (part.partition("=")[2] for part in setting.split(";")[:3])
        where = {"method_params": setting}
        methods.append(Method((alpha, norm, top), where, runs=run_id(name), decoding=X8))
    quantities = []
    for key, (variants, problem) in GROUPS.items():
        tests = tuple(roles.reference(scale, variant, SIZES[0]) for variant in variants)
        column = Column(f"gap_{key}_pct", f"{len(variants)} {key} problems", "gap %", at=sets_of(scale, SIZES[0]))
        quantities.append(
            Quantity(column, mean_over(tests), tests[0], SIZES[0], where={"problem": problem}, others=tests[1:])
        )
    return Grid(methods, quantities, name_models=models_here)


def _table5_needs(scale: Scale) -> list[Need]:
    trained = {run_id(name) for name in roles.trained_ablations(scale, "table5").values()}
    return [need for need in needs_of(table5_grid)(scale) if isinstance(need, Tested) and need.run in trained]


@artifact("Balance loss, normalisation, experts of a token", needs=_table5_needs)
def table5(study: Study) -> Table:
    """Mean gaps of MVMoE/4E on the problems of training and on the unseen ones, one setting changed at a time."""
    grid = table5_grid(study.scale)
    tests = [roles.reference(study.scale, variant, SIZES[0]) for variant in VARIANTS]
    return grid_table(
        study,
        ("Alpha", "Normalization", "K"),
        grid,
        trained=trained_note(study, grid.runs, "50 million", [SIZES[0]]),
        references=references_note(study.scale, VARIANTS),
        **rule_notes(study, tests, [run_id(DEFAULT), *grid.runs]),
    )


# The paper's letters -> what they stand for.
CONSTRAINTS = {"C": "capacity", "O": "open route", "B": "backhaul", "L": "duration limit", "TW": "time window"}


@artifact("Constraints of the 16 problems")
def table3(study: Study) -> Table:
    """Which constraints each problem has, and whether models are trained on it."""
    published = study.published(3).set_index("key")
    # The problems that the multi-task models draw their batches from; None where the plan has no such run.
    runs = [study.runs.get(run_id(roles.multi(study.scale, method, size))) for method in MULTI_TASK for size in SIZES]
    trainings = [run.training for run in runs if run is not None and isinstance(run.training, Reinforced)]
    trained = {variant for t in trainings for stage in t.stages for variant in stage.variants} or None
    rows = []
    for variant in VARIANTS:
        letters, on = str(published.value[variant]).split("+"), SWITCHES[variant]
        here = {"C": True, "O": on.open, "B": on.backhaul, "L": on.limit, "TW": on.windows}
        cells = [Cell(_word(here[c]), _word(c in letters)) for c in CONSTRAINTS]
        is_trained = None if trained is None else _word(variant in trained)
        cells.append(Cell(is_trained, _word(published.note[variant] == "trained")))
        cells += [Cell(test_set(study.scale, variant, size).n) for size in SIZES]
        rows.append(Row((variant,), tuple(cells)))
    columns = [Column(f"has_{c.lower()}", c, format=str, group="Constraints") for c in CONSTRAINTS]
    columns.append(Column("trained", "In training", format=str))
    columns += [Column(f"customers_{size}", f"for n={size}", format=WHOLE, group="Customers here") for size in SIZES]
    return draw_table(
        study,
        ("Problem",),
        columns,
        rows,
        "As applied here, with the paper's entry in parentheses.",
        letters=", ".join(f"{letter}: {meaning}" for letter, meaning in CONSTRAINTS.items()),
    )


def _word(holds: bool) -> str:
    return "yes" if holds else "no"
