"""What a paper says: what it claims, and what of that its printed numbers show; how it tests.

`claims.yaml` in a paper's folder holds the claims.  Each has a form, which says of which one number its verdict is, and
how that is looked at here: `compare`, cells of the paper's tables, whose measured and whose printed numbers are then
compared alike; or `function`, one of `claims.py` beside it; or else `why`, one word for why neither can.  Forms and
margins follow from the paper's sentence: docs/concepts/verdicts.md.

`protocol` in its `paper.py` yields the paper's test sets, each declared once: where they are used, and what of them
differs here, follows from the plan.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator, Field, model_validator

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.yaml_files import read_yaml, validate
from neuroute.specs.data import Dataset, Labels, Spec
from neuroute.specs.decodings import Decoding
from neuroute.specs.evaluations import Benchmark

Says = Literal["supports", "in part", "contradicts", "nothing to compute from"]
SAYS: tuple[Says, ...] = get_args(Says)
Weight = Literal["headline", "result", "detail"]
# tendency: the mean log ratio over all cells that are named.
# superlative: each of several sides on its mean over the cells, and all have to hold (intersection-union).
# universal: as either, and no cell lies on the other side, at a level that counts all of them.
# level: the mean log ratio lies within a margin, or, with `no_worse`, above its negative.
# law: one regression over all trainings, of a function.
Form = Literal["tendency", "superlative", "universal", "level", "law"]
Why = Literal["scale", "parallel", "quoted", "text", "picture", "formula", "untrained", "untested", "reference"]
WHY: Mapping[Why, str] = {
    "scale": "a bound or cost of full training and full sizes, which smaller ones say nothing of",
    "parallel": "a time on a parallel machine; single-threaded ones order otherwise",
    "quoted": "one side is quoted, or picked anew from several at each size",
    "text": "in the text alone: no table or figure holds a number of it",
    "picture": "a picture of one decision, without a number",
    "formula": "follows from a formula or a count, not from a measurement",
    "untrained": "needs trainings that this scale does not make",
    "untested": "needs tests at sizes that this scale does not have",
    "reference": "no other side: says that something works at all",
}
# How one gap is made of those of many instances, by the metric that shows it.
AVERAGING = {"gap_pct": "ratio of means", "gap_mean_of_ratios_pct": "mean of ratios"}
NOT_STATED = "not stated"
NEW_INSTANCES = "drawn"
LIBRARY = "public library"
BEST_KNOWN = "best costs published"


def _several(value: object) -> object:
    return value if isinstance(value, list | tuple) else (value,)


Names = Annotated[tuple[str, ...], BeforeValidator(_several)]  # one name, or a list of them


class Comparison(Spec):
    """Which cells of drawn tables are below which.

    `by` names a label column, "column" or "table", and `order` its values: every one of a group is below every one of
    the next group.  Rows are picked by the labels in `of` and `like` besides, and are compared within each value of the
    labels in `each`; what a label adds on its end of what stands for it here ("..., here 20") does not count.
    """

    table: Names
    column: Names = ()  # names in the CSV, or patterns: gap_*; none where `by` is "column"
    by: str
    order: Annotated[tuple[Names, ...], Field(min_length=2)]
    of: dict[str, str] = {}
    like: dict[str, str] = {}  # patterns of labels: {method: Ours*}
    unlike: dict[str, str] = {}  # patterns of labels that are left out
    each: Names = ()
    over: str = ""  # label whose values are single instances: compare the means over those that are printed
    costs: bool = False  # times, memory or counts: the spread is that of the ratios over columns and `each`
    one_training: bool = False  # both sides are of the same trainings, used in two ways, which needs no gate
    continued: bool = False  # each training of one side goes on from one of the other: trainings are pairs

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """What is below what."""
        for lower, upper in zip(self.order, self.order[1:], strict=False):
            yield from ((a, b) for a in lower for b in upper)


class Claim(Spec):
    """A statement of a paper on results, in words of our own."""

    id: str
    claim: str
    where: str  # in the paper
    weight: Weight
    printed: Says  # what the paper's own numbers say of it
    note: str = ""  # on those numbers
    form: Form | None = None
    margin: Annotated[float, Field(gt=0, lt=1)] | None = None  # of a claim that two sides are level, as a share
    no_worse: bool = False  # of a level: the lower side may be ahead, too
    artifacts: tuple[str, ...] = ()  # whose numbers or curves are its evidence, beside the tables that it compares
    gpu: bool = False  # two cores cannot look at it as it is meant: its sizes, small differences or costs are of GPUs
    compare: tuple[Comparison, ...] = ()
    function: str = ""  # of the paper's claims.py
    why: Why | None = None

    @model_validator(mode="after")
    def _is_looked_at_in_one_way(self) -> "Claim":
        ways = [name for name in ("compare", "function", "why") if getattr(self, name)]
        if len(ways) != 1:
            which = " and ".join(ways) or "none"
            raise ValueError(f"claim '{self.id}' has {which} of compare, function and why; keep one")
        if (self.form is None) != (self.why is not None):
            raise ValueError(f"claim '{self.id}' has {'a form and why' if self.why else 'no form'}; see Form")
        if (self.form == "level") != (self.margin is not None):
            has = "no margin, within which two sides are level" if self.margin is None else "a margin and is no level"
            raise ValueError(f"claim '{self.id}' has {has}; correct it")
        if self.form == "law" and self.compare:
            raise ValueError(f"claim '{self.id}' is a law, which a function fits; name one")
        if self.form in ("tendency", "level") and any(len(of) > 1 for each in self.compare for of in each.order):
            raise ValueError(f"claim '{self.id}' pools over the sides of one place of `order`; make it a superlative")
        return self

    @property
    def artifact(self) -> str:
        """Where a reader looks first; nothing of a claim of the text alone."""
        return next(iter((*self.artifacts, *self.tables)), "")

    @property
    def tables(self) -> tuple[str, ...]:
        """Those whose cells it compares."""
        return tuple(dict.fromkeys(table for each in self.compare for table in each.table))


class Exponent(Spec):
    """The cell that holds by which power a model's gap falls with training samples."""

    table: str
    column: str
    of: dict[str, str]


class Gate(Spec):
    """What must move before differences between trainings are judged.

    Four times the samples cut the gap of a model in the middle by a quarter, and the largest model is ahead of the
    smallest by 30 %: where it is not so, trainings end where their schedule stops them, whatever is varied.
    """

    updates: Exponent
    size: Comparison


class Claims(Spec):
    """A paper's claims.yaml."""

    figures: tuple[str, ...] = ()  # names of its main ones, which stand for it on the first page of the report
    gate: Gate | None = None  # what must move before its trainings are set against each other
    claims: tuple[Claim, ...]


@cache
def read_claims(folder: Path) -> Claims:
    """Return what claims.yaml in a paper's folder holds; no claims where there is none.

    Raises NeurouteError, in one line, if the file is not valid or names a claim twice.
    """
    path = folder / "claims.yaml"
    if not path.is_file():
        return Claims(claims=())
    claims = validate(Claims, read_yaml(path), str(path), see="neuroute.pipeline.plan.claims")
    twice = [name for name, count in Counter(claim.id for claim in claims.claims).items() if count > 1]
    if twice:
        raise NeurouteError(f"{path}: two claims '{twice[0]}'; rename one")
    return claims


def check_claims(claims: Claims, path: Path, artifacts: Mapping[str, object], functions: Mapping[str, object]) -> None:
    """Raise NeurouteError, in one line, if a claim names an artifact or function that the paper does not have."""
    for name in claims.figures:
        _check(name, artifacts, f"{path}: figures", "table or figure of this paper")
    for name in (claims.gate.updates.table, *claims.gate.size.table) if claims.gate else ():
        _check(name, artifacts, f"{path}: gate", "table or figure of this paper")
    for claim in claims.claims:
        where = f"{path}: claim '{claim.id}'"
        for name in (*claim.artifacts, *claim.tables):
            _check(name, artifacts, where, "table or figure of this paper")
        if claim.function:
            _check(claim.function, functions, where, "function of claims.py")


def _check(name: str, there: Mapping[str, object], where: str, what: str) -> None:
    if name not in there:
        raise NeurouteError(f"{where} names {name}, which is no {what}{did_you_mean(near(name, there)) or ''}")


def claims_digest(folders: Iterable[Path]) -> str:
    """Return what the claims of papers are told by: the first digits of the sha256 of their claims.yaml."""
    files = (folder / "claims.yaml" for folder in sorted(folders))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files if file.is_file())).hexdigest()[:12]


@dataclass(frozen=True)
class Protocol:
    """One test set as a paper has it, and what stands for it here.

    `here` is the labelled test set, instances that are only timed, or a public benchmark's name.  `budget` holds the
    paper's ways to decode, in its own numbers.  `shown` is the metric of the gaps in the tables here, None where they
    show no gaps.
    """

    name: str  # "TSP1000"
    here: Labels | Dataset | Benchmark
    instances: int | None  # None: not stated
    reference: str
    budget: tuple[Decoding, ...] = (Decoding(),)
    source: str = NEW_INSTANCES  # whose instances these are
    averaging: str = AVERAGING["gap_pct"]
    precision: str = NOT_STATED
    shown: str | None = "gap_pct"
    only: tuple[str, ...] = ()  # names of the artifacts that test so; none: all that test on it


def on_benchmark(name: Benchmark, instances: int | None, *budget: Decoding, only: tuple[str, ...] = ()) -> Protocol:
    """Return a paper's protocol on a public benchmark: means of the instances' gaps against the best costs known."""
    metric = "gap_mean_of_ratios_pct"
    return Protocol(
        name.upper(), name, instances, BEST_KNOWN, budget or (Decoding(),), LIBRARY, AVERAGING[metric], shown=metric,
        only=only,
    )  # fmt: skip
