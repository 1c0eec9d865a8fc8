"""Figure 12 of paper `scaling`: success by the rank of the optimal next node among the nearest neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroute.analysis.rank_success import LAST, Success, success
from neuroute.papers.scaling import grid
from neuroute.papers.scaling.curves import PAPER, WIDTH_MARKER, colour, shape_name
from neuroute.papers.scaling.figures_probes import SHAPES, Probe, probed_set, read_probes
from neuroute.papers.scaling.grid import Shape
from neuroute.papers.scaling.roles import probe_needs
from neuroute.plan.needs import artifact
from neuroute.rendering import diagram as dg
from neuroute.rendering import style
from neuroute.rendering.columns import described
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from neuroute.rendering.study import Study
    from neuroute.rendering.style import Drawing

READINGS = {"available": "among available nodes", "all": "among all nodes"}


@artifact("Success rate by the optimal node's rank among the nearest neighbours", needs=probe_needs)
def figure12(study: Study) -> Drawing:
    """Success rate by the optimal node's rank among the nearest neighbours."""
    figure = style.new_figure(height=3.6)
    panels = figure.subplots(2, 2, height_ratios=(3.2, 1), sharex=True, sharey="row")
    printed = grid.quoted(study, "success_beyond_8_pct")
    rows: list[dict[str, Any]] = []
    results: dict[tuple[str, Shape], Success] = {}
    for j, (reading, words) in enumerate(READINGS.items()):
        top, bottom = panels[0, j], panels[1, j]
        for i, probe in enumerate(read_probes(study)):
            result = success(probe.arrays[f"hits_{reading}"], probe.arrays[f"decisions_{reading}"])
            results[reading, probe.shape] = result
            shift = (i - 1) * 0.16
            _draw_success(top, probe.shape, result, shift, printed.get(probe.shape))
            rows += _rows("ab"[j], probe, result)
        result = next(result for (name, _), result in results.items() if name == reading)
        _draw_shares(bottom, result)
        top.set_title(f"({'ab'[j]}) Rank {words}")
        bottom.set_xlabel("Rank of the optimal next node (nearest: 1)")
    panels[0, 0].set_ylabel("Success rate (%)")
    panels[1, 0].set_ylabel("Decisions (%)")
    shares = [v for r in results.values() for v in r.share_pct]
    style.log_axis(panels[1, 0], "y", shares, pad=0.15)
    _draw_legend(figure, study)
    rows += [
        {"panel": panel, "side": PAPER, "depth": s[0], "width": s[1], "rank": f">{LAST}", "success_pct": value}
        for panel in "ab"
        for s, value in printed.items()
        if s
    ]
    alt = "Success rate over the rank of the optimal next node among the nearest neighbours, for three models."
    return dg.drawing(figure, rows, _notes(study, results), alt, _table(study, results, printed))


def _draw_success(axes: Axes, shape: Shape, result: Success, shift: float, printed: float | None) -> None:
    places = np.arange(1, len(result.hits) + 1) + shift
    percent = result.percent
    some = np.isfinite(percent)
    axes.plot(places[some], percent[some], color=colour(shape), linewidth=0.8, alpha=0.6, zorder=2)
    reach = np.clip([percent[some] - result.low[some], result.high[some] - percent[some]], 0, None)
    look: dict[str, Any] = {"color": colour(shape), "markeredgecolor": "white", "elinewidth": 1, "zorder": 3}
    axes.errorbar(places[some], percent[some], yerr=reach, fmt=WIDTH_MARKER[shape[1]], **look)
    if printed is not None:
        axes.plot(places[-1] + 1, printed, "x", color=colour(shape), markersize=6, markeredgewidth=1.5, zorder=4)


def _draw_shares(axes: Axes, result: Success) -> None:
    places = np.arange(1, len(result.decisions) + 1)
    some = result.decisions > 0
    axes.plot(places[some], result.share_pct[some], "o-", color=style.INK, markersize=3, linewidth=0.8)
    axes.set_xticks([*places, places[-1] + 1], [*result.labels, f"paper,\n>{LAST}"])


def _draw_legend(figure: Any, study: Study) -> None:
    from matplotlib.lines import Line2D

    names = {s: f"{shape_name(s)}, here {grid.name_here(study, s)}" for s in SHAPES}
    looks: list[dict[str, Any]] = [
        {"color": colour(s), "marker": WIDTH_MARKER[s[1]], "markeredgecolor": "white", "label": name}
        for s, name in names.items()
    ]
    looks.append({"linestyle": "none", "marker": "x", "color": style.INK, "label": "paper"})
    handles = [Line2D([], [], **look) for look in looks]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.5)


def _rows(panel: str, probe: Probe, result: Success) -> list[dict[str, Any]]:
    about = {"panel": panel, **probe.about()}
    return [
        about
        | {"rank": label, "decisions": int(result.decisions[k]), "hits": int(result.hits[k])}
        | {"success_pct": result.percent[k], "low_pct": result.low[k], "high_pct": result.high[k]}
        | {"decisions_pct": result.share_pct[k]}
        for k, label in enumerate(result.labels)
    ]


def _notes(study: Study, results: Mapping[tuple[str, Shape], Success]) -> list[str]:
    dataset = probed_set(study)
    beyond = {name: int(results[name, SHAPES[0]].decisions[-1]) for name in READINGS}
    total = int(results["all", SHAPES[0]].decisions.sum())
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


def _table(study: Study, results: Mapping[tuple[str, Shape], Success], printed: Mapping[Shape | None, float]) -> Table:
    rows = []
    for shape in SHAPES:
        cells = []
        for reading in READINGS:
            result = results[reading, shape]
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
