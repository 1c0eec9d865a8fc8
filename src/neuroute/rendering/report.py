"""The report: every artifact, measured beside published, on one self-contained page."""

import base64
import datetime
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment

from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_json, write_text
from neuroute.plan.config import Scale
from neuroute.rendering.claims import NO_VERDICT, RULE, Judged, by_chance, told_in_short
from neuroute.rendering.coverage import HEADS as COVERAGE_HEADS
from neuroute.rendering.coverage import LEGEND as COVERAGE_LEGEND
from neuroute.rendering.coverage import coverage_lines
from neuroute.rendering.keep import head
from neuroute.rendering.protocol import HEADS, LEGEND, Line
from neuroute.rendering.report_claims import Overview, covered, shown_claim, summary, thumbnail
from neuroute.rendering.style import with_suffix
from neuroute.rendering.table import QUOTED

__all__ = ["Overview", "describe", "write_report"]

WIDE = 8  # columns that a page shows without scrolling
LINKED = {"table": ("csv", "tex", "md"), "figure": ("pdf", "svg", "png", "csv")}


def write_report(
    stems: Mapping[str, Sequence[Path]],
    out: Path,
    scale: Scale,
    titles: Mapping[str, str] | None = None,
    overviews: Mapping[str, Overview] | None = None,
    protocols: Mapping[str, Sequence[Line]] | None = None,
) -> None:
    """Write the page `out` from what `render` left at the stems (paths without suffix) of each paper.

    titles: the heading of each paper; its key where there is none.  overviews: its claims and main figures, with which
    the page opens.  protocols: how it tests, beside how is tested here.  Links to data files are relative to `out`.  An
    artifact that was not drawn yet is listed as such.  Beside the page lies `summary.json`.  Raises NeurouteError when
    a file of a drawn artifact is missing.
    """
    titles, overviews, protocols = titles or {}, overviews or {}, protocols or {}
    coverage = covered(stems)
    papers: list[dict[str, Any]] = [
        {
            "title": titles.get(paper, paper),
            "anchor": paper,
            "protocol": [line.cells() for line in protocols.get(paper, ())],
            "coverage": coverage_lines({_number(name): cells for name, cells in coverage[paper].items()}),
            "artifacts": [_artifact(paper, stem, out, scale) for stem in paper_stems],
            "claims": _claims(paper, paper_stems, overviews.get(paper, Overview()).claims),
            "pictures": _pictures(paper, paper_stems, overviews.get(paper, Overview()).figures),
        }
        for paper, paper_stems in stems.items()
    ]
    scales = {a["scale"] for paper in papers for a in paper["artifacts"] if a.get("other_scale")}
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((files("neuroute.rendering") / "report.html").read_text(encoding="utf-8"))
    summary_values = summary(scale, overviews, titles, coverage)
    judged = [each for overview in overviews.values() for each in overview.claims]
    template_values = {
        "short": told_in_short(scale.name, judged),
        "verdicts": summary_values["verdicts"],
        "by_printed": summary_values["by_printed"],
        "rule": f"{RULE} {by_chance(summary_values['verdicts'])}" if scale.verdicts else NO_VERDICT,
        "protocol_heads": HEADS,
        "protocol_legend": LEGEND,
        "coverage_heads": COVERAGE_HEADS,
        "coverage_legend": COVERAGE_LEGEND,
        "claimed": bool(summary_values["claims"]),
        "other_scales": sorted(scales),
        "written": date_and_commit(),
        "devices": sorted({device for paper in papers for a in paper["artifacts"] for device in a.get("devices", ())}),
    }
    write_text(out, template.render(scale=scale, papers=papers, **template_values))
    write_json(out.with_name("summary.json"), summary_values)


def date_and_commit() -> str:
    """When the page is written, and by which commit, where there is a checkout."""
    try:
        commit = f", commit {head()}"
    except NeurouteError:
        commit = ""
    return f"{datetime.date.today().isoformat()}{commit}"


def _claims(paper: str, stems: Sequence[Path], claims: Sequence[Judged]) -> list[dict[str, Any]]:
    """What the template shows of claims, headlines first, and where their artifacts stand on the page, if they do."""
    names = {stem.name for stem in stems}
    by_weight = sorted(claims, key=lambda judged: judged.claim.weight != "headline")
    return [
        shown_claim(judged) | ({"anchor": f"{paper}-{name}", "number": _number(name)} if name in names else {})
        for judged in by_weight
        for name in [judged.claim.artifact]
    ]


def _pictures(paper: str, stems: Sequence[Path], names: Sequence[str]) -> list[dict[str, str]]:
    """The main figures of a paper that are drawn, in small."""
    of = {stem.name: thumbnail(stem) for stem in stems if stem.name in names}
    return [{"anchor": f"{paper}-{name}", "number": _number(name), "image": of[name]} for name in names if of.get(name)]


def _artifact(paper: str, stem: Path, out: Path, scale: Scale) -> dict[str, Any]:
    """What the template shows of one artifact."""
    values: dict[str, Any] = {"anchor": f"{paper}-{stem.name}", "number": _number(stem.name), "drawn": False}
    if not with_suffix(stem, "json").is_file():
        return values
    about = read_json(with_suffix(stem, "json"), "draw it again")
    on = about["measured_on"]
    values |= {
        "drawn": True,
        "title": about["title"],
        "kind": about["kind"],
        "notes": about["notes"],
        "alt": about.get("alt", ""),
        "fits": about.get("fits", ""),
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
        values["table"] = _read_bytes(with_suffix(stem, "html")).decode()
        values["wide"] = values["table"].count('scope="col"') > WIDE
        values["quoted"] = values["table"].count(QUOTED)
    else:
        values["image"] = base64.b64encode(_read_bytes(with_suffix(stem, "svg"))).decode()
    return values


def describe(measured_on: Mapping[str, Any]) -> list[str]:
    """Short phrases on what an artifact was measured on."""
    phrases = []
    tests = measured_on.get("tests", [])
    for test in (t for t in tests if not _of_benchmark(t)):
        problem = str(test["test"]).split("_")[0].upper()
        set_of = f"{problem}{test['n']} {test['distribution']} × {test['n_instances']:,}"
        phrases.append(set_of if test["reference"] == "none" else f"{set_of} (against {test['reference']})")
    for name in dict.fromkeys(str(t["distribution"]) for t in tests if _of_benchmark(t)):
        nodes = [t["n"] for t in tests if t["distribution"] == name]
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


def _of_benchmark(test: Mapping[str, Any]) -> bool:
    """One instance of a public benchmark (tsplib_eil51), of which there may be many."""
    return str(test["test"]).startswith(f"{test['distribution']}_")


def _number(name: str) -> str:
    """table12 -> Table 12, table_figure4 -> Table of Figure 4"""
    name = name.replace("table_figure", "table of Figure ")
    word = name.rstrip("0123456789")
    return f"{word[:1].upper()}{word[1:].rstrip()} {name[len(word) :]}".strip()


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NeurouteError(f"{path}: missing; draw this artifact again") from None
