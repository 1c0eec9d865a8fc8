"""Kept artifacts of a paper as Markdown: figures as pictures, tables with measured numbers beside printed ones."""

from pathlib import Path

import pandas as pd

from neuroute.pipeline.plan.paper import load_paper
from neuroute.pipeline.rendering.kept import BEHIND

DOCS = Path(__file__).resolve().parents[1]
ABOUT = ["scale", "device", "commit", "date"]
NO_SCALES = {"compare", "checks", "edge_maps"}  # folders that hold no artifacts
HEADLINE = "scaling"  # whose artifacts lie in the folder of the scale itself


def artifacts(paper: str) -> str:
    """All artifacts of a paper that docs/measured holds, by scale; for a page of the folder docs/results."""
    parts = []
    for scale in sorted(path for path in (DOCS / "measured").iterdir() if path.is_dir() and path.name not in NO_SCALES):
        folder = scale if paper == HEADLINE else scale / paper
        files = sorted(
            (f for f in folder.glob("*.csv") if f.name != BEHIND),
            key=lambda f: (f.stem.startswith("table"), _number(f.stem), f.stem),
        )
        parts += [f"## Everything kept at scale {scale.name}\n"] if files else []
        parts += [_artifact(paper, file) for file in files]
    return "\n".join(parts) or "Nothing of this paper is kept yet.\n"


def _artifact(paper: str, file: Path) -> str:
    table, link = pd.read_csv(file), f"../{file.relative_to(DOCS).as_posix()}"
    about = ", ".join(dict.fromkeys(str(v) for key in ABOUT if key in table for v in table[key].dropna().unique()))
    name = file.stem.replace("_", " ").replace("table", "Table ").replace("figure", "Figure ").replace("  ", " ")
    name = name.strip().capitalize()
    heading = ": ".join(filter(None, (name, _titles(paper).get(file.stem))))
    source = f"[{file.name}]({link}): {about}"
    if file.with_suffix(".png").exists():
        picture = link.removesuffix("csv") + "png"
        return f"### {heading}\n\n![{name}, measured]({picture}){{ loading=lazy }}\n\n{source}\n"
    body = "\n".join("    " + line for line in _markdown(table.drop(columns=ABOUT, errors="ignore")).splitlines())
    return f'??? abstract "{heading}"\n\n{body}\n\n    {source}\n'


def _titles(paper: str) -> dict[str, str]:
    return {declared.name: declared.title.replace('"', "'") for declared in load_paper(paper).declarations()}


def _number(stem: str) -> int:
    return int("0" + "".join(c for c in stem if c.isdigit()))


def _markdown(table: pd.DataFrame) -> str:
    """The rows, `x_measured` and `x_published` as one column: measured (published)."""
    shown: dict[str, list[str]] = {}
    for column in table:
        base, _, kind = column.rpartition("_")
        if kind == "measured":
            pairs = zip(table[column], table.get(f"{base}_published", [None] * len(table)), strict=True)
            shown[base.replace("_", " ")] = [_pair(*pair) for pair in pairs]
        elif not (kind == "published" and f"{base}_measured" in table) and "_measured_" not in column:
            shown[column.replace("_", " ")] = [_cell(value) for value in table[column]]
    kept = {name: cells for name, cells in shown.items() if any(cells)}
    lines = ["| " + " | ".join(kept) + " |", "|" + "---|" * len(kept)]
    lines += ["| " + " | ".join(cells) + " |" for cells in zip(*kept.values(), strict=True)]
    return "\n".join(lines)


def _pair(measured: object, published: object) -> str:
    there = _cell(published)
    return f"{_cell(measured)} ({there})".strip() if there else _cell(measured)


def _cell(value: object) -> str:
    if value is None or value != value:  # NaN
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("|", "\\|")
