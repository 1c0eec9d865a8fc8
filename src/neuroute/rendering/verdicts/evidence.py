"""What claims are judged by: a paper's tables, drawn from records or kept, and whether their times count."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from neuroute.core.dotted import resolve
from neuroute.rendering.study import Study
from neuroute.rendering.table import Cell, Table, snake

_STANDS_HERE = re.compile(r"(, here [^,]*| \([^()]*\bhere\))$")


class Evidence(Protocol):
    """Tables of one paper at one scale."""

    def table(self, name: str) -> Table:
        """Return a table.  Raises NeurouteError where it is not there."""

    def busy(self, name: str) -> str:
        """Say why the times of a table do not count; nothing where they do."""


@dataclass(frozen=True)
class DrawnTables:
    """Tables as they are drawn from records."""

    study_of: Callable[[str], Study]  # by name; raises NeurouteError where this scale does not draw it

    @cached_property
    def _tables(self) -> dict[str, Table]:
        return {}

    def table(self, name: str) -> Table:
        """Draw a table, once.  Raises NeurouteError where records are missing."""
        if name not in self._tables:
            study = self.study_of(name)
            self._tables[name] = resolve(study.artifact.function)(study)
        return self._tables[name]

    def busy(self, name: str) -> str:
        """Say how busy the machine was; nothing where times count."""
        return self.study_of(name).busy()


def cells_of(table: Table) -> Iterator[tuple[dict[str, str], str, Cell]]:
    """Yield the labels of each cell's row, as the CSV names them, its column's key, and the cell.

    What a label adds on its end of what stands for it here, as in "bs16 (6 here)", is left out.
    """
    names = [snake(name) for name in table.labels]
    for row in table.rows:
        labels = [_STANDS_HERE.sub("", str(label)) for label in row.labels]
        for column, cell in zip(table.columns, row.cells, strict=True):
            yield dict(zip(names, labels, strict=True)), column.key, replace(cell, at=cell.at or column.at)
