"""Records that prove themselves: a .json beside a table (.csv) and its arrays (.npz) states what both hold."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_json

BUSY = 1.5  # processes that want to run, for each core


def state(table: Path, weights_sha256: str, **made_from: Any) -> None:
    """Write beside a table and its .npz how many rows the one has, the sha256 of both and of the weights that were
    measured, further facts of what they were made from, and how busy the machine is.
    """
    digests = {f"{kind}_sha256": _digest(table.with_suffix(f".{kind}")) for kind in ("csv", "npz")}
    machine = {"cores": os.cpu_count() or 1, "load": round(os.getloadavg()[0], 2)}  # the last minute's
    weights = {"weights_sha256": weights_sha256}
    write_json(
        table.with_suffix(".json"), {"rows": _rows(table), **digests, **weights, **made_from, "machine": machine}
    )


def busy(tables: Iterable[Path]) -> str:
    """Say with which load the machine was too busy for times to count; nothing where it was not, or nothing is known.

    Raises NeurouteError if a .json beside a table cannot be read, or states no cores and load.
    """
    worst, text = BUSY, ""
    for path in (table.with_suffix(".json") for table in tables):
        if not path.exists():
            continue
        statement = read_json(path, "evaluate again")
        try:
            machine = statement.get("machine", {"cores": 1, "load": 0.0})  # earlier versions stated none
            load, cores = float(machine["load"]), int(machine["cores"])
            each_core = load / cores
        except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
            raise NeurouteError(f"{path}: does not state the machine's cores and load; evaluate again") from None
        if each_core > worst:
            worst, text = each_core, f"load {load:.1f} on {cores} cores"
    return text


def check_stated(path: Path, mend: str) -> None:
    """Raises NeurouteError, with `mend`, if a .csv or .npz is not what the .json beside it states, where there is one.

    Earlier versions wrote none.
    """
    beside = path.with_suffix(".json")
    if not path.exists() or not beside.exists():
        return
    kind = path.suffix[1:]
    statement = read_json(beside, mend, f"{kind}_sha256", "rows")
    if _digest(path) != statement[f"{kind}_sha256"]:
        rows = f" ({_rows(path)} rows of {statement['rows']})" if kind == "csv" else ""
        raise NeurouteError(f"{path}: was cut or edited since it was measured{rows}; {mend}")


def is_of_other_weights(table: Path, summary: Path, mend: str) -> bool:
    """Whether a table's .json states other weights than a run's summary, where both are there and state some.

    Raises NeurouteError, with `mend`, if one cannot be read.
    """
    files = (table.with_suffix(".json"), summary)
    return len({read_json(file, mend).get("weights_sha256") for file in files if file.exists()} - {None}) > 1


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _rows(table: Path) -> int:
    return max(table.read_bytes().count(b"\n") - 1, 0)
