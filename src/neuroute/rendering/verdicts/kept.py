"""Kept measurements as tables that claims can be judged by.

`behind.csv`, which `neuroute keep` writes, says what stands behind each cell.  Of tables that were kept without it a
cell has the interval of its instances, or the range of its trainings; `kept.yaml`, written by hand, says which.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis import RESAMPLES
from neuroute.analysis.intervals import Behind
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_text
from neuroute.core.lazy import pd
from neuroute.core.text import csv_text
from neuroute.plan.papers import all_papers, load_paper
from neuroute.plan.specs import Spec
from neuroute.plan.yaml_files import read_yaml, validate
from neuroute.rendering.cells import FEWEST
from neuroute.rendering.claims import Judged, told_in_short
from neuroute.rendering.table import Cell, Column, Row, Table
from neuroute.rendering.verdicts.comparisons import judge_all

BEHIND = "behind.csv"
HEADS = ["paper", "artifact", "load", "row", "column", "network", "problem", "times", "instances", "error", "gaps"]
DRAWS = "draws"  # of a table's cells of as many instances: how they vary together, as loadings on shared normal draws
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
        """Raises NeurouteError if kept.yaml is not valid, or missing where there is no behind.csv either."""
        path = self.folder / "kept.yaml"
        if not path.is_file() and (self.folder / BEHIND).is_file():
            return About(scale=self.folder.name, trained=())
        return validate(About, read_yaml(path), str(path), see="neuroute.rendering.verdicts.kept")

    def busy(self, artifact: str) -> str:
        """Say why times do not count; nothing where they do."""
        loads = [row["load"] for row in self._behind.values() if row["artifact"] == artifact]
        return loads[0] if loads else self.about.load

    @cached_property
    def _behind(self) -> dict[tuple[str, str, str], dict[str, str]]:
        every = _read_behind(self.folder)
        return {(r["artifact"], r["row"], r["column"]): r for r in every if r["paper"] == self.paper}

    def table(self, name: str) -> Table:
        """Read a kept table or figure.  Raises NeurouteError where it was not kept, or is not valid."""
        path = (self.folder if self.is_headline else self.folder / self.paper) / f"{name}.csv"
        try:
            with path.open(newline="", encoding="utf-8") as file:
                lines = list(csv.DictReader(file))
        except FileNotFoundError:
            raise NeurouteError(f"{name} is not among what was kept; run `neuroute keep`") from None
        if not lines:
            raise NeurouteError(f"{path}: no rows; run `neuroute keep` again")
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
        if (about := self._behind.get((name, _words(row), key))) is not None:
            return replace(cell, behind=_behind_of(about, self.folder / BEHIND))
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
        problem = (test_set["problem"] or "VRP").lower()
        times = int(test_set["nodes"]) / trained.nodes
        samples = _samples(cell.measured, error, f"{name} {row.labels} {key}")
        return replace(cell, behind=Behind(gaps, samples, instances, trained.network, problem, times))

    def _trained(self, name: str, row: Row, column: str) -> Trained | None:
        return next(
            (
                each
                for each in self.about.trained
                if each.paper == self.paper
                and fnmatchcase(name, each.artifact)
                and fnmatchcase(_words(row), each.rows)
                and fnmatchcase(column, each.columns)
            ),
            None,
        )


def keep_behind(folder: Path, tables: Mapping[tuple[str, str], Table], loads: Mapping[tuple[str, str], str]) -> Path:
    """Write what stands behind the cells of kept tables, and how busy the machine was; others' rows stay.

    tables, loads: (paper, name of the table) -> it.
    """
    others = [row for row in _read_behind(folder) if (row["paper"], row["artifact"]) not in tables]
    rows: list[Mapping[str, object]] = [*others]
    for (paper, name), table in tables.items():
        about = {"paper": paper, "artifact": name, "load": loads[paper, name]}
        loadings = _loadings([cell.behind for row in table.rows for cell in row.cells if cell.behind])
        rows.append(about | dict.fromkeys(("row", "column"), ""))  # of the table: its load
        for row in table.rows:
            for column, cell in zip(table.columns, row.cells, strict=True):
                if (b := cell.behind) is not None:
                    values = {"network": b.network, "problem": b.problem, "times": b.times, "instances": b.instances}
                    values |= {
                        "error": float(np.std(b.samples, ddof=1)),
                        "gaps": " ".join(str(float(gap)) for gap in b.gaps),
                        DRAWS: " ".join(f"{loading:.8g}" for loading in next(loadings)),
                    }
                    rows.append(about | {"row": _words(row), "column": column.key} | values)
    rows.sort(key=lambda row: (row["paper"], row["artifact"]))  # whichever was kept first
    path = folder / BEHIND
    write_text(path, csv_text(pd.DataFrame(rows, columns=[*HEADS, DRAWS], dtype=object)))
    return path


def _loadings(cells: Sequence[Behind]) -> Iterator[NDArray[np.float64]]:
    """Yield factors of the cells' covariance over resamples; cells of as many instances were drawn together."""
    factors: dict[int, Iterator[NDArray[np.float64]]] = {}
    for count in {cell.instances for cell in cells}:
        values, vectors = np.linalg.eigh(np.atleast_2d(np.cov([c.samples for c in cells if c.instances == count])))
        there = values > 1e-9 * values.max()
        factors[count] = iter(vectors[:, there] * np.sqrt(values[there]))
    return (next(factors[cell.instances]) for cell in cells)


def _read_behind(folder: Path) -> list[dict[str, str]]:
    path = folder / BEHIND
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        return []
    if lacking := [head for head in HEADS if any(row.get(head) is None for row in rows)]:
        raise NeurouteError(f"{path}: rows without {lacking[0]}; run `neuroute keep` again")
    return rows


def _behind_of(row: Mapping[str, str], path: Path) -> Behind:
    """Raises NeurouteError for what is no number."""
    name = f"{row['artifact']} {row['row']} {row['column']}"
    try:
        gaps, error = tuple(map(float, row["gaps"].split())), float(row["error"])
        mean, loadings = sum(gaps) / max(len(gaps), 1), _numbers(row.get(DRAWS) or "")
        if not (gaps and np.isfinite([*gaps, error, *loadings]).all()):
            raise ValueError
        if len(loadings):
            samples = mean + _normals(len(loadings), f"{row['paper']} {row['artifact']} {row['instances']}") @ loadings
        else:
            samples = _samples(mean, error, name)
        return Behind(gaps, samples, int(row["instances"]), row["network"], row["problem"], float(row["times"]))
    except ValueError:
        raise NeurouteError(f"{path}: what stands behind {name} is no number; run `neuroute keep` again") from None


def _numbers(text: str) -> NDArray[np.float64]:
    return np.array(text.removeprefix("'").split(), float)  # spreadsheets take -1 2 for a formula, so it is quoted


def _samples(mean: float, error: float, name: str) -> NDArray[np.float64]:
    """Draw as many means as a bootstrap does, with exactly this error; of each name others, as if unrelated."""
    samples: NDArray[np.float64] = mean + error * _normals(1, name)[:, 0]
    return samples


@cache
def _normals(count: int, name: str) -> NDArray[np.float64]:
    """Draw (RESAMPLES, count) of exactly mean 0, variance 1 and no covariance; of each name others."""
    draws = np.random.default_rng(crc32(name.encode())).standard_normal((RESAMPLES, count))
    orthogonal, rest = np.linalg.qr(draws - draws.mean(0))
    normals: NDArray[np.float64] = orthogonal * np.sign(rest.diagonal()) * (RESAMPLES - 1) ** 0.5
    return normals


def _words(row: Row) -> str:
    return ", ".join(map(str, row.labels))


def _cell(line: Mapping[str, str], key: str, path: Path) -> Cell:
    low, high = (_value(line.get(f"{key}_measured_{end}")) for end in ("low", "high"))
    if isinstance(low, str) or isinstance(high, str):
        raise NeurouteError(f"{path}: {key} has an interval that is no number; run `neuroute keep` again")
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


# -- verdicts on all claims as rows: what `neuroute claims` writes, and pages show -----------------------------------

Claimed = Mapping[str, Sequence[Judged]]  # paper -> its claims


def judge_kept(folder: Path) -> Claimed:
    """Judge what the papers claim by the tables that lie in a folder of docs/measured.

    Raises NeurouteError if there is no such folder, kept.yaml there is missing or not valid, or a claim names cells
    that a kept table lacks.
    """
    if not folder.is_dir():
        raise NeurouteError(f"{folder}: no such folder; `neuroute keep {folder}` makes one")
    papers = {key: load_paper(key) for key in all_papers()}
    judged = {key: judge_all(paper, KeptTables(folder, key, paper.headline)) for key, paper in papers.items()}
    return {key: claims for key, claims in judged.items() if claims}


def say(scale: str, claimed: Claimed) -> str:
    """Say how many claims there are, what became of them, and how many headlines are decided."""
    return told_in_short(scale, [judged for of_paper in claimed.values() for judged in of_paper])


def rows_of(claimed: Claimed) -> list[dict[str, Any]]:
    """One row a claim: what it says, what its printed numbers say, and what became of it here."""
    return [_row(paper, judged) for paper, of_paper in claimed.items() for judged in of_paper]


def _row(paper: str, judged: Judged) -> dict[str, Any]:
    claim = judged.claim
    return {
        "id": f"{paper}.{claim.id}",
        "paper": paper,
        "weight": claim.weight,
        "claim": claim.claim,
        "where": claim.where,
        "printed": claim.printed.says,
        "note": claim.printed.note,
        "verdict": judged.verdict,
        "here": in_numbers(judged),
        "why": judged.why,
        "cost": judged.cost,
    }


def in_numbers(judged: Judged) -> str:
    """The measured difference with its interval; of several the least and the largest."""
    there = [(f.difference, f.format) for f in judged.measured_findings if isinstance(f.difference.measured, float)]
    if not there:
        return ""
    if len(there) > 1:
        values = sorted(float(cell.measured or 0) for cell, _ in there)
        form = there[0][1]
        return f"{form(values[0])} to {form(values[-1])}"
    cell, form = there[0]
    interval = "" if cell.low is None else f" [{form(cell.low)}, {form(cell.high)}]"
    return f"{form(cell.measured)}{interval}"


def as_csv(of: Iterable[Mapping[str, Any]]) -> str:
    return csv_text(pd.DataFrame(list(of)))
