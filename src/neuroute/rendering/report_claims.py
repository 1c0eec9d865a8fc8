"""The first page of the report: what became of each paper's claims, its main figures in small; a summary in JSON."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroute.plan.claims import SAYS, Says
from neuroute.plan.scale import Scale
from neuroute.rendering.claims import VERDICTS, Finding, Judged, Verdict, tally
from neuroute.rendering.coverage import Coverage
from neuroute.rendering.style import with_suffix
from neuroute.rendering.table import Format

THUMBNAIL = (560, 220)  # at most so many pixels: twice what the page shows, for dense screens


@dataclass(frozen=True)
class Overview:
    """What the first page shows of a paper."""

    claims: Sequence[Judged] = ()
    figures: Sequence[str] = ()  # names of its main ones


MOST = 8  # differences of a claim that the page lists


def shown_claim(judged: Judged) -> dict[str, Any]:
    """What the template shows of a claim."""
    claim, findings = judged.claim, judged.measured_findings or judged.findings
    return {
        "id": claim.id,
        "sentence": claim.claim,
        "where": claim.where,
        "is_headline": claim.weight == "headline",
        "says": claim.printed.says,
        "note": claim.printed.note,
        "verdict": judged.verdict,
        "why": judged.why,
        "measured": bool(judged.measured_findings),
        "rows": _sides(findings[0]) if len(findings) == 1 else [],
        "differences": [(finding.quantity, *_difference(finding)) for finding in findings[:MOST]],
        "more": max(len(findings) - MOST, 0),
        "over": "; ".join(dict.fromkeys(f.over for f in findings if f.over and f.difference.low is not None)),
        "at": "; ".join(dict.fromkeys(finding.at for finding in findings if finding.at)),
    }


def _sides(finding: Finding) -> list[tuple[str, str, str]]:
    form = finding.format
    return [(side.label, _text(side.measured, form), _text(side.published, form)) for side in finding.sides]


def _difference(finding: Finding) -> tuple[str, str, str]:
    """The measured difference, its interval and the printed one."""
    cell, form = finding.difference, finding.format
    interval = f"{_text(cell.low, form)} … {_text(cell.high, form)}" if cell.low is not None else ""
    return _text(cell.measured, form), interval, _text(cell.published, form)


def counts(judged: Sequence[Judged], verdicts: Sequence[Verdict]) -> dict[Says, dict[Verdict, int]]:
    """How many claims have each verdict here, by what their printed numbers say."""
    return {
        says: {
            verdict: sum((c.claim.printed.says, c.verdict) == (says, verdict) for c in judged) for verdict in verdicts
        }
        for says in SAYS
    }


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
    verdicts: Sequence[Verdict] = VERDICTS if scale.verdicts else ("not judged",)
    cells_of_tables = [cells for tables in coverage.values() for cells in tables.values()]
    return {
        "scale": scale.name,
        "verdicts": tally([each for _, each in judged]) if judged else dict.fromkeys(verdicts, 0),
        "by_printed": counts([each for _, each in judged], verdicts),
        "numbers": {
            "measured": sum(cells.measured for cells in cells_of_tables),
            "beside_printed": sum(cells.beside for cells in cells_of_tables),
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
    claim = judged.claim
    return {
        "paper": paper,
        "title": title,
        "id": claim.id,
        "claim": claim.claim,
        "where": claim.where,
        "weight": claim.weight,
        "kind": claim.kind,
        "artifact": claim.artifact,
        "printed": claim.printed.says,
        "verdict": judged.verdict,
        "why": judged.why,
        "cost": judged.cost,
        "differences": [
            {
                "quantity": finding.quantity,
                "measured": finding.difference.measured,
                "low": finding.difference.low,
                "high": finding.difference.high,
                "published": finding.difference.published,
                "measured_on": finding.at,
                "over": finding.over,
            }
            for finding in judged.findings
        ],
    }
