"""Tables of trainings that were repeated, in the pages that show them: `python docs/generate/seeds.py`.

A page says where: between `<!-- made by docs/generate/seeds.py: NAME -->` and `<!-- end -->`.
"""

import csv
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis.contrasts import Estimate, Gap, contrast, law
from neuroute.pipeline.papers.scaling.claims import EXPONENTS, directions
from neuroute.pipeline.papers.scaling.paper import Shape
from neuroute.pipeline.rendering.comparisons import SPREADS, Finding, Unit, cells_of, kind_of, spread_of
from neuroute.pipeline.rendering.kept import BEHIND, KeptTables
from neuroute.pipeline.rendering.verdicts import effect

DOCS = Path(__file__).resolve().parents[1]
PAGES = (DOCS / "results" / "scaling.md", DOCS / "concepts" / "verdicts.md")
MADE = re.compile(r"(<!-- made by docs/generate/seeds\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
EQUAL = [((24, 128), (6, 256)), ((24, 256), (6, 512)), ((42, 128), (12, 256)), ((42, 256), (12, 512))]  # in print
GREEDY = re.compile(r"(?:Ours greedy \(D|Greedy, d)epth=(\d+), [Ww]idth=(\d+)\)?")
COLUMNS = {"TSP20": ("table12", "gap_pct")} | {
    f"TSP{here}": ("table13", f"gap_tsp{paper}_pct") for here, paper in ((40, 200), (100, 500), (200, 1000))
}
Shaped = dict[Shape, float]  # parameters in millions


def filled(page: str) -> str:
    """A page with its made parts as the kept gaps have them."""
    made = {
        "grid": grid,
        "exponents": lambda: exponents({test: (parameters(), gaps(*column)) for test, column in COLUMNS.items()}),
        "spreads": spreads,
        "alike": alike,
    }
    return MADE.sub(lambda part: f"{part[1]}\n{made[part[2]]()}\n{part[3]}", page)


def grid() -> str:
    """The greedy gaps of Table 12, as far as they are measured: mean and range of trainings, and in print."""
    rows = [(model, row) for row in table("table12") if (model := GREEDY.fullmatch(row["method"]))]
    heads = {model[2]: f"{row['here'].split(', ')[1]} ({model[2]})" for model, row in rows}
    lines = [f"| gap (%), here (paper) | {' | '.join(heads.values())} |", "|---|" + "---:|" * len(heads)]
    for depth in dict.fromkeys(model[1] for model, _ in rows):
        of_depth = [row for model, row in rows if model[1] == depth]
        cells = []
        for row in of_depth:
            middle, low, high = (float(row[f"gap_pct_measured{end}"]) for end in ("", "_low", "_high"))
            cells.append(f"{middle:.2f}, {low:.2f}-{high:.2f} ({float(row['gap_pct_published']):.3f})")
        lines.append(f"| {of_depth[0]['here'].split(', ')[0]} ({depth}) | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def exponents(of: Mapping[str, tuple[Shaped, Mapping[Shape, Gap]]]) -> str:
    """Exponents of the gap in parameters by depth and by width, of one regression over all trainings; equal sizes.

    of: test set -> the parameters of a grid's models, and their gaps.
    """
    lines = [f"| 95 % intervals, trainings in them | {' | '.join(of)} |", "|---|" + "---:|" * len(of)]
    for name, weights in EXPONENTS.items():
        cells = [law(directions(sizes), [gaps[s] for s in sizes], weights, spread_of) for sizes, gaps in of.values()]
        lines.append(f"| exponent, {name} | {' | '.join(told(cell, 'exponent') for cell in cells)} |")
    for deep, wide in EQUAL:
        pairs = [(gaps.get(Shape(*deep)), gaps.get(Shape(*wide))) for _, gaps in of.values()]
        there = [(a, b) for a, b in pairs if a is not None and b is not None]
        if len(there) == len(pairs):
            cells = [contrast([(-1.0, a), (1.0, b)], spread_of) for a, b in there]
            lines.append(f"| gap of {deep} below that of {wide} | {' | '.join(told(c, 'share') for c in cells)} |")
    return "\n".join(lines) + "\n"


def told(estimate: Estimate, unit: Unit) -> str:
    """A number with its interval."""
    return effect(Finding("", estimate, unit=unit))


def parameters(side: str = "measured") -> Shaped:
    """Those of Table 1, here or in print."""
    rows = table("table1")
    return {Shape(int(r["depth"]), int(r["width"])): float(r[f"parameters_millions_{side}"]) for r in rows}


def gaps(name: str, column: str) -> dict[Shape, Gap]:
    """The greedy gaps of a table's column, with what stands behind them."""
    cells = cells_of(KeptTables(DOCS / "measured" / "laptop", "scaling", is_headline=True).table(name))
    models = [(GREEDY.fullmatch(labels["method"]), cell.behind) for labels, key, cell in cells if key == column]
    return {Shape(int(model[1]), int(model[2])): gap for model, gap in models if model and gap}


def table(name: str) -> list[dict[str, str]]:
    """The rows of a kept table of `scaling`."""
    return rows_of(DOCS / "measured" / "laptop" / f"{name}.csv")


def spreads() -> str:
    """The pooled seed variance that verdicts use."""
    heads = (
        "kind of network",
        "problem",
        "up to this multiple of the training's size",
        "standard deviation over seeds, of the gap",
        "degrees of freedom",
    )
    lines = [f"| {' | '.join(heads)} |"]
    lines += ["|---|---|---:|---:|---:|"]
    for row in rows_of(SPREADS):
        share = f"{100 * float(row['spread']):.1f} %"
        cells = (row["kind"], row["problem"].upper(), f"{float(row['times']):g}", share, row["freedom"])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def alike() -> str:
    """How far the luck of a training is the same by two of its measurements, over all such pairs of ln gap.

    On one test set the covariance over the mean variance, on two the correlation, as their spreads differ.
    """
    models = defaultdict[tuple[str, str, str, int], list[tuple[str, NDArray[np.float64]]]](list)
    for row in rows_of(DOCS / "measured" / "laptop" / BEHIND):
        gaps = np.log([*map(float, row["gaps"].split())] if row["column"].startswith("gap_") else [])
        if len(gaps) > 1 and row["drawn"]:
            of = models[kind_of(row["network"]), row["problem"].upper(), row["run"].partition("@")[0], len(gaps)]
            if not any(drawn == row["drawn"] and np.allclose(same, gaps - gaps.mean()) for drawn, same in of):
                of.append((row["drawn"], gaps - gaps.mean()))
    sums = defaultdict[tuple[str, str], NDArray[np.float64]](lambda: np.zeros((2, 3)))
    for (kind, problem, *_), of in models.items():
        for (drawn, one), (other_drawn, other) in combinations(of, 2):
            squares, is_same = (one @ one, other @ other), drawn == other_drawn
            of_pair = (one @ other, sum(squares) / 2 if is_same else math.sqrt(math.prod(squares)), 1)
            for key in ((kind, problem), ("all", "")):
                sums[key][int(not is_same)] += of_pair
    heads = ("kind of network", "problem", "two uses on one test set", "pairs", "two test sets", "pairs")
    lines = [f"| {' | '.join(heads)} |", "|---|---|---:|---:|---:|---:|"]
    for key in [*sorted(sums.keys() - {("all", "")}), ("all", "")]:
        cells = [text for c, v, n in sums[key] for text in (f"{c / v:.2f}" if n else "", f"{n:.0f}")]
        lines.append(f"| {' | '.join([*key, *cells])} |")
    return "\n".join(lines) + "\n"


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text()))
