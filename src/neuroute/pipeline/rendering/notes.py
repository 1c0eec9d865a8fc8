"""What is said under a table or figure: texts of `published/<name>.md`, with measured numbers filled in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files

from neuroute.analysis import RESAMPLES
from neuroute.core.errors import NeurouteError
from neuroute.pipeline.rendering.cells import BOOTSTRAP, ONE_SEED, TIMES
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Column, Row, Table

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
