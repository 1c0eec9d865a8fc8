"""A paper as the plan sees it: what it trains, labels, measures and shows."""

import importlib
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from neuroute.core.dotted import code_in, place_of
from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.pipeline.plan.claims import Claim, Claims, Gate, Protocol, check_claims, read_claims
from neuroute.pipeline.plan.config import Config, Scale
from neuroute.pipeline.plan.needs import TOGETHER, Declaration, Log, Need, Solved, declarations_in, group_of, nothing
from neuroute.pipeline.plan.papers import paper_folders
from neuroute.specs.data import Spec
from neuroute.specs.objects import Artifact, Evaluation, Labels, Measurement, RescalingEvaluation, Run, Test

Needs = dict[Declaration, list[Need]]


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
        return list(self._claims.claims) if self._claims else []

    def gate(self) -> Gate | None:
        """What must move before its trainings are set against each other; None where nothing says."""
        return self._claims.gate if self._claims else None

    def main_figures(self) -> tuple[str, ...]:
        """Names of the figures that stand for it on the first page of the report."""
        return self._claims.figures if self._claims else ()

    def claim_function(self, claim: Claim) -> str:
        """package.module:function of a claim that one judges."""
        return f"neuroute.pipeline.papers.{self.key}.claims:{claim.function}"

    @cached_property
    def _claims(self) -> Claims | None:
        claims = read_claims(self.folder)
        if claims:
            there = (self.folder / "claims.py").is_file()
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
