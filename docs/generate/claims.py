"""Verdicts on all claims, from the tables that docs/measured/laptop keeps, in pages: `python docs/generate/claims.py`.

A page says where: between `<!-- made by docs/generate/claims.py: NAME -->` and `<!-- end -->`.
"""

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from neuroute.pipeline.plan.build import build_plan
from neuroute.pipeline.plan.claims import SAYS, claims_digest
from neuroute.pipeline.plan.config import parse_config
from neuroute.pipeline.plan.paper import all_papers, load_paper
from neuroute.pipeline.rendering.comparisons import ONE_EACH
from neuroute.pipeline.rendering.kept import KeptTables, judge_kept, rows_of
from neuroute.pipeline.rendering.verdicts import VERDICTS, Claimed, told_in_short
from neuroute_compare.records import published_runs

DOCS = Path(__file__).resolve().parents[1]
SCALE = DOCS / "measured" / "laptop"
PAGES = (DOCS / "results" / "what_reproduces.md", DOCS / "concepts" / "verdicts.md", DOCS.parent / "README.md")
FORMER = DOCS / "results" / "former.csv"  # verdicts by the rule before forms: all cells above 0
COVERAGE = DOCS / "measured" / "checks" / "verdicts.csv"
MADE = re.compile(r"(<!-- made by docs/generate/claims\.py: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
WEIGHTS = ("headline", "result", "detail")
Rows = Sequence[Mapping[str, Any]]


def filled(page: str, folder: Path = SCALE) -> str:
    """A page with its made parts as the kept tables of a folder have them."""
    return MADE.sub(lambda part: f"{part[1]}\n{blocks(folder)[part[2]]}\n{part[3]}", page)


@cache
def blocks(folder: Path) -> Mapping[str, str]:
    """What is made: headlines, the tally, a table of all claims, one of former verdicts, how often all are right."""
    claimed = judge_kept(folder)
    rows = rows_of(claimed)
    every = [judged for of_paper in claimed.values() for judged in of_paper]
    return {
        "short": f"{told_in_short(folder.name, every)}\n",
        "gates": _gates(claimed),
        "headlines": _headlines(rows),
        "tally": _tally(rows),
        "claims": _claims(rows),
        "former": _former(rows),
        "coverage": _coverage(),
        "counts": _counts(),
    }


def _counts() -> str:
    """How many artifacts the five papers have at the smallest scale, and how many published systems stand beside."""
    kinds = Counter(each.kind for each in build_plan(parse_config({})).artifacts.values() if each.paper != "rivals")
    runs = published_runs()
    systems, of = len({run["system"] for run in runs}), Counter(run["problem"] for run in runs)
    lines = [
        "| | |",
        "|---|---|",
        f"| the five papers' tables and figures, measured beside printed | {kinds['table']} and {kinds['figure']} |",
        f"| published systems beside yours, in configurations (TSP, CVRP) | {systems}, "
        f"in {of['tsp']} and {of['cvrp']} |",
    ]
    return "\n".join(lines) + "\n"


def _gates(claimed: Claimed) -> str:
    digest = claims_digest(load_paper(key).folder for key in all_papers())
    lines = [f"* `{paper}`: {of[0].regime.words}" for paper, of in claimed.items()]
    return "\n".join([*lines, f"* Claims, forms and margins are those of digest {digest}."]) + "\n"


def _headlines(rows: Rows) -> str:
    """Those that need no GPU: printed effect, measured effect, verdict."""
    heads = ("headline", "form", "printed", "measured, 95 % interval", "cells", "power", "p (Holm)", "verdict")
    lines = _head(heads)
    for row in rows:
        if row["weight"] == "headline" and not row["gpu"]:
            p_holm = "" if row["p"] is None else f"{row['p_holm']:.2g}"
            claim = f"{_cell(row['claim'])} `{row['id']}`"
            of = f"{row['here']}: {row['of']}" if row["here"] else _cell(row["why"])
            cells = (claim, row["form"], row["in_print"], _cell(of), row["cells"], _power(row), p_holm, row["verdict"])
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _power(row: Mapping[str, Any]) -> str:
    return "" if row["power"] is None else f"{row['power']:.2f}"


def _head(heads: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]


def _tally(rows: Rows) -> str:
    lines = [f"| the paper's printed numbers | {' | '.join(VERDICTS)} | claims |", "|---|" + "---:|" * 6]
    for says in SAYS:
        counts = Counter(row["verdict"] for row in rows if row["printed"] == says)
        lines.append(f"| {says} | " + " | ".join(str(counts[v]) for v in VERDICTS) + f" | {counts.total()} |")
    return "\n".join(lines) + "\n"


def _claims(rows: Rows) -> str:
    """By paper and weight, the decided ones first."""
    papers = list(dict.fromkeys(row["paper"] for row in rows))

    def place(row: Mapping[str, Any]) -> tuple[int, int, int]:
        return papers.index(row["paper"]), WEIGHTS.index(row["weight"]), VERDICTS.index(row["verdict"])

    lines = _head(
        ("claim", "paper", "weight", "form", "printed", "verdict", "measured", "why open, to decide", "power")
    )
    for row in sorted(rows, key=place):
        claim = f"{_cell(row['claim'])} ({_cell(row['where'])}) `{row['id']}`"
        printed = ": ".join(filter(None, [f"{row['printed']} {row['in_print']}".strip(), _cell(row["note"])]))
        why = "; ".join(filter(None, [row["why"], row["cost"] if row["cost"] not in row["why"] else ""]))
        cells = (
            claim, row["paper"], row["weight"], row["form"], printed, row["verdict"],
            f"{row['here']}{_signs(row)}", _cell(why), _power(row),
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _signs(row: Mapping[str, Any]) -> str:
    return f"; {row['cells']} cells" if row["cells"] else ""


def _former(rows: Rows) -> str:
    """The verdicts that changed with the rule or the measurements, and why."""
    with FORMER.open(encoding="utf-8") as file:
        former = {row["id"]: row for row in csv.DictReader(file)}
    lines = _head(("claim", "former verdict", "now", "why"))
    commits = _commits()
    changed = [row for row in rows if former[row["id"]]["verdict"] != row["verdict"]]
    for row in changed:
        before = former[row["id"]]
        was = "; ".join(
            [before["verdict"], *([before["here"].removeprefix("'")] * (before["verdict"] != "not measured"))]
        )
        now = "; ".join(filter(None, [row["verdict"], row["here"]]))
        anew = "; measured anew" if before["commits"] and commits[row["id"]] != before["commits"] else ""
        lines.append(f"| `{row['id']}` | {_cell(was)} | {now} | {_reason(before, row)}{anew} |")
    head = f"Of {len(rows)} claims {len(rows) - len(changed)} have the same verdict, {len(changed)} another:\n\n"
    return head + "\n".join(lines) + "\n"


def _commits(folder: Path = SCALE) -> Mapping[str, str]:
    """By which commits the kept tables and figures of each claim were measured."""
    of: dict[str, str] = {}
    for key in all_papers():
        kept = KeptTables(folder, key, load_paper(key).headline)
        stated = {path.stem: kept.points(path.stem)[0]["commit"] for path in kept.files}
        for claim in load_paper(key).claims():
            names = [name for name in (*claim.tables, *claim.artifacts) if name in stated]
            of[f"{key}.{claim.id}"] = "; ".join(dict.fromkeys(stated[name] for name in names))
    return of


def _reason(before: Mapping[str, str], row: Mapping[str, Any]) -> str:
    """What of the rule makes the verdict another one."""
    if row["verdict"] == "regime not sensitive":
        return "the regime does not move, so differences between trainings are not judged"
    if row["verdict"] == "not measured":
        return "no longer judged by cells that say another thing than the claim"
    if ONE_EACH in row["why"]:
        return "one training, and no seed variance from other kinds of networks"
    if "Holm" in row["why"]:
        return "headline claims are tested together"
    if before["verdict"] == "not measured":
        return {"level": "has a margin now", "law": "is computed now"}.get(row["form"], "is computed now")
    if " to " in before["here"]:
        return f"one number ({row['form']}), no longer every cell by itself"
    return "ratios of gaps, with the models' own seed variance moderated by their kind's"


def _coverage() -> str:
    with COVERAGE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = ["| form | setting | held, % | found, % | wrong, % |", "|---|---|---:|---:|---:|"]
    lines += [f"| {r['form']} | {r['setting']} | {r['held_pct']} | {r['found_pct']} | {r['wrong_pct']} |" for r in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text()))
