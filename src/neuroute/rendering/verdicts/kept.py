"""Kept measurements as tables that claims can be judged by: what `neuroute keep` wrote, and who was trained how often.

A kept cell has the interval of its instances, or the range of its trainings; `kept.yaml` beside the tables says which.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from zlib import crc32

import numpy as np

from neuroute.analysis import RESAMPLES
from neuroute.analysis.spreads import Behind
from neuroute.core.errors import NeurouteError
from neuroute.plan.specs import Spec
from neuroute.plan.yaml_files import read_yaml, validate
from neuroute.rendering.cells import FEWEST
from neuroute.rendering.table import Cell, Column, Row, Table

NORMAL = 1.96  # half a 95 % interval in standard errors
ABOUT = ("scale", "device", "commit", "date")
OF_ROW = "the instance of the row"
# "TSP50, 1,000 instances", "20 customers, 64 instances of each problem"
TEST_SET = re.compile(r"(?P<problem>TSP|CVRP)?(?P<nodes>\d+)(?: customers)?, (?P<instances>[\d,]+) instances")


class Trained(Spec):
    """Models whose rows look so: their class, the nodes that they were trained on, how many trainings a cell is of."""

    paper: str
    artifact: str = "*"
    rows: str = "*"  # pattern of a row's labels, joined by ", "
    columns: str = "*"
    network: str = "any"
    nodes: int
    times: float | None = None  # of rows that are single instances: their nodes over those of the training, at most
    trainings: int = 1


class About(Spec):
    """kept.yaml: what else is to be known of the tables beside it."""

    scale: str
    load: str = ""  # of the machine meanwhile, where times do not count
    trained: tuple[Trained, ...]  # the first that fits a cell counts


@dataclass(frozen=True)
class KeptTables:
    """The kept artifacts of one paper."""

    folder: Path  # docs/measured/<scale>
    paper: str
    is_headline: bool = False  # its artifacts lie in the folder itself

    @cached_property
    def about(self) -> About:
        """Raises NeurouteError if kept.yaml is missing or not valid."""
        path = self.folder / "kept.yaml"
        return validate(About, read_yaml(path), str(path), see="neuroute.rendering.verdicts.kept")

    def busy(self, artifact: str) -> str:
        """Say why times do not count; nothing where they do."""
        return self.about.load

    def table(self, name: str) -> Table:
        """Read a kept table or figure.  Raises NeurouteError where it was not kept, or is not valid."""
        path = (self.folder if self.is_headline else self.folder / self.paper) / f"{name}.csv"
        try:
            with path.open(newline="", encoding="utf-8") as file:
                lines = list(csv.DictReader(file))
        except FileNotFoundError:
            raise NeurouteError(f"{name} is not among what was kept") from None
        if not lines:
            raise NeurouteError(f"{path}: no rows")
        return self._of_lines(name, path, lines)

    def _of_lines(self, name: str, path: Path, lines: Sequence[Mapping[str, str]]) -> Table:
        heads = list(lines[0])
        keys = [head.removesuffix("_measured") for head in heads if head.endswith("_measured")]
        of_values = {f"{key}_{end}" for key in keys for end in ("measured", "published")}
        labels = [head for head in heads if head not in of_values and "_measured_" not in head and head not in ABOUT]
        rows = [
            Row(tuple(line[label] for label in labels), tuple(_cell(line, key, path) for key in keys)) for line in lines
        ]
        rows = [replace(row, cells=tuple(self._stood_on(name, row, rows, i, keys[i]) for i in range(len(keys))))
                for row in rows]  # fmt: skip
        return Table(name, tuple(labels), tuple(Column(key, key) for key in keys), tuple(rows))

    def _stood_on(self, name: str, row: Row, rows: Sequence[Row], i: int, key: str) -> Cell:
        """The cell with what stands behind it, as far as what was kept says."""
        cell, trained = row.cells[i], self._trained(name, row, key)
        test_set = TEST_SET.match(cell.at)
        if trained and cell.at == OF_ROW and isinstance(cell.measured, float):
            alone, times = np.full(RESAMPLES, cell.measured), trained.times or 1.0
            return replace(cell, behind=Behind((cell.measured,), alone, 1, trained.network, "vrp", times))
        if trained is None or test_set is None or not isinstance(cell.measured, float) or cell.low is None:
            return cell
        instances = int(test_set["instances"].replace(",", ""))
        gaps, error = _gaps(cell, trained.trainings), _error(cell)
        if len(gaps) > 1:  # the range is that of the trainings: the largest of the other models' shares stands for it
            others = [other.cells[i] for other in rows if (o := self._trained(name, other, key)) and o.trainings == 1]
            there = [o for o in others if isinstance(o.measured, float) and o.measured > 0 and o.low is not None]
            error = cell.measured * max((_error(o) / float(o.measured or 1) for o in there), default=0.0)
        if instances < FEWEST or not error:
            return cell
        draws = np.random.default_rng(crc32(f"{name} {row.labels} {key}".encode())).standard_normal(RESAMPLES)
        draws = (draws - draws.mean()) / draws.std(ddof=1)
        problem = (test_set["problem"] or "VRP").lower()
        times = int(test_set["nodes"]) / trained.nodes
        samples = cell.measured + error * draws
        return replace(cell, behind=Behind(gaps, samples, instances, trained.network, problem, times))

    def _trained(self, name: str, row: Row, column: str) -> Trained | None:
        labels = ", ".join(map(str, row.labels))
        return next(
            (
                each
                for each in self.about.trained
                if each.paper == self.paper
                and fnmatchcase(name, each.artifact)
                and fnmatchcase(labels, each.rows)
                and fnmatchcase(column, each.columns)
            ),
            None,
        )


def _cell(line: Mapping[str, str], key: str, path: Path) -> Cell:
    low, high = (_value(line.get(f"{key}_measured_{end}")) for end in ("low", "high"))
    if isinstance(low, str) or isinstance(high, str):
        raise NeurouteError(f"{path}: {key} has an interval that is no number")
    at = line.get(f"{key}_measured_at") or ""
    return Cell(_value(line[f"{key}_measured"]), _value(line.get(f"{key}_published")), low, high, at)


def _value(text: str | None) -> float | str | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _error(cell: Cell) -> float:
    return (cell.high - cell.low) / 2 / NORMAL if cell.low is not None and cell.high is not None else 0.0


def _gaps(cell: Cell, trainings: int) -> tuple[float, ...]:
    """Of two or three trainings the mean, the least and the largest say all."""
    mean, low, high = (float(value or 0.0) for value in (cell.measured, cell.low, cell.high))
    if trainings == 1:
        return (mean,)
    return (low, high) if trainings == 2 else (low, 3 * mean - low - high, high)
