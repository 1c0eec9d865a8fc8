"""The table "protocol, paper against here": of each test set its instances, reference, averaging, budget, precision.

What stands for here follows from the plan, so that no deviation can hide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from neuroute.core.dotted import parts
from neuroute.core.errors import NeurouteError
from neuroute.datasets.benchmarks import study_instances
from neuroute.pipeline.plan.claims import AVERAGING, BEST_KNOWN, LIBRARY, NEW_INSTANCES, NOT_STATED, Protocol
from neuroute.pipeline.plan.needs import Need
from neuroute.pipeline.plan.plan import Plan
from neuroute.pipeline.rendering.cells import solver_name
from neuroute.specs.decodings import Decoding
from neuroute.specs.evaluations import BenchmarkEvaluation, ConstructionEvaluation, Test
from neuroute.specs.objects import Dataset, Labels

ASPECTS = ("source", "instances", "reference", "averaging", "budget", "precision")
HEADS = ("where", "test set", *ASPECTS)
NO_GAPS = "no gaps"
WORDS = {"greedy": "greedy", "beam": "beam", "rrc": "RRC", "prc": "PRC", "revise": "revision of blocks"}  # by method
LEGEND = "Tested here; in parentheses the paper's, if different."


class Pair(NamedTuple):
    """What the paper has, and what stands for it here."""

    paper: str
    here: str

    @property
    def differs(self) -> bool:
        return self.paper not in (self.here, NOT_STATED)

    @property
    def words(self) -> str:
        return self.here if self.paper == self.here else f"{self.here} (paper: {self.paper})"


@dataclass(frozen=True)
class Line:
    """One test set, or several that are alike in all but their names."""

    where: str
    test: tuple[Pair, ...]
    aspects: tuple[Pair, ...]  # in the order of ASPECTS

    def cells(self) -> list[tuple[str, bool]]:
        """Texts in the order of HEADS, each with whether it differs from the paper."""
        names = (", ".join(dict.fromkeys(each)) for each in zip(*self.test, strict=True))
        pairs = (Pair(self.where, self.where), Pair(*names), *self.aspects)
        return [(pair.words, pair.differs) for pair in pairs]


class _Use(NamedTuple):
    """A need of an artifact, as far as it is a test."""

    artifact: str
    run: str
    here: Labels | Dataset | BenchmarkEvaluation
    decoding: Decoding


def protocol_lines(plan: Plan, paper: str) -> list[Line]:
    """Return the table of a paper; empty, if it declares no protocol.

    Raises NeurouteError if an artifact tests on what the paper's protocol does not name.
    """
    declared = plan.papers[paper].protocol
    if declared is None:
        return []
    uses = [use for name in plan.needs if name.startswith(f"{paper}/") for use in _uses(name, plan.needs[name])]
    unclaimed, lines = set(uses), []
    for protocol in declared(plan.scale):
        uses_here = [
            use
            for use in uses
            if protocol.here in (use.here, getattr(use.here, "benchmark", None))
            and (not protocol.only or use.artifact.partition("/")[2] in protocol.only)
        ]
        unclaimed.difference_update(uses_here)
        if uses_here:
            lines.append(_line(plan, protocol, uses_here))
    if unclaimed:
        use = min(unclaimed, key=lambda use: (use.artifact, use.run))
        raise NeurouteError(
            f"{use.artifact}: tests {use.run} on {_name(use.here)}; add it to `protocol` in {paper}'s paper.py"
        )
    # Neighbours that are alike in all but the name of the test set as one.
    merged = []
    for _, alike in groupby(lines, key=lambda line: (line.where, line.aspects)):
        first, *others = alike
        merged.append(replace(first, test=first.test + tuple(pair for line in others for pair in line.test)))
    return merged


def markdown(lines: Iterable[Line]) -> str:
    """A table in Markdown; what differs from the paper is bold."""
    rows = [[f"**{text}**" if differs else text for text, differs in line.cells()] for line in lines]
    cells = [list(HEADS), ["---"] * len(HEADS), *rows]
    return "".join(f"| {' | '.join(text.replace('|', '/') for text in row)} |\n" for row in cells)


def _uses(artifact: str, needs: Iterable[Need]) -> Iterator[_Use]:
    for need in needs:
        if isinstance(need, Test):
            yield _Use(artifact, need.run, need.labels, need.decoding)
        elif isinstance(need, BenchmarkEvaluation):
            yield from (_Use(artifact, need.run, need.model_copy(update=ANY_MODEL), how) for how in need.decodings)
        elif isinstance(need, ConstructionEvaluation):
            yield from (_Use(artifact, need.run, dataset, need.decoding) for dataset in need.datasets)


ANY_MODEL = {"run": "", "name": "", "decodings": (), "per_axis": False}  # what of a benchmark is not its instances


def _name(here: Labels | Dataset | BenchmarkEvaluation) -> str:
    if isinstance(here, BenchmarkEvaluation):
        return here.benchmark.upper()
    d = here.dataset if isinstance(here, Labels) else here
    name = f"{d.variant or d.problem.upper()}{d.n}" + (f" C={d.capacity}" if d.capacity else "")
    return name if d.distribution == "uniform" else f"{name} {d.distribution}"


def _line(plan: Plan, protocol: Protocol, uses: Sequence[_Use]) -> Line:
    here = uses[0].here
    count = f"{protocol.instances:,}" if protocol.instances is not None else NOT_STATED
    if isinstance(here, BenchmarkEvaluation):
        instances = len(study_instances(here.max_nodes, here.min_nodes, here.benchmark, here.sets, here.names))
        reference, source = BEST_KNOWN, LIBRARY
    else:
        dataset = here.dataset if isinstance(here, Labels) else here
        instances, source = dataset.count, Path(dataset.file).stem if dataset.file else NEW_INSTANCES
        reference = solver_name(here.solver) if isinstance(here, Labels) else NO_GAPS
    precisions = dict.fromkeys(plan.runs[use.run].training.precision for use in uses)
    # "Tables 2, 5; Figure 1"
    names = dict.fromkeys(use.artifact.partition("/")[2] for use in uses)
    numbers: dict[str, list[str]] = {}
    for name in names:
        kind = name.rstrip("0123456789")
        numbers.setdefault(kind.replace("table_figure", "table of figure").capitalize(), []).append(name[len(kind) :])
    order = sorted(numbers.items(), key=lambda item: not item[0].startswith("Table"))
    where = "; ".join(
        f"{kind}{'s' * (len(of) > 1 and ' ' not in kind)} {', '.join(sorted(of, key=int))}" for kind, of in order
    )
    return Line(
        where,
        (Pair(protocol.name, _name(here)),),
        (
            Pair(protocol.source, source),
            Pair(count, f"{instances:,}"),
            Pair(protocol.reference, reference),
            Pair(protocol.averaging, AVERAGING[protocol.shown] if protocol.shown else NO_GAPS),
            Pair(_in_words(protocol.budget), _in_words(use.decoding for use in uses)),
            Pair(protocol.precision, ", ".join(sorted(precisions))),
        ),
    )


def _in_words(decodings: Iterable[Decoding]) -> str:
    """Ways to decode, each once: greedy; beam 2, 4, 8; PRC 10, 100 from insertion."""
    numbers: dict[tuple[str, str], list[str]] = {}
    every: list[Decoding] = []
    for decoding in decodings:  # a search as those of each of its budgets; what it starts from is none
        budgets = [{"iterations": budget, "milestones": ()} for budget in decoding.milestones if budget]
        every += [decoding.model_copy(update=change) for change in budgets] or [decoding]
    for name, how, number in sorted(dict.fromkeys(map(_words, every))):
        numbers.setdefault((name, how), []).extend([f"{number:,}"] if number else [])
    return "; ".join(" ".join(filter(None, (name, ", ".join(of), how))) for (name, how), of in numbers.items())


def _words(d: Decoding) -> tuple[str, str, int]:
    """What it is called, how it is made, and its beam or iterations, 0 for none."""
    starts = {1: "", "all": "from all starts"}.get(d.starts, f"from {d.starts} starts")
    more = [starts, "of 8 images" * d.augment, f"from {d.start}" * (d.start != "greedy")]
    more += ["by the recipe for TSPLIB" * (d.revision == "library")]
    more += [f"with l_max {d.longest}" * bool(d.longest), "with ESF" * d.esf, "without log(n)" * (not d.log_n)]
    more += ["rescaled" * (d.rescale != 1), f"{d.repeats} times" * (d.repeats > 1)]
    more += [f"with beams of {d.beam}" * (d.is_own and d.beam > 1)]
    more += [f"in batches of {d.batch_size}" * bool(d.batch_size)]
    of_systems = {method: words for _, every in parts("system", "WORDS") for method, words in every.items()}
    system, _, way = d.method.partition(":")
    name = WORDS.get(d.method) or of_systems.get(d.method) or f"{system.upper()}'s {way}"
    return name, " ".join(filter(None, more)), d.beam if d.method == "beam" else d.iterations
