"""What paper `scaling` claims, and how it is looked at here: laws over its grid, and curves."""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, variance
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis.contrasts import Estimate, Gap, Term, contrast, law, mean_of, regression, slope, spread_ratio
from neuroute.core.errors import NeurouteError
from neuroute.pipeline.papers.scaling import paper as scaling
from neuroute.pipeline.papers.scaling.paper import GRID, Shape
from neuroute.pipeline.rendering.comparisons import Evidence, Finding, cells_of, combined, one_cell, spread_of
from neuroute.pipeline.rendering.table import Cell

Array = NDArray[np.float64]
Side = Literal["measured", "published"]
GREEDY = re.compile(r"Greedy, depth=(\d+), width=(\d+)")
DEEPER = [[Shape(depth, width) for depth in scaling.DEPTHS] for width in scaling.WIDTHS]  # at each width
WIDER = [[Shape(depth, width) for width in scaling.WIDTHS] for depth in scaling.DEPTHS]  # at each depth
BEAMS = (1, 2, 4, 8, 16, 32, 64)


# -- laws over the grid ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelGrid:
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
    def is_measured(self) -> bool:
        """Whether all twelve models have a gap with trainings behind it."""
        return all(self.gaps[shape].behind is not None for shape in GRID)

    def sizes(self, side: Side) -> Array:
        """ln N of the twelve (models,).  Raises NeurouteError where one is missing."""
        return self.logs(side, self.parameters)

    def logs(self, side: Side, cells: Mapping[Shape, Cell] | None = None) -> Array:
        """The logarithms of cells, by default gaps, of the twelve (models,); NeurouteError where one is missing."""
        values = [getattr((cells or self.gaps)[shape], side) for shape in GRID]
        if not all(isinstance(value, int | float) and value > 0 for value in values):
            raise NeurouteError("the grid lacks a model")
        logs: Array = np.log(np.array(values, float))
        return logs

    def finding(self, quantity: str, design: Callable[[Side], Array], weights: Sequence[float]) -> Finding:
        """A combination of the coefficients of ln gap on a design (models, coefficients)."""
        printed = regression(design("published"), self.logs("published"), weights).value
        at = next((cell.at for cell in self.gaps.values() if cell.at), "")
        if not self.is_measured:
            return Finding(quantity, None, printed, "exponent", at=at)
        gaps = [gap for shape in GRID if (gap := self.gaps[shape].behind)]
        return Finding(quantity, law(design("measured"), gaps, weights, spread_of), printed, "exponent", at=at)

    def directions(self, side: Side) -> Array:
        """Ones, and what depth and what width make of ln N (models, 3)."""
        return directions(dict(zip(GRID, np.exp(self.sizes(side)).tolist(), strict=True)))

    def bivariate(self, side: Side) -> Array:
        """Ones, ln N and ln of depth over width (models, 3): Equation 6."""
        ratios = [math.log(shape.depth / shape.width) for shape in GRID]
        return np.stack([np.ones(len(GRID)), self.sizes(side), np.array(ratios)], 1)


def directions(parameters: Mapping[Shape, float]) -> Array:
    """Return ones, and ln N of each model as the sum of what its depth and what its width make of it (models, 3).

    parameters: of every model of a grid, depths by widths.
    """
    logs = {shape: math.log(count) for shape, count in parameters.items()}
    mean = fmean(logs.values())
    deep = {depth: fmean(log for s, log in logs.items() if s.depth == depth) - mean for depth, _ in logs}
    wide = {width: fmean(log for s, log in logs.items() if s.width == width) - mean for _, width in logs}
    return np.array([[1.0, deep[depth], wide[width]] for depth, width in logs])


EXPONENTS = {"deeper": (0, -1, 0), "wider": (0, 0, -1), "apart": (0, -1, 1)}  # of `directions`


def depth_pays_more(evidence: Evidence) -> list[Finding]:
    """Compare the exponents of the gap in parameters by depth and by width, of one regression over all models."""
    grid = ModelGrid.of(evidence)
    return [grid.finding("exponent by depth less that by width", grid.directions, EXPONENTS["apart"])]


def size_pays(evidence: Evidence) -> list[Finding]:
    """The exponent of the gap in parameters at a fixed shape (Equation 6)."""
    grid = ModelGrid.of(evidence)
    return [grid.finding("exponent in parameters at a fixed shape", grid.bivariate, (0, -1, 0))]


def shape_pays(evidence: Evidence) -> list[Finding]:
    """The exponent of the gap in depth over width at fixed parameters (Equation 6)."""
    grid = ModelGrid.of(evidence)
    return [grid.finding("exponent in depth over width at fixed parameters", grid.bivariate, (0, 0, -1))]


def one_law_fits_loosely(evidence: Evidence) -> list[Finding]:
    """Compare what laws leave over: one in the parameters of all models, and one for each depth and each width.

    By degree of freedom: three points lie nearer to a law of two coefficients than twelve do by chance, too.
    """
    return [_left_over(evidence, 0.0, "spread around laws by depth or width below that around one law")]


def separate_laws_fit_tenfold(evidence: Evidence) -> list[Finding]:
    """The same against a factor of ten (Section 4.1)."""
    quantity = "log ratio of the spreads around one law and around laws by depth or width, less ln 10"
    return [replace(_left_over(evidence, math.log(10), quantity), unit="log")]


def _left_over(evidence: Evidence, bound: float, quantity: str) -> Finding:
    grid = ModelGrid.of(evidence)
    groups = [[GRID.index(shape) for shape in line] for line in (*DEEPER, *WIDER)]

    def ratio(side: Side) -> Estimate:
        estimate = spread_ratio(grid.sizes(side), grid.logs(side), groups)
        return replace(estimate, value=estimate.value - bound)

    at = next((cell.at for cell in grid.gaps.values() if cell.at), "")
    measured = ratio("measured") if grid.is_measured else None
    return Finding(quantity, measured, ratio("published").value, at=at)


def depth_first_lies_below(evidence: Evidence) -> list[Finding]:
    """How far the six shapes of least depth over width lie above the common law, less the other six."""
    grid = ModelGrid.of(evidence)
    by_ratio = sorted(GRID, key=lambda shape: shape.depth / shape.width)
    sign = np.array([1.0 if shape in by_ratio[:6] else -1.0 for shape in GRID]) / 6

    def weights(side: Side) -> Array:
        design = np.stack([np.ones(len(GRID)), grid.sizes(side)], 1)
        return np.asarray(sign - sign @ design @ np.linalg.pinv(design))

    quantity = "depth-first models over width-first ones, beside the common law"
    printed = float(weights("published") @ grid.logs("published"))
    if not grid.is_measured:
        return [Finding(quantity, None, printed)]
    gaps = [gap for shape in GRID if (gap := grid.gaps[shape].behind)]
    estimate = contrast(zip(weights("measured").tolist(), gaps, strict=True), spread_of)
    return [Finding(quantity, estimate, printed)]


# -- exponents in samples and in the compute of beams ------------------------------------------------------------------


def _gains_faster_from_data(evidence: Evidence, deep: Shape, other: Shape) -> list[Finding]:
    """Compare the exponents of the gap in samples of two models (Section 4.2).

    Their spread over trainings is pooled over the models of the figure.
    """
    cells = {labels["model"]: cell for labels, _, cell in cells_of(evidence.table("table_figure3"))}
    pair = [cells[shape.name] for shape in (deep, other)]
    printed = [cell.published for cell in pair]
    of_print = printed[0] - printed[1] if all(isinstance(value, float) for value in printed) else None  # type: ignore[operator]
    finding = Finding(
        f"exponent in samples of {deep.name} less that of {other.name}", None, of_print, "exponent", at=pair[0].at,
        lacks="two trainings or more",
    )  # fmt: skip
    values = [cell.behind.values for cell in cells.values() if cell.behind]
    first, second = (cell.behind for cell in pair)
    if first is None or second is None:
        return [finding]
    freedom = sum(len(each) - 1 for each in values)
    terms: tuple[Term, ...] = ()
    if freedom:
        pooled = math.fsum((len(each) - 1) * variance(each) for each in values if len(each) > 1) / freedom
        terms = (Term(pooled / len(first.values) + pooled / len(second.values), freedom, "trainings"),)
    fewest = min(len(first.values), len(second.values))
    return [replace(finding, estimate=Estimate(fmean(first.values) - fmean(second.values), terms, fewest))]


deep_gains_faster_from_data = partial(_gains_faster_from_data, deep=Shape(42, 128), other=Shape(6, 512))
depth_gains_faster_from_data = partial(_gains_faster_from_data, deep=Shape(42, 128), other=Shape(6, 128))


def _gains_from_beams(evidence: Evidence, first: Shape, second: Shape) -> list[Finding]:
    """Compare the exponents of the gap in compute of two models: beams cost in proportion (Figure 4)."""
    cells = {
        (shape, beam): one_cell(evidence, "table18", f"gap_beam{beam}_pct", model=f"D={shape.depth}, W={shape.width}")
        for shape in (first, second)
        for beam in BEAMS
    }
    beams = [beam for beam in BEAMS if all(cells[shape, beam].measured for shape in (first, second))] or list(BEAMS)
    x = np.log(np.array(beams, float))
    weights = (x - x.mean()) / np.sum((x - x.mean()) ** 2) if len(beams) > 1 else np.zeros(len(beams))
    parts = [
        (sign * float(c), cells[shape, beam])
        for sign, shape in ((-1.0, first), (1.0, second))
        for c, beam in zip(weights, beams, strict=True)
    ]
    return [combined(f"exponent in compute of {first.name} less that of {second.name}", parts, "exponent")]


depth_gains_more_from_beams = partial(_gains_from_beams, first=Shape(42, 128), second=Shape(6, 512))
width_gains_from_beams = partial(_gains_from_beams, first=Shape(6, 512), second=Shape(6, 128))


def beam_replaces_depth(evidence: Evidence) -> list[Finding]:
    """Set beams 8 and 4 of (6, 128) against the greedy (42, 128) (Table 18)."""
    small, deep = "D=6, W=128", "D=42, W=128"
    greedy = one_cell(evidence, "table18", "gap_beam1_pct", model=deep)
    four, eight = (one_cell(evidence, "table18", f"gap_beam{beam}_pct", model=small) for beam in (4, 8))
    return [
        combined("beam 8 of (6, 128) below the greedy (42, 128)", [(1.0, greedy), (-1.0, eight)]),
        combined("the greedy (42, 128) below beam 4 of (6, 128)", [(1.0, four), (-1.0, greedy)]),
    ]


def search_gains_grow(evidence: Evidence) -> list[Finding]:
    """By how much more re-construction divides the gaps of larger models than that of (6, 128) (Table 19)."""
    results = []
    for shape in (Shape(6, 512), Shape(42, 128)):
        parts = [
            (sign * of_step, one_cell(evidence, "table19", column, test_set="TSP1000", model=f"Ours (D={d}, W={w})"))
            for sign, (d, w) in ((1.0, shape), (-1.0, Shape(6, 128)))
            for of_step, column in ((1.0, "gap_rrc0_pct"), (-1.0, "gap_rrc1000_pct"))
        ]
        results.append(combined(f"gain of {shape.name} over that of (6, 128)", parts))
    return results


# -- curves: choices by rank, gaps along training ----------------------------------------------------------------------


def deep_sees_farther(evidence: Evidence) -> list[Finding]:
    """Compare the shares of wrong choices beyond the eighth neighbour (Figure 12)."""
    far = {
        (int(line["depth"]), int(line["width"])): 1 - float(line["hits"]) / float(line["decisions"])
        for line in evidence.points("figure12")
        if line["side"] == "measured" and str(line["rank"]) == ">8" and float(line["hits"]) < float(line["decisions"])
    }
    deep, printed = far.get((42, 128)), {(6, 128): 0.17, (6, 512): 0.13}  # 83, 87 and 93 % in the text of Section 7
    return [
        Finding(
            f"wrong choices of (42, 128) below those of {Shape(*shape).name}",
            Estimate(math.log(far[shape] / deep)) if deep and shape in far else None,
            math.log(in_print / 0.07),
            lacks="probes of several trainings",
        )
        for shape, in_print in printed.items()
    ]


def success_falls_with_rank(evidence: Evidence) -> list[Finding]:
    """How the share of wrong choices grows with the right node's rank among the neighbours, of each model."""
    lines: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for line in evidence.points("figure12"):
        rank = str(line["rank"]).removesuffix(".0")
        if line["side"] == "measured" and rank.isdigit() and float(line["hits"]) < float(line["decisions"]):
            name = Shape(int(line["depth"]), int(line["width"])).name
            lines[name].append((float(rank), 1 - float(line["hits"]) / float(line["decisions"])))
    quantity = "exponent of wrong choices in the rank"
    slopes = {name: slope(*zip(*dict.fromkeys(of), strict=True)) for name, of in lines.items()}
    of_models = [Finding(f"{quantity}, {name}", of, unit="exponent", of_trainings=False) for name, of in slopes.items()]
    return of_models or [Finding(quantity, None)]


def _along_training(evidence: Evidence, figure: str, runs: tuple[str, str]) -> list[Finding]:
    """Compare the mean of ln gap over the validations of the trainings of two runs."""
    curves: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in runs}
    for line in evidence.points(figure):
        name = str(line.get("run")).partition("/")[2].partition("-s")[0]
        if line["panel"] == "gap" and line["side"] == "measured" and name in curves:
            curves[name][str(line["run"])].append(math.log(float(line["gap_pct"])))
    gaps = [
        Gap(tuple(math.exp(fmean(logs)) for logs in of.values()), np.zeros(1), "", 1, "DecoderOnly", "tsp", 1.0, name)
        for name, of in curves.items()
        if of
    ]
    quantity = f"gap along training of {runs[0]} below that of {runs[1]}"
    if len(gaps) < len(runs):
        return [Finding(quantity, None)]
    return [Finding(quantity, contrast(((-1.0, gaps[0]), (1.0, gaps[1])), spread_of), at="validation set")]


gate_converges_faster = partial(_along_training, figure="figure7", runs=("base_42x128", "nogate_42x128"))
rezero_converges_faster = partial(_along_training, figure="figure8", runs=("base_42x128", "norezero_42x128"))
# With ten million and with one million samples.
more_samples_converge_faster = partial(_along_training, figure="figure9", runs=("data10M_12x128", "data1M_12x128"))


def time_grows_less_than_flops(evidence: Evidence) -> list[Finding]:
    """How many times as many FLOPs (12, 512) has as (24, 256), over how many times its time, by batch (Table 17)."""
    wide, deep = "Greedy, depth=12, width=512", "Greedy, depth=24, width=256"

    def logs(side: Side) -> list[float]:
        values = []
        for batch in (50, 100, 1000):
            columns = ("gflops_paper", f"time_batch{batch}_s")
            ratios = [
                [getattr(one_cell(evidence, "table17", key, method=m), side) for m in (wide, deep)] for key in columns
            ]
            numbers = [[float(v) for v in of if isinstance(v, int | float)] for of in ratios]
            if all(len(of) == 2 for of in numbers):
                values.append(math.log(numbers[0][0] / numbers[0][1]) - math.log(numbers[1][0] / numbers[1][1]))
        return values

    here, in_print = logs("measured"), logs("published")
    return [
        Finding(
            "times as much time of (12, 512) below times as many FLOPs", mean_of(here) if here else None,
            fmean(in_print) if in_print else None, busy=evidence.busy("table17"), of_trainings=False,
        )
    ]  # fmt: skip
