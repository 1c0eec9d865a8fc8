"""Records of a comparison, one for each method, instance and seed; other people's results files, and a survey's.

`published/README.md` says whose results come with the package, and how they were measured.
"""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroute.analysis.intervals import gap_pct
from neuroute.core.arrays import read_rows, real
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.lazy import pd
from neuroute.core.text import inert

COLUMNS = (
    "problem", "set", "instance", "n", "best_known", "method", "how", "kind", "seed", "cost", "gap_pct", "time_s",
    "seconds", "cpu_seconds", "gflops", "unsolved", "budget_s", "limit_s", "version", "device", "threads",
    "clock", "code",
)  # fmt: skip
REQUIRED = ("method", "instance", "cost", "seconds")  # of a results file
NUMBERS = ("seed", "seconds", "time_s", "cpu_seconds", "gflops", "budget_s")  # that it may have, too, as records do
MEASURED = ("network", "solver", "function")  # kinds of methods that this package runs
KINDS = (*MEASURED, "file", "constructive", "improvement", "heat map", "classical")  # the last are published ones
PUBLISHED = Path(__file__).parent / "published"
BREAKDOWN = 100.0  # % from which on the survey counts an instance as unsolved
Row = dict[str, Any]


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


@dataclass(frozen=True)
class Results:
    """Someone's costs, and how many lines were of instances that are not compared."""

    rows: list[Row]
    left_out: int


def read_results(
    path: Path,
    instances: Mapping[str, Row],
    runs: Mapping[tuple[str, str], Row] | None = None,
    option: str = "--results",
) -> Results:
    """Read a results file: a CSV with the columns method, instance, cost, seconds, and perhaps others of records.

    Its rows are of kind `file`: what else it says of kind, device, threads, clock, version and code is not taken.

    An empty cost says that the method did not solve the instance; empty seconds are not known.  `instances` are those
    that are compared, by name, and `runs` the (method, problem) that are wanted (None: all), each with what there is to
    say of it; `option` named the file.  Raises NeurouteError with the line, for what is no number, or a pair of method
    and instance that comes twice; and if no line is of an instance that is compared.
    """
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")  # spreadsheets' mark
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise NeurouteError(f"{option} {path}: cannot be read ({error})") from None
    columns, lines = read_rows(text, f"{option} {path}")
    if lacking := [name for name in REQUIRED if name not in columns]:
        raise NeurouteError(f"{option} {path}: no column '{lacking[0]}'; its first line names {', '.join(REQUIRED)}")
    by_name = {name: about for key, about in instances.items() for name in (key, inert(key))}  # of records, too
    rows, keys, elsewhere = list[Row](), set[tuple[str, ...]](), 0
    for where, line in lines:
        method = line["method"]
        if not method:
            raise NeurouteError(f"{where}: no method; name it")
        cost = _number(line["cost"], "cost", where)
        numbers = {name: _number(line.get(name), name, where, zero=True) for name in NUMBERS}
        if (seed := numbers["seed"] or 0) % 1:
            raise NeurouteError(f"{where}: seed {line['seed']!r} is no whole number")
        if line.get("kind", "file") not in ("", *KINDS):
            raise NeurouteError(
                f"{where}: no kind '{line['kind'][:60]}'; leave it empty: rows of files are of kind file"
            )
        instance = by_name.get(line["instance"])
        if instance is None:
            elsewhere += 1
            continue
        run = _of_file(path, line) if runs is None else runs.get((method, instance["problem"]))
        if run is None:
            continue
        about: Row = {"time_s": numbers["seconds"], **run}
        about |= {name: value for name, value in numbers.items() if value is not None} | {"seed": int(seed)}
        key = (method, about["how"], instance["instance"], str(about["seed"]))
        if key in keys:
            name = " ".join(method.split())
            raise NeurouteError(
                f"{where}: {name} on {instance['instance']} comes twice; tell them apart by a column 'seed' or 'how'"
            )
        keys.add(key)
        about["unsolved"] = line.get("unsolved") or ("" if cost is not None else "not solved")
        rows.append(with_gap(instance | {"method": method, "cost": cost} | about))
    if not rows:
        some = ", ".join(list(instances)[:3])
        raise NeurouteError(f"{option} {path}: none of its instances is compared; compared are {some} ...")
    if runs is None:
        _check_seeds(rows, f"{option} {path}")
    return Results(rows, elsewhere)


def _of_file(path: Path, line: Mapping[str, str]) -> Row:
    """Return what is said of a row of someone's file, whatever it claims: nobody here has seen it measured."""
    how = line.get("how", "")
    how = "results file" if how in ("", "one pass", "results file") else f"results file: {how}"
    return {"how": how, "kind": "file", "version": path.name}


def _check_seeds(rows: Sequence[Row], where: str) -> None:
    """Raises NeurouteError for a method that has other seeds on one instance than on another: no mean is over both."""
    seeds: dict[tuple[str, str], dict[str, set[int]]] = {}
    for row in rows:
        seeds.setdefault((row["method"], row["how"]), {}).setdefault(row["instance"], set()).add(row["seed"])
    for (method, _), by_instance in seeds.items():
        (first, some), *others = by_instance.items()
        for name, other in others:
            if other != some:
                one, two = (", ".join(map(str, sorted(each))) for each in (some, other))
                raise NeurouteError(
                    f"{where}: {' '.join(method.split())} has seed {one} on {first}, {two} on {name}; give every "
                    "instance the same seeds, with an empty cost for a missing run"
                )


def read_published(names: Sequence[str], instances: Mapping[str, Row]) -> Results:
    """Return a survey's results of these methods (`lehd`), of all of one system (`sil`) or of `all`.

    instances: as of `read_results`.  Raises NeurouteError if there is no method of that name, or none of its instances
    is compared.
    """
    every: dict[tuple[str, str], Row] = {(run["method"], run["problem"]): run for run in published_runs()}
    methods = list(dict.fromkeys(method for method, _ in every))
    wanted_methods = set[str]()
    for name in names:
        matches = [m for m in methods if name in (m, "all")] or [m for m in methods if m.startswith(f"{name}-")]
        if not matches:
            meant = did_you_mean(near(name, methods)) or ";"
            raise NeurouteError(
                f"--published {name}: no method of that name in the survey{meant} there are: {', '.join(methods)}"
            )
        wanted_methods |= set(matches)
    about = {
        key: {"how": f"published: {run['how']}", "kind": run["kind"], "device": run["hardware"], "clock": "wall"}
        for key, run in every.items()
        if key[0] in wanted_methods
    }
    return read_results(PUBLISHED / "results.csv.gz", instances, about, "--published")


def published_runs() -> list[Row]:
    """Return what was run of each published method and problem: `published/methods.csv`."""
    with (PUBLISHED / "methods.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def _number(text: str | None, name: str, where: str, zero: bool = False) -> float | None:
    """A number above 0, or `zero` itself; None where nothing is given."""
    if text is None or not text.strip():
        return None
    try:
        value = real(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and (value > 0 or (zero and value == 0))):
        raise NeurouteError(f"{where}: {name} {text!r} is not a number above 0; leave it empty if unknown")
    return value
