"""Figure 5 of paper `pens`: zero against Gaussian initial embeddings, after and while training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from neuroute.core.lazy import mpl
from neuroute.pipeline.papers.pens import paper as pens
from neuroute.pipeline.papers.pens.tables_ablations import table_figure5_grid
from neuroute.pipeline.plan.needs import Log, artifact
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import mean_of_gaps_cell
from neuroute.pipeline.rendering.columns import decimal, described
from neuroute.pipeline.rendering.grid import needs_of
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import (
    MEASURED,
    PUBLISHED,
    Drawing,
    batches_axis,
    drawable,
    hidden_note,
    new_figure,
)
from neuroute.specs.objects import Dataset

INITIAL = {"zero": ("zero", style.RAMPS["orange"][1], "s"), "gauss": ("Gaussian", style.RAMPS["blue"][2], "o")}
MODELS = {"a": pens.NAMES["pens_a"], "r": pens.NAMES["pens_r"]}
PANELS = {"a": "ac", "r": "bd"}  # after training and while training
CURVES = (20, 100)  # the paper's sizes of the training curves
DASHES: dict[int, Any] = {20: (0, (3, 1.5)), 100: "-"}


@artifact(
    "Zero and Gaussian initial embeddings",
    needs=lambda scale: [*needs_of(table_figure5_grid)(scale), *(Log(pens.run_id(name)) for name in pens.SMALL)],
    printed_files=("figure5a_table",),
)
def figure5(study: Study) -> Drawing:
    figure = new_figure(height=4.6)
    panels = figure.subplots(2, 2, height_ratios=(1, 1.15), sharey="row")
    ends, curves = _ends(study), _curves(study)
    renamed = any(study.scale[pens.PensScale].sizes[size] != size for size in pens.SMALL_SIZES)
    for column, (key, model) in enumerate(MODELS.items()):
        top, bottom = panels[:, column]
        _draw_ends(top, [row for row in ends if row["series"] == model])
        top.set_xticks(range(len(pens.SMALL_SIZES)), [pens.size_label(study, size) for size in pens.SMALL_SIZES])
        top.set_xlabel("Nodes" + (" (the paper's)" if renamed else ""))
        top.set_title(f"({PANELS[key][0]}) {model}, after training")
        _draw_curves(bottom, [row for row in curves if row["series"] == model])
        bottom.set_xlabel("Training batches")
        bottom.set_title(f"({PANELS[key][1]}) {model}, while training" + (" (not in the paper)" if key == "a" else ""))
    for row, rows_drawn, label in ((panels[0], ends, "Optimality gap (%)"), (panels[1], curves, "Validation gap (%)")):
        gaps = [
            drawable(each["gap_pct"]) for each in rows_drawn if each.get("batch") != 0
        ]  # before training: not drawn
        style.log_axis(row[0], "y", gaps)
        row[0].set_ylabel(label)
        if all(map(math.isnan, gaps)):
            for axes in row:
                style.empty_axes(axes, "no positive gap to draw")
    handles = [style.mark(f"{words} embeddings", marker, colour) for words, colour, marker in INITIAL.values()]
    handles.append(style.mark("(a, b) published", "o", style.GREY, markerfacecolor="white", markeredgewidth=1.1))
    for size in CURVES:
        label = f"(c, d) on TSP{pens.size_label(study, size)}"
        handles.append(style.line(label, color=style.INK, linestyle=DASHES[size], linewidth=1.1))
    figure.legend(handles=handles, loc="outside lower center", ncols=5, columnspacing=1.3)
    alt = "Gaps of small PENS-A and PENS-R from zero and Gaussian embeddings at three sizes, and while training."
    return Drawing(figure, [*ends, *curves], _notes(study, ends, curves), alt)


def _ends(study: Study) -> list[dict[str, Any]]:
    """Gaps of the trained models on the three sizes, measured and printed."""
    rows: list[dict[str, Any]] = []
    decoding = pens.repeated(study.scale)
    for key, model in MODELS.items():
        for initial, (words, _, _) in INITIAL.items():
            run = pens.run_id(f"small_{key}_{initial}")
            about = {"panel": PANELS[key][0], "series": model, "initial": words}
            values = pens.printed_gaps(study, "figure5a_table", method=model, init=words.lower())
            for size in pens.SMALL_SIZES:
                dataset = pens.reference(study.scale, size).dataset
                cell = mean_of_gaps_cell(study, run, dataset, decoding=decoding)
                if cell.measured is not None:
                    values_here = {"side": MEASURED, "size": size, "n": dataset.n, "run": run, "gap_pct": cell.measured}
                    rows.append(about | values_here | {"low_pct": cell.low, "high_pct": cell.high})
                if size in values:
                    rows.append(about | {"side": PUBLISHED, "size": size, "n": size, "gap_pct": values[size]})
    return rows


def _curves(study: Study) -> list[dict[str, Any]]:
    """Every validation of the logs, on both sizes."""
    sets = {size: pens.validation(study.scale, size).dataset for size in CURVES}
    rows: list[dict[str, Any]] = []
    for key, model in MODELS.items():
        for initial, (words, _, _) in INITIAL.items():
            run = pens.run_id(f"small_{key}_{initial}")
            about = {"panel": PANELS[key][1], "side": MEASURED, "series": model, "initial": words, "run": run}
            for line in study.log(run, "validation").to_dict("records"):
                at = {"batch": int(line["batch"]), "samples": int(line["samples"])}
                for size, value in _gaps(line, sets).items():
                    rows.append(about | at | {"size": size, "n": sets[size].n, "gap_pct": value})
    return rows


def _gaps(line: dict[Any, Any], sets: dict[int, Dataset]) -> dict[int, float]:
    """The paper's size -> the gap of one line of a log; of a line that lists none, the run's own."""
    listed = line.get("gaps_pct")
    if not isinstance(listed, dict):
        return {min(sets): float(line["gap_pct"])}
    return {size: float(listed[dataset.id]) for size, dataset in sets.items() if dataset.id in listed}


def _draw_ends(axes: mpl.axes.Axes, rows: Sequence[dict[str, Any]]) -> None:
    """Beside each other at every size: filled what was measured, hollow what was printed."""
    for i, (words, colour, marker) in enumerate(INITIAL.values()):
        for side, shift in ((MEASURED, -0.2), (PUBLISHED, 0.14)):
            mine = [r for r in rows if r["initial"] == words and r["side"] == side]
            x = [pens.SMALL_SIZES.index(r["size"]) + shift + 0.08 * i for r in mine]
            y = [drawable(r["gap_pct"]) for r in mine]
            look: dict[str, Any] = {"color": colour, "markersize": 5.5, "linestyle": "none", "marker": marker}
            if side == PUBLISHED:
                look |= {"markerfacecolor": "white", "markeredgewidth": 1.1}
            else:
                look |= {"markeredgecolor": "white"}
                for at, row in zip(x, mine, strict=True):
                    if row["low_pct"] is not None and row["low_pct"] > 0:
                        axes.plot([at, at], [row["low_pct"], row["high_pct"]], color=colour, linewidth=0.8)
            axes.plot(x, y, zorder=3, **look)
    for edge in range(1, len(pens.SMALL_SIZES)):
        axes.axvline(edge - 0.5, color="#e6e8ec", linewidth=0.6, zorder=0)
    axes.set_xlim(-0.5, len(pens.SMALL_SIZES) - 0.5)
    axes.grid(visible=False, axis="x")


def _draw_curves(axes: mpl.axes.Axes, rows: Sequence[dict[str, Any]]) -> None:
    last = 1
    for words, colour, marker in INITIAL.values():
        for size in CURVES:
            mine = [r for r in rows if r["initial"] == words and r["size"] == size and r["batch"] > 0]
            x = [r["batch"] for r in mine]
            y = [drawable(r["gap_pct"]) for r in mine]
            axes.plot(
                x, y, color=colour, linestyle=DASHES[size], linewidth=1.1, marker=marker, markersize=2.6,
                markeredgewidth=0,
            )  # fmt: skip
            last = max([last, *x])
    batches_axis(axes, last)


def _notes(study: Study, ends: Sequence[dict[str, Any]], curves: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    sets = [pens.reference(study.scale, size).dataset for size in pens.SMALL_SIZES]
    validation = [pens.validation(study.scale, size).dataset for size in CURVES]
    training = study.runs[pens.run_id("small_r_gauss")].training
    nodes = study.scale[pens.PensScale].sizes[20]
    compared = []
    for model in MODELS.values():
        comparison = _comparison([r for r in ends if r["series"] == model and r["side"] == MEASURED])
        if comparison:
            compared.append(f"{model} here: {comparison}.")
    hidden = [
        *hidden_note((r["gap_pct"] for r in ends if r["side"] == MEASURED), "test"),
        *hidden_note((r["gap_pct"] for r in curves), "validation"),
    ]
    return notes(
        study,
        nodes=nodes,
        samples=training.samples,
        tests="; ".join(described(d) for d in sets),
        several=pens.several(study),
        spread=pens.spread_note(study, pens.SMALL, sets, pens.repeated(study.scale)),
        validation=" and ".join(described(d) for d in validation),
        compared=compared,
        hidden=hidden,
    )


def _comparison(rows: Sequence[dict[str, Any]]) -> str:
    """Which of the two ends lower at each size: the trend that the figure is about."""
    parts = []
    for size in pens.SMALL_SIZES:
        at = {r["initial"]: r for r in rows if r["size"] == size and math.isfinite(r["gap_pct"])}
        if len(at) == 2:
            zero, gauss = at["zero"]["gap_pct"], at["Gaussian"]["gap_pct"]
            parts.append(f"TSP{at['zero']['n']:,} zero {decimal(zero)} %, Gaussian {decimal(gauss)} %")
    return "; ".join(parts)
