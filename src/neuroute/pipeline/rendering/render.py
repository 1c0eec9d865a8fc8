"""One artifact: drawn and written in all its formats, and what is said under it.

Its notes are texts of `published/<name>.md`, with measured numbers filled in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from neuroute.analysis import RESAMPLES
from neuroute.core.dotted import code_in, resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_json, write_text
from neuroute.core.source import source
from neuroute.core.text import csv_text
from neuroute.pipeline.plan.paper import paper_folders
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import BOOTSTRAP, ONE_SEED, TIMES, say_seeds, solver_name
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import Drawing, save_figure, save_table, with_suffix
from neuroute.pipeline.rendering.table import Column, Row, Table, duration
from neuroute.specs.objects import formats

SHARED = "shared"  # of several artifacts of a paper: each item's first word is its name
USUAL: dict[str, object] = {"one_seed": ONE_SEED, "bootstrap": BOOTSTRAP, "times": TIMES, "resamples": RESAMPLES}


def notes(study: Study, **values: object) -> tuple[str, ...]:
    """Fill in the artifact's notes, in the order of its file; `{name}` stands for a shared text, or a value.

    An item that is a name alone may become several notes, or none: its value may be a list.
    Raises NeurouteError for a name without a value, and for what stands before the first item.
    """
    shared = dict(item.split(": ", 1) for item in _items(study.artifact.paper, SHARED))
    texts, items = USUAL | values, list[str]()
    for line in _items(study.artifact.paper, study.artifact.name):
        item = re.sub(r"\{(\w+)\}", lambda name: shared.get(name[1], name[0]), line)
        alone = re.fullmatch(r"\{(\w+)\}", item)
        try:
            value = texts[alone[1]] if alone else item.format_map(texts)
        except (KeyError, ValueError) as error:
            raise NeurouteError(f"{study.artifact.id}: its note `{item}` has no value for {error}") from None
        items += [value] if isinstance(value, str) else value if isinstance(value, Iterable) else [str(value)]
    return tuple(note for note in items if note)


def draw_table(
    study: Study,
    labels: tuple[str, ...],
    columns: Iterable[Column],
    rows: Iterable[Row],
    legend: str = "",
    /,
    **values: object,
) -> Table:
    """Return the artifact's table, with its title and its notes; values: what these fill in, by name."""
    return Table(study.artifact.title, labels, tuple(columns), tuple(rows), notes(study, **values), legend)


def _items(paper: str, name: str) -> list[str]:
    """Read the items of a list, each a paragraph without its line ends; none where there is no such file."""
    path = files(f"neuroute.pipeline.papers.{paper}") / "published" / f"{name}.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    before, *items = re.split(r"^- ", text, flags=re.MULTILINE)
    if before.strip():
        raise NeurouteError(f"{path}: begins with `{before.split()[0]}`; write a list, each note after `- `")
    return [" ".join(item.split()) for item in items]


CLOCKS = re.compile("_s$|^(seconds|minutes|load)$")  # names of a figure's columns: another run measures others


def render(study: Study, stem: Path) -> list[Path]:
    """Draw `study.artifact` and write `<stem>.<format>` for each of its formats; the paths written.

    The files follow from the study alone: the same records give the same bytes.  `<stem>.json` is what the report
    reads: title, notes and what the numbers were measured on; and what they were made from, and by which code.

    Raises NeurouteError for missing records, and where a drawing of a user's own fails.
    """
    with style.house(), code_in(paper_folders()[study.artifact.paper]):
        drawing = resolve(study.artifact.function)(study)
    measured_on = study.measured_on()
    if isinstance(drawing, Table | Drawing):
        pairs = [(solver_name(name), solver_name(other)) for name, other in study.artifact.stand_ins.items()]
        stand_ins = [
            f"{other} stands in for {name} here: it made {name}'s labels and references." for name, other in pairs
        ]
        sources = ", ".join(f"{run}: {source}" for run, source in study.weight_sources().items())
        rest = "Statements about trainings do not apply to them."
        say_sources = [f"Not trained here but taken from files: {sources}. {rest}"] if sources else []
        drawing = replace(drawing, notes=(*drawing.notes, *say_seeds(study), *stand_ins, *say_sources))
    if isinstance(drawing, Table):
        if (load := study.busy()) and any(column.format is duration for column in drawing.columns):
            say_load = f"Times are upper bounds: the machine was busy ({load})."
            drawing = replace(drawing, notes=(*drawing.notes, say_load))
        extra = {"scale": study.scale.name, "device": "; ".join(measured_on.get("devices", [])) or None}
        save_table(drawing, stem, extra)
        about: dict[str, Any] = {"title": drawing.title, "notes": list(drawing.notes), "legend": drawing.legend}
        clocks = [column.key for column in drawing.columns if column.format is duration or column.unit == "MB"]
    elif isinstance(drawing, Drawing):
        save_figure(drawing.figure, stem)
        points = drawing.points.assign(scale=study.scale.name)
        write_text(with_suffix(stem, "csv"), csv_text(points))
        about = {"title": study.artifact.title, "notes": list(drawing.notes), "alt": drawing.alt}
        clocks = [str(name) for name in points if CLOCKS.search(str(name))]
        if drawing.fits:
            about |= {"fits": drawing.fits.html(), "fits_markdown": drawing.fits.markdown()}
    else:
        raise NeurouteError(f"{study.artifact.function} returned {type(drawing).__name__}, not a Table or a Drawing")
    kind = "table" if isinstance(drawing, Table) else "figure"
    about |= {
        "paper": study.artifact.paper,
        "name": study.artifact.name,
        "kind": kind,
        "measured_on": measured_on,
        "formats": list(formats(kind)),
        "made_from": {"source": source(), **study.made_from(), "clocks": clocks},
    }
    write_json(with_suffix(stem, "json"), about)
    return [with_suffix(stem, suffix) for suffix in formats(kind)]
