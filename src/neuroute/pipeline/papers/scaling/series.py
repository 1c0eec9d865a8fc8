"""What the figures of paper `scaling` draw: points and curves of its models, measured and published."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis.intervals import resampled_gaps
from neuroute.evaluation.accounting.flops import solution_paper
from neuroute.pipeline.papers.scaling import curves, roles
from neuroute.pipeline.papers.scaling.cells import DecoderOnly
from neuroute.pipeline.papers.scaling.curves import HERE, PAPER, Curve, model_curve
from neuroute.pipeline.papers.scaling.roles import Shape, run_id
from neuroute.pipeline.papers.scaling.scale import ScalingScale
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.plan.needs import Need, tested
from neuroute.pipeline.rendering.cells import printed_numbers
from neuroute.pipeline.rendering.study import Study
from neuroute.specs.objects import Decoding, Labels, beam_search

Points = dict[Shape, tuple[float, float]]  # model -> (x, gap %)


def printed_values(study: Study, table: int | str, **where: object) -> dict[Shape, float]:
    """Read the paper's value for each model, of the rows whose columns hold `where`."""
    rows = printed_numbers(study, table, **where)
    columns = zip(rows.depth, rows.width, rows.value, strict=True)
    return {Shape(int(depth), int(width)): float(value) for depth, width, value in columns if depth > 0}


def quoted_values(study: Study, quantity: str) -> dict[Shape, float]:
    """Read numbers of models from the paper's text and captions."""
    return printed_values(study, "quoted", quantity=quantity)


def quoted_value(study: Study, quantity: str) -> float:
    """Read a number of the whole study from the paper's text and captions."""
    rows = printed_numbers(study, "quoted", quantity=quantity)
    return float(rows[rows.depth.isna()].value.item())


@dataclass(frozen=True)
class Models:
    """The depth x width grid: its models, and the test set of their greedy gaps."""

    shapes: Sequence[Shape]
    test: Labels

    @classmethod
    def tsp(cls, scale: Scale) -> Self:
        """The paper's twelve, and those that the scale adds."""
        return cls(roles.grid(scale), roles.reference(scale, 100))

    @property
    def of_paper(self) -> Self:
        """Without those that the scale adds."""
        return replace(self, shapes=[shape for shape in self.shapes if not roles.is_added(shape)])

    @property
    def added(self) -> list[Shape]:
        """Those that the scale adds."""
        return [shape for shape in self.shapes if roles.is_added(shape)]

    def lines(self, along: Literal["depth", "width"]) -> list[list[Shape]]:
        """The models of each width with their depths growing, or of each depth with their widths growing."""
        fixed = 1 if along == "depth" else 0
        return [[s for s in self.shapes if s[fixed] == value] for value in sorted({s[fixed] for s in self.shapes})]

    def needs(self) -> Iterator[Need]:
        """Of figures of their greedy gaps."""
        return tested(map(run_id, self.shapes), self.test)

    def points(self, study: Study) -> dict[str, Points]:
        """Side -> model -> (parameters in millions; gap in %) of the models that have both."""
        dataset, here = self.test.dataset, {}
        for shape in self.shapes:
            run = run_id(shape)
            x, gap = study.value("parameters", run, dataset), study.gap(run, dataset)
            if x is not None and gap is not None:
                here[shape] = (x / 1e6, gap)
        gaps = printed_values(study, 12, metric="gap_pct")
        x_of = printed_values(study, 1, metric="params_m")
        return {HERE: here, PAPER: {shape: (x_of[shape], gaps[shape]) for shape in self.shapes if shape in gaps}}

    def curve(
        self, study: Study, side: str, panel: str, name: str, points: Points, shapes: Sequence[Shape], **look: Any
    ) -> Curve:
        """Join the points of these models, with bootstrap samples where they are measured."""
        shapes_there = [shape for shape in shapes if shape in points]
        samples = self.samples(study, shapes_there) if side == HERE else None
        look["markers"] = [self.looks.marker[shape.width] for shape in shapes_there]
        return Curve(
            side, panel, name, [points[shape] for shape in shapes_there], shapes_there, samples=samples, **look
        )

    @cached_property
    def looks(self) -> curves.Looks:
        """How they are drawn."""
        return curves.Looks.of(self.shapes)

    def samples(self, study: Study, shapes: Iterable[Shape]) -> NDArray[np.float64] | None:
        """Resample the greedy gaps of these models (resamples, models)."""
        return resample_gaps(study, ((run_id(shape), Decoding()) for shape in shapes), self.test)


def printed_gflops(study: Study) -> dict[Shape, float]:
    """GFLOPs of a greedy TSP100 solution of the paper's models, by its convention."""
    heads = printed_values(study, 1, metric="heads")
    return {s: solution_paper(DecoderOnly(*s, int(heads[s])).decision, 100) / 1e9 for s in heads}


def resample_gaps(study: Study, cells: Iterable[tuple[str, Decoding]], test: Labels) -> NDArray[np.float64] | None:
    """Compute paired bootstrap gaps (resamples, cells) of runs; None when a cell has no lengths."""
    lengths = [study.lengths(run, test.dataset, decoding) for run, decoding in cells]
    pairs = [pair for pair in lengths if pair is not None]
    if not pairs or len(pairs) < len(lengths):
        return None
    return resampled_gaps(np.stack([unrounded for unrounded, _ in pairs]), pairs[0][1])


def beats_larger(points: Points) -> tuple[list[Shape], list[Shape]]:
    """Models with a smaller gap than some model of more parameters; and those that do so by being deeper than it."""

    def wins(a: Shape, b: Shape) -> bool:
        return points[b][0] > points[a][0] and points[b][1] > points[a][1]

    every = [a for a in points if any(wins(a, b) for b in points)]
    return every, [a for a in every if any(wins(a, b) and a.depth > b.depth for b in points)]


def beam_needs(scale: Scale, shapes: Iterable[Shape]) -> Iterator[Need]:
    """Of curves of these models over all beams."""
    return tested(map(run_id, shapes), roles.searched(scale), *map(beam_search, scale[ScalingScale].beams.values()))


def measured_beams(study: Study, shape: Shape, metric: str, unit: float = 1) -> Callable[[int], float | None]:
    """Return the cost of a beam width here, as the records have it, in a unit of so many."""

    def cost(beam: int) -> float | None:
        value = study.value(metric, run_id(shape), roles.searched(study.scale).dataset, beam_search(beam))
        return None if value is None else value / unit

    return cost


def beam_curve(
    study: Study, side: str, panel: str, shape: Shape, cost: Callable[[int], float | None], *, resample: bool
) -> Curve:
    """Join the gaps over the `cost` of all beams of Table 18; its argument is the width at that side's size."""
    test, beams, points = roles.searched(study.scale), [], []
    for role, here in study.scale[ScalingScale].beams.items():
        beam = here if side == HERE else role
        if side == HERE:
            gap = study.gap(run_id(shape), test.dataset, beam_search(beam))
        else:
            gap = printed_values(study, 18, metric="gap_pct", beam=role).get(shape)
        x = cost(beam)
        if gap is not None and x is not None and x > 0:
            beams.append(beam)
            points.append((x, gap))
    cells = ((run_id(shape), beam_search(beam)) for beam in beams)
    samples = resample_gaps(study, cells, test) if resample and side == HERE else None
    return model_curve(side, panel, shape, points, samples=samples, extra={"beam": beams})
