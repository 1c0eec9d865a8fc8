"""Tables of docs/speed.md that follow from kept measurements: `python docs/generate/speed.py`.

The page says where: between `<!-- made by docs/generate/speed.py: NAME -->` and `<!-- end -->`.
"""

import csv
import re
import sys
from functools import partial
from itertools import takewhile
from pathlib import Path

import pandas as pd

sys.path.append(str(Path(__file__).parents[2] / "bench"))

import growth as curves

DOCS = Path(__file__).resolve().parents[1]
PAGES = (DOCS / "speed.md",)
MADE = re.compile(r"(<!-- made by docs/generate/speed\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
SOLVERS = {"pyvrp": "PyVRP 0.14", "hgs": "HGS (hygese 0.1)", "lkh": "LKH (elkai 2.0)", "savings": "savings"}
LIBRARIES = {"x": ("set X", "customers"), "tsplib": ("TSPLIB", "nodes")}
BENCH = {  # of the tables that `make bench` prints: name -> how the first line begins
    "training": "| training, TSP",
    "greedy": "| greedy, TSP",
    "search": "| search, ",
    "experts": "| 8 instances of 50 ",
    "positions": "| attention, n = ",
    "reconstruction": "| PRC at ",
    "decision": "| one decision of SIT",
    "insertion": "| random insertion, ",
}


def filled(page: str) -> str:
    """The page with its made parts as the kept measurements have them."""
    made = {"rows": rows_of_code, "rl4co": rl4co, "solvers": solvers, "growth": growth}
    made |= {name: partial(bench, first) for name, first in BENCH.items()}
    return MADE.sub(lambda part: f"{part[1]}\n{made[part[2]]()}\n{part[3]}", page)


def bench(first: str) -> str:
    """A table as the kept run of `make bench` printed it."""
    lines = (DOCS / "measured" / "bench" / "bench.md").read_text(encoding="utf-8").splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(first))
    return "\n".join(takewhile(lambda line: line.startswith("|"), lines[begin:])) + "\n"


def rows_of_code() -> str:
    """Processor time of a row, and how many times as fast it is as earlier code."""
    lines = ["| one thread, fp32 | s | MiB | times as fast as 7a5ee4d7 (range) |", "|---|--:|--:|--:|"]
    for of in kept("bench/pairs.csv").itertuples():
        ratio = f"{of.times_as_fast:.2f} ({of.least:.2f}-{of.most:.2f})"
        lines.append(f"| {of.row} | {of.cpu_s:.2f} | {of.mib} | {ratio} |")
    return "\n".join(lines) + "\n"


def rl4co() -> str:
    """How many times as fast as rl4co's the same networks are."""
    rows = kept("peers/rl4co.csv")
    heads = {of.problem: f"{of.problem}, {of.instances} at once" for of in rows.itertuples()}
    lines = [f"| times as fast as rl4co | {' | '.join(heads.values())} |", "|---|" + "--:|" * len(heads)]
    for work, of_work in rows.groupby("work", sort=False):
        ratios = of_work.set_index("problem").times_as_fast
        lines.append(f"| {work} | {' | '.join(f'{ratios[problem]:.2f}' for problem in heads)} |")
    return "\n".join(lines) + "\n"


def solvers() -> str:
    """Mean gaps (%) of networks and solvers in the same time."""
    rows = kept("peers/records.csv")
    lines = [
        f"| instances | network alone | network and search | {' | '.join(SOLVERS.values())} |",
        "|---|" + "--:|" * (2 + len(SOLVERS)),
    ]
    for library, (name, of) in LIBRARIES.items():
        here = rows[rows["set"] == library]
        network = here[here.kind == "network"]
        alone = network.how == "multistart"
        means = [network[alone].gap_pct.mean(), network[~alone].gap_pct.mean()]
        means += [here[here.method == solver].gap_pct.mean() for solver in SOLVERS]
        cells = ["" if pd.isna(mean) else f"{mean:.2f}" for mean in means]
        sizes = f"{here.instance.nunique()} of {here.n.min()} to {here.n.max()} {of}"
        lines.append(f"| {name}, {sizes} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def growth() -> str:
    """Time, memory and the power of n of every curve, ours and the peer's."""
    found: dict[str, dict[str, str]] = {}
    with (DOCS / "measured" / "growth" / "growth.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for task, name, size, power, _, ended in curves.exponents(rows):
        cells = f"{size}; {ended}" if ended else size
        found.setdefault(name, {})[task] = f"{cells} | {power}"
    lines = ["| network | decoding: largest size | time | training: largest size | time |", "|---|---|--:|---|--:|"]
    for name in (each for ours in curves.NETWORKS for each in (ours, ours + curves.PEER)):
        if name in found:
            lines.append(f"| {name} | {found[name]['decoding']} | {found[name]['training']} |")
    return "\n".join(lines) + "\n"


def kept(name: str) -> pd.DataFrame:
    """The rows of a kept CSV."""
    return pd.read_csv(DOCS / "measured" / name)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text()))
