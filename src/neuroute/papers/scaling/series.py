"""What the figures of paper `scaling` draw: points and curves of its models, measured and published."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis import power_laws as laws
from neuroute.core.lazy import pd
from neuroute.papers.scaling import roles
from neuroute.papers.scaling.curves import HERE, PAPER, Curve, model_curve
from neuroute.papers.scaling.roles import GRID, Shape, run_id
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, tested
from neuroute.plan.objects import Decoding, Labels, beam_search
from neuroute.rendering.cells import printed_numbers
from neuroute.rendering.study import Study

Points = dict[Shape, tuple[float, float]]  # model -> (x, gap %)


# -- printed ----------------------------------------------------------------------------------------------------------


def printed_values(study: Study, table: int | str, **where: object) -> dict[Shape, float]:
    """Read the paper's value for each model, of the rows whose columns hold `where`."""
    return _by_shape(printed_numbers(study, table, **where))


def quoted_values(study: Study, quantity: str) -> dict[Shape, float]:
    """Read numbers of models from the paper's text and captions."""
    return printed_values(study, "quoted", quantity=quantity)


def quoted_value(study: Study, quantity: str) -> float:
    """Read a number of the whole study from the paper's text and captions."""
    rows = printed_numbers(study, "quoted", quantity=quantity)
    return float(rows[rows.depth.isna()].value.item())


def _by_shape(rows: pd.DataFrame) -> dict[Shape, float]:
    columns = zip(rows.depth, rows.width, rows.value, strict=True)
    return {Shape(int(depth), int(width)): float(value) for depth, width, value in columns if depth > 0}


# -- the twelve models ------------------------------------------------------------------------------------------------


def grid_needs(scale: Scale) -> Iterator[Need]:
    """Of figures of the twelve models' greedy gaps."""
    for shape in GRID:
        yield from tested(run_id(shape), roles.reference(scale, 100))


def grid_points(study: Study) -> dict[str, Points]:
    """Side -> model -> (parameters in millions, TSP100 gap in %) of the models that have both."""
    dataset, here = roles.reference(study.scale, 100).dataset, {}
    for shape in GRID:
        count, gap = study.value("parameters", run_id(shape), dataset), study.gap(run_id(shape), dataset)
        if count is not None and gap is not None:
            here[shape] = (count / 1e6, gap)
    millions, gaps = printed_values(study, 1, metric="params_m"), printed_values(study, 12, metric="gap_pct")
    return {HERE: here, PAPER: {shape: (millions[shape], gaps[shape]) for shape in GRID if shape in gaps}}


def grid_curve(
    study: Study, side: str, panel: str, name: str, points: Points, shapes: Sequence[Shape], **look: Any
) -> Curve:
    """Join the points of these models, with bootstrap samples where they are measured."""
    kept = [shape for shape in shapes if shape in points]
    samples = grid_samples(study, kept) if side == HERE else None
    return Curve(side, panel, name, [points[shape] for shape in kept], kept, samples=samples, **look)


def grid_samples(study: Study, shapes: Iterable[Shape]) -> NDArray[np.float64] | None:
    """Resample the greedy TSP100 gaps of these models."""
    return _resample_gaps(study, ((shape, Decoding()) for shape in shapes), roles.reference(study.scale, 100))


def _resample_gaps(study: Study, cells: Iterable[tuple[Shape, Decoding]], test: Labels) -> NDArray[np.float64] | None:
    """Compute paired bootstrap gaps (resamples, cells); None when a cell has no lengths."""
    lengths = [study.lengths(run_id(shape), test.dataset, decoding) for shape, decoding in cells]
    measured = [pair for pair in lengths if pair is not None]
    if not measured or len(measured) < len(lengths):
        return None
    return laws.resampled_gaps(np.stack([own for own, _ in measured]), measured[0][1])


def beats_larger(points: Points) -> tuple[list[Shape], list[Shape]]:
    """Models with a smaller gap than some model of more parameters; and those that do so by being deeper than it."""

    def wins(a: Shape, b: Shape) -> bool:
        return points[b][0] > points[a][0] and points[b][1] > points[a][1]

    every = [a for a in points if any(wins(a, b) for b in points)]
    return every, [a for a in every if any(wins(a, b) and a.depth > b.depth for b in points)]


# -- beam search ------------------------------------------------------------------------------------------------------


def beam_needs(scale: Scale, shapes: Iterable[Shape]) -> Iterator[Need]:
    """Of curves of these models over all beams."""
    for shape in shapes:
        searches = map(beam_search, scale[ScalingScale].beams.values())
        yield from tested(run_id(shape), roles.searched(scale), *searches)


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
    cells = ((shape, beam_search(beam)) for beam in beams)
    samples = _resample_gaps(study, cells, test) if resample and side == HERE else None
    return model_curve(side, panel, shape, points, samples=samples, extra={"beam": beams})
