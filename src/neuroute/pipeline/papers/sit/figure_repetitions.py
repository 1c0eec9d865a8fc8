"""Figure 3 of paper `sit`: the gap by repetitions of the last node."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from neuroute.core.lazy import mpl, pd
from neuroute.pipeline.papers.sit import roles
from neuroute.pipeline.papers.sit.scale import SitScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, artifact, tested
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import gap_cell
from neuroute.pipeline.rendering.columns import described
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.plots import drawable, hidden_note
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, Drawing, new_figure
from neuroute.specs.objects import Reconstruction

PAPERS_CHOICE = 15  # repetitions in all experiments of the paper


def _figure3_needs(scale: Scale) -> Iterator[Need]:
    runs = (roles.run_id(roles.with_repetitions(count)) for count in scale[SitScale].repetitions)
    return tested(runs, roles.reference(scale, "tsp", 1000))


@artifact("Repetitions of the last node", needs=_figure3_needs)
def figure3(study: Study) -> Drawing:
    rows = _rows(study)
    figure = new_figure(4.6, 2.7)
    axes = figure.subplots()
    _draw(axes, rows)
    alt = "Optimality gap against the number of repetitions of the last node among the representative nodes."
    columns = ["side", "repetitions", "repetitions_here", "n", "run", "gap_pct", "low_pct", "high_pct", "parameters"]
    return Drawing(figure, pd.DataFrame(rows, columns=columns), _repetition_notes(study, rows), alt)


def _rows(study: Study) -> list[dict[str, Any]]:
    dataset = roles.reference(study.scale, "tsp", 1000).dataset
    rows = []
    for count, here in sorted(study.scale[SitScale].repetitions.items()):
        run = roles.run_id(roles.with_repetitions(count))
        cell = gap_cell(study, run, dataset)
        if not isinstance(cell.measured, float):
            continue
        about = {"side": MEASURED, "repetitions": count, "repetitions_here": here, "n": dataset.n, "run": run}
        values = {"gap_pct": cell.measured, "low_pct": cell.low, "high_pct": cell.high}
        rows.append(about | values | {"parameters": study.value("parameters", run, dataset)})
    return rows


def _draw(axes: mpl.axes.Axes, rows: list[dict[str, Any]]) -> None:
    colour = style.RAMPS["blue"][2]
    positive = [row for row in rows if math.isfinite(drawable(row["gap_pct"]))]
    axes.set_ylabel(f"Optimality gap, TSP{rows[0]['n']} (%)" if rows else "Optimality gap (%)")
    axes.set_xlabel("Repetitions of the last node, and parameters of the network")
    if not positive:
        style.empty_axes(axes, "no positive gap to draw" if rows else style.NOT_MEASURED)
        return
    if len(positive) < 3:
        style.say_in(axes, "too few points for a course")
    x = [row["repetitions_here"] for row in positive]
    y = [row["gap_pct"] for row in positive]
    joined = "-" if len(positive) > 2 else "none"  # a line through two points would look like a course
    axes.plot(x, y, color=colour, linestyle=joined, marker="o", markeredgecolor="white", markersize=5.5, zorder=3)
    for row in positive:
        if row["low_pct"] is not None:
            axes.plot([row["repetitions_here"]] * 2, [row["low_pct"], row["high_pct"]], color=colour, linewidth=0.9)
        is_choice = row["repetitions"] == PAPERS_CHOICE
        axes.annotate(
            f"{row['gap_pct']:.2f} %", (row["repetitions_here"], row["gap_pct"]), (5, 4), textcoords="offset points",
            fontsize=6.5, fontweight="bold" if is_choice else "normal", color=colour,
        )  # fmt: skip
    axes.set_xticks(x, [_tick(row) for row in positive])
    margin = 0.12 * (max(x) - min(x)) or 0.5
    axes.set_xlim(min(x) - 0.5 * margin, max(x) + 1.4 * margin)  # the last label is on the right of its mark
    low = min(row["gap_pct"] if row["low_pct"] is None else row["low_pct"] for row in positive)
    high = max(row["gap_pct"] if row["high_pct"] is None else row["high_pct"] for row in positive)
    axes.set_ylim(max(0.0, low - 0.2 * (high - low)), high + 0.15 * (high - low) + 1e-9)
    axes.grid(visible=False, axis="x")


def _tick(row: dict[str, Any]) -> str:
    """5 (15), 41 k: what is repeated here, the paper's number where it differs, and the parameters."""
    here, count, parameters = row["repetitions_here"], row["repetitions"], row["parameters"]
    name = str(here) if here == count else f"{here} ({count})"
    if parameters is None or not math.isfinite(parameters):
        return name
    return f"{name}\n{parameters / 1e6:.2f} M" if parameters >= 1e6 else f"{name}\n{parameters / 1e3:.1f} k"


def _repetition_notes(study: Study, rows: list[dict[str, Any]]) -> tuple[str, ...]:
    dataset = roles.reference(study.scale, "tsp", 1000).dataset
    training: Reconstruction = study.scale[SitScale].repetition_training
    numbers = study.scale[SitScale].repetitions
    first = ", of which the first trains on insertion's solutions as they are" if training.warm_up else ""
    renamed = any(count != here for count, here in numbers.items())
    gaps = [f"{r['repetitions_here']}: {r['gap_pct']:.3f} %" for r in rows]
    few = f"{len(rows)} numbers of repetitions show no course: scale “{study.scale.name}” trains no more."
    missing = len(numbers) - len(rows)
    return notes(
        study,
        training=training,
        first=first,
        test=described(dataset),
        renamed=" In parentheses: the paper's number." if renamed else "",
        chosen=PAPERS_CHOICE,
        gaps=f"Gaps here by repetitions: {'; '.join(gaps)}." if gaps else "",
        hidden=hidden_note(row["gap_pct"] for row in rows),
        few=few if len(rows) < 3 else "",
        missing=f"{missing} of {len(numbers)} numbers of repetitions were not measured." if missing else "",
    )
