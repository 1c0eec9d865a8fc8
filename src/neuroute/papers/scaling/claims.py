"""What paper `scaling` claims, and how it is looked at here."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import variance
from typing import Literal, Self

import numpy as np

from neuroute.analysis import power_laws as laws
from neuroute.analysis.intervals import ENOUGH, Array, Term, half_width
from neuroute.papers.scaling.roles import DEPTHS, GRID, WIDTHS, Shape
from neuroute.rendering.claims import INSTANCES, Finding, Side, above, spread_of
from neuroute.rendering.table import Cell
from neuroute.rendering.verdicts.comparisons import Evidence, cells_of

GREEDY = re.compile(r"Greedy, depth=(\d+), width=(\d+)")
OVER = f"{INSTANCES} and trainings (drawn by Student's t)"
Fitted = Callable[[Sequence[float], Array], Array]  # (points,) x, (rows, points) gaps -> (rows,)
DEEPER = [[Shape(depth, width) for depth in DEPTHS] for width in WIDTHS]  # at each width
WIDER = [[Shape(depth, width) for width in WIDTHS] for depth in DEPTHS]  # at each depth


def depth_pays_more(evidence: Evidence) -> Finding:
    """Compare mean exponents of the gap in parameters: of deeper models at each width, of wider ones at each depth."""
    grid, exponents = _Grid.of(evidence), laws.resampled_exponents
    what = "exponents of the gap in parameters, means of the fits of Figure 2; the paper's from its printed gaps"
    sides = grid.side("deeper", DEEPER, exponents), grid.side("wider", WIDER, exponents)
    return above(*sides, what, OVER, grid.at)


def one_law_fits_loosely(evidence: Evidence) -> Finding:
    """Compare what laws leave over: one in the parameters of all models, and one for each depth and each width.

    By degree of freedom: three points lie nearer to a law of two coefficients than twelve do by chance, too.
    """
    grid, residuals = _Grid.of(evidence), laws.resampled_residuals
    sides = (
        grid.side("one law", [list(GRID)], residuals),
        grid.side("laws by depth or by width", [*DEEPER, *WIDER], residuals),
    )
    what = "standard deviation around the fitted law, in % of a gap, by degree of freedom"
    return above(*sides, what, OVER, grid.at)


def deep_gains_faster_from_data(evidence: Evidence) -> Finding:
    """Compare the exponents of the gap in samples of (42, 128) and (6, 512) (Section 4.2)."""
    return _gains_faster_from_data(evidence, Shape(42, 128), Shape(6, 512))


def depth_gains_faster_from_data(evidence: Evidence) -> Finding:
    """Compare the exponents of the gap in samples of (42, 128) and (6, 128) (Section 4.2)."""
    return _gains_faster_from_data(evidence, Shape(42, 128), Shape(6, 128))


def _gains_faster_from_data(evidence: Evidence, deep: Shape, other: Shape) -> Finding:
    """Claim that the first exponent is the larger one, by how trainings of one model differ."""
    cells = {labels["model"]: cell for labels, _, cell in cells_of(evidence.table("table_figure3"))}
    of_both = [cells[shape.name] for shape in (deep, other)]

    def side(shape: Shape, cell: Cell) -> Side:
        return Side(shape.name, cell.measured if isinstance(cell.measured, float) else None, cell.published)

    what, over = "exponents of the validation gap in training samples", "trainings (Student's t), one validation set"
    finding = above(side(deep, of_both[0]), side(other, of_both[1]), what, over, of_both[0].at)
    trainings = [cell.behind.gaps for cell in of_both if cell.behind and len(cell.behind.gaps) >= ENOUGH]
    middle = finding.difference.measured
    if len(trainings) < len(of_both) or not isinstance(middle, float):
        return replace(finding, lacks=f"{ENOUGH} trainings or more of each")
    terms = tuple(Term(variance(of) / len(of), len(of) - 1, trainings=len(of)) for of in trainings)
    half = half_width(terms)
    return replace(finding, difference=replace(finding.difference, low=middle - half, high=middle + half), terms=terms)


@dataclass(frozen=True)
class _Grid:
    """The paper's twelve models: their parameters in millions and greedy gaps in %, measured here and printed."""

    parameters: dict[Shape, Cell]
    gaps: dict[Shape, Cell]

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        """Raises NeurouteError where Table 1 or 12 is not there."""
        parameters = {
            Shape(int(labels["depth"]), int(labels["width"])): cell
            for labels, key, cell in cells_of(evidence.table("table1"))
            if key == "parameters_millions"
        }
        gaps = {
            Shape(int(model[1]), int(model[2])): cell
            for labels, key, cell in cells_of(evidence.table("table12"))
            if key == "gap_pct" and (model := GREEDY.fullmatch(labels["method"]))
        }
        return cls(parameters, gaps)

    @property
    def at(self) -> str:
        return next((cell.at for cell in self.gaps.values() if cell.at), "")

    def side(self, label: str, lines: Sequence[Sequence[Shape]], fitted: Fitted) -> Side:
        """Mean what is fitted to lines of models; nothing where one of the twelve is missing."""

        def mean(side: Literal["measured", "published"], gaps: dict[Shape, Array] | None = None) -> Array | None:
            x, y = _numbers(self.parameters, side), gaps or _numbers(self.gaps, side)
            if len(x) < len(GRID) or len(y) < len(GRID):
                return None
            fits = [fitted([float(x[s][0]) for s in on], np.stack([y[s] for s in on], 1)) for on in lines]
            return np.asarray(np.mean(fits, axis=0))

        here, there = mean("measured"), mean("published")
        samples = self._samples() if here is not None else None
        return Side(
            label,
            None if here is None else float(here[0]),
            None if there is None else float(there[0]),
            None if samples is None else mean("measured", samples),
        )

    def _samples(self) -> dict[Shape, Array] | None:
        """Resample gaps; a model that was trained once might have had another one."""
        rng, samples = np.random.default_rng(0), {}
        for shape in GRID:
            behind = self.gaps[shape].behind
            if behind is None:
                return None
            spread = spread_of(behind.network, behind.problem, behind.times)
            draws = rng.standard_t(spread.freedom, len(behind.samples)) / len(behind.gaps) ** 0.5
            samples[shape] = behind.samples * (1 + spread.share * draws)
        return samples


def _numbers(cells: Mapping[Shape, Cell], side: Literal["measured", "published"]) -> dict[Shape, Array]:
    values = {shape: cells[shape].measured if side == "measured" else cells[shape].published for shape in cells}
    return {shape: np.array([value], float) for shape, value in values.items() if isinstance(value, int | float)}
