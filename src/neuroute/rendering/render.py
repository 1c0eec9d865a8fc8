"""Draw one artifact and write it in all its formats."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from neuroute.core.dotted import resolve
from neuroute.core.errors import NeurouteError
from neuroute.core.files import write_json, write_text
from neuroute.rendering import style
from neuroute.rendering.cells import solver_name
from neuroute.rendering.study import Study
from neuroute.rendering.style import Drawing, save_figure, with_suffix
from neuroute.rendering.table import Table

TABLE_FORMATS = ("csv", "md", "tex", "html", "json")
FIGURE_FORMATS = ("pdf", "svg", "png", "csv", "json")


def formats(kind: str) -> tuple[str, ...]:
    """The suffixes that `render` writes for a "table" or a "figure"."""
    return TABLE_FORMATS if kind == "table" else FIGURE_FORMATS


def _stand_ins(study: Study) -> list[str]:
    """Say which solver did another's work behind what is shown."""
    pairs = [(solver_name(name), solver_name(other)) for name, other in study.artifact.stand_ins.items()]
    return [
        f"{other} stands in for {name} here: it made the labels and references that were {name}'s."
        for name, other in pairs
    ]


def _given(study: Study) -> list[str]:
    """Say which weights behind what is shown were not trained here."""
    told = ", ".join(f"{run}: {source}" for run, source in study.given().items())
    rest = "What is said of trainings here is not about them."
    return [f"Not trained here but taken from files: {told}. {rest}"] if told else []


def render(study: Study, stem: Path) -> list[Path]:
    """Draw `study.artifact` and write `<stem>.<format>` for each of its formats; the paths written.

    The files follow from the study alone: the same records give the same bytes.  `<stem>.json` is what the report
    reads: title, notes and what the numbers were measured on.  Raises NeurouteError for missing records.
    """
    with style.house():
        drawn = resolve(study.artifact.function)(study)
    measured_on = study.measured_on()
    if isinstance(drawn, Table | Drawing):
        drawn = replace(drawn, notes=(*drawn.notes, *_stand_ins(study), *_given(study)))
    if isinstance(drawn, Table):
        extra = {"scale": study.scale.name, "device": "; ".join(measured_on.get("devices", [])) or None}
        texts = {"csv": drawn.csv(extra), "md": drawn.markdown(), "tex": drawn.latex(), "html": drawn.html()}
        for kind, text in texts.items():
            write_text(with_suffix(stem, kind), text)
        about: dict[str, Any] = {"title": drawn.title, "notes": list(drawn.notes), "legend": drawn.legend}
    elif isinstance(drawn, Drawing):
        save_figure(drawn.figure, stem)
        points = drawn.points.assign(scale=study.scale.name)
        write_text(with_suffix(stem, "csv"), points.to_csv(index=False, lineterminator="\n"))
        about = {"title": study.artifact.title, "notes": list(drawn.notes), "alt": drawn.alt}
        if drawn.fits:
            about |= {"fits": drawn.fits.html(), "fits_markdown": drawn.fits.markdown()}
    else:
        raise NeurouteError(f"{study.artifact.function} returned {type(drawn).__name__}, not a Table or a Drawing")
    kind = "table" if isinstance(drawn, Table) else "figure"
    about |= {
        "paper": study.artifact.paper,
        "name": study.artifact.name,
        "kind": kind,
        "measured_on": measured_on,
        "formats": list(formats(kind)),
    }
    write_json(with_suffix(stem, "json"), about)
    return [with_suffix(stem, suffix) for suffix in formats(kind)]
