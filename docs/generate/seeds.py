"""Tables of trainings that were repeated, in the pages that show them: `python docs/generate/seeds.py`.

A page says where: between `<!-- made by docs/generate/seeds.py: NAME -->` and `<!-- end -->`.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev

import numpy as np

from neuroute.analysis.contrasts import Estimate, Gap, contrast, law
from neuroute.papers.scaling.claims import EXPONENTS, GREEDY, directions
from neuroute.papers.scaling.roles import Shape
from neuroute.rendering.comparisons import SPREADS, Finding, Unit, cells_of, spread_of
from neuroute.rendering.kept import KeptTables
from neuroute.rendering.verdicts import effect

DOCS = Path(__file__).resolve().parents[1]
PAGES = (DOCS / "results" / "scaling.md", DOCS / "concepts" / "verdicts.md")
MADE = re.compile(r"(<!-- made by docs/generate/seeds\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
EQUAL = [((24, 128), (6, 256)), ((24, 256), (6, 512)), ((42, 128), (12, 256)), ((42, 256), (12, 512))]  # in print
Shaped = dict[Shape, float]  # parameters in millions


def filled(page: str) -> str:
    """A page with its made parts as the kept gaps have them."""
    made = {
        "tsp20": lambda: grid("tsp20/grid.csv"),
        "laptop_exponents": lambda: exponents({"TSP50": (laptop_parameters(), laptop_gaps())}),
        "tsp20_exponents": lambda: exponents(of_grid("tsp20/grid.csv", parameters("tsp20/figure1.csv"))),
        "spreads": spreads,
    }
    return MADE.sub(lambda part: f"{part[1]}\n{made[part[2]]()}\n{part[3]}", page)


def grid(file: str) -> str:
    """Mean gaps of a grid's shapes over its seeds, with standard deviations."""
    gaps = defaultdict[tuple[str, ...], list[float]](list)
    heads, names, sizes = dict[str, str](), dict[str, str](), dict[str, None]()
    for row in rows_of(DOCS / "measured" / file):
        gaps[row["depth"], row["width"], row["n"]].append(float(row["gap_pct"]))
        names[row["depth"]] = f"D={row['depth']} ({row['paper_depth']})"
        heads[row["width"]] = f"W={row['width']} ({row['paper_width']})"
        sizes[row["n"]] = None
    tests = "; ".join(f"TSP{n}" for n in sizes)
    lines = [f"| gap (%) on {tests}, means of seeds (standard deviation) | {' | '.join(heads.values())} |"]
    lines += ["|---|" + "---:|" * len(heads)]
    for depth, name in names.items():
        each = [[gaps[depth, width, n] for n in sizes] for width in heads]
        cells = ("; ".join(f"{mean(seeds):.1f} ({stdev(seeds):.1f})" for seeds in cell) for cell in each)
        lines.append(f"| {name} | {' | '.join(cells)} |")
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


def of_grid(file: str, sizes: Shaped) -> dict[str, tuple[Shaped, dict[Shape, Gap]]]:
    """The gaps of a grid's models on each of its test sets; of instances only the means are kept."""
    gaps = defaultdict[str, dict[Shape, list[float]]](lambda: defaultdict(list))
    counts = dict[str, int]()
    for row in rows_of(DOCS / "measured" / file):
        name = f"TSP{row['n']}"
        gaps[name][Shape(int(row["paper_depth"]), int(row["paper_width"]))].append(float(row["gap_pct"]))
        counts[name] = int(row["n_instances"])
    return {
        name: (
            {shape: sizes[shape] for shape in of},
            {
                shape: Gap(
                    tuple(each), np.zeros(1), name, counts[name], "DecoderOnly", "tsp",
                    int(name.removeprefix("TSP")) / 20, str(shape),
                )
                for shape, each in of.items()
            },
        )
        for name, of in gaps.items()
    }  # fmt: skip


def parameters(file: str) -> Shaped:
    """The parameters of a grid's models, as a figure that was kept has them."""
    rows = [row for row in rows_of(DOCS / "measured" / file) if row["side"] == "measured"]
    return {Shape(int(row["depth"]), int(row["width"])): float(row["parameters_millions"]) for row in rows}


def laptop_parameters() -> Shaped:
    """Those of Table 1."""
    rows = rows_of(DOCS / "measured" / "laptop" / "table1.csv")
    return {Shape(int(r["depth"]), int(r["width"])): float(r["parameters_millions_measured"]) for r in rows}


def laptop_gaps() -> dict[Shape, Gap]:
    """Those of Table 12, with what stands behind them."""
    cells = cells_of(KeptTables(DOCS / "measured" / "laptop", "scaling", is_headline=True).table("table12"))
    models = [(GREEDY.fullmatch(labels["method"]), cell.behind) for labels, key, cell in cells if key == "gap_pct"]
    return {Shape(int(model[1]), int(model[2])): gap for model, gap in models if model and gap}


def spreads() -> str:
    """The pooled spreads that verdicts go by."""
    lines = ["| kind of network | problem | at most so many times the training's size | spread | degrees of freedom |"]
    lines += ["|---|---|---:|---:|---:|"]
    for row in rows_of(SPREADS):
        share = f"{100 * float(row['spread']):.1f} %"
        cells = (row["kind"], row["problem"].upper(), f"{float(row['times']):g}", share, row["freedom"])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text()))
