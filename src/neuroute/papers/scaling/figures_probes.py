"""Figures 10 and 11 of paper `scaling`: what depth and width do to the states of available nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroute.analysis.representations import cosine_similarity, principal_components, separation
from neuroute.papers.scaling import roles
from neuroute.papers.scaling.curves import HERE, colour
from neuroute.papers.scaling.roles import PROBED, Shape, probe_needs, run_id
from neuroute.plan.needs import artifact
from neuroute.rendering import plots, style
from neuroute.rendering.cells import model_here
from neuroute.rendering.columns import described
from neuroute.rendering.maps import Array
from neuroute.rendering.notes import notes
from neuroute.rendering.study import Study
from neuroute.rendering.style import Drawing
from neuroute.rendering.table import Cell, Column, Row, Table, fixed


@dataclass(frozen=True)
class Probe:
    """What was probed of one model."""

    shape: Shape
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


# -- Figure 10 ------------------------------------------------------------------------------------------------------


@artifact("Principal components of the available nodes' last-layer states", needs=probe_needs)
def figure10(study: Study) -> Drawing:
    """Draw the states of one decision on two principal components."""
    figure = style.new_figure(height=2.75)
    probes, rows = read_probes(study), []
    for letter, axes, probe in zip("abc", _panels(study, figure, share=True), probes, strict=True):
        if not probe.is_finite:
            continue
        parts = principal_components(probe.states)
        x, y = parts.points.T
        axes.plot(x[1:], y[1:], "o", color=colour(probe.shape), markersize=4, markeredgecolor="white")
        axes.plot(x[0], y[0], "*", color=style.GREEN, markersize=11, markeredgecolor=style.INK, zorder=4)
        axes.margins(0.12)
        axes.locator_params(axis="x", nbins=4)
        axes.locator_params(axis="y", nbins=5)
        axes.set_xlabel(f"PC 1 ({100 * parts.explained[0]:.0f} % of variance)")
        axes.set_ylabel(f"PC 2 ({100 * parts.explained[1]:.0f} %)")
        about = {"panel": letter, **probe.about()}
        rows += [
            about | {"order": k, "optimal_next": k == 0, "pc1": px, "pc2": py, "separation": probe.separation}
            for k, (px, py) in enumerate(parts.points)
        ]
    handles = [
        plots.mark("optimal next node", "*", style.GREEN, markersize=9, markeredgecolor=style.INK),
        plots.mark("other available nodes", "o", style.GREY),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    alt = "Three scatter plots of available nodes on two principal components, the optimal next node marked."
    return style.drawing(figure, rows, notes(study, **_state(probes)), alt, _separation_table(study, probes))


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

    title = "Separation of the optimal next node"
    rows = []
    for probe in probes:
        cells = (
            Cell(probe.separation if probe.is_finite else "not finite"),
            quartiles(np.asarray(probe.arrays["separation"], float)),
        )
        rows.append(Row((probe.shape.name, model_here(study, run_id(probe.shape))), cells))
    columns = (
        Column("separation_drawn", "Instance drawn", format=fixed(2), group=title),
        Column(
            "separation_median", "Median, quartiles", "", fixed(2), title, described(roles.probed(study.scale).dataset)
        ),
    )
    return Table(title, ("Model", "Here"), columns, tuple(rows))


# -- Figure 11 ------------------------------------------------------------------------------------------------------


@artifact("Cosine similarity of the available nodes' last-layer states", needs=probe_needs)
def figure11(study: Study) -> Drawing:
    """Draw how alike the states of one decision are."""
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
        axes.set_xlabel("Order in the optimal tour")
        axes.set_ylabel("Order in the optimal tour" if letter == "a" else "")
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
    return style.drawing(figure, rows, notes(study, means=means, **_state(probes)), alt)
