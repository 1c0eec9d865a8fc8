"""Figure 12 of paper `scaling`: success by the rank of the optimal next node among the nearest neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuroute.core.lazy import mpl
from neuroute.papers.scaling import roles
from neuroute.papers.scaling.curves import PAPER, WIDTH_MARKER, colour
from neuroute.papers.scaling.figures_probes import Probe, read_probes
from neuroute.papers.scaling.roles import PROBED, Shape, probe_needs, run_id
from neuroute.papers.scaling.series import quoted_values
from neuroute.plan.needs import artifact
from neuroute.rendering import plots, style
from neuroute.rendering.cells import model_here
from neuroute.rendering.columns import described
from neuroute.rendering.notes import notes
from neuroute.rendering.study import Study
from neuroute.rendering.style import Drawing
from neuroute.rendering.table import Cell, Column, Row, Table, fixed

Array = NDArray[np.float64]

LAST = 8  # the paper quotes its success "beyond the eighth neighbour"
NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Success:
    """Success by neighbour rank 1, 2, ..., and in the last place of all greater ranks together; each (ranks + 1,)."""

    hits: NDArray[np.int64]
    decisions: NDArray[np.int64]
    low: Array  # %, 95 % Wilson interval
    high: Array

    @property
    def labels(self) -> list[str]:
        last = len(self.hits) - 1
        return [*(str(k) for k in range(1, last + 1)), f">{last}"]

    @property
    def percent(self) -> Array:
        """Not a number where there was no decision."""
        return 100 * _share(self.hits, self.decisions)

    @property
    def share_pct(self) -> Array:
        """Share of all decisions that has this rank."""
        return 100 * _share(self.decisions, np.full_like(self.decisions, self.decisions.sum()))


def success(hits: ArrayLike, decisions: ArrayLike, last: int = LAST) -> Success:
    """`hits` and `decisions` (ranks,): of rank 1, 2, ...; there may be fewer ranks than `last`."""
    hit_counts, decision_counts = (_pooled(np.asarray(x, np.int64), last) for x in (hits, decisions))
    return Success(hit_counts, decision_counts, *(100 * bound for bound in wilson(hit_counts, decision_counts)))


def wilson(hits: ArrayLike, decisions: ArrayLike, z: float = NORMAL_95) -> tuple[Array, Array]:
    """Wilson's score interval of a share, whose bounds stay within 0 and 1; not a number without decisions.

    It takes decisions for independent; those of one instance are not quite, so it is somewhat too narrow.
    """
    n = np.asarray(decisions, float)
    n = np.where(n > 0, n, np.nan)
    p = np.asarray(hits, float) / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def _pooled(counts: NDArray[np.int64], last: int) -> NDArray[np.int64]:
    padded = np.zeros(max(last + 1, len(counts)), np.int64)
    padded[: len(counts)] = counts
    return np.append(padded[:last], padded[last:].sum())


def _share(part: ArrayLike, whole: NDArray[np.int64]) -> Array:
    return np.asarray(part, float) / np.where(whole > 0, whole, np.nan)


READINGS = {"available": "among available nodes", "all": "among all nodes"}
Results = dict[tuple[str, Shape], Success]


@artifact(
    "Success rate by the optimal node's rank among the nearest neighbours", needs=probe_needs, printed_files=("quoted",)
)
def figure12(study: Study) -> Drawing:
    """Draw the success rates of three models, and below how many decisions have each rank."""
    figure = style.new_figure(height=3.6)
    panels = figure.subplots(2, 2, height_ratios=(3.2, 1), sharex=True, sharey="row")
    beyond_in_print = quoted_values(study, "success_beyond_8_pct")
    rows: list[dict[str, Any]] = []
    results: Results = {}
    for (reading, words), letter, (top, bottom) in zip(READINGS.items(), "ab", panels.T, strict=True):
        for i, probe in enumerate(read_probes(study)):
            result = success(probe.arrays[f"hits_{reading}"], probe.arrays[f"decisions_{reading}"])
            results[reading, probe.shape] = result
            _draw_success(top, probe.shape, result, (i - 1) * 0.16, beyond_in_print.get(probe.shape))
            rows += _rows(letter, probe, result)
        _draw_shares(bottom, results[reading, PROBED[0]])
        top.set_title(f"({letter}) Rank {words}")
        bottom.set_xlabel("Rank of the optimal next node (nearest: 1)")
    panels[0, 0].set_ylabel("Success rate (%)")
    panels[1, 0].set_ylabel("Decisions (%)")
    style.log_axis(panels[1, 0], "y", [v for r in results.values() for v in r.share_pct], pad=0.15)
    handles = [
        plots.line(
            f"{shape.name}, here {model_here(study, run_id(shape))}",
            color=colour(shape),
            marker=WIDTH_MARKER[shape.width],
            markeredgecolor="white",
        )
        for shape in PROBED
    ]
    handles.append(plots.mark("paper", "x", style.INK))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.5)
    rows += [
        {"panel": panel, "side": PAPER, **shape._asdict(), "rank": f">{LAST}", "success_pct": value}
        for panel in "ab"
        for shape, value in beyond_in_print.items()
    ]
    alt = "Success rate over the rank of the optimal next node among the nearest neighbours, for three models."
    return style.drawing(figure, rows, _notes(study, results), alt, _table(study, results, beyond_in_print))


def _draw_success(axes: mpl.axes.Axes, shape: Shape, result: Success, shift: float, in_print: float | None) -> None:
    places = np.arange(1, len(result.hits) + 1) + shift
    percent = result.percent
    some = np.isfinite(percent)
    axes.plot(places[some], percent[some], color=colour(shape), linewidth=0.8, alpha=0.6, zorder=2)
    reach = np.clip([percent[some] - result.low[some], result.high[some] - percent[some]], 0, None)
    look: dict[str, Any] = {"color": colour(shape), "markeredgecolor": "white", "elinewidth": 1, "zorder": 3}
    axes.errorbar(places[some], percent[some], yerr=reach, fmt=WIDTH_MARKER[shape.width], **look)
    if in_print is not None:
        axes.plot(places[-1] + 1, in_print, "x", color=colour(shape), markersize=6, markeredgewidth=1.5, zorder=4)


def _draw_shares(axes: mpl.axes.Axes, result: Success) -> None:
    places = np.arange(1, len(result.decisions) + 1)
    some = result.decisions > 0
    axes.plot(places[some], result.share_pct[some], "o-", color=style.INK, markersize=3, linewidth=0.8)
    axes.set_xticks([*places, places[-1] + 1], [*result.labels, f"paper,\n>{LAST}"])


def _rows(panel: str, probe: Probe, result: Success) -> list[dict[str, Any]]:
    values = {"success_pct": result.percent, "low_pct": result.low, "high_pct": result.high}
    return [
        {"panel": panel, **probe.about(), "rank": label}
        | {"decisions": int(result.decisions[k]), "hits": int(result.hits[k])}
        | {key: array[k] for key, array in (values | {"decisions_pct": result.share_pct}).items()}
        for k, label in enumerate(result.labels)
    ]


def _notes(study: Study, results: Results) -> tuple[str, ...]:
    dataset = roles.probed(study.scale).dataset
    beyond = {reading: int(results[reading, PROBED[0]].decisions[-1]) for reading in READINGS}
    total = int(results["all", PROBED[0]].decisions.sum())
    rates = {shape.name: study.value("success_pct", run_id(shape), dataset) for shape in PROBED}
    overall = ", ".join(f"{name} {rate:.2f} %" for name, rate in rates.items() if rate is not None)
    return notes(study, test=described(dataset), total=total, last=LAST, beyond=beyond, overall=overall)


def _table(study: Study, results: Results, in_print: Mapping[Shape, float]) -> Table:
    ends = {"nearest": ("Rank 1", 0), "beyond": (f"Rank >{LAST}", -1)}

    def cell(shape: Shape, reading: str, end: int) -> Cell:
        result = results[reading, shape]
        value, low, high = (float(array[end]) for array in (result.percent, result.low, result.high))
        return Cell(value, in_print.get(shape) if end else None, low, high)

    rows = [
        Row(
            (shape.name, model_here(study, run_id(shape))),
            tuple(cell(shape, reading, end) for reading in READINGS for _, end in ends.values()),
        )
        for shape in PROBED
    ]
    at = described(roles.probed(study.scale).dataset)
    columns = tuple(
        Column(f"success_{reading}_{key}_pct", label, "%", fixed(2), f"Success, rank {words}", at)
        for reading, words in READINGS.items()
        for key, (label, _) in ends.items()
    )
    return Table("Success by rank", ("Model", "Here"), columns, tuple(rows))
