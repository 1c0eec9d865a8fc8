"""Headings, formats and test sets in words, the same in the tables of all papers."""

from collections.abc import Iterable, Mapping
from typing import Any

from neuroute.pipeline.rendering.table import HERE as HERE
from neuroute.pipeline.rendering.table import Column, fixed
from neuroute.specs.objects import Dataset

WHOLE = fixed(0)
AS_CONFIGURED = "As configured here, with the paper's value in parentheses."
AS_TRAINED = "As configured here, with the paper's value in parentheses; in parentheses alone: not trained here."


def millions(value: Any) -> str:
    """Format with two decimals as the papers do, with three digits for the small models of small scales."""
    return f"{value:,.2f}" if value >= 0.995 else f"{value:.3g}"


def plain(value: Any) -> str:
    """Format a setting: text as it is, whole numbers with separators for thousands."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"


def decimal(value: float, decimals: int = 2) -> str:
    """Format a number in running text, with a real minus."""
    return f"{value:z.{decimals}f}".replace("-", "−")


def described(dataset: Dataset) -> str:
    """Describe a test set: its capacity where that is not its size's rule, its distribution where not uniform."""
    words = f"{dataset.problem.upper()}{dataset.n}, {dataset.count:,} instances"
    words += f", C={dataset.capacity}" if dataset.capacity else ""
    return words + ("" if dataset.distribution == "uniform" else f" ({dataset.distribution})")


def joined(descriptions: Iterable[str]) -> str:
    """Describe what columns that several problems share were measured on."""
    return " and ".join(dict.fromkeys(text for text in descriptions if text))


def gap_column(size: int, dataset: Dataset, decimals: int = 3) -> Column:
    """Head the gaps on the TSP's data set that stands for the paper's size."""
    return Column(
        f"gap_tsp{size}_pct", f"TSP{dataset.n}", "gap %", fixed(decimals), at=described(dataset), paper=f"TSP{size}"
    )


def gap_columns(sets: Mapping[int, Dataset]) -> tuple[Column, ...]:
    """Head one column of gaps for each of the paper's sizes; `sets` holds the data set that stands for it."""
    return tuple(gap_column(size, dataset) for size, dataset in sets.items())


def short(size: int) -> str:
    """Shorten a size: 1k for 1000."""
    return f"{size // 1000}k"
