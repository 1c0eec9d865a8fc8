"""The figure of the toy paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroute.papers.toy.paper import RUN

from neuroute.plan.needs import Log, Need, artifact
from neuroute.rendering.style import Drawing, new_figure

if TYPE_CHECKING:
    from neuroute.plan.config import Scale
    from neuroute.rendering.study import Study


def _needs(scale: Scale) -> list[Need]:
    return [Log(RUN)]


@artifact("Loss of the toy network", needs=_needs)
def figure1(study: Study) -> Drawing:
    """The loss over training."""
    points = study.log(RUN, "train")[["samples", "loss"]]
    figure = new_figure(height=2.5)
    axes = figure.subplots()
    axes.plot(points.samples, points.loss)
    axes.set_xlabel("Training samples")
    axes.set_ylabel("Loss")
    return Drawing(figure, points, ("One training.",), "The loss over training samples.")
