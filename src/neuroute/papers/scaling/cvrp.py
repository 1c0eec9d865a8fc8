"""LEHD for the CVRP: what it learns from, and the depth x width grid of our own."""

from __future__ import annotations

from neuroute.papers.scaling.roles import GRID, Shape
from neuroute.papers.scaling.scale import Cvrp, ScalingScale
from neuroute.plan.config import Scale
from neuroute.plan.objects import Dataset, Labels, Split


def labels(scale: Scale, learnt: Cvrp, split: Split, count: int, customers: int | None = None) -> Labels:
    """Return labelled instances of its size, or with so many customers."""
    dataset = Dataset(problem="cvrp", split=split, n=customers or learnt.customers, count=count)
    if split == "test":
        return scale.reference(dataset, learnt.reference_solver)
    return Labels(dataset=dataset, solver=learnt.label_solver if split == "train" else learnt.reference_solver)


def grid_shapes(scale: Scale) -> list[Shape]:
    """Return the models of the grid; none where the scale has no grid."""
    c = scale[ScalingScale].cvrp_grid
    return [] if c is None else [shape for shape in GRID if shape.depth in c.depths and shape.width in c.widths]


def grid_tests(scale: Scale) -> list[Labels]:
    """Return the test sets of the grid, that of the training's size first; none where the scale has no grid."""
    c = scale[ScalingScale].cvrp_grid
    if c is None:
        return []
    counts = {c.customers: c.test_count} | c.larger
    return [labels(scale, c, "test", count, customers) for customers, count in counts.items()]
