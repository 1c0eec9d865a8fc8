"""Figure 3 of paper `pens`: tour length against the factor that coordinates are stretched by, and its best value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis.rescaling import Parabola
from neuroute.core.lazy import mpl
from neuroute.pipeline.papers.pens import paper as pens
from neuroute.pipeline.plan.needs import artifact
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import number, printed_numbers
from neuroute.pipeline.rendering.columns import described
from neuroute.pipeline.rendering.notes import notes
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import MEASURED, PUBLISHED, Drawing, new_figure
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, fixed
from neuroute.specs.objects import Dataset

LETTERS = "abc"
FAR = 30.0  # % above the shortest length


@dataclass(frozen=True)
class Swept:
    """One model's sweep at one size."""

    name: str
    size: int  # the paper's
    dataset: Dataset
    factors: NDArray[np.float64]  # (f,)
    lengths: NDArray[np.float64]  # (f,) mean tour lengths on the original coordinates
    fit: Parabola  # nan where nothing could be fitted
    printed: float | None  # the paper's best factor

    @property
    def unit(self) -> float:
        """The length that others are relative to: at the factor nearest to 1."""
        return float(self.lengths[np.argmin(np.abs(np.log(self.factors)))])

    @property
    def relative(self) -> NDArray[np.float64]:
        """Lengths, in % above the one at factor 1."""
        return np.asarray(100 * (self.lengths / self.unit - 1))

    def rows(self) -> list[dict[str, Any]]:
        about = {"series": pens.NAMES[self.name], "size": self.size, "n": self.dataset.n}
        parabola = {"best_factor": self.fit.best, "interior": self.fit.interior}
        parabola |= {f"parabola_{name}": getattr(self.fit, name) for name in "abc"}
        parabola |= {"fitted_from": self.fit.low, "fitted_to": self.fit.high}
        rows: list[dict[str, Any]] = [
            {"side": MEASURED, **about, "factor": x, "length": y, "relative_pct": r, **parabola}
            for x, y, r in zip(self.factors, self.lengths, self.relative, strict=True)
        ]
        if self.printed is not None:
            rows.append({"side": PUBLISHED, **about, "n": self.size, "best_factor": self.printed})
        return rows


@artifact(
    "Tour length against the scaling factor of the coordinates",
    needs=lambda scale: (pens.rescaling(scale, name) for name in pens.RESCALED),
    printed_files=("table1",),
)
def figure3(study: Study) -> Drawing:
    swept = {name: [_swept(study, name, size) for size in pens.SIZES] for name in pens.RESCALED}
    figure = new_figure(height=5.0)
    panels = figure.subplots(len(swept), len(pens.SIZES), sharex="col", squeeze=False)
    limits = {size: _limits([sweeps[i] for sweeps in swept.values()]) for i, size in enumerate(pens.SIZES)}
    for row, (name, sweeps) in enumerate(swept.items()):
        for axes, each in zip(panels[row], sweeps, strict=True):
            _draw(axes, each)
            axes.set_xlim(*limits[each.size])
            if row == 0:
                here = f"TSP{each.dataset.n:,}"
                paper = f"\n(paper: {each.size:,})" if each.dataset.n != each.size else ""
                axes.set_title(here + paper, loc="center", fontsize=7.5, pad=14)  # above the best factor
        panels[row, 0].set_ylabel(f"({LETTERS[row]}) {pens.NAMES[name]}\nmean tour length")
    panels[-1, len(pens.SIZES) // 2].set_xlabel("Scaling factor of the coordinates")
    handles = [
        style.mark("mean length at a factor", "o", style.GREY),
        style.line("fitted parabola (dotted: no minimum inside)", color=style.GREY, linewidth=1),
        style.line("its minimum, the best factor", color=style.GREY, linewidth=0.8, linestyle="--"),
        style.mark("the paper's (Table 1)", "^", style.INK, markerfacecolor="white"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, columnspacing=1.4)
    rows = [row for sweeps in swept.values() for each in sweeps for row in each.rows()]
    alt = "Mean tour length against the coordinates' scaling factor with parabolas, for three models and five sizes."
    every = [each for sweeps in swept.values() for each in sweeps]
    return Drawing(figure, rows, _notes(study, every), alt, _table(study, swept))


def _swept(study: Study, name: str, size: int) -> Swept:
    stored, dataset = study.arrays(f"{pens.run_id(name)}/rescaling"), pens.held_out(study.scale, size)
    at = int(np.flatnonzero(stored["sizes"] == dataset.n)[0])
    factors, lengths, (a, b, c), (low, high) = (
        np.asarray(stored[f"{dataset.id}|{key}"], np.float64) for key in ("factors", "lengths", "parabola", "fitted")
    )
    best, interior = float(stored["best"][at]), bool(stored["interior"][at])
    fit = Parabola(float(a), float(b), float(c), best, interior, float(low), float(high))
    paper = number(printed_numbers(study, 1, method=pens.NAMES[name], scaled="yes"), size, "scale_factor")
    printed_factor = paper if isinstance(paper, float) else None
    return Swept(name, size, dataset, factors, lengths, fit, printed_factor)


def _limits(swept: Sequence[Swept]) -> tuple[float, float]:
    """Room for every factor of a size, the paper's as well."""
    values = [v for each in swept for v in (*each.factors, each.fit.best)]
    values += [each.printed for each in swept if each.printed is not None]
    margin = 0.07 * (max(values) - min(values))
    return min(values) - margin, max(values) + margin


def _draw(axes: mpl.axes.Axes, each: Swept) -> None:
    colour = pens.COLOUR[each.name]
    finite = np.isfinite(each.relative)
    axes.xaxis.set_major_locator(mpl.ticker.MaxNLocator(3))
    axes.yaxis.set_major_locator(mpl.ticker.MaxNLocator(4))
    axes.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda v, _: f"{v:g}".replace("-", "−")))
    axes.tick_params(labelsize=6)
    if not finite.any():
        style.empty_axes(axes, "lengths are\nnot finite")
        return
    # What lies far above what is fitted would flatten the rest: it is drawn at the panel's upper edge.
    far = finite & (each.relative > each.relative[finite].min() + FAR)
    near = finite & ~far
    axes.plot(
        each.factors[near], each.lengths[near], pens.MARKER[each.name], color=colour, markersize=3.6,
        markeredgecolor="white", markeredgewidth=0.4, zorder=3,
    )  # fmt: skip
    low, high = float(each.lengths[near].min()), float(each.lengths[near].max())
    if np.isfinite([each.fit.a, each.fit.b, each.fit.c]).all():
        x = np.linspace(each.fit.low, each.fit.high, 80)
        y = each.fit(x)
        axes.plot(x, y, "-" if each.fit.interior else ":", color=colour, linewidth=1, zorder=2)
        low, high = min(low, float(y.min())), max(high, float(y.max()))
    if each.fit.interior:
        axes.axvline(each.fit.best, color=colour, linewidth=0.8, linestyle="--", zorder=1, alpha=0.8)
    span = (high - low) or 1.0
    axes.set_ylim(low - 0.12 * span, high + (0.2 if far.any() else 0.1) * span)
    if far.any():  # not clipped, and a mark of nothing lies nowhere: the layout would collapse
        axes.plot(
            each.factors[far], np.full(far.sum(), 1.0), linestyle="none", marker=mpl.markers.CARETUP, color=colour,
            markersize=4.5, transform=axes.get_xaxis_transform(), zorder=3, clip_on=False,
        )  # fmt: skip
    words = f"×{each.fit.best:.2f}" if each.fit.interior else "no minimum found"
    axes.text(0.5, 1.04, words, transform=axes.transAxes, ha="center", va="bottom", fontsize=6)
    if each.printed is not None:
        axes.plot(
            each.printed, 0.0, "^", transform=axes.get_xaxis_transform(), clip_on=False, markersize=5.5,
            markerfacecolor="white", markeredgecolor=style.INK, markeredgewidth=0.9, zorder=5,
        )  # fmt: skip


def _notes(study: Study, swept: Sequence[Swept]) -> tuple[str, ...]:
    counts = ", ".join(
        f"{dataset.count:,} TSP{dataset.n:,}"
        for dataset in dict.fromkeys(pens.held_out(study.scale, size) for size in pens.SIZES)
    )
    outside = [f"{pens.NAMES[each.name]} at TSP{each.dataset.n:,}" for each in swept if not each.fit.interior]
    bare = {f"TSP{each.dataset.n:,}" for each in swept if not np.any(np.isclose(each.factors, 1))}
    return notes(
        study,
        counts=counts,
        trained=study.scale[pens.PensScale].sizes[100],
        far=FAR,
        outside=f"No minimum between the fitted factors: {', '.join(outside)}. None is drawn there; what is rescaled "
        "nevertheless (Tables 1 to 3) takes the factor with the shortest tours of those swept."
        if outside
        else "",
        bare=f"Without factor 1 in the sweep, so relative to the factor nearest to it: {', '.join(bare)}."
        if bare
        else "",
    )


def _table(study: Study, swept: Mapping[str, Sequence[Swept]]) -> Table:
    """Best factors, here and printed."""
    rows = [
        Row(
            (pens.NAMES[name],),
            tuple(Cell(each.fit.best if np.isfinite(each.fit.best) else "not finite", each.printed) for each in sweeps),
        )
        for name, sweeps in swept.items()
    ]
    columns = tuple(
        Column(f"factor_{size}", f"TSP{dataset.n:,}", "", fixed(2), at=described(dataset), paper=f"TSP{size:,}")
        for size in pens.SIZES
        for dataset in [pens.held_out(study.scale, size)]
    )
    return Table("Best scaling factors", ("Model",), columns, tuple(rows))
