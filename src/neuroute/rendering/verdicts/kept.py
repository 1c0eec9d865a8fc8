"""Kept measurements as tables that claims can be judged by.

`behind.csv`, which `neuroute keep` writes, says what stands behind each cell.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from neuroute.rendering.claims import Judged, told_in_short
from neuroute.rendering.table import Cell, Column, Row, Table
from neuroute.rendering.verdicts.comparisons import judge_all

BEHIND = "behind.csv"
HEADS = ["paper", "artifact", "load", "row", "column", "network", "problem", "times", "instances", "error", "gaps"]
DRAWS = "draws"  # of a table's cells of as many instances: how they vary together, as loadings on shared normal draws
ABOUT = ("scale", "device", "commit", "date")


@dataclass(frozen=True)
class KeptTables:
    """The kept artifacts of one paper."""

    folder: Path  # docs/measured/<scale>
    paper: str
    is_headline: bool = False  # its artifacts lie in the folder itself

    def busy(self, artifact: str) -> str:
        """Say why times do not count; nothing where they do."""
        return next((row["load"] for row in self._behind.values() if row["artifact"] == artifact), "")

    @cached_property
    def _behind(self) -> dict[tuple[str, str, str], dict[str, str]]:
        path = self.folder / BEHIND
        if not path.is_file():
            raise NeurouteError(f"{path}: no such file; `neuroute keep` writes it")
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
        heads = list(lines[0])
        keys = [head.removesuffix("_measured") for head in heads if head.endswith("_measured")]
        of_values = {f"{key}_{end}" for key in keys for end in ("measured", "published")}
        labels = [head for head in heads if head not in of_values and "_measured_" not in head and head not in ABOUT]
        rows = []
        for line in lines:
            of_row = tuple(line[label] for label in labels)
            rows.append(Row(of_row, tuple(self._cell(line, of_row, key, path) for key in keys)))
        return Table(path.stem, tuple(labels), tuple(Column(key, key) for key in keys), tuple(rows))

    def _cell(self, line: Mapping[str, str], row: tuple[str, ...], key: str, path: Path) -> Cell:
        """The cell with what stands behind it, as far as what was kept says."""
        low, high = (_value(line.get(f"{key}_measured_{end}")) for end in ("low", "high"))
        if isinstance(low, str) or isinstance(high, str):
            raise NeurouteError(f"{path}: {key} has an interval that is no number; run `neuroute keep` again")
        about, at = self._behind.get((path.stem, ", ".join(row), key)), line.get(f"{key}_measured_at") or ""
        behind = _behind_of(about, self.folder / BEHIND, f"{path.stem} {row} {key}") if about else None
        return Cell(_value(line[f"{key}_measured"]), _value(line.get(f"{key}_published")), low, high, at, behind)


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
                    rows.append(about | {"row": ", ".join(map(str, row.labels)), "column": column.key} | values)
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


def _behind_of(row: Mapping[str, str], path: Path, name: str) -> Behind:
    """Raises NeurouteError for what is no number."""
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


def _value(text: str | None) -> float | str | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text


# -- verdicts on all claims as rows: what `neuroute claims` writes, and pages show -----------------------------------

Claimed = Mapping[str, Sequence[Judged]]  # paper -> its claims


def judge_kept(folder: Path) -> Claimed:
    """Judge what the papers claim by the tables that lie in a folder of docs/measured.

    Raises NeurouteError if there is no such folder, behind.csv there is missing or not valid, or a claim names
    cells that a kept table lacks.
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
