"""Verdicts on all claims, from the tables that docs/measured/laptop keeps, in pages: `python docs/generate/claims.py`.

A page says where: between `<!-- made by docs/generate/claims.py: NAME -->` and `<!-- end -->`.
"""

import csv
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
FORMER = DOCS / "results" / "former.csv"  # rows of this page under an earlier rule, with the claims that they are of
MADE = re.compile(r"(<!-- made by docs/generate/claims\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
WEIGHTS = ("headline", "result", "detail")
SAME = {"agrees": "supported", "disagrees": "contradicted", "undecided": "inconclusive"}


def filled(page: str, folder: Path = SCALE) -> str:
    """A page with its made parts as the kept tables of a folder have them."""
    return MADE.sub(lambda part: f"{part[1]}\n{blocks(folder)[part[2]]}\n{part[3]}", page)


@cache
def blocks(folder: Path) -> Mapping[str, str]:
    """What is made: the tally, a table of all claims, and one of former verdicts that changed."""
    claimed = judge_kept(folder)
    rows = rows_of(claimed)
    return {
        "short": f"{say(folder.name, claimed)}\n",
        "tally": _tally(rows),
        "claims": _claims(rows),
        "former": _former(rows),
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


def _former(rows: list[dict[str, str]]) -> str:
    """The former verdicts that are no longer the same, each with what its claims' verdicts follow from now."""
    of = {row["id"]: row for row in rows}
    with FORMER.open(encoding="utf-8") as file:
        former = list(csv.DictReader(file))
    lines = ["| claim | here, by the former rule | former verdict | now | why |", "|---|---|---|---|---|"]
    same = 0
    for row in former:
        now = [of[name] for name in row["claims"].split("; ") if name]
        words = {SAME[word] for word in re.findall(r"disagrees|agrees|undecided", row["verdict"])}
        if now and {each["verdict"] for each in now} == words:
            same += 1
            continue
        verdicts = "<br>".join(f"`{each['id']}` {each['verdict']}" for each in now) or "no claim of the paper"
        why = "<br>".join(dict.fromkeys(_cell(_changed(each)) for each in now))
        lines.append(f"| {_cell(row['claim'])} | {_cell(row['here'])} | {row['verdict']} | {verdicts} | {why} |")
    head = f"Of {len(former)} rows {same} have the same verdict, {len(former) - same} another:\n\n"
    return head + "\n".join(lines) + "\n"


def _because(row: Mapping[str, str]) -> str:
    """Why a verdict is what it is: its numbers, or what keeps it from being judged."""
    return "; ".join(text for text in (row["here"], row["why"]) if text)


def _changed(row: Mapping[str, str]) -> str:
    """Say what of the rule makes the verdict another one."""
    if row["verdict"] == "not measured":
        return f"nothing that the rule compares: {row['why']}"
    if " to " in row["here"]:
        return f"all its cells count, each with its spread: {_because(row)}"
    return _because(row)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text()))
