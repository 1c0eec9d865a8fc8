"""Figures 10 to 12 of paper `scaling`: what depth and width do to the states of available nodes, and by rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuroute.analysis.representations import cosine_similarity, principal_components, separation
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.papers.scaling.curves import HERE, PAPER, WIDTH_MARKER, colour, printed_values
from neuroute.pipeline.papers.scaling.paper import PROBED, run_id
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import model_here
from neuroute.pipeline.rendering.maps import Array
from neuroute.pipeline.rendering.render import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import Drawing
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, described, fixed


@dataclass(frozen=True)
class Probe:
    """What was probed of one model."""

    shape: scaling.Shape
    arrays: Mapping[str, Array]  # as papers.scaling.probe.measure leaves it

    @property
    def states(self) -> Array:
        """(available, width), the optimal next node first."""
        return np.asarray(self.arrays["states"], float)

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.states).all())

    @property
    def separation(self) -> float:
        return float(separation(self.states))

    def about(self) -> dict[str, Any]:
        return {"side": HERE, **self.shape._asdict()}


def read_probes(study: Study) -> list[Probe]:
    return [Probe(shape, study.arrays(f"{run_id(shape)}/probes")) for shape in PROBED]


@artifact("Principal components of the available nodes' last-layer states", needs=scaling.probe_needs)
def figure10(study: Study) -> Drawing:
    """Draw the states of one decision on two principal components."""
    figure = style.new_figure(height=2.75)
    probes, rows = read_probes(study), []
    for letter, axes, probe in zip("abc", _panels(study, figure, share=True), probes, strict=True):
        if not probe.is_finite:
            continue
        points, explained = principal_components(probe.states)
        x, y = points.T
        axes.plot(x[1:], y[1:], "o", color=colour(probe.shape), markersize=4, markeredgecolor="white")
        axes.plot(x[0], y[0], "*", color=style.GREEN, markersize=11, markeredgecolor=style.INK, zorder=4)
        axes.margins(0.12)
        axes.locator_params(axis="x", nbins=4)
        axes.locator_params(axis="y", nbins=5)
        axes.set(xlabel=f"PC 1 ({100 * explained[0]:.0f} % of variance)", ylabel=f"PC 2 ({100 * explained[1]:.0f} %)")
        about = {"panel": letter, **probe.about()}
        rows += [
            about | {"order": k, "optimal_next": k == 0, "pc1": px, "pc2": py, "separation": probe.separation}
            for k, (px, py) in enumerate(points)
        ]
    handles = [
        style.mark("optimal next node", "*", style.GREEN, markersize=9, markeredgecolor=style.INK),
        style.mark("other available nodes", "o", style.GREY),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    alt = "Three scatter plots of available nodes on two principal components, the optimal next node marked."
    return Drawing(figure, rows, notes(study, **_state(probes)), alt, _separation_table(study, probes))


def _panels(study: Study, figure: Any, *, share: bool = False) -> list[Any]:
    """Axes for each model, with a title, or the same for all; those of one whose states are not finite say so."""
    panels = list(figure.subplots(1, 3, sharex=share, sharey=share))
    for letter, axes, probe in zip("abc", panels, read_probes(study), strict=True):
        axes.set_title(f"({letter}) {probe.shape.name}\nHere: {model_here(study, run_id(probe.shape))}")
        if not probe.is_finite:
            style.empty_axes(axes, "states are not finite")
    return panels


def _state(probes: Sequence[Probe]) -> dict[str, object]:
    """What the notes say of the decision."""
    arrays = probes[0].arrays
    decision = int(arrays["decision"])
    first = (
        "On the first decision the last node in the order of the tour is as right as the first: a tour may be walked "
        "either way."
    )
    of_decision = {"instance": int(arrays["instance"]), "decision": decision, "available": len(arrays["states"])}
    return of_decision | {"first": "" if decision else first}


def _separation_table(study: Study, probes: Sequence[Probe]) -> Table:
    def quartiles(values: Array) -> Cell:
        if not len(values) or not np.isfinite(values).all():
            return Cell("not finite")
        low, middle, high = np.percentile(values, [25, 50, 75])
        return Cell(float(middle), None, float(low), float(high))

    title, at = "Separation of the optimal next node", described(scaling.probe_test(study.scale).dataset)
    rows = []
    for probe in probes:
        drawn = Cell(probe.separation if probe.is_finite else "not finite")
        cells = drawn, quartiles(np.asarray(probe.arrays["separation"], float))
        rows.append(Row((probe.shape.name, model_here(study, run_id(probe.shape))), cells))
    columns = (
        Column("separation_drawn", "Instance drawn", format=fixed(2), group=title),
        Column("separation_median", "Median, quartiles", "", fixed(2), title, at),
    )
    return Table(title, ("Model", "Here"), columns, tuple(rows))


@artifact("Cosine similarity of the available nodes' last-layer states", needs=scaling.probe_needs)
def figure11(study: Study) -> Drawing:
    figure = style.new_figure(height=2.5)
    probes, rows, means, image = read_probes(study), [], [], None
    maps = [cosine_similarity(p.states) if p.is_finite else None for p in probes]
    lowest = min((float(m.min()) for m in maps if m is not None), default=-1.0)
    panels = _panels(study, figure)
    for letter, axes, probe, similarity in zip("abc", panels, probes, maps, strict=True):
        axes.grid(visible=False)
        if similarity is None:
            continue
        image = axes.imshow(similarity, cmap="viridis", vmin=lowest, vmax=1, interpolation="nearest")
        axes.locator_params(nbins=5, integer=True)
        axes.set(xlabel="Order in the optimal tour", ylabel="Order in the optimal tour" if letter == "a" else "")
        about = {"panel": letter, **probe.about()}
        rows += [
            about | {"row": a, "column": b, "cosine": round(float(similarity[a, b]), 6)}
            for a, b in zip(*np.triu_indices(len(similarity)), strict=True)
        ]
        others = similarity[1:, 1:][np.triu_indices(len(similarity) - 1, 1)]
        means.append(
            f"{probe.shape.name}: mean similarity {similarity[0, 1:].mean():.3f} of the optimal node to the "
            f"others, {others.mean():.3f} (standard deviation {others.std():.3f}) between the others.".replace("-", "−")
        )
    if image is not None:
        bar = figure.colorbar(image, ax=panels, shrink=0.8, pad=0.02)
        bar.set_label("Cosine similarity")
        bar.outline.set_visible(False)
    alt = "Three heat maps of the cosine similarity between available nodes, ordered by the optimal tour."
    return Drawing(figure, rows, notes(study, means=means, **_state(probes)), alt)


LAST = 8  # the paper quotes its success "beyond the eighth neighbour"


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
    """Pool `hits` and `decisions` (ranks,) of rank 1, 2, ... beyond `last`; there may be fewer ranks.

    Intervals take decisions for independent; those of one instance are not quite, so they are somewhat too narrow.
    """
    from scipy.stats import binomtest

    pooled = []
    for counts in (np.asarray(hits, np.int64), np.asarray(decisions, np.int64)):
        padded = np.pad(counts, (0, max(0, last - len(counts))))
        pooled.append(np.append(padded[:last], padded[last:].sum()))
    ends = [
        binomtest(some, every).proportion_ci(method="wilson") if every else (np.nan, np.nan)
        for some, every in zip(*pooled, strict=True)
    ]
    low, high = np.transpose(ends)
    return Success(pooled[0], pooled[1], 100 * low, 100 * high)


def _share(part: ArrayLike, whole: NDArray[np.int64]) -> Array:
    return np.asarray(part, float) / np.where(whole > 0, whole, np.nan)


READINGS = {"available": "among available nodes", "all": "among all nodes"}
Results = dict[tuple[str, scaling.Shape], Success]


@artifact(
    "Success rate by the optimal node's rank among the nearest neighbours",
    needs=scaling.probe_needs,
    printed_files=("quoted",),
)
def figure12(study: Study) -> Drawing:
    """Draw the success rates of three models, and below how many decisions have each rank."""
    figure = style.new_figure(height=3.6)
    panels = figure.subplots(2, 2, height_ratios=(3.2, 1), sharex=True, sharey="row")
    beyond_in_print = printed_values(study, "quoted", quantity="success_beyond_8_pct")
    rows: list[dict[str, Any]] = []
    results: Results = {}
    for (reading, words), letter, (top, bottom) in zip(READINGS.items(), "ab", panels.T, strict=True):
        for i, probe in enumerate(read_probes(study)):
            result = success(probe.arrays[f"hits_{reading}"], probe.arrays[f"decisions_{reading}"])
            results[reading, probe.shape] = result
            shape, percent, in_print = probe.shape, result.percent, beyond_in_print.get(probe.shape)
            shifted, some = np.arange(1, len(result.hits) + 1) + 0.16 * (i - 1), np.isfinite(percent)
            top.plot(shifted[some], percent[some], color=colour(shape), linewidth=0.8, alpha=0.6, zorder=2)
            reach = np.clip([percent[some] - result.low[some], result.high[some] - percent[some]], 0, None)
            look: dict[str, Any] = {"color": colour(shape), "markeredgecolor": "white", "elinewidth": 1, "zorder": 3}
            top.errorbar(shifted[some], percent[some], yerr=reach, fmt=WIDTH_MARKER[shape.width], **look)
            if in_print is not None:
                mark: dict[str, Any] = {"markersize": 6, "markeredgewidth": 1.5, "zorder": 4}
                top.plot(shifted[-1] + 1, in_print, "x", color=colour(shape), **mark)
            values = {"success_pct": result.percent, "low_pct": result.low, "high_pct": result.high}
            rows += [
                {"panel": letter, **probe.about(), "rank": label}
                | {"decisions": int(result.decisions[k]), "hits": int(result.hits[k])}
                | {key: array[k] for key, array in (values | {"decisions_pct": result.share_pct}).items()}
                for k, label in enumerate(result.labels)
            ]
        result = results[reading, PROBED[0]]
        places = np.arange(1, len(result.decisions) + 1)
        some = result.decisions > 0
        bottom.plot(places[some], result.share_pct[some], "o-", color=style.INK, markersize=3, linewidth=0.8)
        bottom.set_xticks([*places, places[-1] + 1], [*result.labels, f"paper,\n>{LAST}"])
        top.set_title(f"({letter}) Rank {words}")
        bottom.set_xlabel("Rank of the optimal next node (nearest: 1)")
    panels[0, 0].set_ylabel("Success rate (%)")
    panels[1, 0].set_ylabel("Decisions (%)")
    style.log_axis(panels[1, 0], "y", [v for r in results.values() for v in r.share_pct], pad=0.15)
    handles = []
    for shape in PROBED:
        look = {"color": colour(shape), "marker": WIDTH_MARKER[shape.width], "markeredgecolor": "white"}
        handles.append(style.line(f"{shape.name}, here {model_here(study, run_id(shape))}", **look))
    handles.append(style.mark("paper", "x", style.INK))
    figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.5)
    rows += [
        {"panel": panel, "side": PAPER, **shape._asdict(), "rank": f">{LAST}", "success_pct": value}
        for panel in "ab"
        for shape, value in beyond_in_print.items()
    ]
    alt = "Success rate over the rank of the optimal next node among the nearest neighbours, for three models."
    dataset = scaling.probe_test(study.scale).dataset
    beyond = {reading: int(results[reading, PROBED[0]].decisions[-1]) for reading in READINGS}
    total = int(results["all", PROBED[0]].decisions.sum())
    rates = {shape.name: study.value("success_pct", run_id(shape), dataset) for shape in PROBED}
    overall = ", ".join(f"{name} {rate:.2f} %" for name, rate in rates.items() if rate is not None)
    texts = notes(study, test=described(dataset), total=total, last=LAST, beyond=beyond, overall=overall)
    return Drawing(figure, rows, texts, alt, _table(study, results, beyond_in_print))


def _table(study: Study, results: Results, in_print: Mapping[scaling.Shape, float]) -> Table:
    ends, rows = {"nearest": ("Rank 1", 0), "beyond": (f"Rank >{LAST}", -1)}, []
    for shape in PROBED:
        cells = []
        for result, (_, end) in product((results[reading, shape] for reading in READINGS), ends.values()):
            value, low, high = (float(array[end]) for array in (result.percent, result.low, result.high))
            cells.append(Cell(value, in_print.get(shape) if end else None, low, high))
        rows.append(Row((shape.name, model_here(study, run_id(shape))), tuple(cells)))
    at = described(scaling.probe_test(study.scale).dataset)
    columns = tuple(
        Column(f"success_{reading}_{key}_pct", label, "%", fixed(2), f"Success, rank {words}", at)
        for reading, words in READINGS.items()
        for key, (label, _) in ends.items()
    )
    return Table("Success by rank", ("Model", "Here"), columns, tuple(rows))
