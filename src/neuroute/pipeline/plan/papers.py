"""Papers are plug-ins: folders that hold a `paper.py`, in this package or wherever `papers_path` says."""

import importlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from neuroute.core.arrays import read_rows, real
from neuroute.core.dotted import code_in, search_working_folder
from neuroute.core.errors import NeurouteError

if TYPE_CHECKING:
    from neuroute.pipeline.plan.config import Config
    from neuroute.pipeline.plan.paper import Paper
    from neuroute.pipeline.plan.scale import Scale
    from neuroute.specs.objects import Labels, Run

PRINTED_COLUMNS = ("method", "n", "metric", "value", "printed", "method_params")  # of a table's `published` CSV
# Where packages `neuroute.pipeline.papers.<key>` are looked for.
FOLDERS: list[str] = importlib.import_module("neuroute.pipeline.papers").__path__  # type: ignore[assignment]


def add_folders(folders: Iterable[str]) -> None:
    """Look for papers in these folders too, and for what they import in the working folder.

    Raises NeurouteError if one is missing, or has a paper whose key another one has.
    """
    search_working_folder()
    for folder in folders:
        path = Path(folder)
        if not path.is_dir():
            raise NeurouteError(f"no folder {folder}; correct the path or leave it out")
        if (text := str(path.resolve())) not in FOLDERS:
            others = paper_folders()
            for file in sorted(path.glob("*/paper.py")):
                if (key := file.parent.name) in others:
                    raise NeurouteError(f"{file}: {others[key]} is a paper '{key}', too; rename the folder and its key")
            FOLDERS.append(text)


def paper_folders() -> dict[str, Path]:
    """Key of each paper -> its folder, which holds `paper.py`."""
    return _papers_in(tuple(FOLDERS))


@cache
def _papers_in(folders: tuple[str, ...]) -> dict[str, Path]:
    files = (file for folder in folders for file in sorted(Path(folder).glob("*/paper.py")))
    return {file.parent.name: file.parent for file in files}


def load_paper(key: str) -> "Paper":
    """A paper by its key, its folder's name.

    Raises NeurouteError that lists the known ones, or if it has another, or if a user's own cannot be imported, or
    has printed numbers that are none.
    """
    folders = paper_folders()
    if key not in folders:
        raise NeurouteError(f"unknown paper '{key}'; known papers: {', '.join(sorted(folders))}")
    with code_in(folders[key]):
        paper: Paper | None = getattr(importlib.import_module(f"neuroute.pipeline.papers.{key}.paper"), "PAPER", None)
    if paper is None or getattr(paper, "key", None) != key:
        raise NeurouteError(f"{folders[key] / 'paper.py'}: holds no PAPER with the key '{key}', its folder's name")
    if str(folders[key].parent) != FOLDERS[0]:
        for file in sorted((folders[key] / "published").glob("*.csv")):
            _check_printed(file)
    return paper


@cache
def _check_printed(file: Path) -> None:
    """Raise NeurouteError, with the line, for printed numbers that are none: before the trainings beside them."""
    try:
        columns, rows = read_rows(file.read_text(encoding="utf-8"), str(file))
    except UnicodeDecodeError as error:
        raise NeurouteError(f"{file}: not a CSV of printed numbers ({error})") from None
    if "method" not in columns:  # settings, in words
        return
    if lacking := [name for name in PRINTED_COLUMNS[:5] if name not in columns]:
        raise NeurouteError(f"{file}: has no column '{lacking[0]}'; printed numbers have {', '.join(PRINTED_COLUMNS)}")
    for where, row in rows:
        try:
            real(row["value"] or "nan")
        except ValueError:
            raise NeurouteError(f"{where}: value: '{row['value']}' is no number") from None


def all_papers() -> list[str]:
    """Keys of all known papers, each after those that it borrows from."""
    keys: dict[str, None] = {}
    for key in sorted(paper_folders(), key=lambda key: not load_paper(key).headline):
        keys |= dict.fromkeys(with_lenders([key]))
    return list(keys)


def with_lenders(keys: Iterable[str]) -> list[str]:
    """These papers, each after the papers that it borrows from; of two that borrow from each other, either is first."""
    return with_all_before(keys, lambda key: load_paper(key).borrows)


def with_all_before(names: Iterable[str], before: Callable[[str], Iterable[str]]) -> list[str]:
    """These names, each after all that have to come before it; of two that wait for each other either is first."""
    visited: set[str] = set()
    ordered: list[str] = []

    def add(name: str) -> None:
        if name not in visited:
            visited.add(name)
            for each in before(name):
                add(each)
            ordered.append(name)

    for name in names:
        add(name)
    return ordered


def borrow_runs(config: "Config", scale: "Scale", ids: Iterable[str]) -> list["Run"]:
    """Runs of other papers by id, as these papers declare them, each after the one that it starts from.

    An optional paper may lack some at a scale.
    """
    names = list(ids)
    papers = [load_paper(key) for key in dict.fromkeys(i.partition("/")[0] for i in names)]
    lent = {run.id: run for paper in papers for run in (paper.lends or paper.runs)(config, scale)}

    needed = (name for name in names if name in lent or not is_optional(name))
    starts = {name: (run.start or "").partition("@")[0] for name, run in lent.items()}
    ordered = with_all_before(needed, lambda name: [starts[name]] if starts[name] in lent else [])
    return [lent[name] for name in ordered]


def is_optional(run: str) -> bool:
    """Whether a scale may do without this run (its id)."""
    key = run.partition("/")[0]
    return key in paper_folders() and load_paper(key).optional


def borrow_test_set(scale: "Scale", paper: str, size: int) -> "Labels":
    """The labelled test set that stands for that size of another paper."""
    test_set = load_paper(paper).test_set
    assert test_set is not None, f"{paper} lends no test sets"
    return test_set(scale, size)
