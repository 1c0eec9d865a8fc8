"""Verdicts on all claims, from the tables that docs/measured/laptop keeps, in pages: `python docs/generate/claims.py`.

A page says where: between `<!-- made by docs/generate/claims.py: NAME -->` and `<!-- end -->`.
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from neuroute.plan.claims import SAYS
from neuroute.rendering.claims import VERDICTS
from neuroute.rendering.verdicts.kept import judge_kept, rows_of, say

DOCS = Path(__file__).resolve().parents[1]
SCALE = DOCS / "measured" / "laptop"
PAGES = (DOCS / "results" / "what_reproduces.md", DOCS.parent / "README.md")
MADE = re.compile(r"(<!-- made by docs/generate/claims\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
WEIGHTS = ("headline", "result", "detail")


def filled(page: str, folder: Path = SCALE) -> str:
    """A page with its made parts as the kept tables of a folder have them."""
    return MADE.sub(lambda part: f"{part[1]}\n{blocks(folder)[part[2]]}\n{part[3]}", page)


@cache
def blocks(folder: Path) -> Mapping[str, str]:
    """What is made: a sentence, the tally, and a table of all claims."""
    claimed = judge_kept(folder)
    rows = rows_of(claimed)
    return {
        "short": f"{say(folder.name, claimed)}\n",
        "tally": _tally(rows),
        "claims": _claims(rows),
    }


def _tally(rows: list[dict[str, str]]) -> str:
    heads = ("the paper's printed numbers", *VERDICTS, "claims")
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(VERDICTS) + 1)]
    for says in SAYS:
        counts = Counter(row["verdict"] for row in rows if row["printed"] == says)
        lines.append(f"| {says} | " + " | ".join(str(counts[v]) for v in VERDICTS) + f" | {counts.total()} |")
    return "\n".join(lines) + "\n"


def _claims(rows: list[dict[str, str]]) -> str:
    """By paper and weight, the decided ones first."""
    papers = list(dict.fromkeys(row["paper"] for row in rows))

    def place(row: dict[str, str]) -> tuple[int, int, int]:
        return papers.index(row["paper"]), WEIGHTS.index(row["weight"]), VERDICTS.index(row["verdict"])

    heads = ("claim", "paper", "weight", "printed", "here", "why, in points if nothing else is said", "to decide")
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in sorted(rows, key=place):
        claim = f"{_cell(row['claim'])} ({_cell(row['where'])}) `{row['id']}`"
        printed = row["printed"] + (f": {_cell(row['note'])}" if row["note"] else "")
        cells = (claim, row["paper"], row["weight"], printed, row["verdict"], _cell(_because(row)), row["cost"])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _because(row: Mapping[str, str]) -> str:
    """Why a verdict is what it is: its numbers, or what keeps it from being judged."""
    return "; ".join(text for text in (row["here"], row["why"]) if text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text()))
