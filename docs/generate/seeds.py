"""Tables of trainings that were repeated, in the pages that show them: `python docs/generate/seeds.py`.

A page says where: between `<!-- made by docs/generate/seeds.py: NAME -->` and `<!-- end -->`.
"""

import csv
import re
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

DOCS = Path(__file__).resolve().parents[1]
PAGES = (DOCS / "results" / "scaling.md", DOCS / "concepts" / "verdicts.md")
SPREADS = DOCS.parent / "src" / "neuroute" / "rendering" / "spreads.csv"
MADE = re.compile(r"(<!-- made by docs/generate/seeds\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
NETWORKS = {"any": "all others", "icam": "ICAM", "mvmoe": "MVMoE", "mvmoe, means": "MVMoE, means over problems"}


def filled(page: str) -> str:
    """A page with its made parts as the kept gaps have them."""
    made = {
        "tsp20": lambda: grid("tsp20/grid.csv", "TSP"),
        "cvrp20": lambda: grid("laptop/cvrp_grid.csv", "CVRP"),
        "spreads": spreads,
    }
    return MADE.sub(lambda part: f"{part[1]}\n{made[part[2]]()}\n{part[3]}", page)


def grid(file: str, problem: str) -> str:
    """Mean gaps of a grid's shapes over its seeds, with standard deviations."""
    gaps = defaultdict[tuple[str, ...], list[float]](list)
    heads, names, sizes = dict[str, str](), dict[str, str](), dict[str, None]()
    for row in rows_of(DOCS / "measured" / file):
        gaps[row["depth"], row["width"], row["n"]].append(float(row["gap_pct"]))
        names[row["depth"]] = f"D={row['depth']} ({row['paper_depth']})"
        heads[row["width"]] = f"W={row['width']} ({row['paper_width']})"
        sizes[row["n"]] = None
    tests = "; ".join(f"{problem}{n}" for n in sizes)
    lines = [f"| gap (%) on {tests}, means of seeds (standard deviation) | {' | '.join(heads.values())} |"]
    lines += ["|---|" + "---:|" * len(heads)]
    for depth, name in names.items():
        each = [[gaps[depth, width, n] for n in sizes] for width in heads]
        cells = ("; ".join(f"{mean(seeds):.1f} ({stdev(seeds):.1f})" for seeds in cell) for cell in each)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def spreads() -> str:
    """The pooled spreads that verdicts go by."""
    heads = "| networks | problem | at most so many times the training's size | spread | degrees of freedom | from |"
    lines = [heads, "|---|---|---:|---:|---:|---|"]
    for row in rows_of(SPREADS):
        network = NETWORKS.get(row["network"].lower(), row["network"])
        share = f"{100 * float(row['share']):.1f} %"
        cells = (network, row["problem"].upper(), row["times"], share, row["freedom"], row["kept"])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text()))
