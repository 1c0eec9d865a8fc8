"""Tables 5, 6, 7 and 11 of paper `sit`: the longest partial solution, what PRC starts from, settings, licences."""

from collections.abc import Callable

from neuroute.pipeline.papers.sit import roles
from neuroute.pipeline.papers.sit.baselines import in_one_go, models_note, prc_words, reference_note
from neuroute.pipeline.papers.sit.roles import INITIAL, LONGEST, PROBLEMS, SIZES, run_id
from neuroute.pipeline.papers.sit.scale import SitScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering.cells import with_budget
from neuroute.pipeline.rendering.columns import AS_TRAINED, described, plain, short
from neuroute.pipeline.rendering.grid import GAP, LENGTH, SECONDS_EACH, Grid, Method, Quantity, grid_table, needs_of
from neuroute.pipeline.rendering.notes import draw_table
from neuroute.pipeline.rendering.settings import changes_note, licence_table, printed_values
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, Value, duration, fixed
from neuroute.problems.longest import longest_sub_path
from neuroute.specs.objects import Problem, Reconstruction, Run, Start

# Printed name of an initial solution -> its key in the printed numbers, and what makes it here if not insertion.
STARTS: dict[str, tuple[str, Start | None]] = {
    "Model's greedy": ("model_greedy", "greedy"),
    "Nearest neighbour": ("nearest_neighbor", "nearest"),
    "Random insertion": ("random_insertion", None),
}


def table5_grid(scale: Scale, label: Callable[[int], str] = str) -> Grid:
    """Show models trained with three l_max, in columns for those of inference; label: of one in training."""
    test = roles.reference(scale, "tsp", 10_000)
    quantities = []
    for used in LONGEST:
        stops, where = scale[SitScale].longest[used], {"lmax_inference": used}
        decoding = roles.prc_of(scale, "tsp", 100).model_copy(update={"longest": stops})
        group, at = f"inference {with_budget(f'{used:,}', used, stops)}", described(test.dataset)
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
        methods = []
        for label, (key, start) in STARTS.items():
            decoding = roles.prc_of(scale, problem, 100).model_copy(update={"start": start or INITIAL[problem]})
            methods.append(Method(label, {"init": key}, runs=runs, decoding=decoding))
        name = problem.upper()
        grids.append(Grid(methods, quantities, head=(name,), where={"problem": name}))
    return grids


@artifact("What PRC starts from", needs=in_one_go(needs_of(table7_grids)))
def table7(study: Study) -> Table:
    """Mean lengths after PRC100 from three initial solutions, both problems, all sizes."""
    grids = table7_grids(study.scale)
    # In how many groups random insertion leads to the shortest solutions, here and in print.
    rows = [row for grid in grids for row in grid.rows(study)]
    wins_of = {}
    for name in ("measured", "published"):
        wins = total = 0
        for block in (rows[:3], rows[3:]):
            for cells in zip(*(row.cells for row in block), strict=True):
                values = [getattr(cell, name) for cell in cells]
                total += None not in values
                wins += None not in values and values[2] == min(values)
        wins_of[name] = f"{wins} of {total}"
    return grid_table(
        study,
        ("Problem", "Initial solution"),
        grids,
        prc_words=prc_words(study),
        wins=wins_of,
        models=models_note(study, PROBLEMS),
    )


UPDATES = {"sub-path": "one per stop", "decision": "one per sub-path", "summed": "one per sub-path, summed"}
# Heading, key of the printed value, and the value of a run here.
ROWS: tuple[tuple[str, str | None, Callable[[Run, Reconstruction], Value]], ...] = (
    ("Dataset size", "dataset_size", lambda run, t: t.samples),
    ("Self-improved iterations", "self_improved_iteration", lambda run, t: t.rounds),
    ("Training epochs", "training_epoch", lambda run, t: t.epochs_per_round),
    ("Training batch size", "training_batch_size", lambda run, t: t.batch_size),
    ("Reconstruction iterations", "reconstruction_iteration", lambda run, t: t.reconstructions),
    (
        "Reconstruction batch size",
        "reconstruction_batch_size",
        lambda run, t: "by memory" if t.reconstructions else None,
    ),
    ("Learning rate", "learning_rate", lambda run, t: t.learning_rate),
    ("Decay per training epoch", "decay_per_training_epoch", lambda run, t: t.decay_gamma),
    (
        "Maximum length of partial solutions",
        "partial_solutions_maximum_length",
        lambda run, t: longest_sub_path(t.longest, run.n),
    ),
    # What the paper's table does not have.
    ("Nodes of an instance", None, lambda run, t: run.n),
    ("Epochs whose decay the rate has behind it", None, lambda run, t: t.epochs_before),
    ("Initial solutions", None, lambda run, t: "the model's, greedy" if t.initial == "greedy" else _solvers(run)),
    ("Updates", None, lambda run, t: UPDATES[t.step]),
    ("Largest norm of a gradient", None, lambda run, t: t.clip or "no limit"),
    ("Greedy validations", None, lambda run, t: t.validations),
    ("Starts from", None, lambda run, t: run.start.rpartition("/")[2] if run.start else "random weights"),
)


@artifact("Training settings")
def table6(study: Study) -> Table:
    published = printed_values(study)
    names = {
        problem: {"warm_up": "Warm-up"} | {short(size): short(size).upper() for size in SIZES} for problem in PROBLEMS
    }
    models = [(problem, name, heading) for problem, of in names.items() for name, heading in of.items()]
    columns = [Column(f"{p}_{name}", heading, format=plain, group=p.upper()) for p, name, heading in models]
    runs = [study.runs.get(run_id(f"warm_{p}" if name == "warm_up" else f"{p}_{name}")) for p, name, _ in models]
    rows = []
    for label, key, value in ROWS:
        cells = []
        for (problem, _, heading), run in zip(models, runs, strict=True):
            here = value(run, run.training) if run and isinstance(run.training, Reconstruction) else None
            cells.append(Cell(here, published.get(f"{problem.upper()}{heading}.{key}")))
        rows.append(Row((label,), tuple(cells)))
    differences, changes = [_differences(study, problem) for problem in PROBLEMS], changes_note(study, runs)
    return draw_table(study, ("Setting",), columns, rows, AS_TRAINED, differences=differences, changes=changes)


def _solvers(run: Run) -> str:
    return ", ".join(dict.fromkeys(labels.solver for labels in run.data))


def _differences(study: Study, problem: Problem) -> str:
    """Where a training here takes the published code's way instead of the paper's."""
    texts = []
    for size in SIZES:
        run = study.runs.get(run_id(f"{problem}_{short(size)}"))
        if run and isinstance(run.training, Reconstruction):
            t = run.training
            options = {"starts: batch": t.starts == "batch", "rule: from-the-end": t.rule == "from-the-end"}
            options["most_blocks"] = t.most_blocks is not None
            texts += [f"{name} at {short(size).upper()}" for name, used in options.items() if used]
    return f"{problem.upper()}, as in the published code: {', '.join(texts)}." if texts else ""


@artifact("Licences of the codes and data")
def table11(study: Study) -> Table:
    return licence_table(study)
