"""Tables of settings: what is configured here, with the printed value in parentheses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from neuroute.pipeline.rendering.render import draw_table
from neuroute.pipeline.rendering.study import Study
from neuroute.pipeline.rendering.table import Cell, Column, Row, Table, Value
from neuroute.specs.objects import GivenRun, Reinforced, Run

T = TypeVar("T")
Setting = tuple[str, str | None, Callable[[T], Value]]  # heading, key of the printed value, the value here


def setting_rows(
    settings: Iterable[Setting[T]], subjects: Sequence[T | None], published: Callable[[int, str], Value]
) -> tuple[Row, ...]:
    """Show each setting of each subject; published: (place of the subject, key) -> the paper's value."""
    rows = []
    for heading, key, value in settings:
        here = [None if subject is None else value(subject) for subject in subjects]
        in_print = [published(i, key) if key else None for i in range(len(subjects))]
        rows.append(Row((heading,), tuple(map(Cell, here, in_print))))
    return tuple(rows)


def printed_values(study: Study) -> dict[str, Value]:
    """Key -> the paper's value, as a number where it is one."""
    return {key: parse(text) for key, text in study.published(study.artifact.name)[["key", "value"]].to_numpy()}


def parse(text: object) -> Value:
    """A whole number, a number, or the text; a dash for what pandas reads as missing."""
    try:
        number = float(str(text))
    except ValueError:
        return str(text)
    return "−" if number != number else int(number) if number.is_integer() else number


def changes_note(study: Study, runs: Iterable[Run | None]) -> list[str]:
    """Say which of the runs config.yaml changes."""
    changed = [run.id for run in runs if run and run.id in study.config.runs]
    return [f"config.yaml changes {', '.join(changed)}."] if changed else []


def drawn_instances(run: Run) -> float | None:
    """Count the instances that a run's batches have on average; None for weights of a file or another training."""
    training = run.training
    if not isinstance(training, Reinforced) or isinstance(run, GivenRun):
        return None
    return sum(sum(stage.expected_instances().values()) for stage in training.stages)


# -- the licences of what a paper lists, and of what is used here in its place (sit, Table 11; icam, Table 12) -------

INSTANCES = "small instances; the user's copy, or fetched"
OWN = "own implementation"
NETWORKS = ("BQ", "DIFUSCO", "ELG", "GLOP", "H-TSP", "HTSP", "INViT", "LEHD", "MDAM", "POMO", "Pointerformer")
# Resource of the paper's table -> what this project uses in its place, and under which licence.  As the packages'
# own metadata and licence files state it, of the versions that constraints.txt names.
USED = {
    "LKH3": ("LKH in elkai; LKH-3 in LKHpy, or of the user", "LKHpy: MIT; elkai, LKH, LKH-3: non-commercial use only"),
    "HGS": ("HGS-CVRP in hygese", "MIT"),
    "Concorde": ("Concorde in ml4co-kit", "Concorde: academic research use; ml4co-kit: Mulan PSL v2"),
    **dict.fromkeys(NETWORKS, (OWN, "–")),
    "TSPLIB": (INSTANCES, "–"),
    "CVRPLib": (INSTANCES, "–"),
}
ALSO_USED = {
    "PyTorch": ("networks, training", "BSD-3-Clause, with parts under Apache-2.0, BSD-2-Clause, BSL-1.0, MIT"),
    "NumPy": ("arrays", "BSD-3-Clause, with parts under 0BSD, MIT, Zlib, CC0-1.0"),
    "SciPy": ("fits", "BSD-3-Clause"),
    "pandas": ("records", "BSD-3-Clause"),
    "Numba": ("insertion, nearest neighbour, savings", "BSD-2-Clause"),
    "ortools": ("solver of 16 VRPs", "Apache-2.0"),
    "pyvrp": ("solver of VRPs without backhauls", "MIT"),
    "Matplotlib": ("figures", "PSF-based"),
    "Pillow": ("figures in small", "MIT-CMU"),
    "Snakemake": ("the DAG", "MIT"),
    "pydantic": ("configuration", "MIT"),
    "PyYAML": ("configuration", "MIT"),
    "safetensors": ("checkpoints", "Apache-2.0"),
    "Jinja2": ("the report", "BSD-3-Clause"),
    "Typer": ("the command line", "MIT"),
    "tqdm": ("progress", "MPL-2.0 and MIT"),
    "rocrate": ("crates of kept results", "Apache-2.0"),
}


def licence_table(study: Study) -> Table:
    """Show the licences that a paper's table lists, whose notes hold "<type>; <link>", and those of what is used."""
    listed = study.published(study.artifact.name)[["key", "value", "note"]]
    rows = []
    for resource, licence, note in listed.itertuples(index=False):
        kind, _, link = str(note).partition("; ")
        rows.append(_licence(resource, kind, USED[resource], licence, link))
    rows += [_licence(package, "Code", used) for package, used in ALSO_USED.items()]
    heads = {"licence": "Licence", "used": "Used here", "bundled": "Bundled here", "link": "Link"}
    columns = [Column(key, label, format=str) for key, label in heads.items()]
    return draw_table(study, ("Resource", "Type"), columns, rows, "Used here; in parentheses the paper's entry.")


def _licence(
    resource: str, kind: str, used: tuple[str, str], published: str | None = None, link: str | None = None
) -> Row:
    what, licence = used
    bundled = None if what == OWN else "in part" if what == INSTANCES else "no"
    here = licence if licence != "–" else None
    return Row((resource, kind), (Cell(here, published), Cell(what), Cell(bundled), Cell(None, link)))
