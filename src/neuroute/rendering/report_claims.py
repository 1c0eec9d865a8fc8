"""The first page of the report: what became of each paper's claims, its main figures in small; a summary in JSON."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroute.plan.scale import Scale
from neuroute.rendering.claims import VERDICTS, Finding, Judged
from neuroute.rendering.coverage import Coverage
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
    values: dict[str, Any] = {
        "sentence": judged.claim.sentence,
        "where": judged.claim.where,
        "artifact": judged.claim.artifact,
        "verdict": judged.verdict,
        "why": judged.why,
    }
    if finding := judged.finding:
        rows = [
            (side.label, _text(side.measured, finding.format), _text(side.published, finding.format))
            for side in finding.sides
        ]
        values |= {"rows": rows, "difference": _difference(finding), "quantity": finding.quantity}
        values["measured"] = finding.difference.measured is not None
        values |= {"over": finding.over, "at": finding.at}
    return values


def _difference(finding: Finding) -> tuple[str, str, str]:
    """The measured difference, its interval and the printed one."""
    cell, form = finding.difference, finding.format
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
    scale: Scale,
    overviews: Mapping[str, Overview],
    titles: Mapping[str, str],
    coverage: Mapping[str, Mapping[str, Coverage]],
) -> dict[str, Any]:
    """Verdicts, and how many numbers stand behind them.

    coverage: paper -> table -> its cells; a number is a measured cell of a table.
    """
    judged = [(paper, each) for paper, overview in overviews.items() for each in overview.claims]
    verdicts = VERDICTS if scale.verdicts else ("not judged",)
    counts = [cells for tables in coverage.values() for cells in tables.values()]
    return {
        "scale": scale.name,
        "verdicts": {verdict: sum(each.verdict == verdict for _, each in judged) for verdict in verdicts},
        "numbers": {
            "measured": sum(cells.measured for cells in counts),
            "beside_printed": sum(cells.beside for cells in counts),
        },
        "coverage": {
            paper: {name: cells._asdict() for name, cells in tables.items()} for paper, tables in coverage.items()
        },
        "claims": [_line(paper, titles.get(paper, paper), each) for paper, each in judged],
    }


def covered(stems: Mapping[str, Iterable[Path]]) -> dict[str, dict[str, Coverage]]:
    """Count the cells of all tables that are drawn; stems: paper -> artifacts, without suffix."""
    return {
        paper: {
            stem.name: Coverage.of(with_suffix(stem, "csv"))
            for stem in of_paper
            if stem.name.startswith("table") and all(with_suffix(stem, kind).is_file() for kind in ("json", "csv"))
        }
        for paper, of_paper in stems.items()
    }


def _line(paper: str, title: str, judged: Judged) -> dict[str, Any]:
    finding = judged.finding
    cell = finding.difference if finding else Cell()
    return {
        "paper": paper,
        "title": title,
        "claim": judged.claim.sentence,
        "where": judged.claim.where,
        "artifact": judged.claim.artifact,
        "verdict": judged.verdict,
        "why": judged.why,
        "quantity": finding.quantity if finding else None,
        "measured": cell.measured,
        "low": cell.low,
        "high": cell.high,
        "published": cell.published,
        "measured_on": finding.at if finding else None,
    }
