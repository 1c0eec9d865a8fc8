"""Figure 1: what the networks of the study lose on instances that are larger than those they were trained on."""

from __future__ import annotations

from typing import Any

from neuroute.core.lazy import pd
from neuroute.papers.rivals.scale import StudyBlock
from neuroute.papers.rivals.study import BUDGETS, decodings, problems_of, studied, tests
from neuroute.papers.rivals.tables import notes_of, study_of, table2
from neuroute.plan.decoding_names import name_of
from neuroute.plan.needs import artifact
from neuroute.plan.objects import Decoding
from neuroute.rendering import style
from neuroute.rendering.cells import gap_cell
from neuroute.rendering.plots import bounds, drawable, hidden_note
from neuroute.rendering.study import Study
from neuroute.rendering.style import MARKERS, MEASURED, Drawing, new_figure

COLUMNS = [
    "side", "budget", "problem", "network", "decoding", "run", "n", "instances", "gap_pct", "low_pct", "high_pct",
]  # fmt: skip
COLOURS = (style.GREY, style.RAMPS["blue"][2], style.GREEN, style.RAMPS["orange"][1])
NOUNS = {"tsp": "Nodes", "cvrp": "Customers"}


@artifact("Gap against size, of networks with equal budgets", needs=table2.__dict__["declaration"].needs)
def figure1(study: Study) -> Drawing:
    """Gaps of each network's best solutions by size: a row of panels for each budget, a column for each problem."""
    s = study_of(study.scale)
    rows, problems = _rows(study, s), problems_of(s)
    figure = new_figure(style.TWO_COLUMNS, 4.6)
    best = [row for row in rows if row["decoding"] != name_of(Decoding())]
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
                low, high = bounds(cell) or (None, None)
                what = (*each[:3], name_of(decoding), each.run, n, labels.dataset.count, cell.measured, low, high)
                rows.append(dict(zip(COLUMNS, (MEASURED, *what), strict=True)))
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
