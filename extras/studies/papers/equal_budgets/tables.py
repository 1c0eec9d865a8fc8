"""Table 1 and Figure 1: gaps by size of networks that have seen the same instances, or have learnt for as long."""

from collections.abc import Iterator
from typing import Any

from neuroute.pipeline.papers.equal_budgets.paper import BUDGETS, KINDS, EqualBudgetsScale, entries

from neuroute.core.lazy import pd
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Log, Need, artifact, tested
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import RANGES, gap_cell, solver_name, summary_cell
from neuroute.pipeline.rendering.settings import drawn_instances
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MARKERS, MEASURED, Drawing, drawable, hidden_note, new_figure
from neuroute.pipeline.rendering.table import WHOLE, Cell, Column, Row, Table, described, fixed, joined
from neuroute.specs.objects import Decoding

COLUMNS = [
    "side", "budget", "problem", "network", "decoding", "run", "n", "instances", "gap_pct", "low_pct", "high_pct",
]  # fmt: skip
COLOURS = (style.GREY, style.RAMPS["blue"][2], style.GREEN, style.RAMPS["orange"][1])
NOUNS = {"tsp": "Nodes", "cvrp": "Customers"}


def _needs(scale: Scale) -> Iterator[Need]:
    s = scale[EqualBudgetsScale]
    for each in entries(s):
        yield from tested(each.run, s.tests(each.problem).values(), *s.decodings(each.name))
        yield Log(each.run, all_seeds=True)


@artifact("Equal budgets: networks trained alike, on larger instances", needs=_needs)
def table1(study: Study) -> Table:
    s = study.scale[EqualBudgetsScale]
    columns = [
        Column("parameters", "Parameters", "", WHOLE),
        Column("instances", "Instances", "", WHOLE),
        Column("training_s", "Training", "s", fixed(0)),
    ]
    for n in s.test_counts:
        at = joined(described(s.tests(problem)[n].dataset) for problem in s.training)
        columns.append(Column(f"gap_{n}_pct", f"n={n}", "%", fixed(2), "Gap", at))
    rows = []
    for each in entries(s):
        sets = [labels.dataset for labels in s.tests(each.problem).values()]
        for decoding in s.decodings(each.name):
            cells = (
                Cell(study.value("parameters", each.run, sets[0], decoding)),
                Cell(drawn_instances(study.runs[each.run])),
                summary_cell(study, each.run, "processor_time_s"),
                *(gap_cell(study, each.run, dataset, None, decoding) for dataset in sets),
            )
            rows.append(Row((each.budget, each.problem.upper(), each.name, decoding.name), cells))
    labels = ("Budget", "Problem", "Network", "Decoding")
    return Table(study.artifact.title, labels, tuple(columns), tuple(rows), _notes(s))


def _notes(s: EqualBudgetsScale) -> tuple[str, ...]:
    solvers = joined(f"{p.upper()} by {solver_name(s.references[p])}" for p in s.training)
    return (
        f"All networks of a problem are trained by REINFORCE on instances of n={s.nodes}, in batches of as many, at "
        "the same rate where no note says else: on the same ones, or on more, for about the processor time that the "
        "slowest takes. One training of each network (one seed), where no note names more. Training is processor "
        "time on one thread, validations included.",
        "ICAM is without its stages of varying sizes and without elites. ELG's advantages are scaled, as published; "
        "its local policy takes part from the first batch, not from 6/7 of the training on. INViT has two views, and "
        f"a rate of its own; it learns from one solution of each of {s.invit.images} images of an instance, the "
        "others from one of each start.",
        f"References: {solvers}. {RANGES}",
    )


@artifact("Gap against size, of networks with equal budgets", needs=_needs)
def figure1(study: Study) -> Drawing:
    s = study.scale[EqualBudgetsScale]
    rows, problems = list(_points(study, s)), list(s.training)
    figure = new_figure(style.TWO_COLUMNS, 4.6)
    best = [row for row in rows if row["decoding"] != Decoding().name]
    panels = figure.subplots(len(BUDGETS), len(problems), sharex="col", sharey=True, squeeze=False)
    for budget, line in zip(BUDGETS, panels, strict=True):
        for problem, axes in zip(problems, line, strict=True):
            of_panel = [row for row in best if (row["budget"], row["problem"]) == (budget, problem)]
            axes.set_title(f"{problem.upper()}, {budget}")
            if not [row for row in of_panel if row["gap_pct"] == drawable(row["gap_pct"])]:
                style.empty_axes(axes, style.NOT_MEASURED)
                continue
            _draw(axes, of_panel, best)
            axes.set_xlabel(NOUNS[problem] if budget == BUDGETS[-1] else "")
            axes.set_ylabel("Optimality gap (%)" if problem == problems[0] else "")
    if best:
        handles = next(axes for axes in panels.flat if axes.lines).get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=len(KINDS))
    notes = ("The best of each network's solutions; CSV: of one, too.", *_notes(s))
    notes += tuple(hidden_note(row["gap_pct"] for row in rows))
    alt = "Optimality gap against the number of nodes, one line for each network, by budget and problem."
    return Drawing(figure, pd.DataFrame(rows, columns=COLUMNS), notes, alt)


def _points(study: Study, s: EqualBudgetsScale) -> Iterator[dict[str, Any]]:
    for each in entries(s):
        for n, labels in s.tests(each.problem).items():
            for decoding in s.decodings(each.name):
                cell = gap_cell(study, each.run, labels.dataset, None, decoding)
                if isinstance(cell.measured, float):
                    about = (MEASURED, *each, decoding.name, each.run, n, labels.dataset.count)
                    yield dict(zip(COLUMNS, (*about, cell.measured, cell.low, cell.high), strict=True))


def _draw(axes: Any, rows: list[dict[str, Any]], every: list[dict[str, Any]]) -> None:
    """rows: of this panel; every: of all panels, which have one scale."""
    for name, colour, marker in zip(KINDS, COLOURS, MARKERS, strict=False):
        points = [row for row in rows if row["network"] == name]
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
