"""The first page of the report: what became of each paper's claims, its main figures in small; a summary in JSON."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroute.core.lazy import pd
from neuroute.rendering.claims import VERDICTS, Finding, Judged
from neuroute.rendering.style import with_suffix
from neuroute.rendering.table import Cell, Format

THUMBNAIL = (560, 220)  # at most so many pixels: twice what the page shows, for dense screens


@dataclass(frozen=True)
class Overview:
    """What the first page shows of a paper."""

    claims: Sequence[Judged] = ()
    figures: Sequence[str] = ()  # names of its main ones


def shown_claim(judged: Judged) -> dict[str, Any]:
    """What the template shows of a claim."""
    shown: dict[str, Any] = {
        "sentence": judged.claim.sentence,
        "where": judged.claim.where,
        "artifact": judged.claim.artifact,
        "verdict": judged.verdict,
        "why": judged.why,
    }
    if found := judged.finding:
        rows = [
            (side.label, _text(side.measured, found.format), _text(side.published, found.format))
            for side in found.sides
        ]
        shown |= {"rows": rows, "difference": _difference(found), "quantity": found.quantity}
        shown |= {"over": found.over, "at": found.at}
    return shown


def _difference(found: Finding) -> tuple[str, str, str]:
    """The measured difference, its interval and the printed one."""
    cell, form = found.difference, found.format
    interval = f"{_text(cell.low, form)} … {_text(cell.high, form)}" if cell.low is not None else ""
    return _text(cell.measured, form), interval, _text(cell.published, form)


def _text(value: Any, form: Format) -> str:
    return "–" if value is None else form(value).replace("-", "−")


def thumbnail(stem: Path) -> str:
    """A drawn figure in small, as the base64 of a PNG; empty where it was not drawn."""
    png = with_suffix(stem, "png")
    if not png.is_file():
        return ""
    from PIL import Image

    buffer = io.BytesIO()
    with Image.open(png) as image:
        small = image.convert("RGB")
        small.thumbnail(THUMBNAIL, Image.Resampling.LANCZOS)
        small.quantize(64).save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


# -- the summary ------------------------------------------------------------------------------------------------------


def summary(
    scale: str, overviews: Mapping[str, Overview], titles: Mapping[str, str], stems: Iterable[Path]
) -> dict[str, Any]:
    """Verdicts, and how many artifacts and numbers stand behind them.

    stems: of all artifacts, without suffix; a number is a measured cell of a table.
    """
    tables = [with_suffix(stem, "csv") for stem in stems if with_suffix(stem, "json").is_file()]
    tables = [path for path in tables if path.name.startswith("table")]
    judged = [(paper, each) for paper, overview in overviews.items() for each in overview.claims]
    counts = [_counts(pd.read_csv(path)) for path in tables]
    return {
        "scale": scale,
        "verdicts": {verdict: sum(each.verdict == verdict for _, each in judged) for verdict in VERDICTS},
        "numbers": {"measured": sum(m for m, _ in counts), "beside_printed": sum(b for _, b in counts)},
        "claims": [_line(paper, titles.get(paper, paper), each) for paper, each in judged],
    }


def _counts(table: pd.DataFrame) -> tuple[int, int]:
    """Count the measured cells of a table, and those of them that have a printed number beside them."""
    measured = beside = 0
    for name in table.columns[table.columns.str.endswith("_measured")]:
        there = table[name].notna()
        measured += int(there.sum())
        printed = f"{name.removesuffix('_measured')}_published"
        beside += int((there & table[printed].notna()).sum()) if printed in table else 0
    return measured, beside


def _line(paper: str, title: str, judged: Judged) -> dict[str, Any]:
    found = judged.finding
    cell = found.difference if found else Cell()
    return {
        "paper": paper,
        "title": title,
        "claim": judged.claim.sentence,
        "where": judged.claim.where,
        "artifact": judged.claim.artifact,
        "verdict": judged.verdict,
        "why": judged.why,
        "quantity": found.quantity if found else None,
        "measured": cell.measured,
        "low": cell.low,
        "high": cell.high,
        "published": cell.published,
        "measured_on": found.at if found else None,
    }
