"""Tables of tree search on maps of edges, from kept records: `python docs/generate/edge_maps.py`.

It fills the part of docs/results/edge_maps.md between `<!-- made by docs/generate/edge_maps.py -->` and
`<!-- end -->`.  `bench/edge_maps.py` makes the records.
"""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from neuroute.analysis.intervals import Interval
from neuroute.pipeline.rendering.table import duration
from neuroute_compare.summary import difference_interval, mean_interval

DOCS = Path(__file__).resolve().parents[1]
RECORDS = DOCS / "measured" / "edge_maps"
PAGES = (DOCS / "results" / "edge_maps.md",)
CONTROL = "softdist"
MADE = re.compile(r"(<!-- made by docs/generate/edge_maps\.py -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    """The page with its tables as the records have them."""
    return MADE.sub(lambda part: f"{part[1]}\n{tables()}\n{part[2]}", text)


def tables() -> str:
    """A table for each file of records, the smaller instances first."""
    records = [pd.read_csv(file) for file in RECORDS.glob("tsp*.csv")]
    return "\n".join(_table(each) for each in sorted(records, key=lambda each: each.nodes[0]))


def _table(records: pd.DataFrame) -> str:
    """A line for each map: what it takes, and what the search finds on it after each time."""
    records["gap"] = 100 * (records.length / records.optimum - 1)
    gaps = records.pivot_table(index="instance", columns=["map", "seconds"], values="gap").dropna()
    budgets, first = sorted(records.seconds.unique()), records.iloc[0]
    optimum, nearest = (records.groupby("instance")[each].first() for each in ("optimum", "nearest"))
    heads = [f"{duration(seconds)} | To `{CONTROL}`" for seconds in budgets]
    lines = [
        f"### TSP{first.nodes}, {len(gaps)} instances\n",
        f"| Map | Making it | {' | '.join(heads)} | Actions a second |",
        f"|---|---:|{'---:|---|' * len(budgets)}---:|",
    ]
    for name in records["map"].unique():
        own, cells = records[(records["map"] == name) & records.instance.isin(gaps.index)], []
        for seconds in budgets:
            here, control = gaps[name, seconds], gaps[CONTROL, seconds]
            cells += [f"{here.mean():.3f} {_range(mean_interval(here), 3)}"]
            difference = f"{(here - control).mean():+.3f} {_range(difference_interval(here, control), 3, '+')}"
            cells += ["–" if name == CONTROL else difference]
        longest = own[own.seconds == budgets[-1]]
        rate = longest.actions.sum() / (budgets[-1] * len(longest))
        cells += [f"{int(float(f'{rate:.2g}')):,}"]
        lines += [f"| {name} | {duration(own.map_seconds.mean())} | {' | '.join(cells)} |"]
    above = 100 * np.mean(nearest / optimum - 1)
    where = f"{first.device}, commit {first.commit}, {first.date}"
    return "\n".join([*lines, "", f"Nearest neighbour: {above:.1f} %. {where}.", ""])


def _range(interval: Interval, digits: int, sign: str = "") -> str:
    return f"[{interval.low:{sign}.{digits}f}, {interval.high:{sign}.{digits}f}]"


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text()))
