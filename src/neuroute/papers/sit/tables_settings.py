"""Tables 6 and 11 of paper `sit`: training settings, and the licences of codes and data."""

from collections.abc import Callable

from neuroute.papers.sit.roles import PROBLEMS, SIZES, run_id
from neuroute.plan.needs import artifact
from neuroute.plan.objects import Problem, Reconstruction, Run
from neuroute.problems.longest import longest_sub_path
from neuroute.rendering.columns import AS_TRAINED, plain, short
from neuroute.rendering.licences import licence_table
from neuroute.rendering.notes import notes
from neuroute.rendering.settings import changes_note, printed_values
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, Value

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
    ("Largest norm of a gradient", None, lambda run, t: t.clip if t.clip is not None else "no limit"),
    ("Greedy validations", None, lambda run, t: t.validations),
    ("Starts from", None, lambda run, t: run.start.rpartition("/")[2] if run.start else "random weights"),
)


@artifact("Training settings")
def table6(study: Study) -> Table:
    """Training settings of the ten models, and of the warm-up before them."""
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
    texts = notes(study, differences=differences, changes=changes)
    return Table(study.artifact.title, ("Setting",), tuple(columns), tuple(rows), texts, AS_TRAINED)


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
    """The licences that the paper lists, and those of what is used here."""
    return licence_table(study)
