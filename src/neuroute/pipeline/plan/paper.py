"""A paper as the plan sees it: what it trains, labels, measures and shows.

Papers are plug-ins: folders that hold a `paper.py`, in this package or wherever `papers_path` says.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from neuroute.core.arrays import read_rows, real
from neuroute.core.dotted import code_in, place_of, search_working_folder
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.pipeline.plan.claims import Claim, Claims, Protocol, check_claims, read_claims
from neuroute.pipeline.plan.needs import TOGETHER, Declaration, Log, Need, Solved, declarations_in, group_of, nothing
from neuroute.specs.data import Spec
from neuroute.specs.objects import Artifact, Evaluation, Labels, Measurement, RescalingEvaluation, Run, Test

if TYPE_CHECKING:
    from neuroute.pipeline.plan.config import Config
    from neuroute.pipeline.plan.scale import Scale

Needs = dict[Declaration, list[Need]]
PRINTED_COLUMNS = ("method", "n", "metric", "value", "printed", "method_params")  # of a table's `published` CSV
# Where packages `neuroute.pipeline.papers.<key>` are looked for.
FOLDERS: list[str] = importlib.import_module("neuroute.pipeline.papers").__path__  # type: ignore[assignment]


@dataclass(frozen=True)
class Paper:
    """One paper: what it trains, labels, measures and shows.

    Its artifacts are declared in paper.py, and in the modules of its folder that begin with `table` or `figure`.

    Attributes:
        key: of one word, as in `sit`.
        title: of the report.
        scale: the class of its block in a scale file.
        runs: its trainings, and those that it borrows.
        also_solved: what is solved besides what these and its evaluations read: test sets by other solvers.
        group: which of a run's tests are measured by one job; by default all.
        borrows: papers whose runs or test sets it uses; their blocks must be in the scale, too.
        lends: of two that borrow from each other, runs that do not depend on the other's; None: all.
        headline: whether its artifacts lie in the results folder itself.
        optional: whether a scale may do without its block, or any of its runs.
        test_set: the labelled test set of a size, for papers that borrow it.
        protocol: its test sets as it describes them, beside those here.
    """

    key: str
    title: str
    scale: type[Spec]
    runs: Callable[[Config, Scale], list[Run]]
    also_solved: Callable[[Scale], Iterable[Labels]] | None = None
    group: str | Callable[[Scale, Test], str] = ""
    borrows: tuple[str, ...] = ()
    lends: Callable[[Config, Scale], list[Run]] | None = None
    headline: bool = False
    optional: bool = False
    test_set: Callable[[Scale, int], Labels] | None = None
    protocol: Callable[[Scale], Iterable[Protocol]] | None = None

    @property
    def folder(self) -> Path:
        """Where its modules and `published` lie."""
        return paper_folders()[self.key]

    def declarations(self) -> list[Declaration]:
        """Its tables, then its figures.

        Raises NeurouteError if two have one name, or if a user's own cannot be imported.
        """
        stems = sorted(
            file.stem for pattern in ("paper.py", "table*.py", "figure*.py") for file in self.folder.glob(pattern)
        )
        with code_in(self.folder):
            modules = [importlib.import_module(f"neuroute.pipeline.papers.{self.key}.{stem}") for stem in stems]
        declared = sorted((d for module in modules for d in declarations_in(module)), key=lambda d: d.place)
        for d, after in pairwise(declared):
            if d.name == after.name:
                raise NeurouteError(f"{self.key}: {d.function} and {after.function} have one name; rename one")
        return declared

    def claims(self) -> list[Claim]:
        """What it claims; nothing where its folder holds no claims.yaml.

        Raises:
            NeurouteError: if that is not valid, or names what the paper does not have.
        """
        return list(self.stated.claims)

    def claim_function(self, claim: Claim) -> str:
        """package.module:function of a claim that one judges."""
        return f"neuroute.pipeline.papers.{self.key}.claims:{claim.function}"

    @cached_property
    def stated(self) -> Claims:
        """What its claims.yaml holds; raises as `claims`."""
        claims, there = read_claims(self.folder), (self.folder / "claims.py").is_file()
        functions = vars(importlib.import_module(f"neuroute.pipeline.papers.{self.key}.claims")) if there else {}
        check_claims(claims, self.folder / "claims.yaml", {d.name: d for d in self.declarations()}, functions)
        return claims

    def needs(self, scale: Scale) -> Needs:
        """What each artifact of a scale needs: one that declares needs and has none belongs to other scales.

        Raises NeurouteError for what is no need, and for an artifact of `only` that is not there.
        """
        every: Needs = {}
        declared = {d.name: d for d in self.declarations()}
        for name in scale.only.get(self.key, declared):
            if (d := declared.get(name)) is None:
                meant = did_you_mean(near(name, declared, most=1))
                raise NeurouteError(f"scale {scale.name}: only.{self.key}: no table or figure '{name}'{meant}")
            with code_in(self.folder):
                needs = d.needs(scale)
                every[d] = list(needs) if isinstance(needs, Iterable) else [needs]
            if wrong := [need for need in every[d] if not isinstance(need, Need)]:
                raise NeurouteError(
                    f"{place_of(d.needs)}: needs of {d.name} hold {wrong[0]!r}; give Log, Solved or "
                    "measurements, in a list"
                )
        return {d: needs for d, needs in every.items() if needs or d.needs is nothing}

    def evaluations(self, scale: Scale, needs: Iterable[tuple[str, Need]]) -> list[Evaluation]:
        """The jobs that measure what its artifacts, by name, need: of each run those of a group.

        Raises NeurouteError if two artifacts ask for different measurements of one id.
        """
        jobs: dict[tuple[str, str], dict[str | Test, Measurement]] = {}
        by_id: dict[str, Measurement] = {}
        for name, need in needs:
            if not isinstance(need, Measurement):
                continue
            if not isinstance(need, Test) and by_id.setdefault(need.id, need) != need:
                raise NeurouteError(f"{self.key}/{name}: needs another {need.id} than an artifact before it")
            key = need if isinstance(need, Test) else need.id
            jobs.setdefault((need.run, self.group_of(scale, need)), {})[key] = need
        return [
            Evaluation(run=run, group=group, measurements=tuple(sorted(of_job.values(), key=_order)))
            for (run, group), of_job in jobs.items()
        ]

    def labels(
        self, scale: Scale, runs: Iterable[Run], evaluations: Iterable[Evaluation], needs: Needs
    ) -> list[Labels]:
        """What is solved for it, each once: what runs, evaluations and artifacts read, and what is `also_solved`."""
        read = [labels for run in runs for labels in run.labels]
        read += [labels for e in evaluations for labels in e.labels]
        read += [n.labels for each in needs.values() for n in each if isinstance(n, Solved) and not n.optional]
        return list(dict.fromkeys([*read, *(self.also_solved(scale) if self.also_solved else ())]))

    def artifacts(self, scale: Scale, solved: Container[Labels], needs: Needs) -> list[Artifact]:
        """Its artifacts by their needs, which read of these labels how they were made."""
        out = []
        for d, each in needs.items():
            shown_labels = (need.labels for need in each if isinstance(need, Solved))
            measured = (need for need in each if isinstance(need, Measurement))
            evaluations = (f"{need.run}/{self.group_of(scale, need)}" for need in measured)
            out.append(
                Artifact(
                    paper=self.key,
                    name=d.name,
                    title=d.title,
                    function=d.function,
                    printed_files=d.printed_files,
                    runs=tuple(dict.fromkeys(need.run for need in each if isinstance(need, Log))),
                    evaluations=tuple(dict.fromkeys(evaluations)),
                    label_jobs=tuple(dict.fromkeys(labels.id for labels in shown_labels if labels in solved)),
                )
            )
        return out

    def group_of(self, scale: Scale, need: Measurement) -> str:
        """Of all that is measured of a run, the part that one job measures with this."""
        if scale.evaluate_together:
            return group_of(self.key, need.run, TOGETHER)
        if not isinstance(need, Test):
            return group_of(self.key, need.run, need.name)
        if need.stage:
            return group_of(self.key, need.run, "stages")
        return self.group(scale, need) if callable(self.group) else group_of(self.key, need.run, self.group or self.key)


def _order(measurement: Measurement) -> tuple[object, ...]:
    """Measurements of a job have one order, whichever artifacts ask for them: others may read what a sweep finds."""
    if not isinstance(measurement, Test):
        return 0 if isinstance(measurement, RescalingEvaluation) else 2, measurement.name
    d, decoding = measurement.labels.dataset, measurement.decoding
    return 1, measurement.stage or "", d.n, d.stem, d.count, measurement.labels.solver, decoding.name


# -- where papers are found ------------------------------------------------------------------------------------------


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


def load_paper(key: str) -> Paper:
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


def borrow_runs(config: Config, scale: Scale, ids: Iterable[str]) -> list[Run]:
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


def borrow_test_set(scale: Scale, paper: str, size: int) -> Labels:
    """The labelled test set that stands for that size of another paper."""
    test_set = load_paper(paper).test_set
    assert test_set is not None, f"{paper} lends no test sets"
    return test_set(scale, size)
