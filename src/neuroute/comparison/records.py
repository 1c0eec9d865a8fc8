"""Records of a comparison, one for each method, instance and seed; and other people's results files."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroute.analysis.gaps import gap_pct
from neuroute.comparison.sets import Member
from neuroute.core.errors import NeurouteError
from neuroute.core.lazy import pd
from neuroute.core.text import inert

COLUMNS = (
    "problem", "set", "instance", "n", "best_known", "method", "how", "kind", "seed", "cost", "gap_pct", "time_s",
    "seconds", "cpu_seconds", "gflops", "unsolved", "budget_s", "limit_s", "version", "device", "threads",
    "clock", "code",
)  # fmt: skip
REQUIRED = ("method", "instance", "cost", "seconds")  # of a results file
BREAKDOWN = 100.0  # % from which on the survey counts an instance as unsolved
Row = dict[str, Any]


def describe(member: Member) -> Row:
    """Return the columns that an instance gives."""
    instance = {"problem": member.instance.problem, "set": member.set, "instance": member.name, "n": member.n}
    return instance | {"best_known": member.best_known}


def with_gap(row: Row) -> Row:
    """Return a record with its gap in per cent, which makes it unsolved if it is 100 or more."""
    if row["cost"] is None:
        return row | {"gap_pct": None}
    gap = gap_pct(row["cost"], row["best_known"])
    return row | {"gap_pct": gap, "unsolved": row["unsolved"] or ("gap" if gap >= BREAKDOWN else "")}


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Return records as a table, in a fixed order: by problem, size, instance, method and seed."""
    table = pd.DataFrame(list(rows), columns=list(COLUMNS))
    return table.sort_values(
        ["problem", "n", "instance", "method", "how", "seed"], ascending=[False, *[True] * 5], ignore_index=True
    )


def solved(records: pd.DataFrame) -> pd.DataFrame:
    """Return the records that count as solved."""
    rows: pd.DataFrame = records[records.unsolved.fillna("") == ""]
    return rows


@dataclass(frozen=True)
class Results:
    """Someone's costs, and how many lines were of instances that are not compared."""

    rows: list[Row]
    left_out: int


def read_results(path: Path, members: Sequence[Member]) -> Results:
    """Read a results file: a CSV with the columns method, instance, cost, seconds, and perhaps seed.

    An empty cost says that the method did not solve the instance; empty seconds are not known.  Raises NeurouteError,
    with the line, for what is no number, or a pair of method and instance that comes twice, and if no line is of an
    instance that is compared.
    """
    try:
        with path.open(newline="") as file:
            reader = csv.DictReader(file)
            lacking = [name for name in REQUIRED if name not in (reader.fieldnames or ())]
            lines = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise NeurouteError(f"--results {path}: cannot be read ({error})") from None
    if lacking:
        raise NeurouteError(f"--results {path}: no column '{lacking[0]}'; its first line names {', '.join(REQUIRED)}")
    by_name = {name: m for m in members for name in (m.name, inert(m.name))}  # of records, too
    rows, keys = list[Row](), set[tuple[str, str, int]]()
    for number, line in enumerate(lines, 2):
        where = f"--results {path}, line {number}"
        method = (line["method"] or "").strip()
        if not method:
            raise NeurouteError(f"{where}: no method; name it")
        cost, seconds = (_number(line[name], name, where) for name in ("cost", "seconds"))
        seed = _number(line.get("seed"), "seed", where, least=-1) or 0
        member = by_name.get((line["instance"] or "").strip())
        if member is None:
            continue
        key = (method, member.name, int(seed))
        if key in keys:
            raise NeurouteError(f"{where}: {method} on {member.name} comes twice; tell them apart by a column 'seed'")
        keys.add(key)
        about: Row = {"method": method, "how": "results file", "kind": "file", "seed": int(seed), "cost": cost}
        about |= {
            "seconds": seconds,
            "time_s": seconds,
            "unsolved": "" if cost is not None else "not solved",
            "version": path.name,
        }
        rows.append(with_gap(describe(member) | about))
    if not rows:
        some = ", ".join(m.name for m in members[:3])
        raise NeurouteError(f"--results {path}: none of its instances is compared; these are {some} ...")
    return Results(rows, len(lines) - len(rows))


def _number(text: str | None, name: str, where: str, least: float = 0.0) -> float | None:
    """A number above `least`; None where nothing is given."""
    if text is None or not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > least):
        raise NeurouteError(f"{where}: {name} '{text}' is no number above {least:g}; leave it empty if it is unknown")
    return value
