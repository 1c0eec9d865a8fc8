"""Kept measurements: as an RO-Crate, as tables that claims can be judged by, and their verdicts as rows."""

from __future__ import annotations

import csv
import datetime
import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from neuroute.analysis.contrasts import Gap
from neuroute.core.errors import NeurouteError
from neuroute.core.files import read_json, write_text, write_whole
from neuroute.core.lazy import pd
from neuroute.core.source import short_commit, source
from neuroute.core.text import csv_text
from neuroute.pipeline.plan.paper import all_papers, load_paper
from neuroute.pipeline.plan.scale import load_scale, scale_names
from neuroute.pipeline.rendering.style import with_suffix
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table
from neuroute.pipeline.rendering.verdicts import Claimed, Judged, effect, in_unit, judge_all, number, with_holm

if TYPE_CHECKING:
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

METADATA = "ro-crate-metadata.json"
FORMATS = {".csv": "text/csv", ".png": "image/png", ".md": "text/markdown"}
VERSION = "1.1"  # of the format: the one that most services read
LICENSE = "https://spdx.org/licenses/MIT"


def write_crate(folder: Path, scale: str, kept: Mapping[Path, Mapping[str, Any]]) -> Path:
    """Describe all files that lie in a folder of kept measurements; the file that does.

    Args:
        folder: of what was kept; of files that are described there already only the checksum is taken anew.
        scale: at which it was measured.
        kept: the files of each artifact that is kept now -> what its .json states.

    Raises NeurouteError if the folder's description of before cannot be read.
    """
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

    try:
        crate = ROCrate(folder if (folder / METADATA).exists() else None, version=VERSION)
    except (KeyError, ValueError) as error:
        raise NeurouteError(f"{folder / METADATA}: not an RO-Crate ({error}); delete it and keep again") from None
    root = crate.root_dataset
    crate.name = f"What neuroute measured at scale {scale}"
    crate.description = "Tables and figures of papers on neural routing, drawn from measurements: one CSV each."
    root["datePublished"] = datetime.date.today().isoformat()
    root["license"] = crate.add(ContextEntity(crate, LICENSE, properties={"@type": "CreativeWork", "name": "MIT"}))
    authors = {"@type": "Organization", "name": "The neuroute authors"}
    root["author"] = root["publisher"] = crate.add(ContextEntity(crate, "#authors", properties=authors))
    for path in sorted(file for file in folder.rglob("*") if file.suffix in FORMATS):
        name = path.relative_to(folder).as_posix()
        entity = crate.get(name) or crate.add_file(path, name)
        entity["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        entity["encodingFormat"], entity["contentSize"] = FORMATS[path.suffix], str(path.stat().st_size)
        entity["name"] = kept[path]["title"] if path in kept else entity.get("name") or path.stem
    artifacts: dict[str, tuple[Mapping[str, Any], list[Path]]] = {}
    for path, about in kept.items():
        artifacts.setdefault(f"{about['paper']}/{about['name']}", (about, []))[1].append(path)
    for artifact, (about, files) in artifacts.items():
        action = crate.add(ContextEntity(crate, f"#draw/{artifact}", properties={"@type": "CreateAction"}))
        action["name"] = f"{artifact}: {about['title']}"
        action["result"] = _one_or_all([crate.get(file.relative_to(folder).as_posix()) for file in files])
        action["endTime"] = datetime.date.today().isoformat()
        made_from = about.get("made_from", {})
        action["instrument"] = _one_or_all(_instruments(crate, made_from))
        if objects := list(_objects(crate, scale, made_from)):
            action["object"] = _one_or_all(objects)
        if action.id not in [each.id for each in root.get("mentions", [])]:
            root.append_to("mentions", action)
    crate.metadata.write(folder)
    return folder / METADATA


def _one_or_all(entities: Sequence[ContextEntity]) -> ContextEntity | Sequence[ContextEntity]:
    """Several as a list, one alone."""
    return entities[0] if len(entities) == 1 else entities


def _objects(crate: ROCrate, scale: str, made_from: Mapping[str, Any]) -> Iterator[ContextEntity]:
    """Yield measurements, weights and labels, each with its checksum."""
    from rocrate.model.contextentity import ContextEntity

    digests = {("evaluation", e): about.get("values_sha256") for e, about in made_from.get("evaluations", {}).items()}
    digests |= {("weights", run): about.get("weights_sha256") for run, about in made_from.get("runs", {}).items()}
    digests |= {("labels", job): digest for job, digest in made_from.get("labels", {}).items()}
    for (kind, name), digest in digests.items():
        properties = {"@type": "CreativeWork", "name": f"{kind} {name}", "identifier": f"sha256:{digest}"}
        yield crate.add(ContextEntity(crate, f"#{scale}/{kind}/{name}/{(digest or '')[:16]}", properties=properties))


def _instruments(crate: ROCrate, made_from: Mapping[str, Any]) -> Sequence[ContextEntity]:
    """The versions of the package that trained, measured and drew."""
    from rocrate.model.contextentity import ContextEntity

    versions = {short_commit(each): each for each in [*sources(made_from), made_from.get("source") or source()]}
    instruments = []
    for commit, each in versions.items():
        version = f"{each['version']}, commit {commit}" if commit else each["version"]
        properties = {"@type": "SoftwareApplication", "name": "neuroute", "softwareVersion": version}
        name = quote(f"#neuroute/{commit or each['version']}", safe="#/")
        instruments.append(crate.add(ContextEntity(crate, name, properties=properties)))
    return instruments


def sources(made_from: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The versions of the package that trained and measured, as far as they are stated."""
    every = [*made_from.get("runs", {}).values(), *made_from.get("evaluations", {}).values()]
    return [each["source"] for each in every if each.get("source")]


BEHIND = "behind.csv"
HEADS = (
    "paper", "artifact", "load", "row", "column", "run", "network", "problem", "times", "instances", "drawn", "error",
    "gaps", "draws",
)  # fmt: skip
ABOUT = ("scale", "device", "commit", "date")


@dataclass(frozen=True)
class KeptTables:
    """The kept artifacts of one paper."""

    folder: Path  # docs/measured/<scale>
    paper: str
    is_headline: bool = False  # its artifacts lie in the folder itself
    _tables: dict[str, Table] = field(default_factory=dict)  # those that were read

    def busy(self, artifact: str) -> str:
        return next((row["load"] for row in self._behind.values() if row["artifact"] == artifact), "")

    @property
    def _place(self) -> Path:
        return self.folder if self.is_headline else self.folder / self.paper

    @cached_property
    def _behind(self) -> dict[tuple[str, str, str], dict[str, str]]:
        path = self.folder / BEHIND
        if not path.is_file():
            raise NeurouteError(f"{path}: no such file; `neuroute keep` writes it")
        every = _read_behind(self.folder)
        return {(r["artifact"], r["row"], r["column"]): r for r in every if r["paper"] == self.paper}

    def points(self, name: str) -> list[dict[str, Any]]:
        """Read the lines of a kept table or figure.

        Raises NeurouteError where it was not kept, or is not valid.
        """
        path = self._place / f"{name}.csv"
        if not path.is_file():
            raise NeurouteError(f"{name} was not kept; run `neuroute keep`")
        if not (lines := _read_lines(path)):
            raise NeurouteError(f"{path}: no rows; run `neuroute keep` again")
        return lines

    @property
    def files(self) -> list[Path]:
        """The CSVs of the tables and figures."""
        return sorted(path for kind in ("table", "figure") for path in self._place.glob(f"{kind}*.csv"))

    def check(self) -> None:
        """Raise NeurouteError if a kept table or figure is of several commits, or a table is not as it was kept."""
        for path in self.files:
            stated = dict.fromkeys(line.get("commit") or "" for line in _read_lines(path))
            commits = dict.fromkeys(commit for each in stated for commit in each.split("; "))
            if len(commits) > 1:
                raise NeurouteError(f"{path}: rows of commits {' and '.join(commits)}; keep those of one, or --commit")
            if path.stem.startswith("table"):
                self.table(path.stem)

    def table(self, name: str) -> Table:
        """Read a kept table, once.

        Raises NeurouteError as `points` does, where an interval is no number, or where behind.csv says otherwise.
        """
        if name not in self._tables:
            self._tables[name] = self._read(name)
        return self._tables[name]

    def _read(self, name: str) -> Table:
        lines, path = self.points(name), self.folder / BEHIND
        keys = [head.removesuffix("_measured") for head in lines[0] if head.endswith("_measured")]
        rows = []
        for line in lines:
            of_row = tuple(labels_of(line).values())
            rows.append(Row(of_row, tuple(self._cell(line, of_row, key, name, path) for key in keys)))
        behind = [place[1:] for place in self._behind if place[0] == name]
        if not behind:
            raise NeurouteError(f"{path}: nothing of {self.paper}/{name}; run `neuroute keep` again")
        cells = {("", ""), *((", ".join(map(str, row.labels)), key) for row in rows for key in keys)}
        if lost := [place for place in behind if place not in cells]:
            raise NeurouteError(
                f"{self._place / name}.csv: no {' '.join(lost[0])}, which {BEHIND} has; keep both again"
            )
        return Table(name, tuple(labels_of(lines[0])), tuple(Column(key, key) for key in keys), tuple(rows))

    def _cell(self, line: Mapping[str, str], row: tuple[str, ...], key: str, name: str, path: Path) -> Cell:
        """The cell with what stands behind it, as far as what was kept says."""
        low, high = (_value(line.get(f"{key}_measured_{end}")) for end in ("low", "high"))
        if isinstance(low, str) or isinstance(high, str):
            raise NeurouteError(f"{name}: {key} has an interval that is no number; run `neuroute keep` again")
        about, at = self._behind.get((name, ", ".join(row), key)), line.get(f"{key}_measured_at") or ""
        behind = _gap_of(about, path, f"{name} {row} {key}", at or key) if about else None
        if not behind and line.get(f"{key}_measured_trainings"):
            raise NeurouteError(f"{path}: nothing of {name} {row} {key}; run `neuroute keep` again")
        measured = _value(line[f"{key}_measured"])
        if behind and (not isinstance(measured, float) or abs(measured - fmean(behind.values)) > 1e-3 * abs(measured)):
            raise NeurouteError(f"{path}: {name} {row} {key} is not the {measured} of the table; keep both again")
        return Cell(measured, _value(line.get(f"{key}_published")), low, high, at, behind)


def keep_behind(folder: Path, tables: Mapping[tuple[str, str], Table], loads: Mapping[tuple[str, str], str]) -> Path:
    """Write what stands behind the cells of kept tables, and how busy the machine was; others' rows stay.

    tables, loads: (paper, name of the table) -> it.
    """
    rows: list[Mapping[str, object]] = [
        row for row in _read_behind(folder) if (row["paper"], row["artifact"]) not in tables
    ]
    for (paper, name), table in tables.items():
        about = {"paper": paper, "artifact": name, "load": loads[paper, name]}
        loadings = _loadings([cell.behind for row in table.rows for cell in row.cells if cell.behind])
        rows.append(about | dict.fromkeys(("row", "column"), ""))  # of the table: its load
        for row in table.rows:
            for column, cell in zip(table.columns, row.cells, strict=True):
                if (b := cell.behind) is not None:
                    values = {name: getattr(b, name) for name in ("run", "network", "problem", "times", "instances")}
                    values |= {
                        "drawn": b.drawn,
                        "error": float(np.sqrt(np.sum(np.square(b.errors)))),
                        "gaps": " ".join(str(float(gap)) for gap in b.values),
                        "draws": " ".join(f"{loading:.8g}" for loading in next(loadings)),
                    }
                    rows.append(about | {"row": ", ".join(map(str, row.labels)), "column": column.key} | values)
    rows.sort(key=lambda row: (row["paper"], row["artifact"]))  # whichever was kept first
    path = folder / BEHIND
    write_text(path, csv_text(pd.DataFrame(rows, columns=list(HEADS), dtype=object)))
    return path


def _loadings(gaps: Sequence[Gap]) -> Iterator[NDArray[np.float64]]:
    """Yield factors of the covariance of gaps that share draws, as few numbers as there are such gaps."""
    factors: dict[str, Iterator[NDArray[np.float64]]] = {}
    by_draws: dict[str, list[Gap]] = defaultdict(list)
    for gap in gaps:
        by_draws[gap.drawn].append(gap)
    for name, same in by_draws.items():
        errors = np.stack([gap.errors for gap in same])
        values, vectors = np.linalg.eigh(errors @ errors.T)
        there = values > 1e-9 * max(float(values.max()), 1e-300)
        factors[name] = iter(vectors[:, there] * np.sqrt(values[there]))
    return (next(factors[gap.drawn]) for gap in gaps)


def _read_behind(folder: Path) -> list[dict[str, str]]:
    path = folder / BEHIND
    if not path.is_file():
        return []
    rows = _read_lines(path)
    if lacking := [head for head in HEADS if any(row.get(head) is None for row in rows)]:
        raise NeurouteError(f"{path}: rows without {lacking[0]}; run `neuroute keep` again")
    return rows


def _read_lines(path: Path) -> list[dict[str, Any]]:
    """Raises NeurouteError for bytes that are no CSV, and rows that have not as many cells as the first line."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = list(csv.DictReader(file))
    except (UnicodeDecodeError, csv.Error) as error:
        raise NeurouteError(f"{path}: not valid CSV ({error}); run `neuroute keep` again") from None
    if ragged := [number for number, line in enumerate(lines, 1) if None in line or None in line.values()]:
        raise NeurouteError(f"{path}: row {ragged[0]} is cut short, or has cells too many; run `neuroute keep` again")
    return lines


def labels_of(line: Mapping[str, str]) -> dict[str, str]:
    """The labels of a drawn table's line, by their heads: what stands before its first value."""
    return dict(takewhile(lambda item: "_measured" not in item[0] and item[0] not in ABOUT, line.items()))


def _gap_of(row: Mapping[str, str], path: Path, name: str, at: str) -> Gap:
    """Raises NeurouteError for what is no number."""
    try:
        # A spreadsheet takes -1 2 for a formula.
        gaps, draws = (np.array(row[key].removeprefix("'").split(), float) for key in ("gaps", "draws"))
        error = float(row["error"])
        count = int(row["instances"])
        if not (len(gaps) and count > 0 and np.isfinite([*gaps, error, *draws]).all()):
            raise ValueError
        # Factors are of one table: across tables, and without draws, gaps vary as if unrelated.  Intervals of their
        # differences are then too long, never too short.
        drawn = f"{row['artifact']} {row['drawn']} {at}" if len(draws) else name
        errors = draws if len(draws) else np.array([error])
        return Gap(
            tuple(gaps.tolist()), errors, drawn, count, row["network"], row["problem"], float(row["times"]), row["run"]
        )
    except ValueError:
        raise NeurouteError(
            f"{path}: the trainings of {name} have numbers that cannot be; run `neuroute keep` again"
        ) from None


def _value(text: str | None) -> float | str | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text


# -- verdicts on all claims as rows: what `neuroute claims` writes, and pages show -----------------------------------


def judge_kept(folder: Path) -> Claimed:
    """Judge what the papers claim by the tables that lie in a folder of docs/measured, unless its scale judges nothing.

    Raises NeurouteError if there is no such folder, behind.csv there is missing, not valid or of other tables, a table
    is of several commits, or a claim names cells that a kept table lacks.
    """
    if not folder.is_dir():
        raise NeurouteError(f"{folder}: no such folder; `neuroute keep {folder}` makes one")
    papers = {key: load_paper(key) for key in all_papers()}
    tables = {key: KeptTables(folder, key, paper.headline) for key, paper in papers.items()}
    for each in tables.values():
        each.check()
    stated = {line.get("scale") for each in tables.values() for path in each.files for line in _read_lines(path)[:1]}
    judges = all(load_scale(name, []).verdicts for name in scale_names() if name in stated)
    judged = {key: judge_all(paper, tables[key], judges) for key, paper in papers.items()}
    return with_holm({key: claims for key, claims in judged.items() if claims})


def rows_of(claimed: Claimed) -> list[dict[str, Any]]:
    """One row a claim: what it says, what its printed numbers say, and what became of it here."""
    return [_row(paper, judged) for paper, of_paper in claimed.items() for judged in of_paper]


def _row(paper: str, judged: Judged) -> dict[str, Any]:
    claim, finding = judged.claim, judged.weakest
    estimate = finding.estimate if finding else None
    ends = estimate.interval() if estimate else None
    unit = finding.unit if finding else "share"
    return {
        "id": f"{paper}.{claim.id}",
        "paper": paper,
        "weight": claim.weight,
        "gpu": claim.gpu,
        "form": claim.form or "",
        "claim": claim.claim,
        "where": claim.where,
        "printed": claim.printed,
        "note": claim.note,
        "printed_effect": in_unit(finding.printed, unit) if finding else None,
        "of": finding.quantity if finding else "",
        "unit": {"share": "% of the gap", "exponent": "exponent", "log": "log ratio"}[unit] if finding else "",
        "estimate": in_unit(estimate.value, unit) if estimate else None,
        "low": in_unit(ends[0], unit) if ends else None,
        "high": in_unit(ends[1], unit) if ends else None,
        "trainings": estimate.trainings if estimate and estimate.trainings else None,
        "cells": judged.signs,
        "p": judged.p if judged.measured else None,
        "p_holm": judged.p_of_family,
        "power": judged.power,
        "gate": judged.regime.sensitivity if judged.compares_trainings else "",
        "verdict": judged.verdict,
        "why": judged.why,
        "cost": judged.cost,
        "here": effect(finding),
        "in_print": number(finding.printed, unit) if finding else "",
    }


def keep(results: Path, stems: Iterable[Path], scale: str, folder: Path, commit: str | None) -> dict[Path, Any]:
    """Copy each artifact drawn at `scale` into `folder`: its CSV with provenance, and a figure's PNG.

    Returns each file with what the artifact's .json states.

    Each lies where it does in `results`: those of other papers than the headline's in a folder of their own.
    Raises NeurouteError when none was drawn at that scale, or when the commit is not known.
    """
    date = datetime.date.today().isoformat()
    kept = dict[Path, Any]()
    for stem in stems:
        if not with_suffix(stem, "json").is_file():
            continue
        about = read_json(with_suffix(stem, "json"), "draw it again", "paper", "name", "title", "kind", "measured_on")
        on = about["measured_on"]
        if on["scale"] != scale:
            continue
        table = pd.read_csv(with_suffix(stem, "csv"))
        devices = "; ".join(on.get("devices", [])) or "none"
        # The commits that trained and measured, where they are stated, else the current one.
        stated = sorted({each for made in sources(about.get("made_from", {})) if (each := short_commit(made))})
        commits = commit or "; ".join(stated) or short_commit(source())
        if not commits:
            raise NeurouteError("the commit is not known (no git checkout here); give --commit")
        table = table.assign(device=devices, commit=commits, date=date)
        to = folder / stem.relative_to(results)
        write_text(with_suffix(to, "csv"), csv_text(table))
        if about["kind"] == "figure":
            picture = with_suffix(stem, "png").read_bytes()
            write_whole(with_suffix(to, "png"), lambda file, picture=picture: file.write(picture))  # type: ignore[misc]
            kept[with_suffix(to, "png")] = about
        kept[with_suffix(to, "csv")] = about
    if not kept:
        raise NeurouteError(f"nothing was drawn at scale {scale}; run `snakemake all --config scale={scale}` first")
    return kept
