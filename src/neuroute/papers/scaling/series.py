"""What the figures of paper `scaling` draw: points and curves of its models, measured and published."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from neuroute.papers.scaling import grid, roles
from neuroute.papers.scaling.curves import HERE, PAPER, WIDTH_MARKER, Curve, colour, shape_name
from neuroute.papers.scaling.grid import GRID, Shape
from neuroute.papers.scaling.scale import ScalingScale
from neuroute.plan.config import Scale
from neuroute.plan.needs import Need, tested
from neuroute.plan.objects import beam_search
from neuroute.rendering.study import Study

Points = dict[Shape, tuple[float, float]]  # model -> (x, gap %)


def grid_points(study: Study) -> dict[str, Points]:
    """Side -> model -> (parameters in millions, TSP100 gap in %) of the models that have both."""
    dataset = grid.labelled_set(study, 100)
    millions, gaps = grid.printed(study, 1, "params_m", GRID), grid.printed(study, 12, "gap_pct", GRID)
    here: Points = {}
    for shape in GRID:
        count = study.value("parameters", grid.run_id(shape), dataset)
        gap = study.gap(grid.run_id(shape), dataset)
        if count is not None and gap is not None:
            here[shape] = (count / 1e6, gap)
    return {HERE: here, PAPER: {s: (millions[s], gaps[s]) for s in GRID if s in gaps}}


def grid_curve(
    study: Study, side: str, panel: str, name: str, points: Points, shapes: Sequence[Shape], **look: Any
) -> Curve:
    """The points of these models as one curve, with bootstrap samples where they are measured."""
    kept = [s for s in shapes if s in points]
    samples = None
    if side == HERE:
        samples = grid.resampled_gaps(study, [(s, 1) for s in kept], grid.labelled_set(study, 100))
    return Curve(
        side,
        panel,
        name,
        [points[s][0] for s in kept],
        [points[s][1] for s in kept],
        markers=[WIDTH_MARKER[s[1]] for s in kept],
        shapes=kept,
        samples=samples,
        **look,
    )


def beats_larger(points: Points) -> tuple[list[Shape], list[Shape]]:
    """Models with a smaller gap than some model of more parameters; and those that do so by being deeper than it."""

    def wins(a: Shape, b: Shape) -> bool:
        return points[b][0] > points[a][0] and points[b][1] > points[a][1]

    every = [a for a in points if any(wins(a, b) for b in points)]
    return every, [a for a in every if any(wins(a, b) and a[0] > b[0] for b in points)]


def beam_curve(
    study: Study, side: str, panel: str, shape: Shape, cost: Callable[[Shape, int], float | None], *, resample: bool
) -> Curve:
    """Gap over `cost(model, beam)` for all beams of Table 18; `beam` is the width at that side's size."""
    dataset = grid.searched_set(study)
    found: list[tuple[int, float, float]] = []
    for role, beam in study.scale[ScalingScale].beams.items():
        used = beam if side == HERE else role
        if side == HERE:
            gap = study.gap(grid.run_id(shape), dataset, grid.decoding_id(beam))
        else:
            gap = grid.printed(study, 18, "gap_pct", [shape], beam=role).get(shape)
        x = cost(shape, used)
        if gap is not None and x is not None and x > 0:
            found.append((used, x, gap))
    beams = [b for b, _, _ in found]
    samples = grid.resampled_gaps(study, [(shape, b) for b in beams], dataset) if resample and side == HERE else None
    return Curve(
        side,
        panel,
        shape_name(shape),
        [x for _, x, _ in found],
        [y for _, _, y in found],
        colour(shape),
        [WIDTH_MARKER[shape[1]]] * len(found),
        [shape] * len(found),
        samples,
        extra={"beam": beams},
    )


def grid_needs(scale: Scale) -> Iterator[Need]:
    """Of figures of the twelve models' greedy gaps."""
    for shape in roles.GRID:
        yield from tested(roles.run_id(shape), roles.reference(scale, 100))


def beam_needs(scale: Scale, shape: str) -> Iterator[Need]:
    """Of a curve of one model over all beams."""
    labels = roles.reference(scale, 100, scale[ScalingScale].beam_count)
    yield from tested(roles.run_id(shape), labels, *map(beam_search, scale[ScalingScale].beams.values()))
