"""Draw one artifact and write it in all its formats."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from neuroute.core.dotted import code_in, resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_json, write_text
from neuroute.core.source import source
from neuroute.core.text import csv_text
from neuroute.pipeline.plan.papers import paper_folders
from neuroute.pipeline.rendering import style
from neuroute.pipeline.rendering.cells import say_seeds, solver_name
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.style import Drawing, save_figure, save_table, with_suffix
from neuroute.pipeline.rendering.table import Table, duration
from neuroute.specs.objects import formats

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
