"""Tables 1 and 2 and Figure 1: every rival on the size that it is trained on, and the study of equal budgets."""

from collections.abc import Iterator
from typing import Any

from neuroute.core.lazy import pd
from neuroute.pipeline.papers.rivals.paper import (
    BUDGETS,
    RivalsScale,
    StudyBlock,
    decodings,
    problems_of,
    rivals,
    studied,
    tests,
)
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import Log, Need, Solved, artifact, tested
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import RANGES, Solvers, gap_cell, solver_name, summary_cell
from neuroute.pipeline.rendering.columns import WHOLE, described, joined
from neuroute.pipeline.rendering.settings import drawn_instances
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MARKERS, MEASURED, Drawing, drawable, hidden_note, new_figure
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, duration, fixed
from neuroute.specs.objects import Decoding

STUDIED = ("Budget", "Problem", "Network", "Decoding")
ONE = "One training of each network (one seed), where no note names more."


def _table1_needs(scale: Scale) -> Iterator[Need]:
    for each in rivals(Config(), scale):
        yield from tested(each.run.id, each.test, each.decoding)
        yield Log(each.run.id, all_seeds=True)
        yield Solved(each.test)
        yield Solved(each.test.model_copy(update={"solver": "nearest"}))


@artifact("Rival systems on the size that they are trained on", needs=_table1_needs)
def table1(study: Study) -> Table:
    """Parameters, training and gap of every network, beside the gap of nearest neighbour."""
    columns = (
        Column("parameters", "Parameters", "", WHOLE),
        Column("updates", "Updates", "", WHOLE),
        Column("training_s", "Training", "", duration),
        Column("first_validation_pct", "First validation", "%", fixed(2)),
        Column("last_validation_pct", "Last validation", "%", fixed(2)),
        Column("gap_pct", "Gap", "%", fixed(2)),
        Column("nearest_pct", "Nearest neighbour", "%", fixed(2)),
    )
    solvers, rows = Solvers.of(study), list[Row]()
    for each in rivals(Config(), study.scale):
        if each.run.id not in study.runs:
            continue
        run, dataset = each.run.id, each.test.dataset
        log = study.log(run, "validation")
        # A test set may be the first instances of a larger one.
        lengths, best = (solvers.lengths(each.test, solver) for solver in ("nearest", each.test.solver))
        cells = (
            Cell(study.value("parameters", run, dataset, each.decoding)),
            summary_cell(study, run, "updates"),
            summary_cell(study, run, "wall_time_s"),
            *(Cell(float(log.gap_pct.iloc[place]) if len(log) else None) for place in (0, -1)),
            gap_cell(study, run, dataset, None, each.decoding),
            Cell(None if lengths is None or best is None else 100 * float(lengths.mean() / best.mean() - 1)),
        )
        rows.append(Row((each.system, each.run.name, described(dataset), each.decoding.name), cells))
    notes = (
        f"{ONE} {RANGES}",
        "Decoded as its authors do: `multistart-x8` takes the best of one solution from each start of each of the "
        "eight symmetric images, `decoders-beamB` the best of B beams of each decoder. Validations are the first "
        "training's own gaps, of networks of many starts that of all starts; the first one is before the first "
        "batch, or early in the training.",
    )
    return Table(study.artifact.title, ("System", "Run", "Test set", "Decoding"), columns, tuple(rows), notes)


def _study_needs(scale: Scale) -> Iterator[Need]:
    s = scale[RivalsScale].study
    if s is None:
        return
    for each in studied(s):
        yield from tested(each.run, tests(s, each.problem).values(), *decodings(s, each.name))
        yield Log(each.run, all_seeds=True)


@artifact("Equal budgets: networks trained alike, on larger instances", needs=_study_needs)
def table2(study: Study) -> Table:
    """Gaps by size of networks that have seen the same instances, or have learnt for as long."""
    s = study_of(study.scale)
    columns = [
        Column("parameters", "Parameters", "", WHOLE),
        Column("instances", "Instances", "", WHOLE),
        Column("training_s", "Training", "s", fixed(0)),
    ]
    for n in s.test_counts:
        at = joined(described(tests(s, problem)[n].dataset) for problem in problems_of(s))
        columns.append(Column(f"gap_{n}_pct", f"n={n}", "%", fixed(2), "Gap", at))
    rows = []
    for each in studied(s):
        if each.run not in study.runs:
            continue
        for decoding in decodings(s, each.name):
            sets = [labels.dataset for labels in tests(s, each.problem).values()]
            cells = (
                Cell(study.value("parameters", each.run, sets[0], decoding)),
                Cell(drawn_instances(study.runs[each.run])),
                summary_cell(study, each.run, "processor_time_s"),
                *(gap_cell(study, each.run, dataset, None, decoding) for dataset in sets),
            )
            rows.append(Row((each.budget, each.problem.upper(), each.name, decoding.name), cells))
    return Table(study.artifact.title, STUDIED, tuple(columns), tuple(rows), notes_of(study))


def study_of(scale: Scale) -> StudyBlock:
    """The study of a scale that shows it."""
    s = scale[RivalsScale].study
    assert s is not None
    return s


def notes_of(study: Study) -> tuple[str, ...]:
    """What all of the study's artifacts have in common."""
    s = study_of(study.scale)
    solvers = joined(f"{p.upper()} by {solver_name(s.references[p])}" for p in problems_of(s))
    return (
        f"All networks of a problem are trained by REINFORCE on instances of n={s.nodes}, in batches of as many, at "
        "the same rate where no note says else: on the same ones, or on more, for about the processor time that the "
        f"slowest takes. {ONE} Training is processor time on one thread, validations included.",
        " ".join(network.note for network in s.networks.values() if network.note),
        f"References: {solvers}. {RANGES}",
    )


COLUMNS = [
    "side", "budget", "problem", "network", "decoding", "run", "n", "instances", "gap_pct", "low_pct", "high_pct",
]  # fmt: skip
COLOURS = (style.GREY, style.RAMPS["blue"][2], style.GREEN, style.RAMPS["orange"][1])
NOUNS = {"tsp": "Nodes", "cvrp": "Customers"}


@artifact("Gap against size, of networks with equal budgets", needs=_study_needs)
def figure1(study: Study) -> Drawing:
    s = study_of(study.scale)
    rows, problems = _rows(study, s), problems_of(s)
    figure = new_figure(style.TWO_COLUMNS, 4.6)
    best = [row for row in rows if row["decoding"] != Decoding().name]
    panels = figure.subplots(len(BUDGETS), len(problems), sharex="col", sharey=True, squeeze=False)
    for budget, line in zip(BUDGETS, panels, strict=True):
        for problem, axes in zip(problems, line, strict=True):
            rows_of_panel = [row for row in best if (row["budget"], row["problem"]) == (budget, problem)]
            axes.set_title(f"{problem.upper()}, {budget}")
            if not [row for row in rows_of_panel if row["gap_pct"] == drawable(row["gap_pct"])]:
                style.empty_axes(axes, style.NOT_MEASURED)
                continue
            _draw(axes, list(s.networks), rows_of_panel, best)
            axes.set_xlabel(NOUNS[problem] if budget == BUDGETS[-1] else "")
            axes.set_ylabel("Optimality gap (%)" if problem == problems[0] else "")
    if best:
        handles = next(axes for axes in panels.flat if axes.lines).get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=len(s.networks))
    notes = ("The best of each network's solutions; CSV: of one, too.", *notes_of(study))
    notes += tuple(hidden_note(row["gap_pct"] for row in rows))
    alt = "Optimality gap against the number of nodes, one line for each network, by budget and problem."
    return Drawing(figure, pd.DataFrame(rows, columns=COLUMNS), notes, alt)


def _rows(study: Study, s: StudyBlock) -> list[dict[str, Any]]:
    rows = []
    for each in studied(s):
        for n, labels in tests(s, each.problem).items():
            for decoding in decodings(s, each.name):
                cell = gap_cell(study, each.run, labels.dataset, None, decoding)
                if not isinstance(cell.measured, float):
                    continue
                what = (MEASURED, *each[:3], decoding.name, each.run, n, labels.dataset.count)
                rows.append(dict(zip(COLUMNS, (*what, cell.measured, cell.low, cell.high), strict=True)))
    return rows


def _draw(axes: Any, names: list[str], rows: list[dict[str, Any]], every: list[dict[str, Any]]) -> None:
    """names: of all networks; rows: of this panel; every: of all panels, which have one scale."""
    for name, colour, marker in zip(names, COLOURS, MARKERS, strict=False):
        points = [row for row in rows if row["network"] == name]
        if not points:
            continue
        x, y = [row["n"] for row in points], [drawable(row["gap_pct"]) for row in points]
        axes.plot(x, y, color=colour, marker=marker, markersize=4, markeredgecolor="white", label=name)
        for row in points:
            if row["low_pct"] is not None:
                axes.plot([row["n"]] * 2, [drawable(row["low_pct"]), row["high_pct"]], color=colour, linewidth=0.9)
    sizes = sorted({row["n"] for row in rows})
    style.log_axis(axes, "x", sizes)
    style.log_axis(axes, "y", [v for row in every if (v := drawable(row["gap_pct"])) == v])
    axes.set_xticks(sizes, [str(n) for n in sizes], minor=False)
    axes.minorticks_off()
