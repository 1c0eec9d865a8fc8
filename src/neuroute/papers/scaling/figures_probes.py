"""Figures 10, 11 and 12 of paper `scaling`: what depth and width do to the states and to the choice of far nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.analysis.long_sightedness import LAST, Success, success
from neuroute.analysis.representations import cosine_similarity, principal_components, separation
from neuroute.core.lazy import mpl, pd
from neuroute.papers.scaling import grid
from neuroute.papers.scaling.curves import PAPER, WIDTH_MARKER, colour, shape_name
from neuroute.papers.scaling.probes import (
    SHAPES,
    WIDE,
    Probe,
    panel_title,
    probed_set,
    seen_probes,
    separation_table,
    state_notes,
)
from neuroute.papers.scaling.roles import probe_needs
from neuroute.plan.needs import artifact
from neuroute.rendering import style
from neuroute.rendering.columns import described
from neuroute.rendering.style import Drawing, new_figure
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from neuroute.papers.scaling.grid import Shape
    from neuroute.rendering.study import Study

READINGS = {"available": "among available nodes", "all": "among all nodes"}


@artifact("Principal components of the available nodes' last-layer states", needs=probe_needs)
def figure10(study: Study) -> Drawing:
    """Principal components of the available nodes' last-layer states."""
    figure = new_figure(height=2.75)
    probes, rows = seen_probes(study), []
    for i, (axes, probe) in enumerate(zip(figure.subplots(1, 3), probes, strict=True)):
        axes.set_title(panel_title(study, i, probe.shape))
        if not probe.whole:
            style.empty_axes(axes, "states are not finite")
            continue
        found = principal_components(probe.states)
        x, y = found.points.T
        axes.plot(x[1:], y[1:], "o", color=colour(probe.shape), markersize=4, markeredgecolor="white")
        axes.plot(x[0], y[0], "*", color=style.GREEN, markersize=11, markeredgecolor=style.INK, zorder=4)
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.12)
        axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
        axes.yaxis.set_major_locator(mpl.ticker.MaxNLocator(5))
        axes.set_xlabel(f"PC 1 ({100 * found.explained[0]:.0f} % of variance)")
        axes.set_ylabel(f"PC 2 ({100 * found.explained[1]:.0f} %)")
        for k, (px, py) in enumerate(found.points):
            at = {"order": k, "optimal_next": k == 0, "pc1": px, "pc2": py}
            rows.append({"panel": "abc"[i], **probe.about(), **at, "separation": float(separation(probe.states))})
    handles = [
        mpl.lines.Line2D(
            [], [], linestyle="none", marker="*", markersize=9, color=style.GREEN, markeredgecolor=style.INK
        ),
        mpl.lines.Line2D([], [], linestyle="none", marker="o", color=style.GREY),
    ]
    figure.legend(handles, ["optimal next node", "other available nodes"], loc="outside lower center", ncols=2)
    notes = [
        *state_notes(probes),
        "Signs of the components are arbitrary; here the optimal node has no negative coordinate. Scales differ "
        "between panels, both axes of a panel share one.",
        "Separation: the optimal node's distance to the centroid of the others over their mean distance to it; 1 is "
        "none. One decision of one instance is an anecdote, so the table has all instances too.",
        "H.2 refers to Figure 9(c) for Figure 10(c). The paper gives no numbers, instance or decision.",
        WIDE,
    ]
    alt = "Three scatter plots of available nodes on two principal components, the optimal next node marked."
    return Drawing(figure, pd.DataFrame(rows), tuple(notes), alt, separation_table(study, probes))


@artifact("Cosine similarity of the available nodes' last-layer states", needs=probe_needs)
def figure11(study: Study) -> Drawing:
    """Cosine similarity of the available nodes' last-layer states."""
    figure = new_figure(height=2.5)
    probes, rows, notes = seen_probes(study), [], []
    maps = [cosine_similarity(p.states) if p.whole else None for p in probes]
    lowest = min((float(m.min()) for m in maps if m is not None), default=-1.0)
    panels, image = figure.subplots(1, 3), None
    for i, (axes, probe, similarity) in enumerate(zip(panels, probes, maps, strict=True)):
        axes.set_title(panel_title(study, i, probe.shape))
        axes.grid(visible=False)
        if similarity is None:
            style.empty_axes(axes, "states are not finite")
            continue
        image = axes.imshow(similarity, cmap="viridis", vmin=lowest, vmax=1, interpolation="nearest")
        axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(5, integer=True))
        axes.yaxis.set_major_locator(mpl.ticker.MaxNLocator(5, integer=True))
        axes.set_xlabel("Order in the optimal tour")
        axes.set_ylabel("Order in the optimal tour" if i == 0 else "")
        upper = np.triu_indices(len(similarity))
        for a, b, value in zip(*upper, similarity[upper], strict=True):
            rows.append({"panel": "abc"[i], **probe.about(), "row": a, "column": b, "cosine": round(float(value), 6)})
        notes.append(_similarity_note(probe.shape, similarity))
    if image is not None:
        bar = figure.colorbar(image, ax=list(panels), shrink=0.8, pad=0.02)
        bar.set_label("Cosine similarity")
        bar.outline.set_visible(False)  # type: ignore[operator]
    notes = [
        *state_notes(probes),
        *notes,
        "All panels share one colour scale. Index 0 is the optimal next node. The CSV has each pair once.",
        "The paper gives no numbers, instance or decision.",
        WIDE,
    ]
    alt = "Three heat maps of the cosine similarity between available nodes, ordered by the optimal tour."
    return Drawing(figure, pd.DataFrame(rows), tuple(notes), alt)


def _similarity_note(shape: Shape, similarity: NDArray[np.float64]) -> str:
    others = similarity[1:, 1:][np.triu_indices(len(similarity) - 1, 1)]
    return (
        f"{shape_name(shape)}: mean similarity {similarity[0, 1:].mean():.3f} of the optimal node to the others, "
        f"{others.mean():.3f} (standard deviation {others.std():.3f}) between the others."
    ).replace("-", "−")


@artifact("Success rate by the optimal node's rank among the nearest neighbours", needs=probe_needs)
def figure12(study: Study) -> Drawing:
    """Success rate by the optimal node's rank among the nearest neighbours."""
    figure = new_figure(height=3.6)
    panels = figure.subplots(2, 2, height_ratios=(3.2, 1), sharex=True, sharey="row")
    printed = grid.quoted(study, "success_beyond_8_pct")
    rows: list[dict[str, Any]] = []
    found: dict[tuple[str, Shape], Success] = {}
    for j, (reading, words) in enumerate(READINGS.items()):
        top, bottom = panels[0, j], panels[1, j]
        for i, probe in enumerate(seen_probes(study)):
            result = success(probe.seen[f"hits_{reading}"], probe.seen[f"decisions_{reading}"])
            found[reading, probe.shape] = result
            shift = (i - 1) * 0.16
            _draw_success(top, probe.shape, result, shift, printed.get(probe.shape))
            rows += _success_rows("ab"[j], probe, result)
        result = next(result for (name, _), result in found.items() if name == reading)
        _draw_shares(bottom, result)
        top.set_title(f"({'ab'[j]}) Rank {words}")
        bottom.set_xlabel("Rank of the optimal next node (nearest: 1)")
    panels[0, 0].set_ylabel("Success rate (%)")
    panels[1, 0].set_ylabel("Decisions (%)")
    shares = [v for r in found.values() for v in r.share_pct]
    style.log_axis(panels[1, 0], "y", shares, pad=0.15)
    _success_legend(figure, study)
    rows += [
        {"panel": panel, "side": PAPER, "depth": s[0], "width": s[1], "rank": f">{LAST}", "success_pct": value}
        for panel in "ab"
        for s, value in printed.items()
        if s
    ]
    return Drawing(
        figure,
        pd.DataFrame(rows),
        tuple(_success_notes(study, found)),
        "Success rate over the rank of the optimal next node among the nearest neighbours, for three models.",
        _success_table(study, found, printed),
    )


def _draw_success(axes: Axes, shape: Shape, result: Success, shift: float, printed: float | None) -> None:
    places = np.arange(1, len(result.hits) + 1) + shift
    percent = result.percent
    some = np.isfinite(percent)
    axes.plot(places[some], percent[some], color=colour(shape), linewidth=0.8, alpha=0.6, zorder=2)
    axes.errorbar(
        places[some],
        percent[some],
        yerr=np.clip([percent[some] - result.low[some], result.high[some] - percent[some]], 0, None),
        fmt=WIDTH_MARKER[shape[1]],
        color=colour(shape),
        markeredgecolor="white",
        elinewidth=1,
        zorder=3,
    )
    if printed is not None:
        axes.plot(places[-1] + 1, printed, "x", color=colour(shape), markersize=6, markeredgewidth=1.5, zorder=4)


def _draw_shares(axes: Axes, result: Success) -> None:
    places = np.arange(1, len(result.decisions) + 1)
    some = result.decisions > 0
    axes.plot(places[some], result.share_pct[some], "o-", color=style.INK, markersize=3, linewidth=0.8)
    axes.set_xticks([*places, places[-1] + 1], [*result.labels, f"paper,\n>{LAST}"])


def _success_legend(figure: Any, study: Study) -> None:
    handles = [
        mpl.lines.Line2D(
            [],
            [],
            color=colour(s),
            marker=WIDTH_MARKER[s[1]],
            markeredgecolor="white",
            label=f"{shape_name(s)}, here {grid.name_here(study, s)}",
        )
        for s in SHAPES
    ]
    handles.append(mpl.lines.Line2D([], [], linestyle="none", marker="x", color=style.INK, label="paper"))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.5)


def _success_rows(panel: str, probe: Probe, result: Success) -> list[dict[str, Any]]:
    return [
        {
            "panel": panel,
            **probe.about(),
            "rank": label,
            "decisions": int(result.decisions[k]),
            "hits": int(result.hits[k]),
            "success_pct": result.percent[k],
            "low_pct": result.low[k],
            "high_pct": result.high[k],
            "decisions_pct": result.share_pct[k],
        }
        for k, label in enumerate(result.labels)
    ]


def _success_notes(study: Study, found: Mapping[tuple[str, Shape], Success]) -> list[str]:
    dataset = probed_set(study)
    beyond = {name: int(found[name, SHAPES[0]].decisions[-1]) for name in READINGS}
    total = int(found["all", SHAPES[0]].decisions.sum())
    overall = ", ".join(
        f"{shape_name(s)} {value:.2f} %"
        for s in SHAPES
        if (value := study.value("success_pct", grid.run_id(s), dataset)) is not None
    )
    return [
        f"Every model is led along the same optimal tours ({described(dataset)}) and asked at each node: "
        f"{total:,} decisions. Left out: the first of a tour, where both neighbours are right, and the last, which has "
        "one candidate.",
        "The paper does not say whether neighbours that were visited count, so both readings are drawn. Rank above "
        f"{LAST}: {beyond['available']:,} decisions among available nodes, {beyond['all']:,} among all.",
        f"Success over all decisions: {overall}.",
        "Bars: 95 % Wilson intervals; they take decisions for independent, which those of one instance are not quite. "
        "One training seed.",
        f"The paper prints about 83 and 87 % and “over 93 %” for ranks above {LAST}, and no other numbers. H.4 refers "
        "to Figure 8 for Figure 12.",
    ]


def _success_table(
    study: Study, found: Mapping[tuple[str, Shape], Success], printed: Mapping[Shape | None, float]
) -> Table:
    rows = []
    for shape in SHAPES:
        cells = []
        for reading in READINGS:
            result = found[reading, shape]
            for k in (0, len(result.hits) - 1):
                at_end = k > 0
                value, low, high = (float(a[k]) for a in (result.percent, result.low, result.high))
                cells.append(Cell(value, printed.get(shape) if at_end else None, low, high))
        rows.append(Row((shape_name(shape), grid.name_here(study, shape)), tuple(cells)))
    at = described(probed_set(study))
    columns = tuple(
        Column(f"success_{reading}_{key}_pct", label, "%", fixed(2), f"Success, rank {words}", at)
        for reading, words in READINGS.items()
        for key, label in (("nearest", "Rank 1"), ("beyond", f"Rank >{LAST}"))
    )
    return Table("Success by rank", ("Model", "Here"), columns, tuple(rows))
