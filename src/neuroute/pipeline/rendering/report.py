"""The report: every artifact, measured beside published, on one self-contained page."""

from __future__ import annotations

import base64
import csv
import datetime
import html
import io
import math
import os
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from jinja2 import Environment

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_json, write_text
from neuroute.core.source import short_commit, source
from neuroute.pipeline.plan.claims import SAYS
from neuroute.pipeline.plan.config import Scale
from neuroute.pipeline.rendering.comparisons import Finding
from neuroute.pipeline.rendering.kept import labels_of
from neuroute.pipeline.rendering.protocol import HEADS, LEGEND, Line
from neuroute.pipeline.rendering.style import PUBLISHED, with_suffix
from neuroute.pipeline.rendering.table import QUOTED
from neuroute.pipeline.rendering.verdicts import (
    NO_VERDICT,
    RULE,
    VERDICTS,
    Judged,
    Verdict,
    by_chance,
    effect,
    in_unit,
    number,
    tally,
    told_in_short,
)

CELL = re.compile(r"<td(?= class|>)")
MEASURED = "_measured"


def _titles(file: Path, name: str, about: Mapping[str, Any]) -> Iterator[str]:
    """Yield the attribute of each cell, row by row; empty for what was not measured."""
    on, runs = about["measured_on"], about.get("made_from", {}).get("cells", {})
    decodings, seeds = ", ".join(on.get("decodings", ())), ", ".join(map(str, on.get("seeds", ())))
    with file.open(newline="", encoding="utf-8") as opened:
        for line in csv.DictReader(opened):
            row = ", ".join(labels_of(line).values())
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


# -- The first page of the report: totals, main figures, what became of each paper's claims; a summary in JSON


@dataclass(frozen=True)
class Overview:
    """What the first page shows of a paper."""

    claims: Sequence[Judged] = ()
    figures: Sequence[str] = ()  # names of its main ones


MOST = 8  # findings of a claim that the page lists


def shown_claim(paper: str, judged: Judged, shown: Container[str]) -> dict[str, Any]:
    """What the template shows of a claim, and where its artifact stands on the page, if it is among those `shown`."""
    claim, findings = judged.claim, judged.measured or judged.findings
    place = {"anchor": f"{paper}-{claim.artifact}", "number": _number(claim.artifact)}
    return (place if claim.artifact in shown else {}) | {
        "id": claim.id,
        "sentence": claim.claim,
        "where": claim.where,
        "is_headline": claim.weight == "headline",
        "says": claim.printed,
        "note": claim.note,
        "form": claim.form,
        "verdict": judged.verdict,
        "why": judged.why,
        "findings": [
            (finding.quantity, effect(finding) or "–", number(finding.printed, finding.unit) or "–")
            for finding in findings[:MOST]
        ],
        "more": max(len(findings) - MOST, 0),
        "signs": judged.signs,
        "power": "" if judged.power is None else f"{judged.power:.2f}",
        "at": "; ".join(dict.fromkeys(finding.at for finding in findings if finding.at)),
    }


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
    by_printed = Counter((each.claim.printed, each.verdict) for _, each in judged)
    cells_of_tables = [cells for tables in coverage.values() for cells in tables.values()]
    return {
        "scale": scale.name,
        "verdicts": tally([each for _, each in judged]) if judged else dict.fromkeys(verdicts, 0),
        "by_printed": {says: {verdict: by_printed[says, verdict] for verdict in verdicts} for says in SAYS},
        "numbers": {
            "measured": sum(cells.measured for cells in cells_of_tables),
            "beside_printed": sum(cells.beside for cells in cells_of_tables),
            "quoted": sum(cells.quoted for cells in cells_of_tables),
        },
        "coverage": {
            paper: {name: cells._asdict() for name, cells in tables.items()} for paper, tables in coverage.items()
        },
        "claims": [_line(paper, titles.get(paper, paper), each) for paper, each in judged],
    }


def _line(paper: str, title: str, judged: Judged) -> dict[str, Any]:
    claim = judged.claim
    names = ("id", "claim", "where", "weight", "form", "artifact")
    return {name: getattr(claim, name) for name in names} | {
        "paper": paper,
        "title": title,
        "printed": claim.printed,
        "verdict": judged.verdict,
        "why": judged.why,
        "cost": judged.cost,
        "power": judged.power,
        "p": judged.p,
        "p_holm": judged.p_of_family,
        "findings": [_numbers(finding) for finding in judged.findings],
    }


def _numbers(finding: Finding) -> dict[str, Any]:
    of, unit = finding.estimate, finding.unit
    low, high = (of.interval() if of else None) or (None, None)
    values = {"measured": of.value if of else None, "low": low, "high": high, "published": finding.printed}
    about = {"quantity": finding.quantity, "unit": unit, "measured_on": finding.at}
    return about | {name: in_unit(value, unit) for name, value in values.items()}


# -- How much of the papers' tables is measured: cells that a run has filled, that are quoted, that nobody could fill

COVERAGE_LEGEND = (
    "Measured: here, or configured (tables of settings); quoted: only as printed; "
    "impossible: neither measured nor printed (out of memory or time, not reported)."
)
COVERAGE_HEADS = (
    "Table", "Measured", "of them beside a printed one", "Quoted", "Impossible", "Measured share of printed",
)  # fmt: skip

ENDS = ("_measured", "_published")  # of a CSV's columns


class Coverage(NamedTuple):
    """Cells of a table, or of several."""

    measured: int
    beside: int  # of them, those that have a printed number, too
    quoted: int
    impossible: int

    @classmethod
    def of(cls, table: Path) -> Coverage:
        """Count in the CSV that `render` has written."""
        with table.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
        stems = {name.rpartition("_")[0] for line in lines[:1] for name in line if name.endswith(ENDS)}
        cells = [[line.get(f"{stem}{end}") for end in ENDS] for stem in stems for line in lines]
        return cls(
            measured=sum(bool(here) for here, _ in cells),
            beside=sum(bool(here) and _is_number(in_print) for here, in_print in cells),
            quoted=sum(not here and _is_number(in_print) for here, in_print in cells),
            impossible=sum(not here and bool(in_print) and not _is_number(in_print) for here, in_print in cells),
        )

    def cells(self, name: str) -> tuple[str, ...]:
        """A line under `COVERAGE_HEADS`."""
        numbers = self.beside + self.quoted
        share = f"{100 * self.beside / numbers:.0f} %" if numbers else "–"
        return (name, *(f"{count:,}" for count in self), share)


def coverage_lines(tables: Mapping[str, Coverage]) -> list[tuple[str, ...]]:
    """A line for each table that has cells (name -> its cells), and one for all."""
    filled = {name: coverage for name, coverage in tables.items() if any(coverage)}
    if filled:
        filled["all"] = Coverage(*map(sum, zip(*filled.values(), strict=True)))
    return [coverage.cells(name) for name, coverage in filled.items()]


def _is_number(text: str | None) -> bool:
    try:
        return not math.isnan(float(text or "nan"))
    except ValueError:
        return False


WIDE = 8  # columns that a page shows without scrolling
LINKED = {"table": ("csv", "tex", "md"), "figure": ("pdf", "svg", "png", "csv")}


def write_report(
    stems: Mapping[str, Sequence[Path]],
    out: Path,
    scale: Scale,
    titles: Mapping[str, str] | None = None,
    overviews: Mapping[str, Overview] | None = None,
    protocols: Mapping[str, Sequence[Line]] | None = None,
    digest: str = "",
) -> None:
    """Write the page `out` from what `render` left at the stems (paths without suffix) of each paper.

    titles: the heading of each paper; its key where there is none.  overviews: its claims and main figures, with which
    the page opens.  protocols: how it tests, beside how is tested here.  digest: of the claims' files.  Links to data
    files are relative to `out`.  An artifact that was not drawn yet is listed as such.  Beside the page lies
    `summary.json`.  Raises NeurouteError when a file of a drawn artifact is missing or empty.
    """
    titles, overviews, protocols = titles or {}, overviews or {}, protocols or {}
    coverage = {
        paper: {
            stem.name: Coverage.of(with_suffix(stem, "csv"))
            for stem in of_paper
            if stem.name.startswith("table") and all(with_suffix(stem, kind).is_file() for kind in ("json", "csv"))
        }
        for paper, of_paper in stems.items()
    }
    papers: list[dict[str, Any]] = [
        {
            "title": titles.get(paper, paper),
            "anchor": paper,
            "protocol": [line.cells() for line in protocols.get(paper, ())],
            "coverage": coverage_lines({_number(name): cells for name, cells in coverage[paper].items()}),
            "artifacts": artifacts,
            "claims": [
                shown_claim(paper, each, {stem.name for stem in paper_stems})
                for each in sorted(overview.claims, key=lambda judged: judged.claim.weight != "headline")
            ],
            "regime": overview.claims[0].regime.words if scale.verdicts and overview.claims else "",
            "figures": figures,
            "picture": next((figure for figure in figures if _has_printed(figure["stem"])), None),
        }
        for paper, paper_stems in stems.items()
        for overview in [overviews.get(paper, Overview())]
        for artifacts in [[_artifact(paper, stem, out, scale) for stem in paper_stems]]
        for figures in [[each for each in artifacts if each["drawn"] and each["stem"].name in overview.figures]]
    ]
    scales = {a["scale"] for paper in papers for a in paper["artifacts"] if a.get("other_scale")}
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(
        (files("neuroute.pipeline.rendering") / "report.html").read_text(encoding="utf-8")
    )
    summary_values = summary(scale, overviews, titles, coverage) | {"claims_digest": digest}
    judged = [each for overview in overviews.values() for each in overview.claims]
    commit = f", commit {short}" if (short := short_commit(source())) else ""
    kept = out.parent.parent / KEPT
    template_values = {
        "short": told_in_short(scale.name, judged),
        "rule": f"{RULE} {by_chance(summary_values['verdicts'])}" if scale.verdicts else NO_VERDICT,
        "protocol_heads": HEADS,
        "protocol_legend": LEGEND,
        "coverage_heads": COVERAGE_HEADS,
        "coverage_legend": COVERAGE_LEGEND,
        "claimed": bool(summary_values["claims"]),
        "judges": scale.verdicts,
        "kept": (quote(os.path.relpath(kept, out.parent)) if kept.is_file() else ""),
        "other_scales": sorted(scales),
        "written": f"{datetime.date.today().isoformat()}{commit}",
        "devices": sorted({device for paper in papers for a in paper["artifacts"] for device in a.get("devices", ())}),
    }
    write_text(out, template.render(summary_values | template_values, scale=scale, papers=papers))
    write_json(out.with_name("summary.json"), summary_values)


KEPT = Path("docs/results/what_reproduces.md")  # of a checkout: verdicts at scale laptop


def _has_printed(figure: Path) -> bool:
    """Whether a drawn figure sets printed numbers beside measured ones."""
    points = csv.DictReader(io.StringIO(_read_bytes(with_suffix(figure, "csv")).decode()))
    return any(point.get("side") == PUBLISHED for point in points)


def _artifact(paper: str, stem: Path, out: Path, scale: Scale) -> dict[str, Any]:
    """What the template shows of one artifact."""
    anchor = f"{paper}-{stem.name}"
    values: dict[str, Any] = {"stem": stem, "anchor": anchor, "number": _number(stem.name), "drawn": False}
    if not with_suffix(stem, "json").is_file():
        return values
    about = read_json(with_suffix(stem, "json"), "draw it again", "title", "kind", "notes", "measured_on")
    on = about["measured_on"]
    values |= {
        "drawn": True,
        **{key: about[key] for key in ("title", "kind", "notes")},
        **{key: about.get(key, "") for key in ("alt", "fits")},
        "scale": on["scale"],
        "devices": on.get("devices", ()),
        "other_scale": on["scale"] != scale.name,
        "measured_on": describe(on),
        "files": [
            {"name": kind.upper(), "href": quote(os.path.relpath(with_suffix(stem, kind), out.parent))}
            for kind in LINKED[about["kind"]]
        ],
    }
    if about["kind"] == "table":
        file = with_suffix(stem, "csv")
        plain = _read_bytes(with_suffix(stem, "html")).decode()
        titles = _titles(file, os.path.relpath(file, out.parent.parent), about)
        values["table"] = CELL.sub(lambda match: f"{match[0]}{next(titles, '')}", plain)
        values["wide"] = values["table"].count('scope="col"') > WIDE
        values["quoted"] = values["table"].count(QUOTED)
    else:
        values["image"] = base64.b64encode(_read_bytes(with_suffix(stem, "svg"))).decode()
    return values


def describe(measured_on: Mapping[str, Any]) -> list[str]:
    """Short phrases on what an artifact was measured on."""
    phrases, libraries = list[str](), defaultdict[str, list[int]](list)
    for test in measured_on.get("tests", []):
        name, distribution = str(test["test"]), str(test["distribution"])
        if name.startswith(f"{distribution}_"):  # an instance of a public benchmark (tsplib_eil51): there may be many
            libraries[distribution].append(test["n"])
            continue
        set_of = f"{name.split('_')[0].upper()}{test['n']} {distribution} × {test['n_instances']:,}"
        phrases.append(set_of if test["reference"] == "none" else f"{set_of} (against {test['reference']})")
    for name, nodes in libraries.items():
        size = f"{min(nodes)} to {max(nodes):,} nodes"
        phrases.append(f"{name.upper()} × {len(nodes)}, {size} (against the best costs published)")
    if measured_on.get("models"):
        seeds = ", ".join(map(str, measured_on.get("seeds", [])))
        models = measured_on["models"]
        phrases.append(f"{models} model{'s' if models != 1 else ''}" + (f", seed {seeds}" if seeds else ""))
    if sources := measured_on.get("weights"):
        kinds = Counter(source.partition(" (")[0] for source in sources.values())
        phrases += [f"{kind} of {count} of them" for kind, count in kinds.items()]
    if measured_on.get("devices"):
        threads = "/".join(map(str, measured_on.get("threads", [])))
        threads = f", {threads} thread{'s' if threads != '1' else ''}" if threads else ""
        phrases.append(" and ".join(measured_on["devices"]) + threads)
    if measured_on.get("torch"):
        phrases.append(f"torch {', '.join(measured_on['torch'])}")
    return phrases or ["Follows from the configuration; nothing is measured"]


def _number(name: str) -> str:
    """table12 -> Table 12, table_figure4 -> Table of Figure 4"""
    name = name.replace("table_figure", "table of Figure ")
    word = name.rstrip("0123456789")
    return f"{word[:1].upper()}{word[1:].rstrip()} {name[len(word) :]}".strip()


def _read_bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise NeurouteError(f"{path}: missing; draw this artifact again") from None
    if not content:
        raise NeurouteError(f"{path}: empty; draw this artifact again")
    return content
