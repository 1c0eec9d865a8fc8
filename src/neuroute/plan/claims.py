"""What a paper says: what it claims, and what of that its printed numbers show; how it tests.

`claims.yaml` in a paper's folder holds the claims.  Each says how it is looked at here: `compare`, cells of the paper's
tables, whose measured and whose printed numbers are then compared alike; or `function`, one of `claims.py` beside it;
or else `unjudged`, why neither can.

`protocol` in its `paper.py` yields the paper's test sets, each declared once: where they are used, and what of them
differs here, follows from the plan.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from neuroute.core.errors import NeurouteError, did_you_mean, near
from neuroute.core.yaml_files import read_yaml, validate
from neuroute.specs.data import Dataset, Labels, Spec
from neuroute.specs.decodings import Decoding
from neuroute.specs.evaluations import Benchmark

Says = Literal["supports", "in part", "contradicts", "nothing to compute from"]
SAYS: tuple[Says, ...] = ("supports", "in part", "contradicts", "nothing to compute from")
Weight = Literal["headline", "result", "detail"]
Kind = Literal["order", "effect", "trend", "law", "cost", "equality"]
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
    each: Names = ()
    mean: bool = False  # compare the means over `each`
    ratio: bool = False  # compare times or memory, by their mean ratio over columns and `each`
    over: str = ""  # label whose values are single instances: compare the means over those that are printed
    one_training: bool = False  # both sides are the same models, used in two ways: no spread between trainings
    continued: bool = False  # each training of one side goes on from one of the other: trainings are pairs

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """What is below what."""
        for lower, upper in zip(self.order, self.order[1:], strict=False):
            yield from ((a, b) for a in lower for b in upper)


class InPrint(Spec):
    """What the paper prints of a claim's two sides, where no comparison names the cells, and what that says of it.

    A name -> the number; `[text]` is in the running text alone, `[calc]` is computed from tables.
    """

    left: dict[str, float | str] = {}
    right: dict[str, float | str] = {}
    says: Says
    note: str = ""


class Claim(Spec):
    """A statement of a paper on results, in words of our own.

    What a comparison does not say stands in words: `left` is to be smaller than `right`; of a law, trend or effect it
    is what the claim is about, and `right` what that is held against.
    """

    id: str
    claim: str
    where: str  # in the paper
    weight: Weight
    kind: Kind
    left: str = ""
    right: str = ""
    quantity: str = ""
    at: str = ""  # the paper's test sets
    artifacts: tuple[str, ...] = ()  # whose numbers or curves are its evidence
    printed: InPrint
    needs: str = ""  # what it takes to look at it
    gpu: bool = False  # two cores cannot look at it as it is meant: its sizes, small differences or costs are of GPUs
    compare: tuple[Comparison, ...] = ()
    function: str = ""  # of the paper's claims.py
    unjudged: str = ""

    @model_validator(mode="after")
    def _is_looked_at_in_one_way(self) -> "Claim":
        ways = [name for name in ("compare", "function", "unjudged") if getattr(self, name)]
        if len(ways) != 1:
            which = " and ".join(ways) or "none"
            raise ValueError(f"claim '{self.id}' has {which} of compare, function and unjudged; keep one")
        return self

    @property
    def artifact(self) -> str:
        """Where a reader looks first; nothing of a claim of the text alone."""
        return self.artifacts[0] if self.artifacts else ""


class Claims(Spec):
    """A paper's claims.yaml."""

    figures: tuple[str, ...] = ()  # names of its main ones
    claims: tuple[Claim, ...]


@cache
def read_claims(folder: Path) -> Claims | None:
    """Return what claims.yaml in a paper's folder holds; None where there is none.

    Raises NeurouteError, in one line, if the file is not valid or names a claim twice.
    """
    path = folder / "claims.yaml"
    if not path.is_file():
        return None
    claims = validate(Claims, read_yaml(path), str(path), see="neuroute.plan.claims")
    twice = [name for name, count in Counter(claim.id for claim in claims.claims).items() if count > 1]
    if twice:
        raise NeurouteError(f"{path}: two claims '{twice[0]}'; rename one")
    return claims


def check_claims(claims: Claims, path: Path, artifacts: Mapping[str, object], functions: Mapping[str, object]) -> None:
    """Raise NeurouteError, in one line, if a claim names an artifact or function that the paper does not have."""
    for name in claims.figures:
        _check(name, artifacts, f"{path}: figures", "table or figure of this paper")
    for claim in claims.claims:
        where = f"{path}: claim '{claim.id}'"
        for name in (*claim.artifacts, *(table for each in claim.compare for table in each.table)):
            _check(name, artifacts, where, "table or figure of this paper")
        if claim.function:
            _check(claim.function, functions, where, "function of claims.py")


def _check(name: str, there: Mapping[str, object], where: str, what: str) -> None:
    if name not in there:
        raise NeurouteError(f"{where} names {name}, which is no {what}{did_you_mean(near(name, there)) or ''}")


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
