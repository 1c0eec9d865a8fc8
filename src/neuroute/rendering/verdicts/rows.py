"""Verdicts on all claims as rows: what `neuroute claims` writes, and pages show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuroute.core.lazy import pd
from neuroute.core.text import csv_text
from neuroute.plan.papers import all_papers, load_paper
from neuroute.rendering.claims import Judged, told_in_short
from neuroute.rendering.verdicts.comparisons import judge_all
from neuroute.rendering.verdicts.kept import KeptTables

Claimed = Mapping[str, Sequence[Judged]]  # paper -> its claims


def judge_kept(folder: Path) -> Claimed:
    """Judge what the papers claim by the tables that lie in a folder of docs/measured.

    Raises NeurouteError if kept.yaml there is missing or not valid, or a claim names cells that a kept table lacks.
    """
    papers = {key: load_paper(key) for key in all_papers()}
    judged = {key: judge_all(paper, KeptTables(folder, key, paper.headline)) for key, paper in papers.items()}
    return {key: claims for key, claims in judged.items() if claims}


def say(scale: str, claimed: Claimed) -> str:
    """Say how many claims there are, what became of them, and how many headlines are decided."""
    return told_in_short(scale, [judged for of_paper in claimed.values() for judged in of_paper])


def rows_of(claimed: Claimed) -> list[dict[str, Any]]:
    """One row a claim: what it says, what its printed numbers say, and what became of it here."""
    return [_row(paper, judged) for paper, of_paper in claimed.items() for judged in of_paper]


def _row(paper: str, judged: Judged) -> dict[str, Any]:
    claim = judged.claim
    return {
        "id": f"{paper}.{claim.id}",
        "paper": paper,
        "weight": claim.weight,
        "claim": claim.claim,
        "where": claim.where,
        "printed": claim.printed.says,
        "note": claim.printed.note,
        "verdict": judged.verdict,
        "here": in_numbers(judged),
        "why": judged.why,
        "cost": judged.cost,
    }


def in_numbers(judged: Judged) -> str:
    """The measured difference with its interval; of several the least and the largest."""
    there = [(f.difference, f.format) for f in judged.measured_findings if isinstance(f.difference.measured, float)]
    if not there:
        return ""
    if len(there) > 1:
        values = sorted(float(cell.measured or 0) for cell, _ in there)
        form = there[0][1]
        return f"{form(values[0])} to {form(values[-1])}"
    cell, form = there[0]
    interval = "" if cell.low is None else f" [{form(cell.low)}, {form(cell.high)}]"
    return f"{form(cell.measured)}{interval}"


def as_csv(of: Iterable[Mapping[str, Any]]) -> str:
    return csv_text(pd.DataFrame(list(of)))
