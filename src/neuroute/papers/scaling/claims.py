"""What paper `scaling` claims, and how it is looked at here."""

from __future__ import annotations

import numpy as np

from neuroute.analysis import power_laws as laws
from neuroute.papers.scaling import roles
from neuroute.papers.scaling.curves import HERE, PAPER
from neuroute.papers.scaling.roles import GRID, Shape, run_id
from neuroute.papers.scaling.series import Models, Points
from neuroute.plan.claims import claim
from neuroute.rendering.cells import number, printed_numbers
from neuroute.rendering.claims import INSTANCES, Finding, Side, above, gap_side, less
from neuroute.rendering.columns import described
from neuroute.rendering.study import Study

FIGURES = ("figure1", "figure2", "figure3", "figure6", "figure12")


@claim(
    "Making the decoder deeper pays more per parameter than making it wider.",
    where="abstract; Section 4.1, Figure 2",
    artifact="figure2",
)
def depth_pays_more(study: Study) -> Finding:
    """Compare mean exponents of the gap in parameters: of deeper models at each width, of wider ones at each depth."""
    models = Models.tsp(study.scale).of_paper
    points = models.points(study)
    samples = models.samples(study, GRID) if len(points[HERE]) == len(GRID) else None

    def side(label: str, lines: list[list[Shape]]) -> Side:
        exponents = None
        if samples is not None:
            of = {shape: samples[:, i] for i, shape in enumerate(GRID)}
            x = points[HERE]
            fits = [laws.resampled_exponents([x[s][0] for s in on], np.stack([of[s] for s in on], 1)) for on in lines]
            exponents = np.mean(fits, axis=0)
        return Side(label, _exponent(points[HERE], lines), _exponent(points[PAPER], lines), exponents)

    at = described(roles.reference(study.scale, 100).dataset)
    what = "exponents of the gap in parameters, means of the fits of Figure 2; the paper's from its printed gaps"
    return above(side("deeper", models.lines("depth")), side("wider", models.lines("width")), what, INSTANCES, at)


def _exponent(points: Points, lines: list[list[Shape]]) -> float | None:
    """Return the mean exponent over the lines of models; None where one has no fit."""
    try:
        fits = [laws.fit([points[s][0] for s in on], [points[s][1] for s in on]) for on in lines]
    except (KeyError, laws.FitError):
        return None
    return float(np.mean([law.alpha for law in fits]))


@claim(
    "A deep, narrow model beats a shallow, wide one of equal parameters.",
    where="Section 5.1, Table 2",
    artifact="table2",
)
def narrow_is_better(study: Study) -> Finding:
    """Compare (96, 32) with (6, 128) at the size of training."""
    return _less(study, 2, Shape(96, 32), Shape(6, 128))


@claim(
    "Trained on few samples, a deep model beats a wide one of twice its parameters.",
    where="Section 5.2, Table 3",
    artifact="table3",
)
def depth_needs_less_data(study: Study) -> Finding:
    """Compare (42, 128) with (6, 512), both trained on 0.1M samples, at the size of training."""
    return _less(study, 3, Shape(42, 128), Shape(6, 512), "small01M")


def _less(study: Study, table: int, better: Shape, worse: Shape, prefix: str = "") -> Finding:
    dataset = roles.reference(study.scale, 100).dataset

    def side(shape: Shape) -> Side:
        gap = number(printed_numbers(study, table, **shape._asdict()), 100, "gap_pct")
        return gap_side(study, f"depth {shape.depth}, width {shape.width}", run_id(shape, prefix), dataset, gap)

    return less(side(better), side(worse), dataset, "greedy gap")
