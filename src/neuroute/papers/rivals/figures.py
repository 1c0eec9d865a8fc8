"""Figure 1: what the networks of the study lose on instances that are larger than those they were trained on."""

from __future__ import annotations

from typing import Any

from neuroute.core.lazy import pd
from neuroute.papers.rivals.study import DECODINGS, KINDS, PROBLEMS, run_id, tests
from neuroute.papers.rivals.tables import notes_of, table2
from neuroute.plan.needs import artifact
from neuroute.rendering import style
from neuroute.rendering.cells import gap_cell
from neuroute.rendering.plots import bounds, drawable, hidden_note
from neuroute.rendering.study import Study
from neuroute.rendering.style import MARKERS, MEASURED, Drawing, new_figure

COLUMNS = ["side", "problem", "network", "decoding", "run", "n", "instances", "gap_pct", "low_pct", "high_pct"]


@artifact("Gap against size, of networks with equal budgets", needs=table2.__dict__["declaration"].needs)
def figure1(study: Study) -> Drawing:
    """Gaps of the best of all starts by size, of the TSP and of the CVRP."""
    rows = _rows(study)
    figure = new_figure(style.TWO_COLUMNS, 2.6)
    for axes, problem in zip(figure.subplots(1, len(PROBLEMS)), PROBLEMS, strict=True):
        shown = [row for row in rows if row["problem"] == problem]
        axes.set_title(f"{problem.upper()}, trained at n={_trained(study)}" if shown else problem.upper())
        if not [row for row in shown if row["gap_pct"] == drawable(row["gap_pct"])]:
            style.empty_axes(axes, "nothing was measured")
            continue
        _draw(axes, shown)
    notes = ("Best of all starts; CSV: of one start too.", *notes_of(study), *hidden_note(r["gap_pct"] for r in rows))
    alt = "Optimality gap against the number of nodes, one line for each network, for the TSP and the CVRP."
    return Drawing(figure, pd.DataFrame(rows, columns=COLUMNS), notes, alt)


def _trained(study: Study) -> int:
    return next(run.n for run in study.runs.values() if run.role.get("study"))


def _rows(study: Study) -> list[dict[str, Any]]:
    rows = []
    for problem in PROBLEMS:
        for name in KINDS:
            for n, labels in tests(study.scale, problem).items():
                for words, decoding in DECODINGS.items():
                    run = run_id(name, problem)
                    cell = gap_cell(study, run, labels.dataset, None, decoding)
                    if not isinstance(cell.measured, float):
                        continue
                    low, high = bounds(cell) or (None, None)
                    what = (MEASURED, problem, name, words, run, n, labels.dataset.count, cell.measured, low, high)
                    rows.append(dict(zip(COLUMNS, what, strict=True)))
    return rows


def _draw(axes: Any, rows: list[dict[str, Any]]) -> None:
    colours = dict(zip(KINDS, (style.GREY, style.RAMPS["blue"][2], style.GREEN), strict=True))
    for (name, colour), marker in zip(colours.items(), MARKERS, strict=False):
        own = [row for row in rows if row["network"] == name and row["decoding"] == "all starts"]
        if not own:
            continue
        x, y = [row["n"] for row in own], [drawable(row["gap_pct"]) for row in own]
        axes.plot(x, y, color=colour, marker=marker, markersize=4, markeredgecolor="white", label=name)
        for row in own:
            if row["low_pct"] is not None:
                axes.plot([row["n"]] * 2, [drawable(row["low_pct"]), row["high_pct"]], color=colour, linewidth=0.9)
    sizes = sorted({row["n"] for row in rows})
    style.log_axis(axes, "x", sizes)
    style.log_axis(axes, "y", [v for row in rows if (v := drawable(row["gap_pct"])) == v])
    axes.set_xticks(sizes, [str(n) for n in sizes], minor=False)
    axes.minorticks_off()
    axes.set_xlabel("Nodes" if rows[0]["problem"] == "tsp" else "Customers")
    axes.set_ylabel("Optimality gap (%)")
    axes.legend()
