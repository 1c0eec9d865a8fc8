"""Table 21 and Figure 17, our own: the readings of a step side by side, and what they make of the printed trainings."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from neuroute.accounting.flops import lengths_of, trained_sample
from neuroute.papers.scaling import roles
from neuroute.papers.scaling.cells import DecoderOnly
from neuroute.papers.scaling.curves import HERE, PAPER, frame
from neuroute.papers.scaling.roles import BUDGETS, DEEPEST, GRID, READINGS, Budget, Reading, Shape
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.papers.scaling.series import printed_values
from neuroute.plan.config import Scale
from neuroute.plan.needs import Log, Need, artifact, tested
from neuroute.rendering import plots, style
from neuroute.rendering.cells import above_over_seeds, interval_cell, resampled_over_seeds, summary_over_seeds
from neuroute.rendering.columns import WHOLE, described
from neuroute.rendering.grid import GAP, GREEDY
from neuroute.rendering.notes import draw_table, notes
from neuroute.rendering.study import Study
from neuroute.rendering.style import Drawing
from neuroute.rendering.table import Cell, Column, Row, Table, fixed
from neuroute.specs.trainings import Step

COLOURS = dict(zip(READINGS, (style.RAMPS["blue"][2], style.RAMPS["orange"][1], style.GREEN), strict=True))
MARKER_OF: dict[Budget, str] = dict(zip(BUDGETS, style.MARKERS, strict=False))
IN_PRINT = "x"  # the marker of the paper's
WORDS: dict[Step, str] = {
    "sub-path": "each decision (sub-path)",
    "decision": "one decision",
    "summed": "all decisions, summed",
}
QUANTITIES = {"samples": "Samples seen", "updates": "Updates", "processor_s": "Processor time (s)"}
SUMMARY = {"samples": "samples", "updates": "updates", "processor_s": "processor_time_s"}  # in run.json
PRINTED = ((3, 6e6), (12, 6e7))  # tables with the gap of the smallest model, and the samples that it has seen by then
NODES = 100  # of the paper's training instances


def steps_needs(scale: Scale) -> Iterator[Need]:
    for each in roles.readings(scale):
        yield Log(each.run, all_seeds=True)
        yield from tested(each.run, roles.tests(scale))


@artifact("Our own: what a step is", needs=steps_needs)
def table21(study: Study) -> Table:
    """Show the gaps of each reading with equal passes and with equal time."""
    tests = roles.tests(study.scale)
    at = described(tests[0].dataset)
    columns = (
        Column("samples_seen", "Samples seen", "", WHOLE),
        Column("updates", "Updates", "", WHOLE),
        Column("processor_s", "Processor time", "s", fixed(0)),
        *(
            Column(f"gap_{t.dataset.n}_pct", f"TSP{t.dataset.n}", "%", fixed(2), "Gap", described(t.dataset))
            for t in tests
        ),
        Column("above_sub_path", "Above sub-path", "points", fixed(2), at=at),
    )
    rows = []
    for each in roles.readings(study.scale):
        cells = [Cell(mean) for mean in summary_over_seeds(study, each.run, SUMMARY).values()]
        cells += [GAP.of_model(study, each.run, test.dataset, None, GREEDY) for test in tests]
        base = Reading("same passes" if each.budget == "larger rate" else each.budget, READINGS[0]).run
        above = Cell() if each.run == base else above_over_seeds(study, each.run, base, tests[0].dataset)
        rows.append(Row((each.budget, each.step), (*cells, above)))
    s = study.scale[ScalingScale].steps
    assert s is not None  # else no scale's plan has this table
    return draw_table(study, ("Budget", "Reading"), columns, rows, steps=s)


@artifact("Our own: what a step is", needs=steps_needs, printed_files=("table3", "table9", "table12"))
def figure17(study: Study) -> Drawing:
    """Draw where trainings end over samples, updates and processor time; and the paper's two budgets."""
    rows = _rows(study)
    figure = style.new_figure(height=3.2)
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (key, label) in zip(panels, QUANTITIES.items(), strict=True):
        rows_of_panel = [row for row in rows if row.get(key, 0) > 0]
        for step in READINGS:
            _draw(axes, key, [row for row in rows_of_panel if row["reading"] == step], step)
        frame(
            axes,
            [(row[key], row["gap_pct"]) for row in rows_of_panel],
            label,
            "Optimality gap (%)" if key == "samples" else "",
        )
    style.log_axis(panels[0], "y", [row["gap_pct"] for row in rows])  # of all panels: the paper is not in the last one
    handles = [plots.mark(WORDS[step], "o", COLOURS[step]) for step in READINGS]
    handles += [plots.mark(budget, marker, style.GREY) for budget, marker in MARKER_OF.items()]
    handles.append(plots.mark("paper's (6, 128)", IN_PRINT, style.INK))
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    hidden = plots.hidden_note(row["gap_pct"] for row in rows if row["side"] == HERE)
    texts = notes(study, decisions=_decisions(), hidden=hidden)
    alt = "Gap over samples, updates and processor time of the three readings of a step, and the paper's two budgets."
    return Drawing(figure, rows, texts, alt, _implied(study))


def _rows(study: Study) -> list[dict[str, Any]]:
    test, rows = roles.tests(study.scale)[0], list[dict[str, Any]]()
    for each in roles.readings(study.scale):
        cell = GAP.of_model(study, each.run, test.dataset, None, GREEDY)
        if isinstance(cell.measured, float):
            about = {"side": HERE, "reading": each.step, "budget": each.budget, "run": each.run}
            gaps = {"gap_pct": cell.measured, "low_pct": cell.low, "high_pct": cell.high}
            rows.append(about | summary_over_seeds(study, each.run, SUMMARY) | gaps)
    for table, samples in PRINTED:
        gap = printed_values(study, table, metric="gap_pct", n=NODES)[GRID[0]]
        for step in READINGS:
            updates = samples / _setting(study, "batch_size") * _updates(step)
            rows.append(
                {"side": PAPER, "reading": step, "budget": f"Table {table}", "samples": samples, "updates": updates}
                | {"gap_pct": gap}
            )
    return rows


def _draw(axes: Any, key: str, rows: list[dict[str, Any]], step: Step) -> None:
    """Join the trainings of a reading at its usual rate, and the paper's."""
    for side in (HERE, PAPER):
        joined = [row for row in rows if row["side"] == side and row["budget"] != "larger rate"]
        joined.sort(key=lambda row: float(row[key]))
        look: dict[str, Any] = {"color": COLOURS[step], "linewidth": 0.9, "linestyle": "-" if side == HERE else ":"}
        axes.plot([row[key] for row in joined], [plots.drawable(row["gap_pct"]) for row in joined], **look)
    for row in rows:
        marker, edge = MARKER_OF.get(row["budget"], IN_PRINT), "white" if row["side"] == HERE else COLOURS[step]
        look = {"color": COLOURS[step], "marker": marker, "markersize": 6, "markeredgecolor": edge}
        axes.plot(row[key], plots.drawable(row["gap_pct"]), linestyle="none", **look)
        if row.get("low_pct") is not None:
            axes.plot([row[key]] * 2, [row["low_pct"], row["high_pct"]], color=COLOURS[step], linewidth=0.9)


def _decisions() -> float:
    """Decisions of a sub-path that are trained, on average; the last one has no choice."""
    return float(np.mean([stops - 3 for stops in lengths_of(NODES)]))


def _updates(step: Step) -> float:
    """Updates that a batch makes, on average."""
    return _decisions() if step == "sub-path" else 1.0


def _setting(study: Study, key: str) -> int:
    return int(study.published(9).set_index("key").value[key])


def _implied(study: Study) -> Table:
    """Tabulate each reading's slope here beside the printed one, and the printed training's updates and compute."""
    few, most = (printed_values(study, table, metric="gap_pct", n=NODES)[GRID[0]] for table, _ in PRINTED)
    slope = float(np.log(few / most) / np.log(PRINTED[1][1] / PRINTED[0][1]))
    total, batch = (_setting(study, key) for key in ("total_training_steps", "batch_size"))
    models = (GRID[0], DEEPEST, GRID[-1])
    rows = []
    for step in READINGS:
        compute = [Cell(total * batch * _sample(shape, step) / 1e18) for shape in models]
        rows.append(Row((WORDS[step],), (_slope(study, step, slope), Cell(total * _updates(step)), *compute)))
    columns = (
        Column("slope", "Exponent in samples, from few samples to all", "", fixed(2)),
        Column("updates", "Updates of a printed training", "", WHOLE),
        *(Column(f"eflop_{shape}", shape.name, "EFLOP", lambda v: f"{v:.3g}", "Its compute") for shape in models),
    )
    return Table("What each reading makes of the printed trainings", ("Updates of a step",), columns, tuple(rows))


def _sample(shape: Shape, step: Step) -> float:
    """FLOPs of a training instance of the paper's."""
    counts = DecoderOnly(*shape, heads=8)
    return trained_sample(counts.decision, lambda nodes: 0, lengths_of(NODES), step, cvrp=False)


def _slope(study: Study, step: Step, in_print: float) -> Cell:
    """Exponent of the gap in samples between the small budget and the whole, with its interval."""
    pair: tuple[Budget, Budget] = ("few samples", "same passes")
    budgets = [Reading(budget, step) for budget in pair]
    test = roles.tests(study.scale)[0]
    few, most = (resampled_over_seeds(study, each.run, test.dataset, stream) for stream, each in enumerate(budgets))
    samples_few, samples_most = (summary_over_seeds(study, each.run, SUMMARY)["samples"] for each in budgets)
    ratio = np.log(samples_most / samples_few)
    ends = [GAP.of_model(study, each.run, test.dataset, None, GREEDY).measured for each in budgets]
    if few is None or most is None or not all(isinstance(end, float) and end > 0 for end in ends):
        return Cell(published=in_print)
    value = float(np.log(ends[0] / ends[1]) / ratio)  # type: ignore[operator]
    with np.errstate(divide="ignore", invalid="ignore"):
        return interval_cell(value, np.log(few / most) / ratio, in_print)
