"""What the tables of all papers have in common: headings, formats and which model plays a role here."""

from collections.abc import Mapping
from typing import Any

from neuroute.plan.objects import Dataset
from neuroute.rendering.study import Study
from neuroute.rendering.table import Column, fixed

WHOLE = fixed(0)
HERE = "Here"  # heading of the column that says which model plays the paper's role


def millions(value: Any) -> str:
    """Two decimals as the paper prints, three digits for the small models of small scales."""
    return f"{value:,.2f}" if value >= 0.995 else f"{value:.3g}"


def described(dataset: Dataset) -> str:
    """A test set in words."""
    return f"{dataset.problem.upper()}{dataset.n}, {dataset.count:,} instances"


def model_here(study: Study, run: str) -> str:
    """Depth and width of a run's network, of whichever method it is; of a network without these its name."""
    network = study.runs[run].network
    if network.arguments.keys() >= {"depth", "width"}:
        return f"D={network.arguments['depth']}, W={network.arguments['width']}"
    return network.kind.partition(":")[2]


def gap_columns(sets: Mapping[int, Dataset], decimals: int = 3) -> tuple[Column, ...]:
    """One column of gaps for each of the paper's sizes; `sets` holds the data set that stands for it."""
    return tuple(
        Column(f"gap_tsp{size}_pct", f"TSP{size}", "gap %", fixed(decimals), at=described(dataset))
        for size, dataset in sets.items()
    )
