"""Which results Snakemake will make again: those whose spec or code is no longer what it noted when they were made."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from pathlib import Path

NOTES = Path(".snakemake/metadata")
LONGEST_NAME = 255  # of a file; Snakemake cuts longer names into folders


def is_stale(result: Path, parameters: Iterable[str]) -> bool:
    """Whether Snakemake made the result with other parameters; False where it noted nothing."""
    name, cut = urlsafe_b64encode(str(result).encode()).decode(), LONGEST_NAME - 1
    parts = [name[i : i + cut] for i in range(0, len(name), cut)]
    note = NOTES.joinpath(*("@" + part for part in parts[:-1]), parts[-1])
    try:
        noted = json.loads(note.read_text())["params"]
    except (OSError, ValueError, KeyError):
        return False
    return not {repr(value) for value in parameters} <= set(noted or ())
