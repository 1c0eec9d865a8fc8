"""What paper `scaling` claims, and how it is looked at here."""

from __future__ import annotations

import numpy as np

from neuroute.analysis import power_laws as laws
from neuroute.papers.scaling import roles
from neuroute.papers.scaling.curves import HERE, PAPER
from neuroute.papers.scaling.roles import GRID, Shape
from neuroute.papers.scaling.series import Models, Points
from neuroute.rendering.claims import INSTANCES, Finding, Side, above, spread_of
from neuroute.rendering.columns import described
from neuroute.rendering.study import Study


def depth_pays_more(study: Study) -> Finding:
    """Compare mean exponents of the gap in parameters: of deeper models at each width, of wider ones at each depth."""
    models = Models.tsp(study.scale).of_paper
    points = models.points(study)
    samples = models.samples(study, GRID) if len(points[HERE]) == len(GRID) else None
    if samples is not None:  # each model is trained once: its gap might have been another one
        spread = spread_of("DecoderOnly", "tsp", 1)
        samples = samples * (1 + spread.share * np.random.default_rng(0).standard_t(spread.freedom, samples.shape))

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
    over = f"{INSTANCES} and trainings (drawn by Student's t)"
    return above(side("deeper", models.lines("depth")), side("wider", models.lines("width")), what, over, at)


def _exponent(points: Points, lines: list[list[Shape]]) -> float | None:
    """Return the mean exponent over the lines of models; None where one has no fit."""
    try:
        fits = [laws.fit([points[s][0] for s in on], [points[s][1] for s in on]) for on in lines]
    except (KeyError, laws.FitError):
        return None
    return float(np.mean([law.alpha for law in fits]))
