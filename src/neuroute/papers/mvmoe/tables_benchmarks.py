"""Tables 6 to 8 of paper `mvmoe`: large instances one at a time, CVRPLIB's Set-X and Solomon's instances."""

from collections.abc import Iterator, Sequence
from typing import Any

from neuroute.papers.mvmoe import roles
from neuroute.papers.mvmoe.cells import models_note, of_each
from neuroute.papers.mvmoe.roles import GREEDY, MULTI, MULTI_TASK, SIZES, VARIANTS, X8, run_id
from neuroute.papers.mvmoe.scale import MvmoeScale
from neuroute.papers.mvmoe.table_library import Library, Solver, library_rows, notes_of
from neuroute.plan.config import Scale
from neuroute.plan.decodings import Decoding
from neuroute.plan.needs import Need, artifact
from neuroute.rendering.cells import number, printed_numbers, with_budget
from neuroute.rendering.notes import notes
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Column, Row, Table, duration

LARGER = SIZES[-1]  # customers of the instances that Tables 6 to 8's models are trained on
SET_X = Library("Set-X", "cvrplib", "CVRP", "X", rounded=True)
SOLOMON = Library("Set-Solomon", "solomon", "VRPTW", "", rounded=False)


# -- Table 6 ----------------------------------------------------------------------------------------------------------


def _table6_needs(scale: Scale) -> list[Need]:
    return [roles.construction(scale, method) for method in MULTI_TASK]


@artifact("Seconds of one large instance", needs=_table6_needs)
def table6(study: Study) -> Table:
    """Seconds to solve an instance of the construction's size, of each problem."""
    published, scale = printed_numbers(study, "table6"), study.scale
    runs = {method: run_id(roles.multi(scale, method, LARGER)) for method in MULTI_TASK}
    rows = []
    for variant in VARIANTS:
        cells, dataset = [], roles.constructed(scale, variant)
        for method, run in runs.items():
            rows_printed = published[(published.problem == variant) & (published.method == method)]
            seconds = study.value("time_s", run, dataset, MULTI)
            cells.append(Cell(seconds, number(rows_printed, roles.CONSTRUCTED, "time_s")))
        rows.append(Row((variant,), tuple(cells)))
    at = of_each(scale[MvmoeScale].construction_size, scale[MvmoeScale].construction_count)
    heads = f"n={scale[MvmoeScale].construction_size}", at, f"n={roles.CONSTRUCTED}"
    columns = [Column(f"time_{roles.MULTI_TASK[method]}_s", method, "", duration, *heads) for method in runs]
    return Table(
        study.artifact.title,
        ("Problem",),
        tuple(columns),
        tuple(rows),
        notes(study, models=models_note(study, runs), slower=_slower(rows)),
    )


def _slower(rows: Sequence[Row]) -> list[str]:
    """On how many problems the light decoder was the slower one here."""
    both = [(row.cells[1].measured, row.cells[2].measured) for row in rows]
    times = [(base, light) for base, light in both if isinstance(base, float) and isinstance(light, float)]
    slower = sum(light > base for base, light in times)
    return [f"Here MVMoE/4E-L is slower than MVMoE/4E on {slower} of {len(times)} problems."] if times else []


# -- Tables 7 and 8 ---------------------------------------------------------------------------------------------------


def _table7_needs(scale: Scale) -> Iterator[Need]:
    multi = [roles.multi(scale, method, LARGER) for method in MULTI_TASK]
    for name in (roles.single(scale, "CVRP", LARGER), *multi):
        yield roles.on_set_x(scale, run_id(name), "set_x")
    for name in (roles.single(scale, "VRPTW", LARGER), *multi):
        yield roles.on_solomon(scale, run_id(name))


@artifact("CVRPLIB's Set-X and Solomon's instances", needs=_table7_needs)
def table7(study: Study) -> Table:
    """Lengths and gaps on Set-X up to 250 customers and on Solomon's R1, RC1 and RC2."""
    solvers_of, rows = {}, list[Row]()
    for library, group in ((SET_X, "set_x"), (SOLOMON, "solomon")):
        solvers = [solver(study, "POMO", roles.single(study.scale, library.problem, LARGER), group)]
        solvers += [solver(study, name, roles.multi(study.scale, name, LARGER), group) for name in MULTI_TASK]
        solvers_of[library] = solvers
        rows += library_rows(study, library, solvers)
    models = {f"POMO ({library.problem})": of[0].run for library, of in solvers_of.items()}
    models |= {name: run_id(roles.multi(study.scale, name, LARGER)) for name in MULTI_TASK}
    return Table(
        study.artifact.title,
        ("Set", "Instance"),
        _columns(["POMO", *MULTI_TASK]),
        tuple(rows),
        notes(
            study,
            instances=(note for library, solvers in solvers_of.items() for note in notes_of(study, library, solvers)),
            models=models_note(study, models),
        ),
    )


def _table8_needs(scale: Scale) -> Iterator[Need]:
    for name in (roles.single(scale, "CVRP", LARGER), *(roles.multi(scale, method, LARGER) for method in MULTI_TASK)):
        yield roles.on_set_x(scale, run_id(name), "set_x_large", roles.on_large(scale))
    for run in roles.lehd(scale).values():
        yield roles.on_set_x(scale, run, "set_x_large", roles.GREEDY, roles.rrc(scale))


@artifact("Larger instances of Set-X", needs=_table8_needs)
def table8(study: Study) -> Table:
    """Lengths and gaps on Set-X above 500 customers, also by LEHD with and without experts."""
    scale, rrc = study.scale, roles.rrc(study.scale)
    models = {"POMO": roles.single(scale, "CVRP", LARGER)}
    models |= {name: roles.multi(scale, name, LARGER) for name in MULTI_TASK}
    how = roles.on_large(scale)
    solvers = [solver(study, name, run, "set_x_large", how) for name, run in models.items()]
    lehd = roles.lehd(scale)
    for decoding, words in ((GREEDY, "greedy"), (rrc, "RRC")):
        for name, run in lehd.items():
            label = name if words == "greedy" else with_budget(f"{name} RRC100", 100, rrc.iterations)
            row = {"method": name, "decoding": words}
            solvers.append(Solver(label, row, run, roles.group(run, "set_x_large"), decoding))
    return Table(
        study.artifact.title,
        ("Set", "Instance"),
        _columns([solver.label for solver in solvers]),
        tuple(library_rows(study, SET_X, solvers)),
        notes(
            study,
            instances=notes_of(study, SET_X, solvers),
            models=models_note(study, {s.label: s.run for s in solvers[:4]} | lehd),
            epochs=_epochs(study, lehd),
            how=HOW if how == X8 else f"Not so here: each instance is solved without images. In the paper: {HOW}",
        ),
    )


HOW = (
    "POMO, POMO-MTL and MVMoE take the best of one solution from each customer of each of eight images, as the paper "
    "says of all its neural solvers (Section 5). As in the published code they see the coordinates of Set-X divided by "
    "1,000, and those of Solomon, with the times, divided by the larger of the largest coordinate and a third of the "
    "depot's closing time."
)


def solver(study: Study, name: str, run: str, group: str, decoding: Decoding = X8) -> Solver:
    return Solver(name, {"method": name}, run_id(run), group, decoding)


def _columns(labels: Sequence[str]) -> tuple[Column, ...]:
    """The best length known, and length and gap of each method."""
    out = [Column("best_known", "Best known", "", _length)]
    for label in labels:
        key = "".join(c if c.isalnum() else "_" for c in label.partition(",")[0].lower())
        at = "the instance of the row"
        out += [
            Column(f"obj_{key}", "Obj.", "", _length, label, at),
            Column(f"gap_{key}_pct", "Gap", "%", group=label, at=at),
        ]
    return tuple(out)


def _length(value: Any) -> str:
    """27,591 and 1,249.0: integers as Set-X has them, others with the one decimal that is printed of Solomon's."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _epochs(study: Study, lehd: dict[str, str]) -> str:
    """How long LEHD is trained, against the paper's 20 epochs."""
    of = sorted({study.runs[run].training.epochs for run in lehd.values() if run in study.runs})
    plural = "s" * (of != [1])
    return f"LEHD is trained for {' or '.join(map(str, of))} epoch{plural} here, for 20 in the paper." if of else ""
