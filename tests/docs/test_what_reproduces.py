"""What the page on what reproduces says of differences follows from the kept tables by the rule that it names."""

import csv
from functools import cache
from math import hypot, sqrt
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
KEPT = DOCS / "measured" / "laptop"
PAGE = (DOCS / "results" / "what_reproduces.md").read_text()
SPREAD = 0.07  # of a gap over seeds, as a share of it


@cache
def rows_of(table: str) -> list[dict[str, str]]:
    with (KEPT / f"{table}.csv").open() as file:
        return list(csv.DictReader(file))


def side(cell: str, column: str, seeds: str) -> tuple[float, float]:
    """Return the gap of a kept cell and its standard error, by instances and by seeds; without seeds of one training.

    cell: `table: key=value; key=value`, the labels of its row.
    """
    table, _, labels = cell.partition(": ")
    where = dict(label.split("=", 1) for label in labels.split("; "))
    (row,) = [row for row in rows_of(table) if where.items() <= row.items()]
    gap, low, high = (float(row[f"{column}_measured{end}"]) for end in ("", "_low", "_high"))
    return gap, hypot((high - low) / 2 / 1.96, SPREAD * gap / sqrt(int(seeds)) if seeds else 0)


@pytest.mark.parametrize("row", rows_of("differences"), ids=lambda row: f"{row['claim']}, {row['ahead']}")
def test_differences_follow_from_the_kept_tables(row: dict[str, str]) -> None:
    ahead, behind = (side(row[name], row["column"], row[f"{name}_seeds"]) for name in ("ahead", "behind"))
    difference, half = behind[0] - ahead[0], 1.96 * hypot(ahead[1], behind[1])
    numbers = [difference, difference - half, difference + half]
    assert [float(row[name]) for name in ("difference", "low", "high")] == pytest.approx(numbers, abs=6e-4)
    assert f"| {row['claim']}" in PAGE
    assert "{:.1f} [{:.1f}, {:.1f}]".format(*numbers) in PAGE
