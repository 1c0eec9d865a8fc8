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
        found = cls(0, 0, 0, 0)
        for name in frame.columns[frame.columns.str.endswith(("_measured", "_published"))]:
            stem = name.rpartition("_")[0]
            if name.endswith("_published") and f"{stem}_measured" in frame:
                continue
            here = _column(frame, f"{stem}_measured").notna()
            printed = _column(frame, f"{stem}_published")
            is_number = pd.to_numeric(printed, errors="coerce").notna()
            alone = printed.notna() & ~here
            counts = here, here & is_number, alone & is_number, alone & ~is_number
            found = found.plus(cls(*(int(cells.sum()) for cells in counts)))
        return found

    def plus(self, other: Coverage) -> Coverage:
        return Coverage(*(a + b for a, b in zip(self, other, strict=True)))

    def cells(self, name: str) -> tuple[str, ...]:
        """A line under `HEADS`."""
        printed = self.beside + self.quoted
        share = f"{100 * self.beside / printed:.0f} %" if printed else "–"
        return (name, *(f"{count:,}" for count in self), share)


def coverage_lines(tables: Mapping[str, Coverage]) -> list[tuple[str, ...]]:
    """A line for each table that has cells (name -> its cells), and one for all."""
    shown = {name: found for name, found in tables.items() if any(found)}
    total = Coverage(0, 0, 0, 0)
    for found in shown.values():
        total = total.plus(found)
    return [found.cells(name) for name, found in shown.items()] + ([total.cells("all")] if shown else [])


def _column(frame: pd.DataFrame, name: str) -> pd.Series:
    return frame[name] if name in frame else pd.Series([None] * len(frame), dtype=object)
