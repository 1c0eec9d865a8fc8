"""The leaderboard of a comparison: one HTML file with its rows, sorted and filtered where it is read, and pictures.

The file holds, for each method, set and group of sizes, how many instances were solved and what their gaps and times
add up to; a line of script takes means over what a reader selects.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from neuroute.comparison.pareto import LOOKS
from neuroute.comparison.records import MEASURED, published_runs
from neuroute.comparison.summary import Key, Summary, by_problem, groups
from neuroute.core.lazy import pd
from neuroute.rendering.style import Drawing

TEMPLATE = Path(__file__).with_name("page.html")


def page(
    records: pd.DataFrame,
    beginnings: Iterable[int],
    pictures: Sequence[tuple[str, Path, Drawing]],
    notes: Sequence[str],
) -> str:
    """Return the page.

    Args:
        records: of the comparison.
        beginnings: of the groups of sizes.
        pictures: of each its title, an SVG file, and what was drawn.
        notes: below the table.
    """
    about = {(run["method"], run["problem"]): run for run in published_runs()}
    sizes, rows = groups(beginnings), list[dict[str, Any]]()
    for problem, summary in by_problem(records).items():
        sets = summary.records.drop_duplicates("instance").set_index("instance").set.to_dict()
        for key in summary.keys:
            kind = summary.first("kind", key) or "file"
            row: dict[str, Any] = {"problem": problem, "method": key[0], "how": key[1].removeprefix("published: ")}
            row |= {"kind": LOOKS[kind][0], "here": kind in MEASURED, "on": summary.first("device", key) or ""}
            run = about.get((key[0], problem)) if key[1].startswith("published") else None
            row["about"] = f"{run['system']}: {run['decoding']}; {run['weights']}" if run else ""
            cells = [
                [name, place, *_cell(summary, key, [i for i in summary.within(group) if sets[i] == name])]
                for name in sorted(set(sets.values()))
                for place, group in enumerate(sizes)
            ]
            rows.append(row | {"cells": [cell for cell in cells if cell[2]]})
    figures = [
        {
            "title": title,
            "alt": drawing.alt,
            "notes": " ".join(drawing.notes),
            "source": f"data:image/svg+xml;base64,{base64.b64encode(file.read_bytes()).decode()}",
        }
        for title, file, drawing in pictures
    ]
    data = {"rows": rows, "groups": [str(group) for group in sizes], "figures": figures, "notes": list(notes)}
    return TEMPLATE.read_text().replace("{{data}}", json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"))


def _cell(summary: Summary, key: Key, instances: Sequence[str]) -> tuple[int, int, float, float | None]:
    """How many instances a method tried and solved, and the sums of gaps and of seconds (None: not known)."""
    tried = set(summary.records[(summary.records.method == key[0]) & (summary.records.how == key[1])].instance)
    solved = summary.solved_by(key, instances)
    gap, seconds = (summary.mean(metric, key, solved) for metric in ("gap_pct", "time_s"))
    count = len(solved)
    return len(tried & set(instances)), count, (gap or 0.0) * count, None if seconds is None else seconds * count
