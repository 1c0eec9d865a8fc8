"""Records that prove themselves: a .json beside a table (.csv) and its arrays (.npz) states what both hold."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_json

BUSY = 1.5  # processes that want to run, for each core


def state(table: Path, machine: Mapping[str, float] | None = None) -> None:
    """Write beside a table and its .npz how many rows the one has, the sha256 of both, and how busy the machine is."""
    digests = {f"{kind}_sha256": _digest(table.with_suffix(f".{kind}")) for kind in ("csv", "npz")}
    write_json(table.with_suffix(".json"), {"rows": _rows(table), **digests, "machine": machine or this_machine()})


def this_machine() -> dict[str, float]:
    """Return its `cores`, and its `load` in the last minute."""
    return {"cores": os.cpu_count() or 1, "load": round(os.getloadavg()[0], 2)}


def busy(tables: Iterable[Path]) -> str:
    """Say with which load the machine was too busy for times to count; nothing where it was not, or nothing is known.

    Raises NeurouteError if a .json beside a table cannot be read.
    """
    statements = [read_json(path, "") for table in tables if (path := table.with_suffix(".json")).exists()]
    machines = [statement["machine"] for statement in statements if "machine" in statement]
    worst = max(machines, key=lambda machine: float(machine["load"]) / machine["cores"], default=None)
    if worst is None or worst["load"] <= BUSY * worst["cores"]:
        return ""
    return f"load {worst['load']:.1f} on {worst['cores']} cores"


def check_stated(path: Path, mend: str) -> None:
    """Raises NeurouteError, with `mend`, if a .csv or .npz is not what the .json beside it states, where there is one.

    Earlier versions wrote none.
    """
    beside = path.with_suffix(".json")
    if not path.exists() or not beside.exists():
        return
    statement, kind = read_json(beside, mend), path.suffix[1:]
    if not isinstance(statement, dict) or not {f"{kind}_sha256", "rows"} <= statement.keys():
        raise NeurouteError(f"{beside}: does not state what {path.name} holds; {mend}")
    if _digest(path) != statement[f"{kind}_sha256"]:
        rows = f" ({_rows(path)} rows of {statement['rows']})" if kind == "csv" else ""
        raise NeurouteError(f"{path}: was cut or edited since it was measured{rows}; {mend}")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _rows(table: Path) -> int:
    return max(table.read_bytes().count(b"\n") - 1, 0)
