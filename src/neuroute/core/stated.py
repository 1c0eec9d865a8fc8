"""Records that prove themselves: a .json beside a table (.csv) and its arrays (.npz) states what both hold."""

import hashlib
from pathlib import Path

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_json


def state(table: Path) -> None:
    """Write beside a table and its .npz how many rows the one has, and the sha256 of both."""
    digests = {f"{kind}_sha256": _digest(table.with_suffix(f".{kind}")) for kind in ("csv", "npz")}
    write_json(table.with_suffix(".json"), {"rows": _rows(table), **digests})


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
