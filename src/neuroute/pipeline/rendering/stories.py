"""Where each number of a table comes from, as the title that a reader sees when pointing at it."""

import csv
import html
import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

CELL = re.compile(r"<td(?= class|>)")
MEASURED = "_measured"


def with_stories(table: str, file: Path, name: str, about: Mapping[str, Any]) -> str:
    """Return a table's HTML with a title for each measured cell: run, test set, decoding, seeds, and a command.

    Args:
        table: as `Table.html` writes it.
        file: its CSV, which has a line for each row, in the same order.
        name: of the CSV, as the command names it.
        about: of the artifact: `measured_on`, and in `made_from` which run is behind which cell.
    """
    titles = _titles(file, name, about)
    return CELL.sub(lambda match: f"{match[0]}{next(titles, '')}", table)


def _titles(file: Path, name: str, about: Mapping[str, Any]) -> Iterator[str]:
    """Yield the attribute of each cell, row by row; empty for what was not measured."""
    on, runs = about["measured_on"], about.get("made_from", {}).get("cells", {})
    decodings, seeds = ", ".join(on.get("decodings", ())), ", ".join(map(str, on.get("seeds", ())))
    with file.open(newline="", encoding="utf-8") as opened:
        for line in csv.DictReader(opened):
            labels = [line[head] for head in takewhile(lambda head: MEASURED not in head, line)]
            row = ", ".join(labels)
            for key in (head.removesuffix(MEASURED) for head in line if head.endswith(MEASURED)):
                if not line[f"{key}{MEASURED}"]:
                    yield ""
                    continue
                run = runs.get(row, {}).get(key) or line.get(f"{key}_measured_weights")
                trainings = line.get(f"{key}_measured_trainings")
                parts = {
                    "run": run,
                    "test set": line.get(f"{key}_measured_at"),
                    "decoding": decodings,
                    "trainings": trainings and f"{float(trainings):g}",
                    "seeds": seeds,
                    "again": f"neuroute verify {name} --cell {shlex.quote(f'{row},{key}')}",
                }
                text = "\n".join(f"{part}: {value}" for part, value in parts.items() if value)
                yield f' title="{html.escape(text)}"'
