"""The figure of the toy paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.pipeline.papers.toy.paper import RUN

from neuroute.pipeline.plan.needs import Log, Need, artifact
from neuroute.pipeline.rendering.style import Drawing, new_figure

if TYPE_CHECKING:
    from neuroute.pipeline.plan.config import Scale
    from neuroute.pipeline.rendering.study import Study


def _needs(scale: Scale) -> list[Need]:
    return [Log(RUN)]


@artifact("Gap of the toy network in training", needs=_needs)
def figure1(study: Study) -> Drawing:
    """The gap on validation instances over training."""
    points = study.log(RUN, "validation").reindex(columns=["samples", "gap_pct"])  # of given weights there is no log
    figure = new_figure(height=2.5)
    axes = figure.subplots()
    axes.plot(points.samples, points.gap_pct, marker="o")
    axes.set_xlabel("Training samples")
    axes.set_ylabel("Gap to optimal tours (%)")
    axes.set_ylim(bottom=0)
    return Drawing(figure, points, ("One training.",), "The gap over training samples.")
