"""Code digests that an earlier process found, beside the bytecode: parsing the package takes two seconds.

They hold while no source file of the package, or of a folder with papers, has changed its size or time.
"""

import atexit
import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_json
from neuroute.plan import digest
from neuroute.plan.digest import PACKAGE, ROOT

FILE = ROOT / "__pycache__" / "digests.json"


def code_digest(*entries: str) -> str:
    """`digest.code_digest`, remembered unless an entry lies in a module of the user's own."""
    if any(not entry.startswith(f"{PACKAGE}.") for entry in entries):
        return digest.code_digest(*entries)
    key = " ".join(sorted(entries))
    digests = _load_digests()
    if key not in digests:
        digests[key] = digest.code_digest(*entries)
    return digests[key]


@cache
def _load_digests() -> dict[str, str]:
    """Digests by entries; new ones are written when the process ends."""
    state, digests = _state(), {}
    with suppress(OSError, ValueError, TypeError, KeyError):
        stored: dict[str, Any] = json.loads(FILE.read_text())
        digests = dict(stored["digests"]) if stored["state"] == state else {}
    before = len(digests)

    def keep() -> None:
        if len(digests) > before and _state() == state:
            with suppress(OSError, NeurouteError):  # as with bytecode: nothing is lost in a folder that is read only
                write_json(FILE, {"state": state, "digests": digests})

    atexit.register(keep)
    return digests


def _state() -> str:
    files = ((name, file.stat().st_mtime_ns, file.stat().st_size) for name, file in sorted(_sources()))
    return hashlib.sha256(json.dumps(list(files)).encode()).hexdigest()


def _sources() -> Iterator[tuple[str, Path]]:
    """Names within their folder, so that a copy of the project knows them, too."""
    folders = {ROOT, *map(Path, import_module(f"{PACKAGE}.papers").__path__)}
    return ((str(file.relative_to(folder)), file) for folder in folders for file in folder.rglob("*.py"))
