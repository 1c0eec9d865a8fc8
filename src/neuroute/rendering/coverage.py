"""How much of the papers' tables is measured: cells that a run has filled, that are quoted, that nobody could fill."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from neuroute.core.lazy import pd

LEGEND = (
    "Cells of the tables: measured here, or as configured here where they are of settings; quoted, where the printed "
    "number stands alone; impossible, where the paper prints no number (out of memory or time, not reported) and "
    "nothing is measured."
)
HEADS = ("Table", "Measured", "of them beside a printed one", "Quoted", "Impossible", "Measured of what is printed")


class Coverage(NamedTuple):
    """Cells of a table, or of several."""

    measured: int
    beside: int  # of them, those that have a printed number, too
    quoted: int
    impossible: int

    @classmethod
    def of(cls, table: Path) -> Coverage:
        """Count in the CSV that `render` has written."""
        frame = pd.read_csv(table, keep_default_na=False, na_values=[""])
        coverage = cls(0, 0, 0, 0)
        for name in frame.columns[frame.columns.str.endswith(("_measured", "_published"))]:
            stem = name.rpartition("_")[0]
            if name.endswith("_published") and f"{stem}_measured" in frame:
                continue
            here = _column(frame, f"{stem}_measured").notna()
            values = _column(frame, f"{stem}_published")
            is_number = pd.to_numeric(values, errors="coerce").notna()
            alone = values.notna() & ~here
            counts = here, here & is_number, alone & is_number, alone & ~is_number
            coverage = coverage.plus(cls(*(int(cells.sum()) for cells in counts)))
        return coverage

    def plus(self, other: Coverage) -> Coverage:
        return Coverage(*(a + b for a, b in zip(self, other, strict=True)))

    def cells(self, name: str) -> tuple[str, ...]:
        """A line under `HEADS`."""
        numbers = self.beside + self.quoted
        share = f"{100 * self.beside / numbers:.0f} %" if numbers else "–"
        return (name, *(f"{count:,}" for count in self), share)


def coverage_lines(tables: Mapping[str, Coverage]) -> list[tuple[str, ...]]:
    """A line for each table that has cells (name -> its cells), and one for all."""
    filled = {name: coverage for name, coverage in tables.items() if any(coverage)}
    total = Coverage(0, 0, 0, 0)
    for coverage in filled.values():
        total = total.plus(coverage)
    return [coverage.cells(name) for name, coverage in filled.items()] + ([total.cells("all")] if filled else [])


def _column(frame: pd.DataFrame, name: str) -> pd.Series:
    return frame[name] if name in frame else pd.Series([None] * len(frame), dtype=object)
