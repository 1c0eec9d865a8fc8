"""What a paper says: what it claims, each sentence declared beside the function that measures it here; how it tests.

    @claim("Deeper is better than wider", where="abstract; Figure 2", artifact="figure2")
    def deeper(study: Study) -> Finding: ...

`claims.py` in a paper's folder holds them, and as `FIGURES` the names of the paper's main figures; `protocol.py` holds
its test sets, each declared once: where they are used, and what of them differs here, follows from the plan.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar

from neuroute.plan.decodings import Decoding
from neuroute.plan.evaluations import Benchmark
from neuroute.plan.specs import Dataset, Labels

F = TypeVar("F", bound=Callable[..., Any])
# How one gap is made of those of many instances, by the metric that shows it.
AVERAGING = {"gap_pct": "ratio of means", "gap_mean_of_ratios_pct": "mean of ratios"}
NOT_STATED = "not stated"
NEW_INSTANCES = "drawn"
LIBRARY = "public library"
BEST_KNOWN = "best costs published"


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and how it is looked at here."""

    sentence: str
    where: str  # in the paper
    artifact: str  # whose measurements it reads: figure2
    function: str  # package.module:function, of that artifact's Study


def claim(sentence: str, *, where: str, artifact: str) -> Callable[[F], F]:
    """Declare the decorated function, which compares what was measured as the sentence does."""

    def declare(function: F) -> F:
        dotted = f"{function.__module__}:{function.__name__}"
        function.__dict__["claim"] = Claim(sentence, where, artifact, dotted)
        return function

    return declare


def claims_in(module: Any) -> list[Claim]:
    """Those that a module declares, in its order."""
    functions = [value for value in vars(module).values() if isinstance(value, FunctionType)]
    return [f.__dict__["claim"] for f in functions if "claim" in vars(f) and f.__module__ == module.__name__]


# -- how it tests -----------------------------------------------------------------------------------------------------


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
